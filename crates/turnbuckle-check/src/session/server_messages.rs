//! Messages of the server that are not responses: received, recorded, and answered if they are requests.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};

use super::{PendingResponse, Session, SessionTransport, response_task::ResponseTask};
use crate::{
    engine::transcript::Transcript,
    lock,
    wire::{WireEvent, http::RawHttpRequest},
};

impl Session {
    /// Opens the GET stream, so that no server message is missed from now on.
    ///
    /// Does nothing on other transports, and if the server does not offer the stream.
    pub(crate) async fn open_get_stream(&self) {
        if let (SessionTransport::Http(http_client), true) =
            (&self.transport, self.request_builder.has_handshake())
        {
            let headers = self
                .request_builder
                .headers(&Value::Null, self.id.as_deref());
            let raw_request = || {
                let raw_request = http_client.request("GET").headers(headers);
                raw_request
                    .without("content-type")
                    .header("accept", "text/event-stream")
            };
            let limit = self.pace.quiet_period().max(MIN_OPEN_TIMEOUT);
            let open = self.get_stream.open(raw_request, &self.transcript, limit);
            open.await;
        }
    }

    /// Listens for this long and returns the new server messages.
    ///
    /// On HTTP, messages sent before [`open_get_stream`](Self::open_get_stream) may be missing.
    pub(crate) async fn listen(&self, response_timeout: Duration) -> Vec<usize> {
        self.open_get_stream().await;
        let until = Instant::now() + response_timeout;
        let before = self.unsolicited().len();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            match self.next_unsolicited(left).await {
                Some(WireEvent::Message(number)) => self.handle_unsolicited_entry(number).await,
                Some(WireEvent::Head(..)) => {}
                Some(WireEvent::End(_)) | None => break,
            }
        }
        self.unsolicited().split_off(before)
    }

    /// Returns the entries of all server messages so far.
    pub(crate) fn unsolicited(&self) -> Vec<usize> {
        lock(&self.unsolicited).clone()
    }

    /// Returns the next event outside of the responses to POSTs; `None` after the timeout.
    pub(super) async fn next_unsolicited(&self, response_timeout: Duration) -> Option<WireEvent> {
        match &self.transport {
            SessionTransport::Ndjson(line) => line.next(response_timeout).await,
            SessionTransport::Http(_) => self
                .get_stream
                .next(response_timeout)
                .await
                .map(WireEvent::Message),
            SessionTransport::HttpSse(stream) => stream.next(response_timeout).await,
        }
    }

    pub(super) async fn handle_unsolicited_entry(&self, number: usize) {
        let message = self.transcript.entry(number).json().unwrap_or_default();
        self.handle_unsolicited(number, &message).await;
    }

    /// Records a server message, and responds if it is a request or a batch with requests.
    pub(super) async fn handle_unsolicited(&self, number: usize, message: &Value) {
        lock(&self.unsolicited).push(number);
        match message {
            Value::Array(all) => {
                for message in all {
                    self.respond_to_server(message).await;
                }
            }
            message => self.respond_to_server(message).await,
        }
    }

    async fn respond_to_server(&self, message: &Value) {
        let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else {
            return;
        };
        let mut reply = match method {
            "ping" => json!({ "result": {} }),
            "roots/list" => json!({ "result": { "roots": [] } }),
            "sampling/createMessage" => json!({ "result": {
                "role": "assistant", "model": "none", "stopReason": "endTurn",
                "content": { "type": "text", "text": "This is a check: no model was called." },
            } }),
            "elicitation/create" => json!({ "result": { "action": "decline" } }),
            _ => json!({ "error": { "code": -32601, "message": "Method not found" } }),
        };
        reply["jsonrpc"] = "2.0".into();
        reply["id"] = id.clone();
        // Delivery is not the concern of the rule that waits.
        if let Ok(PendingResponse {
            response_task: Some(mut response_task),
            ..
        }) = self.send_message(reply, false).await
        {
            response_task.next(self.pace.response_timeout()).await;
        }
    }
}

/// The shortest time limit for the response to the GET.
const MIN_OPEN_TIMEOUT: Duration = Duration::from_secs(1);

/// The GET stream, if the server offers one.
#[derive(Default)]
pub(super) struct GetStream(Mutex<GetStreamState>);

#[derive(Default)]
enum GetStreamState {
    /// Not requested yet, or ended by the server.
    #[default]
    Closed,
    /// Being read.
    Open(ResponseTask),
    /// Not offered.
    Unavailable,
}

impl GetStream {
    /// Opens the stream unless it is open or not offered.
    pub(super) async fn open(
        &self,
        raw_request: impl FnOnce() -> RawHttpRequest,
        transcript: &Transcript,
        limit: Duration,
    ) {
        let mut state = self.0.lock().await;
        if !matches!(*state, GetStreamState::Closed) {
            return;
        }
        let mut stream = ResponseTask::listen(raw_request(), transcript.clone());
        *state = match stream.next(limit).await {
            Some(WireEvent::Head(200, _)) => GetStreamState::Open(stream),
            // Some servers send the head only with the first event.
            None => GetStreamState::Open(stream),
            Some(_) => GetStreamState::Unavailable,
        };
    }

    /// Returns the entry of the next message; `None` after the timeout.
    pub(super) async fn next(&self, response_timeout: Duration) -> Option<usize> {
        timeout(response_timeout, async {
            let mut state = self.0.lock().await;
            loop {
                let GetStreamState::Open(stream) = &mut *state else {
                    return std::future::pending().await;
                };
                match stream.next(Duration::MAX).await {
                    Some(WireEvent::Message(number)) => return number,
                    Some(WireEvent::Head(200, _)) | None => {}
                    Some(WireEvent::Head(..)) => *state = GetStreamState::Unavailable,
                    Some(WireEvent::End(_)) => *state = GetStreamState::Closed,
                }
            }
        })
        .await
        .ok()
    }
}
