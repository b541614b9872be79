//! Embeddings from an endpoint that speaks as OpenAI's does: `POST {base}/embeddings`.
//!
//! Talks to the one origin that was set up, follows no redirects, and believes nothing: answers have a limit of time and
//! size, and are counted and measured before anything of them is used.

mod address;
mod answer;
mod key;
#[cfg(not(feature = "tls"))]
mod no_tls;
mod problem;
#[cfg(feature = "tls")]
mod tls;
mod wire;

use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;

#[cfg(not(feature = "tls"))]
use no_tls as security;
#[cfg(feature = "tls")]
use tls as security;

use self::address::Address;
use self::wire::{Reply, Wire};
use super::{Embedder, Embedding};
use crate::ContextError;

pub use self::key::ApiKey;
pub use self::problem::Problem;

/// How often a request is sent at most.
const ATTEMPTS: u32 = 3;
/// How long a server may let us wait before we ask again.
const MOST_WAITING: Duration = Duration::from_secs(10);

/// Asks an endpoint for embeddings.
#[derive(Debug)]
pub struct HttpEmbedder {
    address: Address,
    model: String,
    key: Option<ApiKey>,
    timeout: Duration,
    batch: usize,
    /// Made when it is needed first: reading the certificates of the system takes its time.
    wire: OnceLock<Wire>,
    /// The size of the first embedding; the others have the same.
    size: OnceLock<usize>,
}

#[derive(Serialize)]
struct Question<'q> {
    model: &'q str,
    input: &'q [String],
}

impl HttpEmbedder {
    /// Will ask `{base}/embeddings` for embeddings of a model, `http://localhost:11434/v1` for example.
    pub fn new(base: &str, model: impl Into<String>) -> Result<Self, ContextError> {
        let address = Address::new(base)?;
        if address.is_https() && !security::IS_THERE {
            return Err(Problem::NoTls.into());
        }
        Ok(Self {
            address,
            model: model.into(),
            key: None,
            timeout: Duration::from_secs(30),
            batch: 32,
            wire: OnceLock::new(),
            size: OnceLock::new(),
        })
    }

    /// Says who asks.
    #[must_use]
    pub fn api_key(mut self, key: ApiKey) -> Self {
        self.key = Some(key);
        self
    }

    /// How long one request may take; 30 seconds if it is not said.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How many texts one request may have; 32 if it is not said.
    #[must_use]
    pub fn batch(mut self, texts: usize) -> Self {
        self.batch = texts.max(1);
        self
    }

    async fn ask(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, Problem> {
        let question = Question {
            model: &self.model,
            input: texts,
        };
        let body = serde_json::to_vec(&question).map_err(|_| Problem::NotJson)?;
        let body = self.post(body.into()).await?;
        let vectors = answer::vectors(&body, texts.len())?;
        let size = vectors.first().map_or(0, Vec::len);
        match *self.size.get_or_init(|| size) {
            expected if expected == size => Ok(vectors),
            expected => Err(Problem::WrongSize { expected, size }),
        }
    }

    /// Posts until the answer is there, it is clear that there will be none, or it was tried often enough.
    async fn post(&self, body: Bytes) -> Result<Bytes, Problem> {
        let wire = self.wire()?;
        let mut attempt = 1;
        loop {
            let posted = wire.post(&self.address, self.key.as_ref(), body.clone());
            let reply = match tokio::time::timeout(self.timeout, posted).await {
                Ok(reply) => reply,
                Err(_) => Err(Problem::TimedOut(self.timeout)),
            };
            let (problem, wanted) = match reply {
                Ok(Reply::Answer(body)) => return Ok(body),
                Ok(Reply::Later { problem, after }) => (problem, after),
                Err(problem @ Problem::Unreachable(_)) => (problem, None),
                Err(problem) => return Err(problem),
            };
            let pause = wanted.unwrap_or(Duration::from_millis(250) * 2_u32.pow(attempt));
            if attempt == ATTEMPTS || pause > MOST_WAITING {
                return Err(problem);
            }
            tracing::debug!(%problem, ?pause, "asking for embeddings again");
            tokio::time::sleep(pause).await;
            attempt += 1;
        }
    }

    fn wire(&self) -> Result<&Wire, Problem> {
        if let Some(wire) = self.wire.get() {
            return Ok(wire);
        }
        let wire = match self.address.is_https() {
            true => security::wire()?,
            false => Wire::plain(),
        };
        Ok(self.wire.get_or_init(|| wire))
    }
}

impl Embedder for HttpEmbedder {
    fn model(&self) -> &str {
        &self.model
    }

    fn embed(&self, texts: Vec<String>) -> Embedding<'_> {
        Box::pin(async move {
            let mut vectors = Vec::with_capacity(texts.len());
            for batch in texts.chunks(self.batch) {
                vectors.extend(self.ask(batch).await?);
            }
            Ok(vectors)
        })
    }
}

#[cfg(test)]
mod tests;
