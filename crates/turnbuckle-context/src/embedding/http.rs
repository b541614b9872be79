//! Embeddings from an OpenAI-compatible endpoint: `POST {base}/embeddings`.
//!
//! Connects only to the configured origin and does not follow redirects. Responses are limited in time and size, and
//! their count and dimensions are validated.

mod address;
mod answer;
mod key;
#[cfg(not(feature = "tls"))]
mod no_tls;
mod problem;
#[cfg(feature = "tls")]
mod tls;
mod wire;

use std::{sync::OnceLock, time::Duration};

use bytes::Bytes;
#[cfg(not(feature = "tls"))]
use no_tls as security;
use serde::Serialize;
#[cfg(feature = "tls")]
use tls as security;

use self::{
    address::EndpointUrl,
    wire::{EmbeddingHttpClient, HttpReply},
};
pub use self::{key::ApiKey, problem::EmbeddingError};
use super::{Embedder, EmbeddingFuture};
use crate::ContextError;

/// Maximum number of attempts per request.
const MAX_ATTEMPTS: u32 = 3;
/// Maximum `Retry-After` that is honored.
const MAX_RETRY_WAIT: Duration = Duration::from_secs(10);

/// Requests embeddings from an HTTP endpoint.
#[derive(Debug)]
pub struct HttpEmbedder {
    address: EndpointUrl,
    model: String,
    key: Option<ApiKey>,
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
        let address = EndpointUrl::new(base)?;
        if address.is_https() && !security::TLS_AVAILABLE {
            return Err(EmbeddingError::TlsUnavailable.into());
        }
        Ok(Self {
            address,
            model: model.into(),
            key: None,
            timeout: Duration::from_secs(30),
            batch: 32,
            client: OnceLock::new(),
            size: OnceLock::new(),
        })
    }

    /// Sets the API key.
    #[must_use]
    pub fn api_key(mut self, key: ApiKey) -> Self {
        self.key = Some(key);
        self
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
        let vectors = answer::parse_vectors(&body, texts.len())?;
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
            let posted = client.post(&self.address, self.key.as_ref(), body.clone());
            let reply = match tokio::time::timeout(self.timeout, posted).await {
                Ok(reply) => reply,
                Err(_) => Err(EmbeddingError::TimedOut(self.timeout)),
            };
            let (error, wanted) = match reply {
                Ok(HttpReply::Body(body)) => return Ok(body),
                Ok(HttpReply::RetryLater { error, after }) => (error, after),
                Err(error @ EmbeddingError::Unreachable(_)) => (error, None),
                Err(error) => return Err(error),
            };
            let pause = wanted.unwrap_or(Duration::from_millis(250) * 2_u32.pow(attempt));
            if attempt == MAX_ATTEMPTS || pause > MAX_RETRY_WAIT {
                return Err(error);
            }
            tracing::debug!(%error, ?pause, "asking for embeddings again");
            tokio::time::sleep(pause).await;
            attempt += 1;
        }
    }

    fn client(&self) -> Result<&EmbeddingHttpClient, EmbeddingError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = match self.address.is_https() {
            true => security::wire()?,
            false => EmbeddingHttpClient::plain_http(),
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

#[cfg(test)]
mod tests;
