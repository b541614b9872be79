//! What is near a question by its meaning, beside what has its words.

use std::collections::HashMap;

use rusqlite::{Connection, params};

use super::{ItemKind, MemoryHit, stored};
use crate::{code::EmbeddingQuery, embedding, fuse::RankFusion};

/// How much the order by meaning counts against the order by words.
const VECTOR_WEIGHT: f64 = 0.3;

/// The rows of a kind that are nearest, nearest first, each with its cosine.
pub(super) fn nearest_rows(
    db: &Connection,
    kind: ItemKind,
    dense: &EmbeddingQuery,
    most: usize,
) -> rusqlite::Result<Vec<(i64, f64)>> {
    let range = stored::row_range(kind);
    let select = "SELECT row, data FROM vector \
                  WHERE of = 'item' AND row BETWEEN ?1 AND ?2 AND model = ?3";
    let mut select = db.prepare_cached(select)?;
    let rows = select.query(params![range.start(), range.end(), dense.model])?;
    Ok(embedding::nearest(rows, &dense.vector, most)?.rows)
}

/// Makes one order of two, best first.
///
/// The scores of words and of meaning cannot be compared, so the ranks decide. The score that is told is that of the
/// words, raised by the nearness; it never rises along the list.
pub(super) fn fuse_hits(words: Vec<MemoryHit>, near: Vec<MemoryHit>) -> Vec<MemoryHit> {
    let key = |hit: &MemoryHit| (hit.source, hit.item.row);
    let order = RankFusion::new()
        .list(1.0, words.iter().map(key))
        .list(VECTOR_WEIGHT, near.iter().map(key))
        .ranked();
    let mut hits: HashMap<_, MemoryHit> = HashMap::new();
    for hit in words {
        hits.insert(key(&hit), hit);
    }
    for hit in near {
        let nearness = VECTOR_WEIGHT * hit.score.clamp(0.0, 1.0);
        let known = hits
            .entry(key(&hit))
            .or_insert(MemoryHit { score: 0.0, ..hit });
        known.score = 1.0 - (1.0 - known.score) * (1.0 - nearness);
    }
    let mut last = 1.0_f64;
    let ranked = order.into_iter().filter_map(|(key, _)| hits.remove(&key));
    ranked
        .map(|mut hit| {
            last = last.min(hit.score);
            hit.score = last;
            hit
        })
        .collect()
}
