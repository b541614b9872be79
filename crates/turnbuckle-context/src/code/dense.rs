//! Candidate chunks by vector similarity.

use rusqlite::{Transaction, params_from_iter, types::Value};

use super::{EmbeddingQuery, filter::SqlFilter, rank::ChunkCandidate};
use crate::embedding::nearest;

/// Maximum number of chunks that are ranked.
const MAX_VECTOR_CANDIDATES: usize = 200;

/// Returns the nearest chunks, nearest first.
pub(super) fn vector_candidates(
    db: &Transaction<'_>,
    dense: &EmbeddingQuery,
    filter: &SqlFilter,
) -> rusqlite::Result<Vec<ChunkCandidate>> {
    let select = format!(
        "SELECT c.id, v.data FROM file f JOIN chunk c ON c.file = f.id
        JOIN vector v ON v.of = 'chunk' AND v.row = c.id AND v.model = ?1
        WHERE ?2 AND {}",
        filter.condition
    );
    let fixed = [Value::from(dense.model.clone()), Value::from(1)];
    let values = fixed.into_iter().chain(filter.values.iter().cloned());
    let mut statement = db.prepare_cached(&select)?;
    let rows = statement.query(params_from_iter(values))?;
    let near = nearest(rows, &dense.vector, MAX_VECTOR_CANDIDATES)?
        .rows
        .into_iter();
    near.map(|(chunk, cosine)| read_candidate(db, chunk, cosine))
        .collect()
}

fn read_candidate(
    db: &Transaction<'_>,
    chunk: i64,
    score: f64,
) -> rusqlite::Result<ChunkCandidate> {
    let select = "SELECT f.id, f.path, f.language, c.defs
                  FROM chunk c JOIN file f ON f.id = c.file WHERE c.id = ?1";
    db.prepare_cached(select)?.query_row([chunk], |row| {
        Ok(ChunkCandidate {
            chunk,
            file: row.get(0)?,
            path: row.get(1)?,
            language: row.get(2)?,
            defs: row.get(3)?,
            score,
        })
    })
}
