//! Ranks files by their candidate chunks.
//!
//! bm25 ranks chunks, but a query is about files. The score of a file is its best chunk plus a part of the next ones.
//! It rises if the file or folder name contains words of the query and if the file defines a requested name. It falls
//! for tests, examples and documentation that the query does not ask for.

use std::collections::HashMap;

use super::{path_signals, query_intent::QueryIntent};

/// Weight of the chunks after the best one.
const NEXT_CHUNKS_WEIGHT: f64 = 0.35;
/// Maximum number of chunks after the best one that count.
const MAX_NEXT_CHUNKS: usize = 3;
/// Factor for test files if the query does not ask for tests.
const TEST_FACTOR: f64 = 0.5;
/// Bonus for each query word in the name of the file or its folder.
const PATH_WORD_BONUS: f64 = 0.25;
/// Bonus for each synonym of a query word there.
const PATH_SYNONYM_BONUS: f64 = 0.2;
/// Factor for documentation if the query does not ask for it: it contains the words of many queries, but not the code.
const DOCUMENTATION_FACTOR: f64 = 0.5;
/// Factor for declaration files, which only repeat the names of another file.
const DECLARATION_FACTOR: f64 = 0.7;
/// Factors for defining a requested name: in a sentence, and if the query is only the name.
const DEFINITION_FACTOR: f64 = 1.25;
const EXACT_DEFINITION_FACTOR: f64 = 1.6;
/// Factor for a file if the query contains its path.
const REQUESTED_PATH_FACTOR: f64 = 3.0;

/// A matching chunk and its file.
pub(super) struct ChunkCandidate {
    pub(super) chunk: i64,
    pub(super) file: i64,
    pub(super) path: String,
    pub(super) language: String,
    /// The names that the chunk defines, separated by spaces.
    pub(super) defs: String,
    /// Higher is better.
    pub(super) score: f64,
}

/// A file with its matching chunks, best first.
pub(super) struct RankedFile {
    pub(super) id: i64,
    pub(super) path: String,
    pub(super) language: String,
    pub(super) score: f64,
    pub(super) chunks: Vec<(i64, f64)>,
}

impl RankedFile {
    /// Returns the ids of the chunks, best first.
    pub(super) fn chunk_ids(&self) -> Vec<i64> {
        self.chunks.iter().map(|(chunk, _)| *chunk).collect()
    }
}

/// Ranks the files of these chunks, best first; equal scores are ordered by path.
pub(super) fn rank(intent: &QueryIntent, candidates: Vec<ChunkCandidate>) -> Vec<RankedFile> {
    let files = group_by_file(candidates).into_values();
    let mut files: Vec<RankedFile> = files.map(|chunks| score_file(intent, chunks)).collect();
    files.sort_by(|one, other| {
        let by_score = other.score.total_cmp(&one.score);
        by_score.then_with(|| one.path.cmp(&other.path))
    });
    files
}

/// Groups the chunks by file, best first.
fn group_by_file(mut candidates: Vec<ChunkCandidate>) -> HashMap<i64, Vec<ChunkCandidate>> {
    candidates.sort_by(|one, other| other.score.total_cmp(&one.score));
    let mut files: HashMap<i64, Vec<ChunkCandidate>> = HashMap::new();
    for candidate in candidates {
        files.entry(candidate.file).or_default().push(candidate);
    }
    files
}

/// Scores a file by its chunks, of which there is at least one.
fn score_file(intent: &QueryIntent, chunks: Vec<ChunkCandidate>) -> RankedFile {
    let first = &chunks[0];
    let (id, path, language) = (first.file, first.path.clone(), first.language.clone());
    let score = score_chunks(&chunks) * path_factor(intent, &path, &language);
    let mut best_factor: f64 = 1.0;
    let mut scored_chunks = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        let definitions = definition_factor(intent, &chunk.defs);
        best_factor = best_factor.max(definitions);
        scored_chunks.push((chunk.chunk, chunk.score * definitions));
    }
    scored_chunks.sort_by(|one, other| other.1.total_cmp(&one.1));
    RankedFile {
        id,
        path,
        language,
        score: score * best_factor,
        chunks: scored_chunks,
    }
}

fn definition_factor(intent: &QueryIntent, defs: &str) -> f64 {
    match (intent.defines_requested_name(defs), intent.is_name) {
        (false, _) => 1.0,
        (true, false) => DEFINITION_FACTOR,
        (true, true) => EXACT_DEFINITION_FACTOR,
    }
}

fn score_chunks(chunks: &[ChunkCandidate]) -> f64 {
    let mut scores = chunks.iter().map(|chunk| chunk.score);
    let best = scores.next().unwrap_or(0.0);
    let next = scores.take(MAX_NEXT_CHUNKS).zip(2_u32..);
    let next: f64 = next.map(|(score, rank)| score / f64::from(rank)).sum();
    best + NEXT_CHUNKS_WEIGHT * next
}

fn path_factor(intent: &QueryIntent, path: &str, language: &str) -> f64 {
    let mut score = 1.0;
    for word in path_signals::path_words(path) {
        if intent.words.contains(&word) {
            score += PATH_WORD_BONUS;
        } else if intent.synonyms.contains(&word) {
            score += PATH_SYNONYM_BONUS;
        }
    }
    if path_signals::is_test_path(path) && !intent.wants_tests {
        score *= TEST_FACTOR;
    }
    if path_signals::is_documentation(path, language) && !intent.wants_documentation {
        score *= DOCUMENTATION_FACTOR;
    }
    if path_signals::is_declaration_file(path) {
        score *= DECLARATION_FACTOR;
    }
    if intent
        .paths
        .iter()
        .any(|requested| path_signals::path_ends_with(path, requested))
    {
        score *= REQUESTED_PATH_FACTOR;
    }
    score
}
