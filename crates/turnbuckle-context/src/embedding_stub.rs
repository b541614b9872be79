//! Stands in for the providers until they arrive.

use std::pin::Pin;

use crate::ContextError;

/// Makes vectors of texts.
pub trait Embedder: Send + Sync {
    /// The model.
    fn model(&self) -> &str;
    /// Vectors of length 1.
    fn embed(
        &self,
        texts: Vec<String>,
    ) -> Pin<Box<dyn Future<Output = Result<Vec<Vec<f32>>, ContextError>> + Send + '_>>;
}
