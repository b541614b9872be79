//! Why an endpoint gave no embeddings.

use std::error::Error;
use std::time::Duration;

use hyper::StatusCode;

use crate::ContextError;

/// Why an endpoint gave no embeddings.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The address is none that can be asked.
    #[error(
        "the address of the embeddings must be like `http://host:port/v1`, without user or query"
    )]
    BadAddress,
    /// The key cannot be sent.
    #[error("the key of the embeddings is empty or has characters that no header can have")]
    BadKey,
    /// The address is `https`, and this program was built without it.
    #[error("this program was built without TLS, so `https` cannot be reached")]
    NoTls,
    /// TLS cannot be set up.
    #[error("TLS cannot be set up")]
    Tls(#[source] Box<dyn Error + Send + Sync>),
    /// There was no connection, or it broke.
    #[error("the embeddings cannot be reached")]
    Unreachable(#[source] Box<dyn Error + Send + Sync>),
    /// There was no answer in time.
    #[error("no embeddings within {0:?}")]
    TimedOut(Duration),
    /// The answer was longer than any answer should be.
    #[error("the answer had more than {0} bytes")]
    TooLarge(usize),
    /// The server said no.
    #[error("the server of the embeddings answered {status}: {message}")]
    Refused {
        /// The status of its answer.
        status: StatusCode,
        /// The beginning of what it said, without secrets.
        message: String,
    },
    /// The server sent us elsewhere; texts and keys go only where they were meant to go.
    #[error(
        "the server of the embeddings redirects ({0}); set up the address that it redirects to"
    )]
    Redirected(StatusCode),
    /// The answer is not what such an endpoint answers.
    #[error("the answer is no list of embeddings")]
    NotJson,
    /// The answer does not have one embedding per text.
    #[error("{wanted} texts were sent, and {count} embeddings came back")]
    WrongCount {
        /// Texts that were sent.
        wanted: usize,
        /// Embeddings that came back.
        count: usize,
    },
    /// Embeddings have not all the same size.
    #[error("an embedding has {size} numbers, others have {expected}")]
    WrongSize {
        /// Numbers of the first embedding.
        expected: usize,
        /// Numbers of this one.
        size: usize,
    },
    /// An embedding has no direction: it is empty, too long, all zeros, or has numbers beyond all bounds.
    #[error("an embedding has no direction")]
    NoDirection,
}

impl Problem {
    /// Whether the server refused what it was sent, and not who asks, where, or how often.
    fn is_about_the_text(&self) -> bool {
        let Self::Refused { status, .. } = self else {
            return false;
        };
        status.is_client_error() && !matches!(status.as_u16(), 401..=405 | 407 | 408 | 429)
    }
}

impl From<Problem> for ContextError {
    fn from(problem: Problem) -> Self {
        match problem.is_about_the_text() {
            true => Self::EmbeddingRefused(problem.into()),
            false => Self::Embedding(problem.into()),
        }
    }
}
