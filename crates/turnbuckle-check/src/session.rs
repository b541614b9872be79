//! A session with a server: sends requests, receives responses and collects everything else.

mod receive;
pub(crate) mod request_builder;
mod response;
mod response_task;
mod server_messages;

#[cfg(test)]
mod tests;

use std::{
    io,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};

pub(crate) use self::response::{PendingResponse, ProbeResponse};
use self::{response_task::ResponseTask, server_messages::GetStream};
use crate::{
    engine::{
        outcome::NotPassed,
        transcript::{ServerEnd, Transcript},
    },
    session::request_builder::RequestBuilder,
    target::{ServerTarget, TargetTransport},
    wire::{
        http::{RawHttpClient, RawHttpRequest},
        http_sse::HttpSseConnection,
        ndjson::NdjsonConnection,
        pace::ServerPace,
    },
};

/// The first response of a server may take this many times as long as another one.
const OPENING_FACTOR: u32 = 6;

/// The time for a process that closed its output to exit.
const EXIT_GRACE: Duration = Duration::from_secs(2);

/// A session in one revision on one transport.
pub(crate) struct Session {
    /// Builds requests for the revision.
    pub(crate) request_builder: RequestBuilder,
    /// The response to `initialize`, or to `server/discover` in the modern era.
    pub(crate) opening: Option<ProbeResponse>,
    /// The HTTP session id, if the server assigned one.
    pub(crate) id: Option<String>,
    /// The pace of the server, and the time limits.
    pub(crate) pace: ServerPace,
    transcript: Transcript,
    target: ServerTarget,
    transport: SessionTransport,
    next_id: AtomicI64,
    /// Notifications and requests of the server.
    unsolicited: Mutex<Vec<usize>>,
    /// The GET stream on which they arrive over HTTP.
    get_stream: GetStream,
    /// Responses that arrived while waiting for another one.
    deferred: Mutex<Vec<usize>>,
    /// A response was missing, so later ones may be missing too.
    response_missing: AtomicBool,
    /// The session waits alone: others do not send until it has finished.
    is_alone: AtomicBool,
}

/// The transport of a session.
pub(crate) enum SessionTransport {
    /// Newline-delimited JSON.
    Ndjson(NdjsonConnection),
    /// Streamable HTTP.
    Http(RawHttpClient),
    /// HTTP+SSE of 2024-11-05.
    HttpSse(HttpSseConnection),
}

impl Session {
    /// Opens a session without sending anything.
    pub(crate) async fn open(
        target: &ServerTarget,
        transcript: &Transcript,
        request_builder: RequestBuilder,
        pace: &ServerPace,
    ) -> Result<Self, NotPassed> {
        pace.wait_while_paused().await;
        Self::connect(target, transcript, request_builder, pace).await
    }

    /// Like [`open`](Self::open), also while a session waits alone.
    async fn connect(
        target: &ServerTarget,
        transcript: &Transcript,
        request_builder: RequestBuilder,
        pace: &ServerPace,
    ) -> Result<Self, NotPassed> {
        let transport = match &target.transport {
            TargetTransport::Http(endpoint) if endpoint.http_sse => {
                let http_client = RawHttpClient::new(endpoint, transcript, pace);
                let opened = HttpSseConnection::open(http_client, transcript, pace);
                SessionTransport::HttpSse(opened.await?)
            }
            TargetTransport::Http(endpoint) => {
                SessionTransport::Http(RawHttpClient::new(endpoint, transcript, pace))
            }
            TargetTransport::ServerCommand(_) | TargetTransport::Streams(_) => {
                match NdjsonConnection::open(target, transcript).await {
                    Ok(line) => SessionTransport::Ndjson(line),
                    Err(why) => {
                        return Err(NotPassed::not_tested(format!("cannot connect: {why}")));
                    }
                }
            }
        };
        Ok(Self {
            request_builder,
            opening: None,
            id: None,
            pace: pace.clone(),
            transcript: transcript.clone(),
            target: target.clone(),
            transport,
            next_id: AtomicI64::new(1),
            unsolicited: Mutex::default(),
            get_stream: GetStream::default(),
            deferred: Mutex::default(),
            response_missing: AtomicBool::new(false),
            is_alone: AtomicBool::new(false),
        })
    }

    /// Starts the session with `initialize`, or with `server/discover` in the modern era.
    pub(crate) async fn initialize_session(&mut self) -> Result<(), NotPassed> {
        let has_handshake = self.request_builder.has_handshake();
        let opening = if has_handshake {
            let params = self.request_builder.initialize();
            self.send_request("initialize", params).await?
        } else {
            self.send_request("server/discover", json!({})).await?
        };
        let limit = self.opening_timeout();
        let response = self.wait_response_within(opening, limit).await?;
        ensure_accepted(&response)?;
        if has_handshake {
            self.id = response.header("mcp-session-id").map(str::to_owned);
            response.result()?;
        }
        self.opening = Some(response);
        if has_handshake {
            self.notify("notifications/initialized", Value::Null)
                .await?;
        }
        Ok(())
    }

    /// Returns the time limit for the first response: a process may have to start first.
    ///
    /// A legacy server may never respond to `server/discover`. The wait for it is shorter if the pace is known.
    fn opening_timeout(&self) -> Duration {
        let limit = self.pace.process_timeout();
        if self.request_builder.has_handshake() || self.pace.slowest_start().is_none() {
            OPENING_FACTOR * limit
        } else {
            2 * limit
        }
    }

    /// Sends a request and waits for the response. A missing response is a violation.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: Value,
    ) -> Result<ProbeResponse, NotPassed> {
        let pending = self.send_request(method, params).await?;
        self.wait_response(pending).await
    }

    /// Sends a request without waiting for the response.
    pub(crate) async fn send_request(
        &self,
        method: &str,
        params: Value,
    ) -> Result<PendingResponse, NotPassed> {
        self.send_request_with_headers(method, params, Vec::new())
            .await
    }

    /// Sends a request with additional HTTP headers, without waiting for the response.
    pub(crate) async fn send_request_with_headers(
        &self,
        method: &str,
        params: Value,
        own: Vec<(String, String)>,
    ) -> Result<PendingResponse, NotPassed> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let message = self.request_builder.request(id, method, params);
        let mut headers = self.request_builder.headers(&message, self.id.as_deref());
        if !self.request_builder.has_handshake() {
            headers.extend(own);
        }
        self.send_text(Some(id.into()), &message.to_string(), headers, false)
            .await
    }

    /// Sends a message as it is. `deliberately_invalid` marks it in the transcript.
    pub(crate) async fn send_message(
        &self,
        message: Value,
        deliberately_invalid: bool,
    ) -> Result<PendingResponse, NotPassed> {
        let id = message.get("id").cloned();
        let headers = self.request_builder.headers(&message, self.id.as_deref());
        self.send_text(id, &message.to_string(), headers, deliberately_invalid)
            .await
    }

    /// Sends a text as it is, with these headers on HTTP.
    pub(crate) async fn send_text(
        &self,
        id: Option<Value>,
        text: &str,
        headers: Vec<(String, String)>,
        deliberately_invalid: bool,
    ) -> Result<PendingResponse, NotPassed> {
        if !self.is_alone.load(Ordering::Relaxed) {
            self.pace.wait_while_paused().await;
        }
        match &self.transport {
            SessionTransport::Ndjson(line) => {
                let before = self.transcript.last_sent(line.channel());
                match line.write(text, deliberately_invalid).await {
                    Ok(sent) => Ok(PendingResponse::on_line(id, sent)),
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                        Err(self.ended(before, Vec::new(), None).await)
                    }
                    Err(error) => Err(NotPassed::not_tested(format!(
                        "the server no longer reads: {error}"
                    ))),
                }
            }
            SessionTransport::Http(http_client) => Ok(self.post(
                id,
                http_client.request("POST"),
                text,
                headers,
                deliberately_invalid,
            )),
            SessionTransport::HttpSse(stream) => {
                Ok(self.post(id, stream.post(), text, headers, deliberately_invalid))
            }
        }
    }

    /// Prepares a POST with a request that can be changed before it is [sent](Self::send_raw).
    pub(crate) fn raw_request(
        &self,
        method: &str,
        params: Value,
    ) -> Result<RawHttpRequest, NotPassed> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let message = self.request_builder.request(id, method, params);
        let headers = self.request_builder.headers(&message, self.id.as_deref());
        let raw_request = self.http()?.request("POST").headers(headers);
        Ok(raw_request.body(message.to_string()))
    }

    /// Prepares a POST with a request without side effects.
    pub(crate) fn noop_request(&self) -> Result<RawHttpRequest, NotPassed> {
        if self.request_builder.has_handshake() {
            self.raw_request("ping", json!({}))
        } else {
            self.raw_request("server/discover", json!({}))
        }
    }

    /// Sends a prepared request and waits for the response.
    pub(crate) async fn send_raw(
        &self,
        raw_request: RawHttpRequest,
    ) -> Result<ProbeResponse, NotPassed> {
        let pending = self.in_flight(raw_request.id(), raw_request);
        self.wait_response(pending).await
    }

    fn post(
        &self,
        id: Option<Value>,
        raw_request: RawHttpRequest,
        text: &str,
        headers: Vec<(String, String)>,
        deliberately_invalid: bool,
    ) -> PendingResponse {
        let raw_request = raw_request.headers(headers).body(text);
        let raw_request = if deliberately_invalid {
            raw_request.deliberately_invalid()
        } else {
            raw_request
        };
        self.in_flight(id, raw_request)
    }

    fn in_flight(&self, id: Option<Value>, raw_request: RawHttpRequest) -> PendingResponse {
        let response_task = if self.request_builder.has_handshake() {
            ResponseTask::resumable(raw_request, self.transcript.clone())
        } else {
            ResponseTask::start(raw_request, self.transcript.clone())
        };
        PendingResponse::posted(id, response_task)
    }

    /// Returns the failure for a connection that ended without a response, after the message in the entry `sent`.
    ///
    /// The end of a server in normal use is recorded in the transcript and reported by one rule; other rules are then
    /// not tested.
    async fn ended(
        &self,
        sent: Option<usize>,
        before: Vec<usize>,
        why: Option<String>,
    ) -> NotPassed {
        let reason = why.map_or_else(String::new, |why| format!(": {why}"));
        let entries: Vec<_> = sent.into_iter().chain(before).collect();
        let ended_line = match &self.transport {
            SessionTransport::Ndjson(line) if !line.is_input_closed() => Some(line),
            _ => None,
        };
        let Some(line) = ended_line else {
            return self.ended_on_http(entries, &reason).await;
        };
        let call = sent.map(|sent| self.transcript.entry(sent).describe_call());
        let call = call.map_or_else(String::new, |call| format!(" after {call}"));
        let exit = match line.process() {
            Some(process) => tokio::time::timeout(EXIT_GRACE, process.wait()).await.ok(),
            None => None,
        };
        let observed = match exit {
            Some(exited) if exited.stderr_tail.is_empty() => {
                format!(
                    "the server process {}{call}, without a message on stderr",
                    exited.exit
                )
            }
            Some(exited) => format!(
                "the server process {}{call}; last lines of stderr:\n{}",
                exited.exit, exited.stderr_tail
            ),
            None => format!("the server closed the connection{call}{reason}"),
        };
        let end = ServerEnd {
            observed,
            entries,
            is_provoked: self.transcript.has_invalid_input(line.channel()),
            is_known: false,
        };
        self.transcript.record_server_end(end.clone());
        if end.is_provoked {
            NotPassed::violation(end.observed, end.entries)
        } else {
            NotPassed::not_tested(end.summary())
        }
    }

    /// Returns the failure for an HTTP connection, or an input closed by the checker, that ended without a response.
    async fn ended_on_http(&self, entries: Vec<usize>, reason: &str) -> NotPassed {
        if let (SessionTransport::HttpSse(stream), Some(&sent)) = (&self.transport, entries.first())
        {
            stream.note_if_gone(sent, reason).await;
        }
        match self.transcript.server_end() {
            Some(end) if !end.is_provoked => NotPassed::not_tested(end.summary()),
            _ => {
                let observed = format!("the connection ended without a response{reason}");
                NotPassed::violation(observed, entries)
            }
        }
    }

    /// Sends a notification. On HTTP returns the response.
    pub(crate) async fn notify(
        &self,
        method: &str,
        params: Value,
    ) -> Result<Option<ProbeResponse>, NotPassed> {
        let message = self.request_builder.notification(method, params);
        let pending = self.send_message(message, false).await?;
        match self.transport {
            SessionTransport::Ndjson(_) => Ok(None),
            SessionTransport::Http(_) | SessionTransport::HttpSse(_) => {
                self.wait_response(pending).await.map(Some)
            }
        }
    }

    /// Returns the capabilities of the server.
    pub(crate) fn capabilities(&self) -> Value {
        let opening = self.opening.as_ref();
        opening
            .and_then(|response| response.value["result"].get("capabilities"))
            .cloned()
            .unwrap_or_default()
    }

    /// Returns whether the server has closed the connection; never on HTTP.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(&self.transport, SessionTransport::Ndjson(line) if line.has_ended())
    }

    /// Returns whether the session is unusable: closed, or without responses.
    pub(crate) async fn is_lost(&self) -> bool {
        if self.has_ended() {
            return true;
        }
        if !self.response_missing.swap(false, Ordering::Relaxed) {
            return false;
        }
        let method = self.request_builder.noop_method();
        let Ok(pending) = self.send_request(method, Value::Null).await else {
            return true;
        };
        let limit = self.pace.response_timeout();
        self.wait_response_within(pending, limit).await.is_err()
    }

    /// Returns the ndjson connection.
    pub(crate) fn ndjson(&self) -> Result<&NdjsonConnection, NotPassed> {
        match &self.transport {
            SessionTransport::Ndjson(line) => Ok(line),
            SessionTransport::Http(_) | SessionTransport::HttpSse(_) => {
                Err(NotPassed::not_applicable("the transport is not ndjson"))
            }
        }
    }

    /// Returns the client of Streamable HTTP.
    pub(crate) fn http(&self) -> Result<&RawHttpClient, NotPassed> {
        match &self.transport {
            SessionTransport::Http(http_client) => Ok(http_client),
            SessionTransport::Ndjson(_) | SessionTransport::HttpSse(_) => Err(
                NotPassed::not_applicable("the transport is not Streamable HTTP"),
            ),
        }
    }

    /// Returns the HTTP+SSE connection.
    pub(crate) fn http_sse(&self) -> Result<&HttpSseConnection, NotPassed> {
        match &self.transport {
            SessionTransport::HttpSse(stream) => Ok(stream),
            SessionTransport::Ndjson(_) | SessionTransport::Http(_) => {
                Err(NotPassed::not_applicable("the transport is not HTTP+SSE"))
            }
        }
    }
}

/// Checks that the server did not require authorization.
fn ensure_accepted(response: &ProbeResponse) -> Result<(), NotPassed> {
    match response.status {
        Some(status @ (401 | 403)) => Err(NotPassed::not_tested(format!(
            "the server requires authorization: HTTP status {status}"
        ))),
        _ => Ok(()),
    }
}
