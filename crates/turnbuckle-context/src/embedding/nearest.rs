//! The embeddings that are nearest to one, found by looking at all of them.
//!
//! A hundred thousand take some tens of milliseconds; an index would have to be kept true, and forgets.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rusqlite::Rows;

use super::vector;

/// What was found, nearest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Nearest {
    /// Rows, each with the cosine of its angle: 1 for the same direction. What points away is no answer.
    pub(crate) rows: Vec<(i64, f64)>,
    /// Embeddings of another size, which cannot be compared: the model changed under its name.
    pub(crate) skipped: usize,
}

/// Finds the nearest to a vector of length 1, of rows that are a number and an embedding.
pub(crate) fn nearest(
    mut rows: Rows<'_>,
    vector: &[f32],
    limit: usize,
) -> rusqlite::Result<Nearest> {
    let mut best = Best::of(limit);
    let mut skipped = 0;
    while let Some(row) = rows.next()? {
        match vector::cosine(vector, row.get_ref(1)?.as_blob()?) {
            Some(cosine) if cosine > 0.0 => best.offer(row.get(0)?, cosine),
            Some(_) => {}
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

    fn into_rows(self) -> Vec<(i64, f64)> {
        let sorted = self.heap.into_sorted_vec().into_iter();
        sorted
            .map(|Reverse(Scored(cosine, row))| (row, f64::from(cosine)))
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
