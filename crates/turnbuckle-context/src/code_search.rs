//! Search in an indexed repository.
//!
//! Chunks are found by words (FTS5, bm25 with a weight per column) and, if embeddings exist, by vector. Files are
//! ranked by their chunks, their paths and the definitions they contain.

pub(crate) mod candidates;
mod filter;
mod path_signals;
mod query_intent;
mod rank;
pub(crate) mod synonyms;

use std::collections::HashMap;

use rusqlite::Transaction;

use self::{
    filter::SqlFilter,
    query_intent::QueryIntent,
    rank::{RankedFile, rank},
};
use crate::{
    ContextError, Database, code_index::IndexTree, storage::database::TransactionError,
    text::rank_fusion::RankFusion,
};

/// Maximum number of files in one result.
const MAX_FILES: usize = 100;
/// Maximum number of chunks returned per file.
const MAX_CHUNKS_PER_FILE: usize = 5;
/// Synonyms are not searched in trees with more chunks: they are common words and slow to search.
const MAX_CHUNKS_FOR_SYNONYMS: u64 = 50_000;
/// Weight of the vector ranking relative to the lexical ranking.
const VECTOR_WEIGHT: f64 = 1.0;

/// A search in an indexed tree.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CodeQuery {
    /// Any text: a question, names, a path or an error message.
    pub text: String,
    /// Maximum number of files, up to 100.
    pub limit: usize,
    /// Restricts the search to files in this language.
    pub language: Option<String>,
    /// Restricts the search by path. Paths relative to the root must start with this text, or match it as a glob if it
    /// contains `*`, `?`, `[` or `{`. An absolute path inside the root is accepted, too.
    pub path: Option<String>,
    /// Embedding of the text, for vector search.
    pub embedding: Option<EmbeddingQuery>,
}

/// An embedding of a query text.
#[derive(Clone, Debug)]
pub struct EmbeddingQuery {
    /// The embedding model. Only embeddings of the same model are compared.
    pub model: String,
    /// The embedding, normalized to length 1.
    pub vector: Vec<f32>,
}

/// A file that matches a query.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FileHit {
    /// The path relative to the root, with `/`.
    pub path: String,
    /// The language.
    pub language: String,
    /// The score from 0 to 1; the best file has 1.
    pub score: f64,
    /// The best matching chunks, best first.
    pub chunks: Vec<ChunkHit>,
}

/// A chunk that matches a query.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ChunkHit {
    /// The first line, counted from 1.
    pub first_line: u32,
    /// The last line.
    pub last_line: u32,
    /// The definition that the chunk starts with, or an empty string.
    pub symbol: String,
    /// The kind of the definition, such as `function` or `type`, or an empty string.
    pub kind: String,
    /// The text.
    pub body: String,
    /// The score relative to the best chunk of the file, which has 1.
    pub score: f64,
}

impl CodeQuery {
    /// Creates a query for the ten best files.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            limit: 10,
            language: None,
            path: None,
            embedding: None,
        }
    }
}

/// Returns the files of a tree that match the query, best first. Data of unfinished index runs is not visible.
pub fn search(
    db: &Database,
    tree: &IndexTree,
    query: &CodeQuery,
) -> Result<Vec<FileHit>, ContextError> {
    let mut intent = QueryIntent::new(&query.text);
    if tree.counts.chunks > MAX_CHUNKS_FOR_SYNONYMS {
        intent.synonym_fts = None;
    }
    let filter = SqlFilter::new(tree, query)?;
    db.read(|db| {
        let lexical = rank(
            &intent,
            candidates::lexical_candidates(db, &intent, &filter)?,
        );
        let mut files = match &query.embedding {
            None => lexical,
            Some(embedding) => {
                let by_vector = rank(
                    &intent,
                    candidates::vector_candidates(db, embedding, &filter)?,
                );
                fuse_rankings(lexical, by_vector)
            }
        };
        files.truncate(query.limit.min(MAX_FILES));
        read_hits(db, files)
    })
}

fn fuse_rankings(lexical: Vec<RankedFile>, by_vector: Vec<RankedFile>) -> Vec<RankedFile> {
    let ids = |list: &[RankedFile]| list.iter().map(|file| file.id).collect::<Vec<_>>();
    let order = RankFusion::new()
        .list(1.0, ids(&lexical))
        .list(VECTOR_WEIGHT, ids(&by_vector))
        .ranked();
    let mut vector_files: HashMap<i64, RankedFile> = by_id(by_vector);
    let mut lexical_files: HashMap<i64, RankedFile> = by_id(lexical);
    let both = order.into_iter().filter_map(|(id, score)| {
        let file = match (lexical_files.remove(&id), vector_files.remove(&id)) {
            (Some(mut file), Some(same)) => {
                let lists = RankFusion::new().list(1.0, file.chunk_ids());
                file.chunks = lists.list(VECTOR_WEIGHT, same.chunk_ids()).ranked();
                Some(file)
            }
            (one, other) => one.or(other),
        };
        file.map(|file| RankedFile { score, ..file })
    });
    both.collect()
}

fn by_id(files: Vec<RankedFile>) -> HashMap<i64, RankedFile> {
    files.into_iter().map(|file| (file.id, file)).collect()
}

fn read_hits(
    db: &Transaction<'_>,
    files: Vec<RankedFile>,
) -> Result<Vec<FileHit>, TransactionError> {
    let best = files.first().map_or(1.0, |file| file.score);
    let mut hits = Vec::with_capacity(files.len());
    for file in files {
        let first = file.chunks.first().map_or(1.0, |(_, score)| *score);
        let best_chunks = file.chunks.iter().take(MAX_CHUNKS_PER_FILE);
        let chunks =
            best_chunks.map(|(id, score)| read_chunk(db, *id, relative_score(*score, first)));
        hits.push(FileHit {
            chunks: chunks.collect::<Result<_, _>>()?,
            path: file.path,
            language: file.language,
            score: relative_score(file.score, best),
        });
    }
    Ok(hits)
}

fn read_chunk(db: &Transaction<'_>, id: i64, score: f64) -> rusqlite::Result<ChunkHit> {
    let select = "SELECT first_line, last_line, symbol, kind, body FROM chunk WHERE id = ?1";
    db.prepare_cached(select)?.query_row([id], |row| {
        Ok(ChunkHit {
            first_line: row.get(0)?,
            last_line: row.get(1)?,
            symbol: row.get(2)?,
            kind: row.get(3)?,
            body: row.get(4)?,
            score,
        })
    })
}

fn relative_score(score: f64, best: f64) -> f64 {
    if best > 0.0 {
        (score / best).min(1.0)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests;
