//! Parsing of endpoint responses.

use serde::Deserialize;

use super::EmbeddingError;
use crate::embedding::vector::unit;

#[derive(Deserialize)]
struct EmbeddingResponse {
    data: Vec<EmbeddingEntry>,
}

#[derive(Deserialize)]
struct EmbeddingEntry {
    embedding: Vec<f32>,
    index: Option<usize>,
}

/// Parses one embedding per text, in the order of the texts, normalized to length 1.
pub(super) fn parse_vectors(body: &[u8], wanted: usize) -> Result<Vec<Vec<f32>>, EmbeddingError> {
    let EmbeddingResponse { mut data } =
        serde_json::from_slice(body).map_err(|_| EmbeddingError::InvalidResponse)?;
    let count = data.len();
    if count != wanted {
        return Err(EmbeddingError::WrongCount { wanted, count });
    }
    // Servers may return another order and number the entries. The sort is stable, so unnumbered entries keep their
    // order.
    data.sort_by_key(|entry| entry.index);
    let in_order =
        |(place, entry): (usize, &EmbeddingEntry)| entry.index.is_none_or(|index| index == place);
    if !data.iter().enumerate().all(in_order) {
        return Err(EmbeddingError::InvalidResponse);
    }
    let expected = data.first().map_or(0, |entry| entry.embedding.len());
    if let Some(entry) = data.iter().find(|entry| entry.embedding.len() != expected) {
        let size = entry.embedding.len();
        return Err(EmbeddingError::DimensionMismatch { expected, size });
    }
    let vectors = data.into_iter().map(|entry| unit(entry.embedding));
    vectors
        .collect::<Option<_>>()
        .ok_or(EmbeddingError::InvalidVector)
}
