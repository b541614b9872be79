//! Exact nearest-neighbor search.
//!
//! A hundred thousand vectors take some tens of milliseconds. An approximate index would need upkeep and lose results.

use std::{cmp::Reverse, collections::BinaryHeap};

use rusqlite::Rows;

use super::vector;

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
pub(crate) fn nearest(
    mut rows: Rows<'_>,
    vector: &[f32],
    limit: usize,
) -> rusqlite::Result<NearestRows> {
    let mut best = TopRows::new(limit);
    let mut skipped = 0;
    while let Some(row) = rows.next()? {
        match vector::cosine(vector, row.get_ref(1)?.as_blob()?) {
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
