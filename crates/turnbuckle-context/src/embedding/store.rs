//! Storage of embeddings, and texts without one.

use std::{cmp::Reverse, collections::BinaryHeap};

use rusqlite::{OptionalExtension as _, Rows, Transaction, params};

use super::EmbeddingSubject;
use crate::{ContextError, Database, embedding, text::byte_prefix};

/// Maximum number of bytes of a text sent to a model; most models read less.
const MAX_TEXT_BYTES: usize = 6_000;

/// A text without an embedding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MissingEmbedding {
    /// The row that the text belongs to.
    pub(crate) row: i64,
    /// The text for the model.
    pub(crate) text: String,
}

/// The number of texts with an embedding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EmbeddingCoverage {
    /// Texts with an embedding.
    pub(crate) created: u64,
    /// All texts.
    pub(crate) total: u64,
}

/// Returns texts that lack an embedding of a model, after a row and ordered by row.
pub(crate) fn missing_embeddings(
    database: &Database,
    subject: EmbeddingSubject,
    model: &str,
    after: i64,
    limit: usize,
) -> Result<Vec<MissingEmbedding>, ContextError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    database.read(|db| {
        let mut statement = db.prepare_cached(match subject {
            EmbeddingSubject::Item => MISSING_ITEMS,
            EmbeddingSubject::Chunk => MISSING_CHUNKS,
        })?;
        let pending = statement.query_map(params![model, after, limit], missing_from_row)?;
        Ok(pending.collect::<Result<_, _>>()?)
    })
}

/// Stores embeddings and returns how many. Skips texts that changed or were deleted since they were read.
pub(crate) fn save_embeddings(
    database: &Database,
    subject: EmbeddingSubject,
    model: &str,
    created: Vec<(MissingEmbedding, Vec<f32>)>,
) -> Result<usize, ContextError> {
    let unit = |(pending, vector)| Some((pending, embedding::unit(vector)?));
    let created: Vec<_> = created.into_iter().filter_map(unit).collect();
    database.write(|db| {
        let mut saved = 0;
        for (pending, vector) in &created {
            // Row ids are reused after deletion, so the text has to be compared.
            if current_text(db, subject, pending.row)?.as_ref() == Some(pending) {
                let insert =
                    "INSERT OR REPLACE INTO vector (of, row, model, data) VALUES (?1, ?2, ?3, ?4)";
                let data = embedding::to_bytes(vector);
                db.prepare_cached(insert)?.execute(params![
                    subject.as_str(),
                    pending.row,
                    model,
                    data
                ])?;
                saved += 1;
            }
        }
        Ok(saved)
    })
}

/// Counts the texts that have an embedding of a model, and all texts.
pub(crate) fn coverage(
    database: &Database,
    subject: EmbeddingSubject,
    model: &str,
) -> Result<EmbeddingCoverage, ContextError> {
    let select = match subject {
        EmbeddingSubject::Item => {
            "SELECT count(*), count(v.row) FROM item i
            LEFT JOIN vector v ON v.of = 'item' AND v.row = i.row AND v.model = ?1"
        }
        EmbeddingSubject::Chunk => {
            "SELECT count(*), count(v.row) FROM chunk c JOIN file f ON f.id = c.file
            LEFT JOIN vector v ON v.of = 'chunk' AND v.row = c.id AND v.model = ?1
            WHERE f.tree IS NOT NULL"
        }
    };
    database.read(|db| {
        let count = |row: &rusqlite::Row<'_>| {
            Ok(EmbeddingCoverage {
                total: row.get::<_, i64>(0)?.unsigned_abs(),
                created: row.get::<_, i64>(1)?.unsigned_abs(),
            })
        };
        Ok(db.query_row(select, [model], count)?)
    })
}

const MISSING_ITEMS: &str = "SELECT i.row, i.title, i.detail, i.body FROM item i
    WHERE i.row > ?2 AND NOT EXISTS
        (SELECT 1 FROM vector v WHERE v.of = 'item' AND v.row = i.row AND v.model = ?1)
    ORDER BY i.row LIMIT ?3";

const MISSING_CHUNKS: &str = "SELECT c.id, f.path, c.symbol, c.body
    FROM chunk c JOIN file f ON f.id = c.file
    WHERE c.id > ?2 AND f.tree IS NOT NULL AND NOT EXISTS
        (SELECT 1 FROM vector v WHERE v.of = 'chunk' AND v.row = c.id AND v.model = ?1)
    ORDER BY c.id LIMIT ?3";

/// Returns the current text of a row.
fn current_text(
    db: &Transaction<'_>,
    subject: EmbeddingSubject,
    row: i64,
) -> rusqlite::Result<Option<MissingEmbedding>> {
    let select = match subject {
        EmbeddingSubject::Item => "SELECT row, title, detail, body FROM item WHERE row = ?1",
        EmbeddingSubject::Chunk => {
            "SELECT c.id, f.path, c.symbol, c.body
            FROM chunk c JOIN file f ON f.id = c.file WHERE c.id = ?1"
        }
    };
    db.prepare_cached(select)?
        .query_row([row], missing_from_row)
        .optional()
}

/// Builds the text of a row. The name comes first, so that truncation does not remove it.
fn missing_from_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<MissingEmbedding> {
    let mut text = String::new();
    for column in 1..4 {
        let part = row.get_ref(column)?.as_str()?;
        let room = MAX_TEXT_BYTES.saturating_sub(text.len());
        let part = byte_prefix(part, room);
        if !part.trim().is_empty() {
            text.push_str(part);
            text.push('\n');
        }
    }
    let row = row.get(0)?;
    Ok(MissingEmbedding { row, text })
}

/// Truncates a query text like stored texts.
pub(crate) fn query_text(text: &str) -> &str {
    byte_prefix(text, MAX_TEXT_BYTES)
}

/// The nearest rows, nearest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NearestRows {
    /// Row ids with their cosine similarity, which is positive.
    pub(crate) rows: Vec<(i64, f64)>,
    /// Number of embeddings with other dimensions, which cannot be compared: the model changed without changing its
    /// name.
    pub(crate) skipped: usize,
}

/// Finds the rows nearest to a vector of length 1. Each row consists of an id and an embedding.
///
/// The search is exact: a hundred thousand vectors take some tens of milliseconds, and an approximate index would need upkeep
/// and lose results.
pub(crate) fn nearest(
    mut rows: Rows<'_>,
    vector: &[f32],
    limit: usize,
) -> rusqlite::Result<NearestRows> {
    let mut best = TopRows::new(limit);
    let mut skipped = 0;
    while let Some(row) = rows.next()? {
        match embedding::cosine(vector, row.get_ref(1)?.as_blob()?) {
            Some(cosine) if cosine > 0.0 => best.push(row.get(0)?, cosine),
            Some(_) => {}
            None => skipped += 1,
        }
    }
    let rows = best.into_rows();
    Ok(NearestRows { rows, skipped })
}

/// The best rows so far, with the worst on top of the heap.
struct TopRows {
    limit: usize,
    heap: BinaryHeap<Reverse<ScoredRow>>,
}

/// Ordered by cosine similarity; on a tie the older row is better.
#[derive(PartialEq)]
struct ScoredRow(f32, i64);

impl TopRows {
    fn new(limit: usize) -> Self {
        let heap = BinaryHeap::new();
        Self { limit, heap }
    }

    fn push(&mut self, row: i64, cosine: f32) {
        self.heap.push(Reverse(ScoredRow(cosine, row)));
        if self.heap.len() > self.limit {
            self.heap.pop();
        }
    }

    fn into_rows(self) -> Vec<(i64, f64)> {
        let sorted = self.heap.into_sorted_vec().into_iter();
        sorted
            .map(|Reverse(ScoredRow(cosine, row))| (row, f64::from(cosine)))
            .collect()
    }
}

impl Eq for ScoredRow {}

impl Ord for ScoredRow {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0).then(other.1.cmp(&self.1))
    }
}

impl PartialOrd for ScoredRow {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
