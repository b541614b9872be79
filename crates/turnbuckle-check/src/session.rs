//! A session with a server: sends requests, receives responses and collects everything else.

pub(crate) mod request_builder;
mod response;
mod response_task;
mod server_messages;

#[cfg(test)]
mod tests;

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};

pub(crate) use self::response::{PendingResponse, ProbeResponse};
use self::{response_task::ResponseTask, server_messages::GetStream};
use crate::{
    engine::{outcome::NotPassed, transcript::Transcript},
    session::request_builder::RequestBuilder,
    target::{ServerTarget, TargetTransport},
    wire::{
        WireEvent,
        http::{RawHttpClient, RawHttpRequest},
        http_sse::HttpSseConnection,
        ndjson::NdjsonConnection,
    },
};

/// A session in one revision on one transport.
pub(crate) struct Session {
    /// Builds requests for the revision.
    pub(crate) request_builder: RequestBuilder,
    /// The response to `initialize`, or to `server/discover` in the modern era.
    pub(crate) opening: Option<ProbeResponse>,
    /// The HTTP session id, if the server assigned one.
    pub(crate) id: Option<String>,
    /// The time limit for a response.
    pub(crate) response_timeout: Duration,
    transcript: Transcript,
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
        response_timeout: Duration,
    ) -> Result<Self, NotPassed> {
        let transport = match &target.transport {
            TargetTransport::Http(endpoint) if endpoint.http_sse => {
                let http_client = RawHttpClient::new(endpoint, transcript, response_timeout);
                SessionTransport::HttpSse(
                    HttpSseConnection::open(http_client, transcript, response_timeout).await?,
                )
            }
            TargetTransport::Http(endpoint) => {
                SessionTransport::Http(RawHttpClient::new(endpoint, transcript, response_timeout))
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
            response_timeout,
            transcript: transcript.clone(),
            transport,
            next_id: AtomicI64::new(1),
            unsolicited: Mutex::default(),
            get_stream: GetStream::default(),
            deferred: Mutex::default(),
            response_missing: AtomicBool::new(false),
        })
    }

    /// Starts the session with `initialize`, or with `server/discover` in the modern era.
    pub(crate) async fn initialize_session(&mut self) -> Result<(), NotPassed> {
        if !self.request_builder.has_handshake() {
            // A legacy server may never respond: limit the wait.
            let opening = self.send_request("server/discover", json!({})).await?;
            let response = self
                .wait_response_within(opening, 2 * self.response_timeout)
                .await?;
            ensure_accepted(&response)?;
            self.opening = Some(response);
            return Ok(());
        }
        // A process may have to start first.
        let opening = self
            .send_request("initialize", self.request_builder.initialize())
            .await?;
        let response = self
            .wait_response_within(opening, 6 * self.response_timeout)
            .await?;
        ensure_accepted(&response)?;
        self.id = response.header("mcp-session-id").map(str::to_owned);
        response.result()?;
        self.opening = Some(response);
        self.notify("notifications/initialized", Value::Null)
            .await?;
        Ok(())
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
        match &self.transport {
            SessionTransport::Ndjson(line) => match line.write(text, deliberately_invalid).await {
                Ok(sent) => Ok(PendingResponse::on_line(id, sent)),
                Err(error) => Err(NotPassed::not_tested(format!(
                    "the server no longer reads: {error}"
                ))),
            },
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

    /// Waits for a response; responds to requests of the server until then.
    ///
    /// On HTTP, a response without a message also counts: it only has a status.
    pub(crate) async fn wait_response(
        &self,
        pending: PendingResponse,
    ) -> Result<ProbeResponse, NotPassed> {
        let startup = self
            .ndjson()
            .map_or(Duration::ZERO, NdjsonConnection::startup_allowance);
        self.wait_response_within(pending, self.response_timeout + startup)
            .await
    }

    /// Waits for a response with this time limit.
    pub(crate) async fn wait_response_within(
        &self,
        mut pending: PendingResponse,
        response_timeout: Duration,
    ) -> Result<ProbeResponse, NotPassed> {
        let until = tokio::time::Instant::now() + response_timeout;
        let mut before = Vec::new();
        if let Some(number) = self.take_deferred(&pending) {
            return Ok(ProbeResponse::new(
                &self.transcript,
                &pending,
                Some(number),
                before,
            ));
        }
        loop {
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            let (own, event) = match &mut pending.response_task {
                // A peer that keeps sending other messages also times out.
                _ if left.is_zero() => (false, None),
                Some(response_task) => tokio::select! {
                    biased;
                    event = response_task.next(left) => (true, event),
                    event = self.next_unsolicited(left) => (false, event),
                },
                None => (false, self.next_unsolicited(left).await),
            };
            if self.transcript.is_full() {
                return Err(NotPassed::not_tested(Transcript::overflow_message()));
            }
            match event {
                None => {
                    self.response_missing
                        .fetch_or(response_timeout >= self.response_timeout, Ordering::Relaxed);
                    let observed = format!("no response within {response_timeout:?}");
                    return Err(NotPassed::violation(
                        observed,
                        pending.sent.into_iter().chain(before),
                    ));
                }
                Some(WireEvent::Head(status, number)) => pending.head(status, number),
                Some(WireEvent::Message(number)) if self.is_other_stream(own, &pending) => {
                    if !own {
                        self.handle_unsolicited_entry(number).await;
                    }
                }
                Some(WireEvent::Message(number)) => {
                    let message = self.transcript.entry(number).json().unwrap_or_default();
                    let responses = message.get("method").is_none() && !message.is_array();
                    if pending.is_response(&message, own) {
                        let response =
                            ProbeResponse::new(&self.transcript, &pending, Some(number), before);
                        pending.finish();
                        return Ok(response);
                    }
                    if responses && !own && message.get("id").is_some() {
                        self.defer(number);
                    } else {
                        self.handle_unsolicited(number, &message).await;
                    }
                    before.push(number);
                }
                // On HTTP+SSE the response arrives on the stream.
                Some(WireEvent::End(None)) if own && self.expects_stream_response(&pending) => {
                    pending.response_task = None;
                }
                Some(WireEvent::End(None)) if own && pending.status.is_some() => {
                    return Ok(ProbeResponse::new(&self.transcript, &pending, None, before));
                }
                Some(WireEvent::End(why)) => {
                    let why = why.map_or_else(String::new, |why| format!(": {why}"));
                    let observed = format!("the connection ended without a response{why}");
                    return Err(NotPassed::violation(
                        observed,
                        pending.sent.into_iter().chain(before),
                    ));
                }
            }
        }
    }

    /// Waits until a POST is accepted or rejected; returns the status and the entry of the body.
    ///
    /// On HTTP+SSE this is not the JSON-RPC response. Without a POST it returns at once.
    pub(crate) async fn accepted_status(
        &self,
        pending: &mut PendingResponse,
    ) -> (Option<u16>, Option<usize>) {
        let mut body = None;
        let until = tokio::time::Instant::now() + self.response_timeout;
        while let Some(response_task) = &mut pending.response_task {
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            let event = if left.is_zero() {
                None
            } else {
                response_task.next(left).await
            };
            match event {
                Some(WireEvent::Head(status, number)) => pending.head(status, number),
                Some(WireEvent::Message(number)) => body = Some(number),
                Some(WireEvent::End(_)) | None => pending.response_task = None,
            }
        }
        (pending.status, body)
    }

    /// Returns whether messages from this stream cannot be the response: the GET stream, or on
    /// HTTP+SSE the body of an accepted POST.
    fn is_other_stream(&self, own: bool, pending: &PendingResponse) -> bool {
        match self.transport {
            SessionTransport::Ndjson(_) => false,
            SessionTransport::Http(_) => !own,
            SessionTransport::HttpSse(_) => own && pending.is_accepted(),
        }
    }

    fn expects_stream_response(&self, pending: &PendingResponse) -> bool {
        let streams = matches!(self.transport, SessionTransport::HttpSse(_));
        streams && pending.is_accepted() && pending.id.is_some()
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
        let response_missing = self.response_missing.swap(false, Ordering::Relaxed);
        response_missing
            && self
                .request(self.request_builder.noop_method(), Value::Null)
                .await
                .is_err()
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

    fn defer(&self, number: usize) {
        self.deferred
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(number);
    }

    fn take_deferred(&self, pending: &PendingResponse) -> Option<usize> {
        let mut deferred = self.deferred.lock().unwrap_or_else(PoisonError::into_inner);
        let is_response = |&number: &usize| {
            let message = self.transcript.entry(number).json();
            message.is_some_and(|message| pending.is_response(&message, false))
        };
        let at = deferred.iter().position(is_response)?;
        Some(deferred.remove(at))
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
