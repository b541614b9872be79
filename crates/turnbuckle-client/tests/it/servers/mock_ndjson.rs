//! A mock server on a pair of byte streams, with scripted responses.
//!
//! ```ignore
//! let server = MockServer::modern();                         // or ::legacy("2025-06-18"), ::without_responses()
//! server.respond("tools/call", json!({ "content": [] }));    // the same every time
//! let client = server.connect().await;                       // or .connect_with(builder), .start_connect(builder)
//!
//! client.call_tool("forecast", json!({})).await.unwrap();
//!
//! let call = server.next("tools/call").await;                // each message is returned once
//! assert_eq!(call["params"]["name"], "forecast");
//! ```
//!
//! To respond manually, [`withhold`](MockServer::withhold) a method, wait for the request with [`next`](MockServer::next), and
//! [`reply`](MockServer::reply). To misbehave: [`send_bytes`](MockServer::send_bytes),
//! [`close`](MockServer::close), [`stop_reading`](MockServer::stop_reading). Methods outside the script get -32601.
#![allow(dead_code, reason = "not every configuration uses all functions")]

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf},
    sync::{Mutex as AsyncMutex, watch},
    task::{AbortHandle, JoinHandle},
    time::timeout,
};
use turnbuckle_client::{Client, ClientBuilder, ConnectError, ndjson::NdjsonClient};
use turnbuckle_spec_coverage::saw_message;

/// The revisions with a handshake.
pub(crate) const LEGACY: [&str; 5] = [
    "2024-10-07",
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
];

/// The stateless revision.
pub(crate) const MODERN: &str = "2026-07-28";

/// Every revision.
pub(crate) const EVERY: [&str; 6] = [
    "2024-10-07",
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    MODERN,
];

/// A scripted response.
pub(crate) enum MockReply {
    /// A result; missing members of modern results (`resultType`, cache hints) are added.
    Result(Value),
    /// A result, unchanged.
    Exactly(Value),
    /// An error object.
    Error(Value),
    /// A line, which need not be a response or JSON.
    Raw(String),
    /// No response.
    Silence,
}

impl MockReply {
    /// An error with a code and a message.
    pub(crate) fn error(code: i64, message: &str) -> Self {
        Self::Error(json!({ "code": code, "message": message }))
    }
}

impl From<Value> for MockReply {
    fn from(result: Value) -> Self {
        Self::Result(result)
    }
}

/// A mock server that receives and sends plain JSON.
///
/// Runs as a task; it ends when it is dropped, or when the client closes the connection.
pub(crate) struct MockServer {
    state: Arc<MockServerState>,
    client_stream: Mutex<Option<DuplexStream>>,
    reader_task: AbortHandle,
}

impl MockServer {
    /// A server of 2026-07-28 that responds to `server/discover` with all capabilities.
    pub(crate) fn modern() -> Self {
        let server = Self::with_buffer(MockEra::Modern, 64 * 1024);
        server.respond("server/discover", discover_result());
        server
    }

    /// A server of an older revision that responds to `initialize` and `ping`, with all capabilities.
    pub(crate) fn legacy(revision: &str) -> Self {
        let server = Self::with_buffer(MockEra::Legacy, 64 * 1024);
        server.respond("initialize", initialize_result(revision));
        server.respond("ping", json!({}));
        server
    }

    /// A server of any revision with all capabilities.
    pub(crate) fn for_revision(revision: &str) -> Self {
        match revision {
            MODERN => Self::modern(),
            _ => Self::legacy(revision),
        }
    }

    /// A server that reads, and only sends what a test tells it to.
    pub(crate) fn without_responses() -> Self {
        Self::with_buffer(MockEra::Silent, 64 * 1024)
    }

    /// A silent server on streams that buffer at most `bytes` in each direction.
    pub(crate) fn silent_with_buffer(bytes: usize) -> Self {
        Self::with_buffer(MockEra::Silent, bytes)
    }

    fn with_buffer(era: MockEra, bytes: usize) -> Self {
        let (server_end, client_end) = tokio::io::duplex(bytes);
        let (reader, writer) = tokio::io::split(server_end);
        let state = Arc::new(MockServerState {
            era,
            script: Mutex::default(),
            received: watch::Sender::new(ReceivedMessages::default()),
            writer: AsyncMutex::new(Some(writer)),
            next_id: AtomicI64::new(1000),
        });
        let reader_task = tokio::spawn(Arc::clone(&state).read(reader)).abort_handle();
        Self {
            state,
            client_stream: Mutex::new(Some(client_end)),
            reader_task,
        }
    }

    /// Returns the streams of the client; can be called once.
    pub(crate) fn client_streams(&self) -> (ReadHalf<DuplexStream>, WriteHalf<DuplexStream>) {
        let end = self.client_stream.lock().unwrap().take();
        tokio::io::split(end.expect("called once"))
    }

    /// Connects a client with default settings.
    pub(crate) async fn connect(&self) -> Client {
        self.connect_with(Client::builder("test", "1")).await
    }

    /// Connects a client.
    pub(crate) async fn connect_with(&self, client: ClientBuilder) -> Client {
        self.start_connect(client).await.unwrap().unwrap()
    }

    /// Starts to connect a client, which may fail or wait.
    pub(crate) fn start_connect(
        &self,
        client: ClientBuilder,
    ) -> JoinHandle<Result<Client, ConnectError>> {
        let (reader, writer) = self.client_streams();
        tokio::spawn(client.connect(NdjsonClient::new(reader, writer)))
    }

    // Script

    /// Responds to every request of this method with the same result.
    pub(crate) fn respond(&self, method: &str, result: Value) {
        self.on(method, move |_| result.clone());
    }

    /// Responds to requests of this method with these results in order, and then with -32603.
    pub(crate) fn respond_in_order(&self, method: &str, results: impl IntoIterator<Item = Value>) {
        let mut results: VecDeque<_> = results.into_iter().collect();
        self.on(method, move |_| match results.pop_front() {
            Some(result) => MockReply::Result(result),
            None => MockReply::error(-32603, "the script has ended"),
        });
    }

    /// Rejects every request of this method.
    pub(crate) fn reject(&self, method: &str, code: i64, message: &str) {
        let message = message.to_owned();
        self.on(method, move |_| MockReply::error(code, &message));
    }

    /// Does not respond to requests of this method; a test may do so with [`reply`](Self::reply).
    pub(crate) fn withhold(&self, method: &str) {
        self.on(method, |_| MockReply::Silence);
    }

    /// Responds to requests of this method with a function of the request.
    pub(crate) fn on<R: Into<MockReply>>(
        &self,
        method: &str,
        mut respond_to: impl FnMut(&Value) -> R + Send + 'static,
    ) {
        let respond_to = Box::new(move |request: &Value| respond_to(request).into());
        let mut script = self.state.script.lock().unwrap();
        script.insert(method.to_owned(), respond_to);
    }

    // Received messages

    /// Waits for the first message of this method that was not returned yet.
    pub(crate) async fn next(&self, method: &str) -> Value {
        self.next_matching(method, |message| message["method"] == method)
            .await
    }

    /// Waits for the first response with this id that was not returned yet.
    pub(crate) async fn next_response(&self, id: impl Into<Value>) -> Value {
        let id = id.into();
        self.next_matching("a response", |message| {
            message.get("method").is_none() && message["id"] == id
        })
        .await
    }

    /// Waits for the first matching message that was not returned yet.
    pub(crate) async fn next_matching(
        &self,
        what: &str,
        matches: impl Fn(&Value) -> bool,
    ) -> Value {
        let mut received = self.state.received.subscribe();
        let returned = timeout(Duration::from_secs(600), async {
            loop {
                received.borrow_and_update();
                let mut found = None;
                self.state.received.send_if_modified(|received| {
                    found = received.take(&matches);
                    false
                });
                match found {
                    Some(message) => return message,
                    None => received.changed().await.expect("the state is shared"),
                }
            }
        });
        match returned.await {
            Ok(message) => message,
            Err(_) => panic!("{what} never came; there came {:#?}", self.received()),
        }
    }

    /// Returns all messages so far, in order.
    pub(crate) fn received(&self) -> Vec<Value> {
        let received = self.state.received.borrow();
        received
            .messages
            .iter()
            .map(|(message, _)| message.clone())
            .collect()
    }

    /// Returns the methods of all messages so far; empty for a response.
    pub(crate) fn methods(&self) -> Vec<String> {
        let method = |message: Value| message["method"].as_str().unwrap_or("").to_owned();
        self.received().into_iter().map(method).collect()
    }

    /// Returns the number of messages of this method so far.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.methods().iter().filter(|name| *name == method).count()
    }

    /// Returns all bytes so far.
    pub(crate) fn received_bytes(&self) -> Vec<u8> {
        self.state.received.borrow().bytes.clone()
    }

    /// Waits until the client has closed its output.
    pub(crate) async fn client_closed(&self) {
        let mut received = self.state.received.subscribe();
        timeout(
            Duration::from_secs(600),
            received.wait_for(|received| received.ended),
        )
        .await
        .expect("the client closes the connection")
        .expect("the state is shared");
    }

    /// Fails if a message arrives within a second.
    pub(crate) async fn expect_no_message(&self) {
        let before = self.received().len();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = self.received();
        assert_eq!(
            now.len(),
            before,
            "there was to be silence: {:#?}",
            &now[before..]
        );
    }

    // Sent messages

    /// Responds to a [withheld](Self::withhold) request.
    pub(crate) async fn reply(&self, request: &Value, reply: impl Into<MockReply>) {
        self.state.respond(request, reply.into()).await;
    }

    /// Sends a request to the client; returns the whole response.
    pub(crate) async fn call_client(&self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        self.next_response(id).await
    }

    /// Sends a request to the client; returns its id.
    pub(crate) async fn request(&self, method: &str, params: Value) -> i64 {
        let id = self.state.next_id.fetch_add(1, Ordering::Relaxed);
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await;
        id
    }

    /// Sends a notification to the client.
    pub(crate) async fn notify(&self, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params }))
            .await;
    }

    /// Reports progress, with the token of a request.
    pub(crate) async fn progress(&self, request: &Value, progress: f64) {
        let token = &request["params"]["_meta"]["progressToken"];
        assert!(!token.is_null(), "no progress was requested: {request}");
        self.notify(
            "notifications/progress",
            json!({ "progressToken": token, "progress": progress }),
        )
        .await;
    }

    /// Sends a message on one line.
    pub(crate) async fn send(&self, message: Value) {
        self.send_line(&message.to_string()).await;
    }

    /// Sends a line.
    pub(crate) async fn send_line(&self, line: &str) {
        self.state.write(format!("{line}\n").as_bytes()).await;
    }

    /// Sends bytes.
    pub(crate) async fn send_bytes(&self, bytes: &[u8]) {
        self.state.write(bytes).await;
    }

    /// Closes its output, like a process that exits; continues to read.
    pub(crate) async fn close(&self) {
        if let Some(mut writer) = self.state.writer.lock().await.take() {
            let _ = writer.shutdown().await;
        }
    }

    /// Stops reading, so that the stream fills up.
    pub(crate) fn stop_reading(&self) {
        self.reader_task.abort();
    }
}

impl Drop for MockServer {
    fn drop(&mut self) {
        self.reader_task.abort();
    }
}

/// The result of `server/discover` with all capabilities.
pub(crate) fn discover_result() -> Value {
    json!({
        "supportedVersions": [MODERN],
        "capabilities": all_capabilities(),
        "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "fake", "version": "1" } },
    })
}

/// The result of `initialize` with all capabilities.
pub(crate) fn initialize_result(revision: &str) -> Value {
    json!({
        "protocolVersion": revision,
        "capabilities": all_capabilities(),
        "serverInfo": { "name": "fake", "version": "1" },
    })
}

fn all_capabilities() -> Value {
    json!({
        "completions": {},
        "logging": {},
        "prompts": { "listChanged": true },
        "resources": { "listChanged": true, "subscribe": true },
        "tools": { "listChanged": true },
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MockEra {
    Modern,
    Legacy,
    Silent,
}

type RawServer = HashMap<String, Box<dyn FnMut(&Value) -> MockReply + Send>>;

/// The state that the reader task and the test share.
struct MockServerState {
    era: MockEra,
    script: Mutex<RawServer>,
    received: watch::Sender<ReceivedMessages>,
    writer: AsyncMutex<Option<WriteHalf<DuplexStream>>>,
    next_id: AtomicI64,
}

#[derive(Default)]
struct ReceivedMessages {
    /// Each message, and whether it was returned to the test.
    messages: Vec<(Value, bool)>,
    bytes: Vec<u8>,
    ended: bool,
}

impl ReceivedMessages {
    fn take(&mut self, matches: impl Fn(&Value) -> bool) -> Option<Value> {
        let mut messages = self.messages.iter_mut();
        let (message, returned) =
            messages.find(|(message, returned)| !returned && matches(message))?;
        *returned = true;
        Some(message.clone())
    }
}

impl MockServerState {
    async fn read(self: Arc<Self>, reader: ReadHalf<DuplexStream>) {
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        while matches!(reader.read_until(b'\n', &mut line).await, Ok(length) if length > 0) {
            saw_message(&String::from_utf8_lossy(&line));
            let message: Value = serde_json::from_slice(&line)
                .unwrap_or_else(|_| json!({ "noise": String::from_utf8_lossy(&line) }));
            self.received.send_modify(|received| {
                received.messages.push((message.clone(), false));
                received.bytes.append(&mut line);
            });
            if message.get("id").is_some() && message["method"].is_string() {
                let reply = self.scripted_reply(&message);
                self.respond(&message, reply).await;
            }
        }
        self.received.send_modify(|received| received.ended = true);
    }

    fn scripted_reply(&self, request: &Value) -> MockReply {
        let method = request["method"].as_str().unwrap_or("");
        match self.script.lock().unwrap().get_mut(method) {
            Some(respond_to) => respond_to(request),
            None if self.era == MockEra::Silent => MockReply::Silence,
            None => MockReply::error(-32601, "there is no such method"),
        }
    }

    async fn respond(&self, request: &Value, reply: MockReply) {
        let id = &request["id"];
        let line = match reply {
            MockReply::Result(result) => {
                let result =
                    self.with_modern_members(request["method"].as_str().unwrap_or(""), result);
                json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()
            }
            MockReply::Exactly(result) => {
                json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()
            }
            MockReply::Error(error) => {
                json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string()
            }
            MockReply::Raw(line) => line,
            MockReply::Silence => return,
        };
        self.write(format!("{line}\n").as_bytes()).await;
    }

    /// Adds the members of modern results.
    fn with_modern_members(&self, method: &str, mut result: Value) -> Value {
        if let (MockEra::Modern, Some(members)) = (self.era, result.as_object_mut()) {
            let mut add = |name: &str, value| {
                members.entry(name).or_insert(value);
            };
            add("resultType", json!("complete"));
            if method.ends_with("/list") || ["server/discover", "resources/read"].contains(&method)
            {
                add("ttlMs", json!(0));
                add("cacheScope", json!("private"));
            }
        }
        result
    }

    async fn write(&self, bytes: &[u8]) {
        saw_message(&String::from_utf8_lossy(bytes));
        if let Some(writer) = self.writer.lock().await.as_mut() {
            // Fails if the client has closed the connection.
            let _ = writer.write_all(bytes).await;
        }
    }
}

mod tests;
