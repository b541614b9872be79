//! Embeddings of stored texts, for vector search.
//!
//! Embeddings are optional: without an [`Embedder`] search uses words only. Functions here fail with
//! [`ContextError::Embedding`]; a search then continues without vectors and reports it. Providers only receive redacted
//! texts, because only redacted texts are stored.

mod backfill;
#[cfg(feature = "http-embeddings")]
pub mod http;
pub(crate) mod service;
mod store;

use std::pin::Pin;

#[cfg(feature = "postgres")]
pub(crate) use self::store::TopRows;
pub(crate) use self::{
    backfill::backfill,
    store::{EmbeddingSource, nearest, query_text},
};
use crate::ContextError;

/// The future returned by [`Embedder::embed`].
pub type EmbeddingFuture<'e> =
    Pin<Box<dyn Future<Output = Result<Vec<Vec<f32>>, ContextError>> + Send + 'e>>;

/// Creates embeddings of texts.
pub trait Embedder: Send + Sync {
    /// Returns the model name. Only embeddings of the same model are compared.
    fn model(&self) -> &str;

    /// Creates one embedding per text, in the same order, normalized to length 1.
    fn embed(&self, texts: Vec<String>) -> EmbeddingFuture<'_>;
}

/// Maximum dimensions; four times those of the largest models.
const MAX_DIMENSIONS: usize = 16_384;

/// Normalizes a vector to length 1. Returns `None` if it is empty, zero or not finite.
pub(crate) fn unit(mut vector: Vec<f32>) -> Option<Vec<f32>> {
    let square: f64 = vector.iter().map(|part| f64::from(*part).powi(2)).sum();
    let length = square.sqrt();
    if vector.len() > MAX_DIMENSIONS || !length.is_finite() || length < 1e-12 {
        return None;
    }
    for part in &mut vector {
        *part = (f64::from(*part) / length) as f32;
    }
    Some(vector)
}

/// Encodes a vector as little-endian 32-bit floats.
pub(crate) fn to_bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|part| part.to_le_bytes()).collect()
}

/// Returns the cosine similarity of a vector and a stored one, both of length 1, or `None` if their dimensions differ.
pub(crate) fn cosine(vector: &[f32], stored: &[u8]) -> Option<f32> {
    let (numbers, rest) = stored.as_chunks::<4>();
    if numbers.len() != vector.len() || !rest.is_empty() {
        return None;
    }
    let products = vector.iter().zip(numbers);
    let sum: f32 = products
        .map(|(one, other)| one * f32::from_le_bytes(*other))
        .sum();
    sum.is_finite().then_some(sum)
}

#[cfg(test)]
mod tests;
