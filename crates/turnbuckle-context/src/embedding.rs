//! Embeddings of stored texts, for vector search.
//!
//! Embeddings are optional: without an [`Embedder`] search uses words only. Functions here fail with
//! [`ContextError::Embedding`]; a search then continues without vectors and reports it. Providers only receive redacted
//! texts, because only redacted texts are stored.

mod fill;
#[cfg(feature = "http-embeddings")]
pub mod http;
mod nearest;
mod pending;
mod vector;

use std::pin::Pin;

pub use fill::{BackfillProgress, BackfillReport, backfill};
pub(crate) use nearest::nearest;
pub(crate) use pending::query_text;
pub use pending::{
    EmbeddingCoverage, MissingEmbedding, coverage, missing_embeddings, save_embeddings,
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

/// The kind of text an embedding belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmbeddingSubject {
    /// A checkpoint, remediation or skill.
    Item,
    /// A chunk of an indexed file.
    Chunk,
}

impl EmbeddingSubject {
    fn as_str(self) -> &'static str {
        match self {
            Self::Item => "item",
            Self::Chunk => "chunk",
        }
    }
}

#[cfg(test)]
mod tests;
