//! Embeddings: what a text means, as a direction; what points the same way means something alike.
//!
//! Never needed: words alone find things, and where no provider is set up there is no [`Embedder`] at all. What is here
//! fails with [`ContextError::Embedding`], and a search goes on without and says so. Only texts that were redacted are
//! ever handed to a provider, because only such are stored.

mod fill;
#[cfg(feature = "http-embeddings")]
pub mod http;
mod nearest;
mod pending;
mod vector;

use std::pin::Pin;

use crate::ContextError;

pub use fill::{Filled, Progress, fill};
pub(crate) use nearest::nearest;
pub(crate) use pending::seen;
pub use pending::{Coverage, Pending, coverage, missing, put};

/// What an embedder is still working on.
pub type Embedding<'e> =
    Pin<Box<dyn Future<Output = Result<Vec<Vec<f32>>, ContextError>> + Send + 'e>>;

/// Makes embeddings of texts.
pub trait Embedder: Send + Sync {
    /// The model; only embeddings of one model can be compared.
    fn model(&self) -> &str;

    /// Makes an embedding of length 1 of each text, in their order.
    fn embed(&self, texts: Vec<String>) -> Embedding<'_>;
}

/// What an embedding is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// A checkpoint, a remediation or a skill.
    Item,
    /// A part of a file.
    Chunk,
}

impl Of {
    fn name(self) -> &'static str {
        match self {
            Self::Item => "item",
            Self::Chunk => "chunk",
        }
    }
}

#[cfg(test)]
mod tests;
