//! An HTTP client that can send invalid requests and records responses as they are.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as _, Incoming};
use tokio::time::{Instant, timeout};
use turnbuckle_protocol::codec::sse::{SseDecoder, SseLimits};
use turnbuckle_text::url::HttpUrl;

use super::{
    channel,
    pace::ServerPace,
    pool::{ConnectionPool, ExchangeError, PooledConnection, reason},
};
use crate::{
    engine::{
        outcome::NotPassed,
        transcript::{HttpHead, ServerEnd, SseEventHead, Transcript, TranscriptEntry},
    },
    redact,
    target::HttpEndpoint,
};

/// The maximum size of a body and of an event.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

/// Sends requests to one server; cheap to clone.
#[derive(Clone)]
pub(crate) struct RawHttpClient {
    endpoint: Arc<HttpEndpoint>,
    transcript: Transcript,
    pace: ServerPace,
}

/// A request under construction.
#[derive(Clone)]
pub(crate) struct RawHttpRequest {
    http_client: RawHttpClient,
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    deliberately_invalid: bool,
    /// The channel and the entry in the transcript, once recorded.
    recorded: Option<(usize, usize)>,
}

/// A response. The body is read on demand.
pub(crate) struct RawHttpResponse {
    /// The status.
    pub(crate) status: u16,
    /// The entry of the request.
    pub(crate) sent: usize,
    /// The entry of the response.
    pub(crate) received: usize,
    /// The channel of both entries.
    pub(crate) channel: usize,
    headers: http::HeaderMap,
    body: Incoming,
    decoder: SseDecoder,
    chunk: Bytes,
    transcript: Transcript,
    /// The stream continues an earlier one.
    resumes: bool,
    /// The error that ended the body early.
    interrupted: Option<String>,
    /// Closed with the response unless the body was read to its end.
    connection: Option<PooledConnection>,
    pool: ConnectionPool,
}

/// The next event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StreamEvent {
    /// The entry of an event.
    Message(usize),
    /// No event before the timeout.
    Timeout,
    /// The stream ended.
    End,
    /// The stream ended with an error.
    Interrupted(String),
}

impl RawHttpClient {
    /// Creates a client for an endpoint.
    pub(crate) fn new(endpoint: &HttpEndpoint, transcript: &Transcript, pace: &ServerPace) -> Self {
        Self {
            endpoint: Arc::new(endpoint.clone()),
            transcript: transcript.clone(),
            pace: pace.clone(),
        }
    }

    /// Starts a request to the endpoint.
    pub(crate) fn request(&self, method: &str) -> RawHttpRequest {
        self.request_to(method, &self.endpoint.path)
    }

    /// Starts a request to another path of the server.
    pub(crate) fn request_to(&self, method: &str, path: &str) -> RawHttpRequest {
        let mut headers = vec![("host".to_owned(), self.endpoint.host.clone())];
        headers.extend(self.endpoint.headers.iter().cloned());
        RawHttpRequest {
            http_client: self.clone(),
            method: method.to_owned(),
            path: path.to_owned(),
            headers,
            body: Vec::new(),
            deliberately_invalid: false,
            recorded: None,
        }
    }

    /// Returns the endpoint's path.
    pub(crate) fn path(&self) -> &str {
        &self.endpoint.path
    }

    /// Returns whether every request has this header.
    pub(crate) fn has_header(&self, name: &str) -> bool {
        let mut headers = self.endpoint.headers.iter();
        headers.any(|(own, _)| own.eq_ignore_ascii_case(name))
    }

    /// Returns the authentication scheme of every request.
    pub(crate) fn scheme(&self) -> Option<&str> {
        let mut headers = self.endpoint.headers.iter();
        let own = headers.find(|(name, _)| name.eq_ignore_ascii_case("authorization"))?;
        own.1.split_whitespace().next()
    }

    /// Returns the port, if plain HTTP is reached over the network.
    pub(crate) fn port_on_network(&self) -> Option<u16> {
        self.endpoint.network_port
    }

    /// Returns the value of `Host`.
    pub(crate) fn host(&self) -> &str {
        &self.endpoint.host
    }

    /// Returns whether a URL has the host and port of the server.
    pub(crate) fn is_host_of(&self, url: &HttpUrl<'_>) -> bool {
        self.host().parse().is_ok_and(|host| url.is_at(&host))
    }

    /// Returns the failure for a request without a response.
    ///
    /// If a server that responded before cannot be reached any more, its end is recorded in the transcript.
    pub(crate) async fn failure(&self, sent: usize, error: ExchangeError) -> NotPassed {
        let ExchangeError {
            reason,
            was_connected,
        } = error;
        let is_gone = self.endpoint.pool.has_responded()
            && (!was_connected || self.endpoint.http.dial().await.is_err());
        if !is_gone {
            return NotPassed::violation(format!("no response: {reason}"), [sent]);
        }
        // A request that was not sent did not end the server; the one before it may have.
        let last = if was_connected {
            Some(sent)
        } else {
            self.transcript.sent_before(sent)
        };
        let entry = last.map(|last| self.transcript.entry(last));
        let call = entry.as_ref().map(TranscriptEntry::describe_call);
        let call = call.map_or_else(String::new, |call| format!(" after {call}"));
        let observed = format!("the server no longer accepts connections{call}: {reason}");
        self.transcript.record_server_end(ServerEnd {
            observed: observed.clone(),
            entries: last.into_iter().collect(),
            is_provoked: entry.is_some_and(|entry| entry.deliberately_invalid),
            is_known: !self.pace.record_end(),
        });
        NotPassed::not_tested(observed)
    }
}

impl RawHttpRequest {
    /// Sets a header, replacing earlier values.
    pub(crate) fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self = self.without(name);
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Sets headers.
    pub(crate) fn headers(self, headers: impl IntoIterator<Item = (String, String)>) -> Self {
        headers
            .into_iter()
            .fold(self, |raw_request, (name, value)| {
                raw_request.header(&name, value)
            })
    }

    /// Removes a header.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers
            .retain(|(key, _)| !key.eq_ignore_ascii_case(name));
        self
    }

    /// Removes the headers that the user supplied, which may hold credentials under any name.
    pub(crate) fn without_credentials(mut self) -> Self {
        let endpoint = self.http_client.endpoint.clone();
        let given = |name: &String| {
            endpoint
                .headers
                .iter()
                .any(|(own, _)| own.eq_ignore_ascii_case(name))
        };
        self.headers.retain(|(name, _)| !given(name));
        self.without("authorization")
    }

    /// Sets the body.
    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Returns the id of the JSON-RPC request in the body.
    pub(crate) fn id(&self) -> Option<serde_json::Value> {
        let message: serde_json::Value = serde_json::from_slice(&self.body).ok()?;
        message.get("id").cloned()
    }

    /// Turns the request into a GET that resumes its stream after an event.
    pub(crate) fn resume(self, last: &str) -> Self {
        let mut raw_request = self.without("content-type").header("last-event-id", last);
        raw_request.recorded = None;
        raw_request.method = "GET".to_owned();
        raw_request.body = Vec::new();
        raw_request.header("accept", "text/event-stream")
    }

    /// Marks the request as invalid on purpose.
    pub(crate) fn deliberately_invalid(mut self) -> Self {
        self.deliberately_invalid = true;
        self
    }

    /// Records the request in the transcript; returns its channel and entry.
    pub(crate) fn record(&mut self) -> (usize, usize) {
        if let Some(recorded) = self.recorded {
            return recorded;
        }
        let channel = channel();
        // Values that the user supplied may be keys under any name, and so may the query of the
        // endpoint.
        let endpoint = &self.http_client.endpoint;
        let shown = |(name, value): &(String, String)| {
            let value = if endpoint
                .headers
                .iter()
                .any(|own| own == &(name.clone(), value.clone()))
            {
                redact::user_value()
            } else {
                redact::header(name, value)
            };
            (name.to_lowercase(), value)
        };
        let path = if self.path == endpoint.path {
            redact::path(&self.path)
        } else {
            self.path.clone()
        };
        let sent = self.http_client.transcript.push(TranscriptEntry {
            head: Some(HttpHead {
                start_line: format!("{} {path}", self.method),
                headers: self.headers.iter().map(shown).collect(),
            }),
            deliberately_invalid: self.deliberately_invalid,
            ..TranscriptEntry::sent(channel, String::from_utf8_lossy(&self.body))
        });
        *self.recorded.insert((channel, sent))
    }

    /// Sends the request and waits for the head of the response.
    ///
    /// A late response is waited for again while no other session sends. If it is still missing, the rule is not tested.
    pub(crate) async fn send(mut self) -> Result<RawHttpResponse, NotPassed> {
        let pace = self.http_client.pace.clone();
        pace.wait_while_paused().await;
        self.record();
        let sending = self.send_without_limit();
        tokio::pin!(sending);
        let first = pace.response_timeout();
        if let Ok(response) = timeout(first, &mut sending).await {
            return response;
        }
        let _paused = pace.pause_other_sessions().await;
        let again = pace.response_timeout();
        timeout(again, sending).await.unwrap_or_else(|_| {
            let why = format!(
                "no response within {:?}: the server is too slow or blocked",
                first + again
            );
            Err(NotPassed::not_tested(why))
        })
    }

    /// Sends the request and waits for the head of the response with this time limit; a missing one is a violation.
    pub(crate) async fn send_within(
        mut self,
        limit: Duration,
    ) -> Result<RawHttpResponse, NotPassed> {
        let (_, sent) = self.record();
        timeout(limit, self.send_without_limit())
            .await
            .unwrap_or_else(|_| {
                let observed = format!("no response within {limit:?}");
                Err(NotPassed::violation(observed, [sent]))
            })
    }

    async fn send_without_limit(mut self) -> Result<RawHttpResponse, NotPassed> {
        let transcript = self.http_client.transcript.clone();
        let (channel, sent) = self.record();
        let pool = self.http_client.endpoint.pool.clone();
        let resumes = self.headers.iter().any(|(name, _)| name == "last-event-id");
        let http_client = self.http_client.clone();
        let (response, connection) = match self.exchange().await {
            Ok(exchanged) => exchanged,
            Err(error) => return Err(http_client.failure(sent, error).await),
        };
        let (head, body) = response.into_parts();
        let headers = head.headers.iter().map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes());
            (
                name.as_str().to_owned(),
                redact::header(name.as_str(), &value),
            )
        });
        let received = transcript.push(TranscriptEntry {
            head: Some(HttpHead {
                start_line: head.status.as_u16().to_string(),
                headers: headers.collect(),
            }),
            response_to: Some(sent),
            ..TranscriptEntry::received(channel, "")
        });
        Ok(RawHttpResponse {
            status: head.status.as_u16(),
            sent,
            received,
            channel,
            headers: head.headers,
            body,
            decoder: SseDecoder::new(SseLimits {
                line: MAX_BODY_BYTES,
                event: MAX_BODY_BYTES,
            }),
            chunk: Bytes::new(),
            transcript,
            resumes,
            interrupted: None,
            connection: Some(connection),
            pool,
        })
    }

    async fn exchange(self) -> Result<(Response<Incoming>, PooledConnection), ExchangeError> {
        let request = self.build().map_err(ExchangeError::before_connection)?;
        let endpoint = &self.http_client.endpoint;
        endpoint.pool.send(&endpoint.http, request).await
    }

    fn build(&self) -> Result<Request<Full<Bytes>>, String> {
        let mut request = Request::new(Full::new(Bytes::from(self.body.clone())));
        *request.method_mut() =
            Method::from_bytes(self.method.as_bytes()).map_err(|error| error.to_string())?;
        *request.uri_mut() = self.path.parse().map_err(|_| "invalid path".to_owned())?;
        for (name, value) in &self.headers {
            let name =
                HeaderName::from_bytes(name.as_bytes()).map_err(|error| error.to_string())?;
            let value =
                HeaderValue::from_bytes(value.as_bytes()).map_err(|error| error.to_string())?;
            request.headers_mut().append(name, value);
        }
        Ok(request)
    }
}

impl RawHttpResponse {
    /// Returns the value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns all values of a header.
    pub(crate) fn all(&self, name: &str) -> Vec<String> {
        let values = self.headers.get_all(name).iter();
        let values = values.filter_map(|value| value.to_str().ok());
        values.map(str::to_owned).collect()
    }

    /// Returns the media type in lower case, without parameters.
    pub(crate) fn content_type(&self) -> String {
        let kind = self.header("content-type").unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default();
        kind.trim().to_ascii_lowercase()
    }

    /// Returns whether the body is an event stream.
    pub(crate) fn is_stream(&self) -> bool {
        self.content_type() == "text/event-stream"
    }

    /// Returns the entries of the request and the response.
    pub(crate) fn entries(&self) -> [usize; 2] {
        [self.sent, self.received]
    }

    /// Reads the body; returns what arrived before the timeout.
    pub(crate) async fn text(&mut self, response_timeout: Duration) -> String {
        let mut body = self.chunk.to_vec();
        let until = Instant::now() + response_timeout;
        while let Some(chunk) = self.chunk(until).await {
            if body.len() + chunk.len() > MAX_BODY_BYTES {
                break;
            }
            body.extend_from_slice(&chunk);
        }
        let text = String::from_utf8_lossy(&body).into_owned();
        let shown = text.clone();
        self.transcript
            .update(self.received, |entry| entry.text = shown);
        text
    }

    /// Waits for the next event, including events without data.
    pub(crate) async fn event(&mut self, response_timeout: Duration) -> StreamEvent {
        self.event_until(Instant::now() + response_timeout).await
    }

    /// Waits for the next event until a point in time.
    pub(crate) async fn event_until(&mut self, until: Instant) -> StreamEvent {
        loop {
            if self.transcript.is_full() {
                return StreamEvent::Interrupted(Transcript::overflow_message());
            }
            let mut rest: &[u8] = &self.chunk;
            let next = self.decoder.next(&mut rest);
            let used = self.chunk.len() - rest.len();
            let _ = self.chunk.split_to(used);
            if let Ok(Some(event)) = next {
                let known = || self.transcript.has_event(&event.last_event_id, &event.data);
                let replayed = self.resumes && known();
                let number = self.transcript.push(TranscriptEntry {
                    event: Some(SseEventHead {
                        id: event.last_event_id,
                        name: event.name,
                    }),
                    response_to: Some(self.sent),
                    replayed,
                    ..TranscriptEntry::received(self.channel, event.data)
                });
                return StreamEvent::Message(number);
            }
            match self.chunk(until).await {
                Some(chunk) => self.chunk = chunk,
                None if self.interrupted.is_some() => {
                    return StreamEvent::Interrupted(self.interrupted.clone().unwrap_or_default());
                }
                None if self.connection.is_some() => return StreamEvent::Timeout,
                None => return StreamEvent::End,
            }
        }
    }

    /// Returns the `retry` delay of the stream.
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.decoder.retry()
    }

    /// Returns the error that ended the body early, if any.
    pub(crate) fn interrupted(&self) -> Option<&str> {
        self.interrupted.as_deref()
    }

    /// Returns the next chunk; `None` at the end and after the timeout.
    async fn chunk(&mut self, until: Instant) -> Option<Bytes> {
        loop {
            // Check the time first: a body that is always ready would never time out.
            if Instant::now() >= until {
                return None;
            }
            let frame = tokio::time::timeout_at(until, self.body.frame()).await;
            match frame.ok()? {
                None => {
                    self.release_connection();
                    return None;
                }
                Some(Err(error)) => {
                    self.interrupted = Some(reason(&error));
                    self.connection = None;
                    return None;
                }
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) if data.is_empty() => {}
                    Ok(data) => return Some(data),
                    Err(_trailers) => {}
                },
            }
        }
    }

    fn release_connection(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.pool.release(connection);
        }
    }
}

impl Drop for RawHttpResponse {
    fn drop(&mut self) {
        if self.body.is_end_stream() {
            self.release_connection();
        }
    }
}
