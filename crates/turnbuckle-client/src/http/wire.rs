//! The one HTTP stack: requests out, responses in, with every bound that a hostile server calls for.
//!
//! Talks to one origin only. What is configured, such as a token, therefore never reaches another one,
//! whatever redirects say. Knows nothing of messages: bodies are bytes, and streams are events.

mod arriving;
mod authorization;
mod connection;
mod dial;
mod error;
mod events;
#[cfg(not(feature = "tls"))]
mod no_tls;
mod pool;
mod redirect;
mod refusal;
mod response;
#[cfg(feature = "tls")]
mod tls;

#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use ::http::{Method, Request};
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1;

#[cfg(not(feature = "tls"))]
use no_tls as security;
#[cfg(feature = "tls")]
use tls as security;

use self::pool::{Lease, Pool};
use super::{
    headers::{Headers, RequestHeaders},
    url::{Origin, Url},
};
use crate::held::Held;

pub use self::error::HttpError;
pub(crate) use self::{
    authorization::{Authorization, Login},
    connection::Connection,
    dial::{BoxError, Dialer},
    events::Events,
    redirect::Redirects,
    refusal::Refusal,
    response::{Body, Response, clean},
};

/// How many redirects of one request are followed.
const REDIRECTS: usize = 5;

/// Sends requests to one origin, over as many connections as it takes.
#[derive(Debug)]
pub(crate) struct Wire {
    dialer: Dialer,
    pool: Pool,
    origin: Origin,
    headers: Headers,
    authorization: Option<Authorization>,
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
        mut headers: Headers,
        limits: Limits,
    ) -> Result<Self, HttpError> {
        let dialer = match url.origin().is_https() {
            true => security::secured(dialer)?,
            false => dialer,
        };
        headers.address(url.origin());
        Ok(Self {
            dialer: dialer.within(limits.connect),
            pool: Pool::default(),
            origin: url.origin().clone(),
            headers,
            authorization: None,
            limits,
        })
    }

    /// Asks somebody for credentials before every request, unless some go with every request already.
    pub(crate) fn authorized_by(mut self, authorization: Option<Authorization>) -> Self {
        self.authorization = authorization.filter(|_| !self.headers.authorize());
        self
    }

    /// Returns what takes down how long somebody gets credentials for a request, if anybody does.
    pub(crate) fn held(&self) -> Option<Arc<Held>> {
        self.authorization.as_ref().map(|_| Arc::default())
    }

    /// Sends a request and waits for the head of its response, redirects followed and credentials brought.
    ///
    /// Dropping the future, or later the response, closes the connection unless all of it has been read.
    pub(crate) async fn send(
        &self,
        method: &Method,
        url: &Url,
        headers: RequestHeaders<'_>,
        body: &Bytes,
        login: Login<'_>,
    ) -> Result<Response, HttpError> {
        if let Some(authorization) = &self.authorization {
            let sent = self.authorized(authorization, method, url, headers, body, login);
            return Box::pin(sent).await;
        }
        match self.once(method, url, headers, body).await {
            Ok(response) if response.status().is_redirection() => {
                Box::pin(self.redirected(response, method, headers, body)).await
            }
            outcome => outcome,
        }
    }

    async fn redirected(
        &self,
        mut response: Response,
        method: &Method,
        headers: RequestHeaders<'_>,
        body: &Bytes,
    ) -> Result<Response, HttpError> {
        let mut redirects = Redirects::up_to(REDIRECTS);
        while response.status().is_redirection() {
            let next = redirects.follow(method, &response)?;
            response.skip().await;
            response = self.once(method, &next, headers, body).await?;
        }
        Ok(response)
    }

    /// Returns the headers of every request, to prepare those of one kind.
    pub(super) fn headers(&self) -> &Headers {
        &self.headers
    }

    /// Says whether it leads to the origin of a URL.
    pub(crate) fn reaches(&self, url: &Url) -> bool {
        *url.origin() == self.origin
    }

    /// Sends a request on a connection that waits for one, or else on a new one. Waits for the head of its response,
    /// whatever it is.
    pub(crate) async fn once(
        &self,
        method: &Method,
        url: &Url,
        headers: RequestHeaders<'_>,
        body: &Bytes,
    ) -> Result<Response, HttpError> {
        if !self.reaches(url) {
            return Err(HttpError::OtherOrigin {
                origin: url.origin().to_string(),
            });
        }
        let mut request = self.request(method, url, headers, body);
        while let Some(mut lease) = self.pool.take() {
            match lease.sender.try_send_request(request).await {
                Ok(response) => return Response::new(response, lease, url, self.limits.body),
                Err(mut problem) => match problem.take_message() {
                    // The server closed the connection before any of it was sent.
                    Some(unsent) => request = unsent,
                    None => return Err(HttpError::Broken(problem.into_error().into())),
                },
            }
        }
        // Rare, and would make every request as large.
        Box::pin(self.first_on_connection(url, request)).await
    }

    async fn first_on_connection(
        &self,
        url: &Url,
        request: Request<Full<Bytes>>,
    ) -> Result<Response, HttpError> {
        let mut lease = self.connect(url).await?;
        match lease.sender.send_request(request).await {
            Ok(response) => Response::new(response, lease, url, self.limits.body),
            Err(problem) => Err(HttpError::Broken(problem.into())),
        }
    }

    fn request(
        &self,
        method: &Method,
        url: &Url,
        headers: RequestHeaders<'_>,
        body: &Bytes,
    ) -> Request<Full<Bytes>> {
        let prepared = headers.prepared.unwrap_or(&self.headers);
        let headers = prepared.with(headers.own, body.len());
        let mut request = Request::new(Full::new(body.clone()));
        *request.method_mut() = method.clone();
        *request.uri_mut() = url.target().clone();
        *request.headers_mut() = headers;
        request
    }

    /// Makes a connection on which nothing has been said yet.
    pub(crate) async fn dial(&self, url: &Url) -> Result<Connection, HttpError> {
        let dialed = self.dialer.dial(url.uri().clone()).await;
        dialed.map_err(|problem| HttpError::from_dialing(problem, &self.origin))
    }

    async fn connect(&self, url: &Url) -> Result<Lease, HttpError> {
        let connection = self.dial(url).await?;
        let (sender, connection) = http1::handshake(connection)
            .await
            .map_err(|problem| HttpError::Broken(problem.into()))?;
        // What becomes of it is seen by whoever sends.
        tokio::spawn(connection);
        Ok(self.pool.lease(sender))
    }
}
