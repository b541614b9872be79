//! The chunks that fit a question by their meaning.

use rusqlite::{Transaction, params_from_iter, types::Value};

use super::Dense;
use super::filter::Filter;
use super::rank::Candidate;

/// Chunks that are ranked.
const MOST: usize = 200;

/// The nearest chunks, nearest first.
pub(super) fn candidates(
    db: &Transaction<'_>,
    dense: &Dense,
    filter: &Filter,
) -> rusqlite::Result<Vec<Candidate>> {
    let mut nearest = nearest(db, dense, filter)?;
    nearest.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    nearest.truncate(MOST);
    let near = nearest.into_iter();
    near.map(|(chunk, cosine)| read(db, chunk, cosine))
        .collect()
}

fn nearest(
    db: &Transaction<'_>,
    dense: &Dense,
    filter: &Filter,
) -> rusqlite::Result<Vec<(i64, f64)>> {
    let select = format!(
        "SELECT c.id, v.data FROM file f JOIN chunk c ON c.file = f.id
        JOIN vector v ON v.of = 'chunk' AND v.row = c.id AND v.model = ?1
        WHERE ?2 AND {}",
        filter.condition
    );
    let question = [Value::from(dense.model.clone()), Value::from(1)];
    let values = question.into_iter().chain(filter.values.iter().cloned());
    let mut statement = db.prepare_cached(&select)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        if let Some(cosine) = cosine(&dense.vector, row.get_ref(1)?.as_blob()?) {
            found.push((row.get(0)?, cosine));
        }
    }
    Ok(found)
}

/// The product of two vectors of length 1. `None` for one of another size, and for what points away.
pub(crate) fn cosine(vector: &[f32], data: &[u8]) -> Option<f64> {
    let (numbers, rest) = data.as_chunks::<4>();
    if numbers.len() != vector.len() || !rest.is_empty() {
        return None;
    }
    let products = vector.iter().zip(numbers);
    let sum: f32 = products
        .map(|(one, other)| one * f32::from_le_bytes(*other))
        .sum();
    (sum > 0.0).then_some(f64::from(sum))
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
