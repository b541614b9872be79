//! Embeddings from an OpenAI-compatible endpoint: `POST {base}/embeddings`.
//!
//! Connects only to the configured origin and does not follow redirects. Responses are limited in time and size, and
//! their count and dimensions are validated.

mod client;

use std::{error::Error, sync::OnceLock, time::Duration};

use bytes::Bytes;
use hyper::StatusCode;
use serde::{Deserialize, Serialize};
use turnbuckle_protocol::json;
use turnbuckle_text::Secret;

use self::client::{EmbeddingHttpClient, EndpointUrl, HttpReply, tls};
use super::{Embedder, EmbeddingFuture, unit};
use crate::ContextError;

/// Maximum number of attempts per request.
const MAX_ATTEMPTS: u32 = 3;
/// Maximum `Retry-After` that is honored.
const MAX_RETRY_WAIT: Duration = Duration::from_secs(10);

/// Requests embeddings from an HTTP endpoint.
#[derive(Debug)]
pub struct HttpEmbedder {
    url: EndpointUrl,
    model: String,
    api_key: Option<Secret>,
    timeout: Duration,
    batch: usize,
    /// Created on first use, because loading the system's certificates takes time.
    client: OnceLock<EmbeddingHttpClient>,
    /// Dimensions of the first embedding; all others must match.
    size: OnceLock<usize>,
}

#[derive(Serialize)]
struct EmbeddingRequest<'q> {
    model: &'q str,
    input: &'q [String],
}

impl HttpEmbedder {
    /// Creates an embedder for `{base}/embeddings`, for example `http://localhost:11434/v1`.
    pub fn new(base: &str, model: impl Into<String>) -> Result<Self, ContextError> {
        let url = EndpointUrl::new(base)?;
        if url.is_https() && !tls::IS_AVAILABLE {
            return Err(EmbeddingError::TlsUnavailable.into());
        }
        Ok(Self {
            url,
            model: model.into(),
            api_key: None,
            timeout: Duration::from_secs(30),
            batch: 32,
            client: OnceLock::new(),
            size: OnceLock::new(),
        })
    }

    /// Sets the API key. Fails if it cannot be sent in a header.
    pub fn api_key(mut self, key: &str) -> Result<Self, EmbeddingError> {
        let key = Secret::new(key.trim());
        if key.expose().is_empty() || client::authorization(&key).is_none() {
            return Err(EmbeddingError::InvalidApiKey);
        }
        self.api_key = Some(key);
        Ok(self)
    }

    /// Sets the timeout of one request; 30 seconds by default.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the maximum number of texts per request; 32 by default.
    #[must_use]
    pub fn batch(mut self, texts: usize) -> Self {
        self.batch = texts.max(1);
        self
    }

    async fn request_vectors(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        let request = EmbeddingRequest {
            model: &self.model,
            input: texts,
        };
        let body = serde_json::to_vec(&request).map_err(|_| EmbeddingError::InvalidResponse)?;
        let body = self.post(body.into()).await?;
        let vectors = parse_vectors(&body, texts.len())?;
        let size = vectors.first().map_or(0, Vec::len);
        match *self.size.get_or_init(|| size) {
            expected if expected == size => Ok(vectors),
            expected => Err(EmbeddingError::DimensionMismatch { expected, size }),
        }
    }

    /// Sends the request, with retries after transient errors.
    async fn post(&self, body: Bytes) -> Result<Bytes, EmbeddingError> {
        let client = self.client()?;
        let mut attempt = 1;
        loop {
            let posted = client.post(&self.url, self.api_key.as_ref(), body.clone());
            let reply = match tokio::time::timeout(self.timeout, posted).await {
                Ok(reply) => reply,
                Err(_) => Err(EmbeddingError::TimedOut(self.timeout)),
            };
            let (error, retry_after) = match reply {
                Ok(HttpReply::Body(body)) => return Ok(body),
                Ok(HttpReply::RetryLater { error, after }) => (error, after),
                Err(error @ EmbeddingError::Unreachable(_)) => (error, None),
                Err(error) => return Err(error),
            };
            let pause = retry_after.unwrap_or(Duration::from_millis(250) * 2_u32.pow(attempt));
            if attempt == MAX_ATTEMPTS || pause > MAX_RETRY_WAIT {
                return Err(error);
            }
            tracing::debug!(%error, ?pause, "requesting embeddings again");
            tokio::time::sleep(pause).await;
            attempt += 1;
        }
    }

    fn client(&self) -> Result<&EmbeddingHttpClient, EmbeddingError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = if self.url.is_https() {
            tls::https_client()?
        } else {
            EmbeddingHttpClient::http()
        };
        Ok(self.client.get_or_init(|| client))
    }
}

impl Embedder for HttpEmbedder {
    fn model(&self) -> &str {
        &self.model
    }

    fn embed(&self, texts: Vec<String>) -> EmbeddingFuture<'_> {
        Box::pin(async move {
            let mut vectors = Vec::with_capacity(texts.len());
            for batch in texts.chunks(self.batch) {
                vectors.extend(self.request_vectors(batch).await?);
            }
            Ok(vectors)
        })
    }
}

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
pub(super) fn parse_vectors(body: &[u8], expected: usize) -> Result<Vec<Vec<f32>>, EmbeddingError> {
    let EmbeddingResponse { mut data } =
        json::from_slice(body).map_err(|_| EmbeddingError::InvalidResponse)?;
    let count = data.len();
    if count != expected {
        return Err(EmbeddingError::WrongCount { expected, count });
    }
    // Servers may return another order and number the entries. The sort is stable, so unnumbered entries keep their
    // order.
    data.sort_by_key(|entry| entry.index);
    let in_order = |(position, entry): (usize, &EmbeddingEntry)| {
        entry.index.is_none_or(|index| index == position)
    };
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

/// The reason why an endpoint returned no embeddings.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbeddingError {
    /// The URL is invalid.
    #[error(
        "invalid URL of the embedding endpoint: expected `http://host:port/v1`, without user or query"
    )]
    InvalidUrl,
    /// The API key cannot be sent in a header.
    #[error(
        "the API key of the embedding endpoint is empty or contains characters that are invalid in a header"
    )]
    InvalidApiKey,
    /// The URL is `https`, but this build lacks TLS.
    #[error("this program was built without TLS and does not support `https`")]
    TlsUnavailable,
    /// TLS setup failed.
    #[error("TLS setup failed")]
    TlsSetup(#[source] Box<dyn Error + Send + Sync>),
    /// The connection failed.
    #[error("the embedding endpoint cannot be reached")]
    Unreachable(#[source] Box<dyn Error + Send + Sync>),
    /// The request timed out.
    #[error("no response from the embedding endpoint within {0:?}")]
    TimedOut(Duration),
    /// The response exceeds the size limit.
    #[error("the response has more than {0} bytes")]
    ResponseTooLarge(usize),
    /// The server returned an error status.
    #[error("the embedding endpoint returned {status}: {message}")]
    ErrorResponse {
        /// The status.
        status: StatusCode,
        /// The start of the message, redacted.
        message: String,
    },
    /// The server redirected the request. Texts and keys are only sent to the configured URL.
    #[error("the embedding endpoint redirects ({0}); configure the URL that it redirects to")]
    Redirect(StatusCode),
    /// The response is not a list of embeddings.
    #[error("the response is not a list of embeddings")]
    InvalidResponse,
    /// The number of embeddings differs from the number of texts.
    #[error("{expected} texts were sent, but {count} embeddings were returned")]
    WrongCount {
        /// Texts sent.
        expected: usize,
        /// Embeddings received.
        count: usize,
    },
    /// The embeddings differ in their dimensions.
    #[error("an embedding has {size} dimensions, others have {expected}")]
    DimensionMismatch {
        /// Dimensions of the first embedding.
        expected: usize,
        /// Dimensions of this embedding.
        size: usize,
    },
    /// An embedding is empty, too long, zero, or not finite.
    #[error("an embedding is empty, too long, zero or not finite")]
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
        if error.is_about_text() {
            Self::EmbeddingRejected(error.into())
        } else {
            Self::Embedding(error.into())
        }
    }
}

#[cfg(test)]
mod tests;
