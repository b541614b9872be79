//! Finding the files of an indexed tree that a question is about, and the places in them.
//!
//! Chunks are found by their words (FTS5, bm25 with a weight per column) and, where embeddings are kept, by their
//! meaning. Files are then ranked by their chunks and by what code says about itself: its paths and its definitions.

pub(crate) mod dense;
mod filter;
mod lexical;
mod paths;
mod question;
mod rank;
mod related;
pub(crate) mod stem;

use std::collections::HashMap;

use rusqlite::Transaction;

use self::filter::Filter;
use self::question::Question;
use self::rank::{Ranked, rank};
use crate::database::Fault;
use crate::fuse::Fusion;
use crate::index::Tree;
use crate::{ContextError, Database};

/// Files in one answer.
const MOST_FILES: usize = 100;
/// Places shown of one file.
const MOST_PLACES: usize = 5;
/// In a tree of more chunks, words for the same things are not looked for: they are common, and would take longest.
const MOST_FOR_RELATED: u64 = 50_000;
/// What the list by meaning weighs beside the list by words.
const WEIGHT_OF_MEANING: f64 = 1.0;

/// What to look for in a tree.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CodeQuery {
    /// A question, names, a path, an error message: any text.
    pub text: String,
    /// How many files are wanted; 100 at most.
    pub limit: usize,
    /// Only files in this language.
    pub language: Option<String>,
    /// Only files whose path below the root, or from there on, begins with this, or matches it if it has a `*`, `?`, `[` or `{`.
    pub path: Option<String>,
    /// The text as an embedding, to look for its meaning too.
    pub dense: Option<Dense>,
}

/// A text as an embedding.
#[derive(Clone, Debug)]
pub struct Dense {
    /// The model that made it, and that made those it is compared with.
    pub model: String,
    /// The embedding, of length 1.
    pub vector: Vec<f32>,
}

/// A file that was found.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FileHit {
    /// The path below the root, with `/`.
    pub path: String,
    /// Its language.
    pub language: String,
    /// How well it fits, between 0 and 1; the best one has 1.
    pub score: f64,
    /// The places in it that fit best, best first.
    pub chunks: Vec<ChunkHit>,
}

/// A place in a file that was found.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ChunkHit {
    /// Its first line, counted from 1.
    pub first_line: u32,
    /// Its last line.
    pub last_line: u32,
    /// The definition it begins with; empty if there is none.
    pub symbol: String,
    /// What that is: a function, a type; empty if it is neither.
    pub kind: String,
    /// The text.
    pub body: String,
    /// How well it fits, beside the best place of the file, which has 1.
    pub score: f64,
}

impl CodeQuery {
    /// Asks for the ten best files.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            limit: 10,
            language: None,
            path: None,
            dense: None,
        }
    }
}

/// Finds files of a tree, best first. What a run that is not finished has written is not seen.
pub fn search(db: &Database, tree: &Tree, query: &CodeQuery) -> Result<Vec<FileHit>, ContextError> {
    let mut question = Question::new(&query.text);
    if tree.counts.chunks > MOST_FOR_RELATED {
        question.related_fts = None;
    }
    let filter = Filter::new(tree, query)?;
    db.read(|db| {
        let by_words = rank(&question, lexical::candidates(db, &question, &filter)?);
        let mut files = match &query.dense {
            None => by_words,
            Some(dense) => {
                let by_meaning = rank(&question, dense::candidates(db, dense, &filter)?);
                fuse(by_words, by_meaning)
            }
        };
        files.truncate(query.limit.min(MOST_FILES));
        read_hits(db, files)
    })
}

fn fuse(by_words: Vec<Ranked>, by_meaning: Vec<Ranked>) -> Vec<Ranked> {
    let ids = |list: &[Ranked]| list.iter().map(|file| file.id).collect::<Vec<_>>();
    let order = Fusion::new()
        .list(1.0, ids(&by_words))
        .list(WEIGHT_OF_MEANING, ids(&by_meaning))
        .ranked();
    let mut meanings: HashMap<i64, Ranked> = by_id(by_meaning);
    let mut words: HashMap<i64, Ranked> = by_id(by_words);
    let both = order.into_iter().filter_map(|(id, score)| {
        let file = match (words.remove(&id), meanings.remove(&id)) {
            (Some(mut file), Some(same)) => {
                let lists = Fusion::new().list(1.0, file.places());
                file.chunks = lists.list(WEIGHT_OF_MEANING, same.places()).ranked();
                Some(file)
            }
            (one, other) => one.or(other),
        };
        file.map(|file| Ranked { score, ..file })
    });
    both.collect()
}

fn by_id(files: Vec<Ranked>) -> HashMap<i64, Ranked> {
    files.into_iter().map(|file| (file.id, file)).collect()
}

fn read_hits(db: &Transaction<'_>, files: Vec<Ranked>) -> Result<Vec<FileHit>, Fault> {
    let best = files.first().map_or(1.0, |file| file.score);
    let mut hits = Vec::with_capacity(files.len());
    for file in files {
        let first = file.chunks.first().map_or(1.0, |(_, score)| *score);
        let places = file.chunks.iter().take(MOST_PLACES);
        let chunks = places.map(|(id, score)| read_chunk(db, *id, relative(*score, first)));
        hits.push(FileHit {
            chunks: chunks.collect::<Result<_, _>>()?,
            path: file.path,
            language: file.language,
            score: relative(file.score, best),
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

fn relative(score: f64, best: f64) -> f64 {
    if best > 0.0 {
        (score / best).min(1.0)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests;
