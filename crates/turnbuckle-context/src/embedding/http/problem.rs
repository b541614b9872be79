//! Errors of an embedding endpoint.

use std::{error::Error, time::Duration};

use hyper::StatusCode;

use crate::ContextError;

/// The reason why an endpoint returned no embeddings.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbeddingError {
    /// The URL is invalid.
    #[error(
        "the address of the embeddings must be like `http://host:port/v1`, without user or query"
    )]
    InvalidUrl,
    /// The API key cannot be sent in a header.
    #[error("the key of the embeddings is empty or has characters that no header can have")]
    InvalidApiKey,
    /// The URL is `https`, but this build lacks TLS.
    #[error("this program was built without TLS, so `https` cannot be reached")]
    TlsUnavailable,
    /// TLS setup failed.
    #[error("TLS cannot be set up")]
    TlsSetup(#[source] Box<dyn Error + Send + Sync>),
    /// The connection failed.
    #[error("the embeddings cannot be reached")]
    Unreachable(#[source] Box<dyn Error + Send + Sync>),
    /// The request timed out.
    #[error("no embeddings within {0:?}")]
    TimedOut(Duration),
    /// The response exceeds the size limit.
    #[error("the answer had more than {0} bytes")]
    ResponseTooLarge(usize),
    /// The server returned an error status.
    #[error("the server of the embeddings answered {status}: {message}")]
    ErrorResponse {
        /// The status.
        status: StatusCode,
        /// The start of the message, redacted.
        message: String,
    },
    /// The server redirected the request. Texts and keys are only sent to the configured URL.
    #[error(
        "the server of the embeddings redirects ({0}); set up the address that it redirects to"
    )]
    Redirect(StatusCode),
    /// The response is not a list of embeddings.
    #[error("the answer is no list of embeddings")]
    InvalidResponse,
    /// The number of embeddings differs from the number of texts.
    #[error("{wanted} texts were sent, and {count} embeddings came back")]
    WrongCount {
        /// Texts sent.
        wanted: usize,
        /// Embeddings received.
        count: usize,
    },
    /// The embeddings differ in their dimensions.
    #[error("an embedding has {size} numbers, others have {expected}")]
    DimensionMismatch {
        /// Dimensions of the first embedding.
        expected: usize,
        /// Dimensions of this embedding.
        size: usize,
    },
    /// An embedding is empty, too long, zero, or not finite.
    #[error("an embedding has no direction")]
    InvalidVector,
}

impl EmbeddingError {
    /// Returns whether the server rejected the text, as opposed to the credentials, the URL or the rate.
    fn is_about_text(&self) -> bool {
        let Self::ErrorResponse { status, .. } = self else {
            return false;
        };
        status.is_client_error() && !matches!(status.as_u16(), 401..=405 | 407 | 408 | 429)
    }
}

impl From<EmbeddingError> for ContextError {
    fn from(error: EmbeddingError) -> Self {
        match error.is_about_text() {
            true => Self::EmbeddingRejected(error.into()),
            false => Self::Embedding(error.into()),
        }
    }
}
