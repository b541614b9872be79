//! Reading what an endpoint answered.

use serde::Deserialize;

use super::Problem;
use crate::embedding::vector::unit;

#[derive(Deserialize)]
struct Answer {
    data: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    embedding: Vec<f32>,
    index: Option<usize>,
}

/// Reads the embeddings of so many texts, in the order of the texts, each of length 1.
pub(super) fn vectors(body: &[u8], wanted: usize) -> Result<Vec<Vec<f32>>, Problem> {
    let Answer { mut data } = serde_json::from_slice(body).map_err(|_| Problem::NotJson)?;
    let count = data.len();
    if count != wanted {
        return Err(Problem::WrongCount { wanted, count });
    }
    // Servers may answer in another order, and then say so. The sort is stable: without numbers nothing moves.
    data.sort_by_key(|entry| entry.index);
    let in_order = |(place, entry): (usize, &Entry)| entry.index.is_none_or(|index| index == place);
    if !data.iter().enumerate().all(in_order) {
        return Err(Problem::NotJson);
    }
    let expected = data.first().map_or(0, |entry| entry.embedding.len());
    if let Some(entry) = data.iter().find(|entry| entry.embedding.len() != expected) {
        let size = entry.embedding.len();
        return Err(Problem::WrongSize { expected, size });
    }
    let vectors = data.into_iter().map(|entry| unit(entry.embedding));
    vectors.collect::<Option<_>>().ok_or(Problem::NoDirection)
}
