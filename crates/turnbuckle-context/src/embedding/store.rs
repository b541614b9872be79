//! Storage of embeddings, and texts without one.

use std::{cmp::Reverse, collections::BinaryHeap, sync::Arc};

use rusqlite::{Connection, OptionalExtension as _, Rows, params};

use crate::{
    ContextError, DataDir, embedding,
    memory_store::{
        EmbeddingCoverage, ItemNumber, MAX_EMBEDDED_BYTES, MemoryStore, MissingEmbedding,
        Partition, block_on, embedding_text, sqlite::OpenPartition as _,
    },
    text::byte_prefix,
};

/// The texts of a partition that get embeddings.
#[derive(Clone)]
pub(crate) enum EmbeddingSource {
    /// Checkpoints, remediations and skills.
    Items(Arc<dyn MemoryStore>, Partition),
    /// Chunks of indexed files.
    Chunks(Arc<DataDir>, Partition),
}

/// A text without an embedding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MissingText {
    /// The number of the item, or the row of the chunk.
    pub(crate) row: i64,
    /// The text for the model.
    pub(crate) text: String,
}

impl EmbeddingSource {
    /// Counts the texts that have an embedding of a model, and all texts.
    pub(crate) fn coverage(&self, model: &str) -> Result<EmbeddingCoverage, ContextError> {
        match self {
            Self::Items(memory, partition) => {
                Ok(block_on(memory.embedding_coverage(partition, model))?)
            }
            Self::Chunks(data_dir, partition) => match data_dir.open(partition)? {
                Some(database) => database.read(|db| Ok(chunk_coverage(db, model)?)),
                None => Ok(EmbeddingCoverage::default()),
            },
        }
    }

    /// Returns texts that lack an embedding of a model, after a row and ordered by row.
    pub(crate) fn missing(
        &self,
        model: &str,
        after: i64,
        limit: usize,
    ) -> Result<Vec<MissingText>, ContextError> {
        match self {
            Self::Items(memory, partition) => {
                let after = Some(ItemNumber::new(after));
                let missing = memory.missing_embeddings(partition, model, after, limit);
                let missing = block_on(missing)?.into_iter();
                Ok(missing.map(MissingText::from).collect())
            }
            Self::Chunks(data_dir, partition) => match data_dir.open(partition)? {
                Some(database) => database.read(|db| Ok(missing_chunks(db, model, after, limit)?)),
                None => Ok(Vec::new()),
            },
        }
    }

    /// Stores embeddings and returns how many. Skips texts that changed or were deleted since they were read.
    pub(crate) fn save(
        &self,
        model: &str,
        created: Vec<(MissingText, Vec<f32>)>,
    ) -> Result<usize, ContextError> {
        let unit = |(missing, vector)| Some((missing, embedding::unit(vector)?));
        let created = created.into_iter().filter_map(unit);
        match self {
            Self::Items(memory, partition) => {
                let created = created.map(|(missing, vector)| (missing.into(), vector));
                Ok(block_on(memory.save_embeddings(
                    partition,
                    model,
                    created.collect(),
                ))?)
            }
            Self::Chunks(data_dir, partition) => match data_dir.open(partition)? {
                Some(database) => {
                    let created: Vec<_> = created.collect();
                    database.write(|db| Ok(save_chunks(db, model, &created)?))
                }
                None => Ok(0),
            },
        }
    }
}

impl From<MissingEmbedding> for MissingText {
    fn from(missing: MissingEmbedding) -> Self {
        Self {
            row: missing.number.get(),
            text: missing.text,
        }
    }
}

impl From<MissingText> for MissingEmbedding {
    fn from(missing: MissingText) -> Self {
        Self {
            number: ItemNumber::new(missing.row),
            text: missing.text,
        }
    }
}

fn chunk_coverage(db: &Connection, model: &str) -> rusqlite::Result<EmbeddingCoverage> {
    let select = "SELECT count(*), count(v.row) FROM chunk c JOIN file f ON f.id = c.file \
                  LEFT JOIN vector v ON v.of = 'chunk' AND v.row = c.id AND v.model = ?1 \
                  WHERE f.tree IS NOT NULL";
    db.query_row(select, [model], |row| {
        Ok(EmbeddingCoverage {
            total: row.get::<_, i64>(0)?.unsigned_abs(),
            created: row.get::<_, i64>(1)?.unsigned_abs(),
        })
    })
}

fn missing_chunks(
    db: &Connection,
    model: &str,
    after: i64,
    limit: usize,
) -> rusqlite::Result<Vec<MissingText>> {
    let select = "SELECT c.id, f.path, c.symbol, c.body \
                  FROM chunk c JOIN file f ON f.id = c.file \
                  WHERE c.id > ?2 AND f.tree IS NOT NULL AND NOT EXISTS \
                  (SELECT 1 FROM vector v WHERE v.of = 'chunk' AND v.row = c.id AND v.model = ?1) \
                  ORDER BY c.id LIMIT ?3";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut select = db.prepare_cached(select)?;
    select
        .query_map(params![model, after, limit], missing_from_row)?
        .collect()
}

fn save_chunks(
    db: &Connection,
    model: &str,
    created: &[(MissingText, Vec<f32>)],
) -> rusqlite::Result<usize> {
    let current = "SELECT c.id, f.path, c.symbol, c.body \
                   FROM chunk c JOIN file f ON f.id = c.file WHERE c.id = ?1";
    let mut current = db.prepare_cached(current)?;
    let insert =
        "INSERT OR REPLACE INTO vector (of, row, model, data) VALUES ('chunk', ?1, ?2, ?3)";
    let mut insert = db.prepare_cached(insert)?;
    let mut saved = 0;
    for (missing, vector) in created {
        let now = current
            .query_row([missing.row], missing_from_row)
            .optional()?;
        if now.as_ref() == Some(missing) {
            insert.execute(params![missing.row, model, embedding::to_bytes(vector)])?;
            saved += 1;
        }
    }
    Ok(saved)
}

/// Builds the text of a row. The name comes first, so that truncation does not remove it.
fn missing_from_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<MissingText> {
    let part = |column: usize| -> rusqlite::Result<&str> { Ok(row.get_ref(column)?.as_str()?) };
    Ok(MissingText {
        text: embedding_text([part(1)?, part(2)?, part(3)?]),
        row: row.get(0)?,
    })
}

/// Truncates a query text like stored texts.
pub(crate) fn query_text(text: &str) -> &str {
    byte_prefix(text, MAX_EMBEDDED_BYTES)
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
pub(crate) struct TopRows {
    limit: usize,
    heap: BinaryHeap<Reverse<ScoredRow>>,
}

/// Ordered by cosine similarity; on a tie the older row is better.
#[derive(PartialEq)]
struct ScoredRow(f32, i64);

impl TopRows {
    pub(crate) fn new(limit: usize) -> Self {
        let heap = BinaryHeap::new();
        Self { limit, heap }
    }

    pub(crate) fn push(&mut self, row: i64, cosine: f32) {
        self.heap.push(Reverse(ScoredRow(cosine, row)));
        if self.heap.len() > self.limit {
            self.heap.pop();
        }
    }

    pub(crate) fn into_rows(self) -> Vec<(i64, f64)> {
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
