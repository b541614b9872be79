//! The embeddings that are nearest to one, found by looking at all of them.
//!
//! A hundred thousand take some tens of milliseconds; an index would have to be kept true, and forgets.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rusqlite::{Transaction, params};

use super::{Of, vector};
use crate::database::Fault;
use crate::{ContextError, Database};

/// What was found, nearest first.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Nearest {
    /// Rows, each with the cosine of its angle: 1 for the same direction.
    pub rows: Vec<(i64, f32)>,
    /// Embeddings of another size, which cannot be compared: the model changed under its name.
    pub skipped: usize,
}

/// Finds the nearest to a vector of length 1; parts of files in one tree only, if that is given.
pub fn nearest(
    database: &Database,
    of: Of,
    tree: Option<i64>,
    model: &str,
    vector: &[f32],
    limit: usize,
) -> Result<Nearest, ContextError> {
    database.read(|db| nearest_in(db, of, tree, model, vector, limit))
}

fn nearest_in(
    db: &Transaction<'_>,
    of: Of,
    tree: Option<i64>,
    model: &str,
    vector: &[f32],
    limit: usize,
) -> Result<Nearest, Fault> {
    let mut statement = db.prepare_cached(match of {
        Of::Item => "SELECT row, data FROM vector WHERE of = 'item' AND model = ?1 AND ?2 IS ?2",
        Of::Chunk => {
            "SELECT v.row, v.data
            FROM file f JOIN chunk c ON c.file = f.id
            JOIN vector v ON v.of = 'chunk' AND v.row = c.id AND v.model = ?1
            WHERE f.tree IS NOT NULL AND (?2 IS NULL OR f.tree = ?2)"
        }
    })?;
    let mut rows = statement.query(params![model, tree])?;
    let mut best = Best::of(limit);
    let mut skipped = 0;
    while let Some(row) = rows.next()? {
        match vector::cosine(
            vector,
            row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?,
        ) {
            Some(cosine) => best.offer(row.get(0)?, cosine),
            None => skipped += 1,
        }
    }
    let rows = best.into_rows();
    Ok(Nearest { rows, skipped })
}

/// The best so far; the worst of them is at hand.
struct Best {
    limit: usize,
    heap: BinaryHeap<Reverse<Scored>>,
}

/// Ordered by cosine; of two that are equal the older row is the better.
#[derive(PartialEq)]
struct Scored(f32, i64);

impl Best {
    fn of(limit: usize) -> Self {
        let heap = BinaryHeap::new();
        Self { limit, heap }
    }

    fn offer(&mut self, row: i64, cosine: f32) {
        self.heap.push(Reverse(Scored(cosine, row)));
        if self.heap.len() > self.limit {
            self.heap.pop();
        }
    }

    fn into_rows(self) -> Vec<(i64, f32)> {
        let sorted = self.heap.into_sorted_vec().into_iter();
        sorted
            .map(|Reverse(Scored(cosine, row))| (row, cosine))
            .collect()
    }
}

impl Eq for Scored {}

impl Ord for Scored {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0).then(other.1.cmp(&self.1))
    }
}

impl PartialOrd for Scored {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
