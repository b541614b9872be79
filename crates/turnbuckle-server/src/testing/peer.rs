//! The test client.

mod client_identity;
mod requests;

use std::{collections::VecDeque, fmt, io, time::Duration};

pub(super) use client_identity::TestClientIdentity;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout, timeout_at};
use turnbuckle_protocol::Revision;

use super::{
    MessageDirection, PeerBuilder, QUIET_PERIOD, RecordedMessage, Responder, recording::Recording,
    transport::TestTransport,
};
use crate::{Server, ndjson::NdjsonServer};

/// A client under control of the test. Messages are plain JSON.
///
/// Every message is [recorded](Self::transcript). A failed expectation prints the transcript.
///
/// ```
/// use serde_json::json;
/// use turnbuckle_server::{Context, Server, Tool, ToolError, testing::Peer};
///
/// async fn count(cx: Context) -> Result<String, ToolError> {
///     cx.progress(1, 1).await;
///     Ok("one".to_owned())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let server = Server::new("counter", "1.0.0").tool(Tool::new("count", count));
/// let mut peer = Peer::connect(server).legacy("2025-06-18").await;
///
/// assert_eq!(peer.call_tool("count", json!({})).await.text(), "one");
/// let progress = peer.expect_notification("notifications/progress").await;
/// assert_eq!(progress["total"], 1.0);
/// peer.request("tools/cal", json!({})).await.expect_error(-32601);
/// peer.expect_no_message().await;
/// # }
/// ```
pub struct Peer {
    transport: TestTransport,
    identity: TestClientIdentity,
    recording: Recording,
    responder: Option<Responder>,
    timeout: Duration,
    /// Received messages that were not read yet.
    unread: VecDeque<Value>,
    last_id: i64,
}

/// A client request that waits for its response.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientRequest {
    /// The request id.
    pub id: Value,
    /// The parameters.
    pub params: Value,
}

impl Peer {
    /// Connects a client to a server: over newline-delimited JSON and in the newest revision, unless the builder is
    /// changed.
    pub fn connect(server: Server) -> PeerBuilder {
        PeerBuilder::ndjson(NdjsonServer::new(server))
    }

    pub(super) fn new(
        transport: TestTransport,
        identity: TestClientIdentity,
        recording: Recording,
        responder: Option<Responder>,
        timeout: Duration,
    ) -> Self {
        Self {
            transport,
            identity,
            recording,
            responder,
            timeout,
            unread: VecDeque::new(),
            last_id: 0,
        }
    }

    /// Initializes the session, in revisions that have sessions, and sets the log level.
    pub(super) async fn initialize(&mut self) {
        if self.identity.is_modern() {
            return;
        }
        let response = self
            .request("initialize", self.identity.initialize_params())
            .await;
        let negotiated = &response.expect_result()["protocolVersion"];
        if *negotiated != self.identity.revision.as_str() {
            let revision = self.identity.revision;
            self.fail(format_args!("the server does not support {revision}"));
        }
        self.notify("notifications/initialized", Value::Null).await;
        if let Some(level) = self.identity.log_level {
            let response = self.request("logging/setLevel", json!({ "level": level }));
            response.await.expect_result();
        }
    }

    /// The revision of the client.
    pub fn revision(&self) -> Revision {
        self.identity.revision
    }

    /// Sets the responder for client requests; see [`PeerBuilder::respond_with`].
    pub fn respond_with(&mut self, responder: impl FnMut(&str, &Value) -> Value + Send + 'static) {
        self.responder = Some(Box::new(responder));
    }

    /// Waits for a notification and returns its parameters. An unread one counts.
    pub async fn expect_notification(&mut self, method: &str) -> Value {
        let matches = |message: &Value| message["method"] == method && message.get("id").is_none();
        let mut message = self.expect(method, matches).await;
        message["params"].take()
    }

    /// Waits for a client request. Respond with [`respond`](Self::respond).
    ///
    /// Only in sessions. Stateless calls return input requests in their result.
    pub async fn expect_request(&mut self, method: &str) -> ClientRequest {
        let matches = |message: &Value| message["method"] == method && message.get("id").is_some();
        let mut message = self.expect(method, matches).await;
        ClientRequest {
            id: message["id"].take(),
            params: message["params"].take(),
        }
    }

    /// Responds to a client request.
    pub async fn respond(&mut self, request: &ClientRequest, result: Value) {
        let id = &request.id;
        self.send(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
            .await;
    }

    /// Responds to a client request with an error.
    pub async fn respond_error(&mut self, request: &ClientRequest, code: i64, message: &str) {
        let error = json!({ "code": code, "message": message });
        let id = &request.id;
        self.send(json!({ "jsonrpc": "2.0", "id": id, "error": error }))
            .await;
    }

    /// Fails if there is an unread message, or one arrives within a second.
    pub async fn expect_no_message(&mut self) {
        let received = match self.unread.pop_front() {
            Some(message) => Some(message),
            None => timeout(QUIET_PERIOD, self.receive()).await.ok(),
        };
        if let Some(message) = received {
            let what = message["method"].as_str().unwrap_or("a response");
            self.fail(format_args!("expected no message, got `{what}`"));
        }
    }

    /// Returns all unread notifications, in order.
    pub fn notifications(&mut self) -> Vec<Value> {
        let (notifications, rest) = self
            .unread
            .drain(..)
            .partition::<VecDeque<_>, _>(|message| message.get("id").is_none());
        self.unread = rest;
        notifications.into()
    }

    /// Sends a notification.
    pub async fn notify(&mut self, method: &str, params: Value) {
        let mut message = json!({ "jsonrpc": "2.0", "method": method });
        if !params.is_null() {
            message["params"] = params;
        }
        self.send(message).await;
    }

    /// Sends a raw message.
    pub async fn send(&mut self, message: Value) {
        self.recording.note(MessageDirection::Sent, &message);
        match timeout(self.timeout, self.transport.send(&message)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.fail(error),
            Err(_) => self.fail("the server does not read its input"),
        }
    }

    /// Returns the next unread message.
    pub async fn next(&mut self) -> Value {
        self.expect("another message", |_| true).await
    }

    /// Returns all messages so far.
    pub fn messages(&self) -> Vec<RecordedMessage> {
        self.recording.messages()
    }

    /// Returns the messages so far as text for people and snapshots, one line each.
    ///
    /// `→` marks sent and `←` received messages. Requests of the client are numbered with `#`, those of the server with
    /// `?`. Repeated metadata is omitted. Values that vary, such as request state, cursors and timestamps, are shown as
    /// `…`; tasks are numbered. [`messages`](Self::messages) returns everything.
    pub fn transcript(&self) -> String {
        self.recording.transcript()
    }

    /// Closes the connection or session, and waits for the server to finish.
    ///
    /// # Errors
    ///
    /// If the server returned one.
    pub async fn close(self) -> io::Result<()> {
        match timeout(self.timeout, self.transport.close()).await {
            Ok(closed) => closed,
            Err(_) => self.recording.fail("the server did not finish"),
        }
    }

    /// Waits for a message, among the unread and later ones.
    async fn expect(&mut self, what: &str, matches: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.unread.iter().position(&matches) {
            return self.unread.remove(at).expect("it was just found there");
        }
        let deadline = Instant::now() + self.timeout;
        loop {
            let Ok(message) = timeout_at(deadline, self.receive()).await else {
                let waited = self.timeout;
                self.fail(format_args!("{what} was not received within {waited:?}"));
            };
            if matches(&message) {
                return message;
            }
            self.unread.push_back(message);
        }
    }

    /// Returns the next message that the responder does not handle.
    async fn receive(&mut self) -> Value {
        loop {
            let message = match self.transport.receive().await {
                Ok(Some(message)) => message,
                Ok(None) => self.fail("the server closed the connection"),
                Err(error) => self.fail(error),
            };
            self.recording.note(MessageDirection::Received, &message);
            match self.run_responder(&message) {
                Some(response) => self.send(response).await,
                None => return message,
            }
        }
    }

    /// Returns the responder's response to a client request, if there is one.
    fn run_responder(&mut self, message: &Value) -> Option<Value> {
        let id = message.get("id")?;
        let result = match message["method"].as_str()? {
            "ping" => json!({}),
            method => self.responder.as_mut()?(method, &message["params"]),
        };
        Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
    }

    #[track_caller]
    fn fail(&self, why: impl fmt::Display) -> ! {
        self.recording.fail(why)
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer")
            .field("revision", &self.identity.revision)
            .finish_non_exhaustive()
    }
}
