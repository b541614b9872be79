//! One request and its reply, bounded.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER,
};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::address::Address;
use super::{ApiKey, Problem};
use crate::Redactor;

/// Bytes of an answer: a hundred embeddings of the largest models have a fifth of them.
const MOST_BYTES: usize = 32 * 1024 * 1024;
/// Bytes that are read of a refusal.
const MOST_OF_REFUSAL: usize = 64 * 1024;
/// Characters that are shown of it.
const SHOWN: usize = 200;
const CONNECTING: Duration = Duration::from_secs(10);
const IDLE: Duration = Duration::from_secs(30);

type Sending = Pin<
    Box<dyn Future<Output = Result<Response<Incoming>, hyper_util::client::legacy::Error>> + Send>,
>;

/// Sends requests, with or without TLS.
pub(super) struct Wire(Box<dyn Fn(Request<Full<Bytes>>) -> Sending + Send + Sync>);

/// What came back.
pub(super) enum Reply {
    /// All of the answer.
    Answer(Bytes),
    /// Not now; the server may say when.
    Later {
        problem: Problem,
        after: Option<Duration>,
    },
}

impl Wire {
    /// Speaks plain HTTP.
    pub(super) fn plain() -> Self {
        Self::over(tcp())
    }

    /// Speaks over whatever makes the connections.
    pub(super) fn over<C: Connect + Clone + Send + Sync + 'static>(connector: C) -> Self {
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(connector);
        Self(Box::new(move |request| Box::pin(client.request(request))))
    }

    pub(super) async fn post(
        &self,
        address: &Address,
        key: Option<&ApiKey>,
        body: Bytes,
    ) -> Result<Reply, Problem> {
        let response = (self.0)(request(address, key, body))
            .await
            .map_err(|problem| Problem::Unreachable(problem.into()))?;
        let status = response.status();
        if status.is_success() {
            let body = read(response.into_body(), MOST_BYTES).await?;
            return Ok(Reply::Answer(body));
        }
        if status.is_redirection() {
            return Err(Problem::Redirected(status));
        }
        let after = retry_after(&response);
        let said = read(response.into_body(), MOST_OF_REFUSAL).await;
        let message = shown(&said.unwrap_or_default(), key);
        let problem = Problem::Refused { status, message };
        match is_passing(status) {
            true => Ok(Reply::Later { problem, after }),
            false => Err(problem),
        }
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Wire")
    }
}

/// Makes connections by TCP; TLS, if wanted, comes on top.
pub(super) fn tcp() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECTING));
    connector.enforce_http(false);
    connector
}

fn request(address: &Address, key: Option<&ApiKey>, body: Bytes) -> Request<Full<Bytes>> {
    const JSON: HeaderValue = HeaderValue::from_static("application/json");
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = address.uri();
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, JSON);
    headers.insert(ACCEPT, JSON);
    // A small body that unpacks to a huge one would pass the limit.
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    if let Some(key) = key {
        headers.insert(AUTHORIZATION, key.header());
    }
    request
}

async fn read(body: Incoming, limit: usize) -> Result<Bytes, Problem> {
    match Limited::new(body, limit).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(problem) if problem.is::<LengthLimitError>() => Err(Problem::TooLarge(limit)),
        Err(problem) => Err(Problem::Unreachable(problem)),
    }
}

/// The beginning of what a server says; it may repeat what it was sent.
fn shown(said: &[u8], key: Option<&ApiKey>) -> String {
    let text = String::from_utf8_lossy(said);
    let text = key.map_or_else(|| text.to_string(), |key| key.hide(&text));
    let text = Redactor::standard().redact(&text).text;
    let plain = text
        .chars()
        .map(|char| if char.is_control() { ' ' } else { char });
    plain.take(SHOWN).collect()
}

fn is_passing(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 500 | 502 | 503 | 504)
}

fn retry_after(response: &Response<Incoming>) -> Option<Duration> {
    let value = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    value.trim().parse().ok().map(Duration::from_secs)
}
