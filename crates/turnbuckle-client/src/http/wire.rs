//! The one HTTP stack: requests out, responses in, with every bound that a hostile server calls for.
//!
//! Talks to one origin only. What is configured, such as a token, therefore never reaches another one,
//! whatever redirects say. Knows nothing of messages: bodies are bytes, and streams are events.

mod connection;
mod dial;
mod error;
mod events;
#[cfg(not(feature = "tls"))]
mod no_tls;
mod redirect;
mod refusal;
mod response;
#[cfg(feature = "tls")]
mod tls;

#[cfg(test)]
mod tests;

use std::time::Duration;

use ::http::{HeaderMap, HeaderValue, Method, Request, header::ACCEPT_ENCODING};
use bytes::Bytes;
use http_body_util::Full;
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioTimer},
};

#[cfg(not(feature = "tls"))]
use no_tls as security;
#[cfg(feature = "tls")]
use tls as security;

use self::redirect::Redirects;
use super::{
    headers::Headers,
    url::{Origin, Url},
};

pub use self::error::HttpError;
pub(crate) use self::{
    dial::Dialer,
    events::Events,
    refusal::Refusal,
    response::{Body, Response},
};

/// How long a connection without work is kept. Most servers close theirs sooner.
const IDLE: Duration = Duration::from_secs(30);

/// How many of them are kept.
const MAX_IDLE: usize = 16;

/// Sends requests to one origin, over as many connections as it takes.
#[derive(Debug)]
pub(crate) struct Wire {
    client: Client<Dialer, Full<Bytes>>,
    origin: Origin,
    headers: Headers,
    limits: Limits,
}

/// What is allowed of a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How long making a connection may take, names and handshakes included.
    pub(crate) connect: Duration,
    /// How many bytes a body, or an event of a stream, may have.
    pub(crate) body: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            body: 64 * 1024 * 1024,
        }
    }
}

impl Wire {
    /// Prepares to talk to the origin of a URL; connects to nobody yet.
    pub(crate) fn new(
        url: &Url,
        dialer: Dialer,
        headers: Headers,
        limits: Limits,
    ) -> Result<Self, HttpError> {
        let dialer = match url.origin().is_https() {
            true => security::secured(dialer)?,
            false => dialer,
        };
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(MAX_IDLE)
            .build(dialer.within(limits.connect));
        Ok(Self {
            client,
            origin: url.origin().clone(),
            headers,
            limits,
        })
    }

    /// Sends a request and waits for the head of its response, redirects followed.
    ///
    /// Dropping the future, or later the response, closes the connection unless all of it has been read.
    pub(crate) async fn send(
        &self,
        method: &Method,
        url: &Url,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<Response, HttpError> {
        let mut response = self.once(method, url, headers, body.clone()).await?;
        let mut redirects = Redirects::default();
        while response.status().is_redirection() {
            let next = redirects.follow(method, &response)?;
            response.skip().await;
            response = self.once(method, &next, headers, body.clone()).await?;
        }
        Ok(response)
    }

    async fn once(
        &self,
        method: &Method,
        url: &Url,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<Response, HttpError> {
        if *url.origin() != self.origin {
            return Err(HttpError::OtherOrigin {
                origin: url.origin().to_string(),
            });
        }
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method.clone();
        *request.uri_mut() = url.uri().clone();
        *request.headers_mut() = self.headers.with(headers);
        // We could unpack nothing, and a small body that unpacks to a huge one would pass every limit.
        let identity = HeaderValue::from_static("identity");
        request.headers_mut().insert(ACCEPT_ENCODING, identity);
        match self.client.request(request).await {
            Ok(response) => Response::new(response, url, self.limits.body),
            Err(problem) => Err(HttpError::from_sending(problem, &self.origin)),
        }
    }
}
