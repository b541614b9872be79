//! The chunks that fit a question by their meaning.

use rusqlite::{Transaction, params_from_iter, types::Value};

use super::Dense;
use super::filter::Filter;
use super::rank::Candidate;
use crate::embedding::nearest;

/// Chunks that are ranked.
const MOST: usize = 200;

/// The nearest chunks, nearest first.
pub(super) fn candidates(
    db: &Transaction<'_>,
    dense: &Dense,
    filter: &Filter,
) -> rusqlite::Result<Vec<Candidate>> {
    let select = format!(
        "SELECT c.id, v.data FROM file f JOIN chunk c ON c.file = f.id
        JOIN vector v ON v.of = 'chunk' AND v.row = c.id AND v.model = ?1
        WHERE ?2 AND {}",
        filter.condition
    );
    let question = [Value::from(dense.model.clone()), Value::from(1)];
    let values = question.into_iter().chain(filter.values.iter().cloned());
    let mut statement = db.prepare_cached(&select)?;
    let rows = statement.query(params_from_iter(values))?;
    let near = nearest(rows, &dense.vector, MOST)?.rows.into_iter();
    near.map(|(chunk, cosine)| read(db, chunk, cosine))
        .collect()
}

fn read(db: &Transaction<'_>, chunk: i64, score: f64) -> rusqlite::Result<Candidate> {
    let select = "SELECT f.id, f.path, f.language, c.defs
                  FROM chunk c JOIN file f ON f.id = c.file WHERE c.id = ?1";
    db.prepare_cached(select)?.query_row([chunk], |row| {
        Ok(Candidate {
            chunk,
            file: row.get(0)?,
            path: row.get(1)?,
            language: row.get(2)?,
            defs: row.get(3)?,
            score,
        })
    })
}
