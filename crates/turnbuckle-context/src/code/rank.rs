//! From chunks to files.
//!
//! Plain bm25 ranks chunks, and a question is about files. A file is worth its best chunk and a little of the next ones.
//! What names the file or the folder, and what defines the name that is asked for, counts more; tests, examples and
//! documentation count less unless they are asked for, for they use much and decide nothing.

use std::collections::HashMap;

use super::paths;
use super::question::Question;

/// What the chunks after the best add.
const NEXT_CHUNKS: f64 = 0.35;
/// How many of them.
const MOST_NEXT: usize = 3;
/// What a file of tests is worth when they are not asked for.
const TEST: f64 = 0.5;
/// What each word of the question adds that is in the name of the file or of its folder.
const WORD_IN_PATH: f64 = 0.25;
/// And each word that is another for one of the question.
const RELATED_IN_PATH: f64 = 0.2;
/// What documentation is worth when it is not asked for: it has the words of every question, and code has the answer.
const PROSE: f64 = 0.5;
/// What a file of declarations is worth, which only repeats the names of another file.
const DECLARATIONS: f64 = 0.7;
/// What defining a name of the question is worth in a sentence, and when nothing but the name is asked for.
const DEFINES: f64 = 1.25;
const DEFINES_THE_NAME: f64 = 1.6;
/// What it is worth to be the file whose path is asked for.
const PATH: f64 = 3.0;

/// A chunk that was found, with its file.
pub(super) struct Candidate {
    pub(super) chunk: i64,
    pub(super) file: i64,
    pub(super) path: String,
    pub(super) language: String,
    /// The names that it defines, parted by spaces.
    pub(super) defs: String,
    /// More is better.
    pub(super) score: f64,
}

/// A file with the chunks that were found in it, best first.
pub(super) struct Ranked {
    pub(super) id: i64,
    pub(super) path: String,
    pub(super) language: String,
    pub(super) score: f64,
    pub(super) chunks: Vec<(i64, f64)>,
}

impl Ranked {
    /// Its chunks, best first, without their scores.
    pub(super) fn places(&self) -> Vec<i64> {
        self.chunks.iter().map(|(chunk, _)| *chunk).collect()
    }
}

/// Ranks the files of these chunks, best first; of equal ones the one whose path comes first.
pub(super) fn rank(question: &Question, candidates: Vec<Candidate>) -> Vec<Ranked> {
    let files = gather(candidates).into_values();
    let mut files: Vec<Ranked> = files.map(|chunks| judge(question, chunks)).collect();
    files.sort_by(|one, other| {
        let by_score = other.score.total_cmp(&one.score);
        by_score.then_with(|| one.path.cmp(&other.path))
    });
    files
}

/// Puts the chunks of a file together, best first.
fn gather(mut candidates: Vec<Candidate>) -> HashMap<i64, Vec<Candidate>> {
    candidates.sort_by(|one, other| other.score.total_cmp(&one.score));
    let mut files: HashMap<i64, Vec<Candidate>> = HashMap::new();
    for candidate in candidates {
        files.entry(candidate.file).or_default().push(candidate);
    }
    files
}

/// Judges one file by its chunks, of which there is at least one.
fn judge(question: &Question, chunks: Vec<Candidate>) -> Ranked {
    let first = &chunks[0];
    let (id, path, language) = (first.file, first.path.clone(), first.language.clone());
    let worth = worth_of_chunks(&chunks) * worth_of_path(question, &path, &language);
    let mut most: f64 = 1.0;
    let mut places = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        let definitions = worth_of_definitions(question, &chunk.defs);
        most = most.max(definitions);
        places.push((chunk.chunk, chunk.score * definitions));
    }
    places.sort_by(|one, other| other.1.total_cmp(&one.1));
    Ranked {
        id,
        path,
        language,
        score: worth * most,
        chunks: places,
    }
}

fn worth_of_definitions(question: &Question, defs: &str) -> f64 {
    match (question.asks_for_one_of(defs), question.is_name) {
        (false, _) => 1.0,
        (true, false) => DEFINES,
        (true, true) => DEFINES_THE_NAME,
    }
}

fn worth_of_chunks(chunks: &[Candidate]) -> f64 {
    let mut scores = chunks.iter().map(|chunk| chunk.score);
    let best = scores.next().unwrap_or(0.0);
    let next = scores.take(MOST_NEXT).zip(2_u32..);
    let next: f64 = next.map(|(score, rank)| score / f64::from(rank)).sum();
    best + NEXT_CHUNKS * next
}

fn worth_of_path(question: &Question, path: &str, language: &str) -> f64 {
    let mut worth = 1.0;
    for word in paths::words_of(path) {
        if question.words.contains(&word) {
            worth += WORD_IN_PATH;
        } else if question.related.contains(&word) {
            worth += RELATED_IN_PATH;
        }
    }
    if paths::is_test(path) && !question.wants_tests {
        worth *= TEST;
    }
    if paths::is_prose(path, language) && !question.wants_prose {
        worth *= PROSE;
    }
    if paths::is_declarations(path) {
        worth *= DECLARATIONS;
    }
    if question
        .paths
        .iter()
        .any(|asked| paths::ends_with(path, asked))
    {
        worth *= PATH;
    }
    worth
}
