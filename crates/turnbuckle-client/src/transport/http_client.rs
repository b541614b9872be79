//! The HTTP client: sends requests and reads responses, with limits against hostile servers.
//!
//! A client connects to one origin only, so configured headers such as tokens never reach another origin, whatever
//! redirects say. Independent of MCP messages: bodies are bytes, and streams are events.

mod authorization;
mod body;
mod dial;
mod error;
mod pool;
mod response;
#[cfg(test)]
mod tests;
mod tls;

use std::{sync::Arc, time::Duration};

use ::http::{Method, Request, StatusCode, header::LOCATION};
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1;
use tokio::time::Instant;

pub use crate::transport::http_client::error::HttpError;
pub(crate) use crate::transport::http_client::{
    authorization::{AuthPolicy, Authorization},
    body::EventReader,
    dial::{BoxError, Dialer, HttpConnection},
    response::{ErrorResponse, HttpResponse, ResponseContent, sanitize},
};
use crate::{
    client::timeout::AuthWait,
    inbound::recorder::ConnectionRecorder,
    transport::{
        http::{
            headers::{BaseHeaders, RequestHeaders},
            url::{Url, UrlOrigin},
        },
        http_client::pool::{ConnectionPool, PooledConnection},
    },
};

/// Maximum number of redirects of one request.
const MAX_REDIRECTS: usize = 5;

/// Sends requests to one origin, over a pool of connections.
#[derive(Debug)]
pub(crate) struct HttpClient {
    dialer: Dialer,
    pool: ConnectionPool,
    origin: UrlOrigin,
    headers: BaseHeaders,
    authorization: Option<Authorization>,
    limits: HttpClientLimits,
    recorder: Option<ConnectionRecorder>,
}

/// The limits of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HttpClientLimits {
    /// Maximum time to connect, including name resolution and TLS handshake.
    pub(crate) connect: Duration,
    /// Maximum size of a body or an event in bytes.
    pub(crate) body: usize,
}

impl Default for HttpClientLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            body: 64 * 1024 * 1024,
        }
    }
}

impl HttpClient {
    /// Creates a client for the origin of a URL, without connecting.
    pub(crate) fn new(
        url: &Url,
        dialer: Dialer,
        mut headers: BaseHeaders,
        limits: HttpClientLimits,
    ) -> Result<Self, HttpError> {
        let dialer = if url.origin().is_https() {
            tls::wrap_tls(dialer)?
        } else {
            dialer
        };
        headers.set_host(url.origin());
        Ok(Self {
            dialer: dialer.with_timeout(limits.connect),
            pool: ConnectionPool::default(),
            origin: url.origin().clone(),
            headers,
            authorization: None,
            limits,
            recorder: None,
        })
    }

    /// Sets the credential provider, unless an `Authorization` header is configured.
    pub(crate) fn with_auth(mut self, authorization: Option<Authorization>) -> Self {
        self.authorization = authorization.filter(|_| !self.headers.has_authorization());
        self
    }

    /// Records all requests and responses, if there is a recorder.
    pub(crate) fn with_recorder(mut self, recorder: Option<ConnectionRecorder>) -> Self {
        self.recorder = recorder;
        self
    }

    /// Returns the timer that records time spent on authorization, if authorization is configured.
    pub(crate) fn auth_wait(&self) -> Option<Arc<AuthWait>> {
        self.authorization.as_ref().map(|_| Arc::default())
    }

    /// Sends a request and waits for the head of its response; follows redirects and adds credentials.
    ///
    /// Dropping the future, or later the response, closes the connection unless the whole body has been read.
    pub(crate) async fn send(
        &self,
        method: &Method,
        url: &Url,
        headers: RequestHeaders<'_>,
        body: &Bytes,
        auth_policy: AuthPolicy<'_>,
    ) -> Result<HttpResponse, HttpError> {
        if let Some(authorization) = &self.authorization {
            let sent = self.send_authorized(authorization, method, url, headers, body, auth_policy);
            return Box::pin(sent).await;
        }
        match self.send_once(method, url, headers, body).await {
            Ok(response) if response.status().is_redirection() => {
                Box::pin(self.follow_redirects(response, method, headers, body)).await
            }
            outcome => outcome,
        }
    }

    async fn follow_redirects(
        &self,
        mut response: HttpResponse,
        method: &Method,
        headers: RequestHeaders<'_>,
        body: &Bytes,
    ) -> Result<HttpResponse, HttpError> {
        let mut redirects = RedirectPolicy::up_to(MAX_REDIRECTS);
        while response.status().is_redirection() {
            let next = redirects.follow(method, &response)?;
            response.drain().await;
            response = self.send_once(method, &next, headers, body).await?;
        }
        Ok(response)
    }

    /// Returns the headers of every request.
    pub(super) fn headers(&self) -> &BaseHeaders {
        &self.headers
    }

    /// Returns whether a URL has the origin of this client.
    pub(crate) fn is_same_origin(&self, url: &Url) -> bool {
        *url.origin() == self.origin
    }

    /// Sends a request on a pooled or new connection, and waits for the head of its response.
    pub(crate) async fn send_once(
        &self,
        method: &Method,
        url: &Url,
        headers: RequestHeaders<'_>,
        body: &Bytes,
    ) -> Result<HttpResponse, HttpError> {
        match &self.recorder {
            None => self.send_unrecorded(method, url, headers, body).await,
            // Boxed, because it is rare.
            Some(recorder) => {
                Box::pin(self.send_recorded(recorder, method, url, headers, body)).await
            }
        }
    }

    async fn send_recorded(
        &self,
        recorder: &ConnectionRecorder,
        method: &Method,
        url: &Url,
        headers: RequestHeaders<'_>,
        body: &Bytes,
    ) -> Result<HttpResponse, HttpError> {
        let request = self.request(method, url, headers, body);
        let url_text = url.uri().to_string();
        let mut exchange = recorder.record_request(method, &url_text, request.headers(), body);
        match self.send_unrecorded(method, url, headers, body).await {
            Ok(response) => Ok(response.recorded(exchange)),
            Err(error) => {
                exchange.fail(&error);
                Err(error)
            }
        }
    }

    async fn send_unrecorded(
        &self,
        method: &Method,
        url: &Url,
        headers: RequestHeaders<'_>,
        body: &Bytes,
    ) -> Result<HttpResponse, HttpError> {
        if !self.is_same_origin(url) {
            return Err(HttpError::OtherOrigin {
                origin: url.origin().to_string(),
            });
        }
        let mut request = self.request(method, url, headers, body);
        while let Some(mut connection) = self.pool.take() {
            match connection.sender.try_send_request(request).await {
                Ok(response) => {
                    return HttpResponse::new(response, connection, url, self.limits.body);
                }
                Err(mut error) => match error.take_message() {
                    // The server closed the connection before the request was sent.
                    Some(unsent) => request = unsent,
                    None => return Err(HttpError::ConnectionBroken(error.into_error().into())),
                },
            }
        }
        // Boxed, because it is rare and would enlarge the future of every request.
        Box::pin(self.send_on_new_connection(url, request)).await
    }

    async fn send_on_new_connection(
        &self,
        url: &Url,
        request: Request<Full<Bytes>>,
    ) -> Result<HttpResponse, HttpError> {
        let mut connection = self.connect(url).await?;
        match connection.sender.send_request(request).await {
            Ok(response) => HttpResponse::new(response, connection, url, self.limits.body),
            Err(error) => Err(HttpError::ConnectionBroken(error.into())),
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

    /// Makes a new connection.
    pub(crate) async fn dial(&self, url: &Url) -> Result<HttpConnection, HttpError> {
        let dialed = self.dialer.dial(url.uri().clone()).await;
        dialed.map_err(|error| HttpError::from_dial_error(error, &self.origin))
    }

    async fn connect(&self, url: &Url) -> Result<PooledConnection, HttpError> {
        let started_at = Instant::now();
        let connection = self.dial(url).await?;
        let connect_time = Some(started_at.elapsed());
        let (sender, driver) = http1::handshake(connection)
            .await
            .map_err(|error| HttpError::ConnectionBroken(error.into()))?;
        // Its errors are reported by the sender.
        tokio::spawn(driver);
        Ok(PooledConnection {
            connect_time,
            ..self.pool.wrap(sender)
        })
    }
}

/// The redirects of one request: limited in number, and only within the same origin.
pub(crate) struct RedirectPolicy {
    limit: usize,
    followed: usize,
}

impl RedirectPolicy {
    /// Creates a policy with a maximum number of redirects.
    pub(crate) fn up_to(limit: usize) -> Self {
        Self { limit, followed: 0 }
    }

    /// Returns the URL to continue with.
    pub(crate) fn follow(
        &mut self,
        method: &Method,
        response: &HttpResponse,
    ) -> Result<Url, HttpError> {
        let location = response.header(LOCATION).unwrap_or_default();
        let rejected = || HttpError::InvalidRedirect {
            status: response.status().as_u16(),
            location: response::sanitize(location.as_bytes()),
        };
        if location.is_empty() || !keeps_method(method, response.status()) {
            return Err(rejected());
        }
        let at = response.url();
        let next = at.resolve(location).map_err(|_| rejected())?;
        if next.origin() != at.origin() {
            return Err(HttpError::OtherOrigin {
                origin: next.origin().to_string(),
            });
        }
        if self.followed == self.limit {
            return Err(HttpError::TooManyRedirects { limit: self.limit });
        }
        self.followed += 1;
        Ok(next)
    }
}

/// Returns whether the redirect keeps the method: other statuses may change POST to GET.
fn keeps_method(method: &Method, status: StatusCode) -> bool {
    match status.as_u16() {
        307 | 308 => true,
        301..=303 => *method == Method::GET,
        _ => false,
    }
}
