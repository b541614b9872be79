//! A scripted server at the other end of a pair of byte streams.
//!
//! ```ignore
//! let server = FakeServer::modern();                         // or ::legacy("2025-06-18"), ::mute()
//! server.answer("tools/call", json!({ "content": [] }));     // the same every time
//! let client = server.connect().await;                       // or .connect_as(builder), .connecting(builder)
//!
//! client.call_tool("forecast", json!({})).await.unwrap();
//!
//! let call = server.next("tools/call").await;                // each message is taken once
//! assert_eq!(call["params"]["name"], "forecast");
//! ```
//!
//! To answer by hand, [`withhold`](MockServer::withhold) a method, take the request with [`next`](MockServer::next) and
//! [`reply`](MockServer::reply) when the time has come. To misbehave: [`send_bytes`](MockServer::send_bytes),
//! [`close`](MockServer::close), [`stop_reading`](MockServer::stop_reading). What nobody scripted gets -32601, as from a real server.
#![allow(dead_code, reason = "a toolbox: not every test run needs every tool")]

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

/// The revisions that begin with a handshake.
pub(crate) const LEGACY: [&str; 5] = [
    "2024-10-07",
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
];

/// The revision whose requests stand on their own.
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

/// What a scripted server answers.
pub(crate) enum MockReply {
    /// A result; what a modern server has to add (`resultType`, hints for caches) is added where it is missing.
    Result(Value),
    /// A result as it stands.
    Exactly(Value),
    /// An error object.
    Error(Value),
    /// A line that need not be an answer, nor JSON.
    Raw(String),
    /// Nothing.
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

/// A server by hand: what it gets and sends is plain JSON.
///
/// Runs as a task of its own; it ends when it is dropped, or when the client has gone.
pub(crate) struct MockServer {
    state: Arc<MockServerState>,
    client_ends: Mutex<Option<DuplexStream>>,
    reader_task: AbortHandle,
}

impl MockServer {
    /// A server of 2026-07-28 that answers `server/discover` and offers everything.
    pub(crate) fn modern() -> Self {
        let server = Self::with_buffer(MockEra::Modern, 64 * 1024);
        server.respond("server/discover", discover_result());
        server
    }

    /// A server of an older revision that answers `initialize` and `ping`, and offers everything.
    pub(crate) fn legacy(revision: &str) -> Self {
        let server = Self::with_buffer(MockEra::Legacy, 64 * 1024);
        server.respond("initialize", initialize_result(revision));
        server.respond("ping", json!({}));
        server
    }

    /// A server of any revision that answers its first question, and offers everything.
    pub(crate) fn for_revision(revision: &str) -> Self {
        match revision {
            MODERN => Self::modern(),
            _ => Self::legacy(revision),
        }
    }

    /// A server that reads and never says a word by itself.
    pub(crate) fn silent() -> Self {
        Self::with_buffer(MockEra::Silent, 64 * 1024)
    }

    /// A mute server on streams that hold at most `bytes` in each direction.
    pub(crate) fn silent_with_buffer(bytes: usize) -> Self {
        Self::with_buffer(MockEra::Silent, bytes)
    }

    fn with_buffer(era: MockEra, bytes: usize) -> Self {
        let (server_end, client_end) = tokio::io::duplex(bytes);
        let (reader, writer) = tokio::io::split(server_end);
        let state = Arc::new(MockServerState {
            era,
            script: Mutex::default(),
            inbox: watch::Sender::new(ReceivedMessages::default()),
            writer: AsyncMutex::new(Some(writer)),
            next_id: AtomicI64::new(1000),
        });
        let reader_task = tokio::spawn(Arc::clone(&state).read(reader)).abort_handle();
        Self {
            state,
            client_ends: Mutex::new(Some(client_end)),
            reader_task,
        }
    }

    /// The ends that the client gets; to be taken once.
    pub(crate) fn client_streams(&self) -> (ReadHalf<DuplexStream>, WriteHalf<DuplexStream>) {
        let end = self.client_ends.lock().unwrap().take();
        tokio::io::split(end.expect("the ends are taken once"))
    }

    /// Connects a client without anything special.
    pub(crate) async fn connect(&self) -> Client {
        self.connect_with(Client::builder("test", "1")).await
    }

    /// Connects a client.
    pub(crate) async fn connect_with(&self, client: ClientBuilder) -> Client {
        self.start_connect(client).await.unwrap().unwrap()
    }

    /// Begins to connect a client, which may fail or take its time.
    pub(crate) fn start_connect(
        &self,
        client: ClientBuilder,
    ) -> JoinHandle<Result<Client, ConnectError>> {
        let (reader, writer) = self.client_streams();
        tokio::spawn(client.connect(NdjsonClient::new(reader, writer)))
    }

    // ------------------------------------------------------------------------------------- the script

    /// Answers every request of this method with the same result.
    pub(crate) fn respond(&self, method: &str, result: Value) {
        self.on(method, move |_| result.clone());
    }

    /// Answers requests of this method with one result after the other; those that come later get -32603.
    pub(crate) fn respond_in_order(&self, method: &str, results: impl IntoIterator<Item = Value>) {
        let mut results: VecDeque<_> = results.into_iter().collect();
        self.on(method, move |_| match results.pop_front() {
            Some(result) => MockReply::Result(result),
            None => MockReply::error(-32603, "the script has no further answer"),
        });
    }

    /// Refuses every request of this method.
    pub(crate) fn reject(&self, method: &str, code: i64, message: &str) {
        let message = message.to_owned();
        self.on(method, move |_| MockReply::error(code, &message));
    }

    /// Leaves requests of this method unanswered: the test answers them with [`reply`](Self::reply), or not at all.
    pub(crate) fn withhold(&self, method: &str) {
        self.on(method, |_| MockReply::Silence);
    }

    /// Answers requests of this method by a function of the whole request.
    pub(crate) fn on<R: Into<MockReply>>(
        &self,
        method: &str,
        mut answer: impl FnMut(&Value) -> R + Send + 'static,
    ) {
        let answer = Box::new(move |request: &Value| answer(request).into());
        let mut script = self.state.script.lock().unwrap();
        script.insert(method.to_owned(), answer);
    }

    // ------------------------------------------------------------------------------- what it was told

    /// Waits for the first message of this method that was not taken yet, and takes it.
    pub(crate) async fn next(&self, method: &str) -> Value {
        self.next_matching(method, |message| message["method"] == method)
            .await
    }

    /// Waits for the first answer to this id that was not taken yet, and takes it.
    pub(crate) async fn next_response(&self, id: impl Into<Value>) -> Value {
        let id = id.into();
        self.next_matching("an answer", |message| {
            message.get("method").is_none() && message["id"] == id
        })
        .await
    }

    /// Waits for the first message with a property that was not taken yet, and takes it.
    pub(crate) async fn next_matching(
        &self,
        what: &str,
        matches: impl Fn(&Value) -> bool,
    ) -> Value {
        let mut inbox = self.state.inbox.subscribe();
        let taken = timeout(Duration::from_secs(600), async {
            loop {
                inbox.borrow_and_update();
                let mut found = None;
                self.state.inbox.send_if_modified(|inbox| {
                    found = inbox.take(&matches);
                    false
                });
                match found {
                    Some(message) => return message,
                    None => inbox.changed().await.expect("the desk lives"),
                }
            }
        });
        match taken.await {
            Ok(message) => message,
            Err(_) => panic!("{what} never came; there came {:#?}", self.received()),
        }
    }

    /// Everything that was received so far, in order, taken or not.
    pub(crate) fn received(&self) -> Vec<Value> {
        let inbox = self.state.inbox.borrow();
        inbox
            .messages
            .iter()
            .map(|(message, _)| message.clone())
            .collect()
    }

    /// The methods of everything that was received so far; an answer has none.
    pub(crate) fn methods(&self) -> Vec<String> {
        let method = |message: Value| message["method"].as_str().unwrap_or("").to_owned();
        self.received().into_iter().map(method).collect()
    }

    /// How many messages of this method were received so far.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.methods().iter().filter(|name| *name == method).count()
    }

    /// Every byte that was received so far.
    pub(crate) fn received_bytes(&self) -> Vec<u8> {
        self.state.inbox.borrow().bytes.clone()
    }

    /// Waits until the client has ended its output.
    pub(crate) async fn client_closed(&self) {
        let mut inbox = self.state.inbox.subscribe();
        timeout(
            Duration::from_secs(600),
            inbox.wait_for(|inbox| inbox.ended),
        )
        .await
        .expect("the client goes away")
        .expect("the desk lives");
    }

    /// Fails if anything comes within a second that was not received before.
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

    // ----------------------------------------------------------------------------------- what it says

    /// Answers a request that was [held](Self::withhold).
    pub(crate) async fn reply(&self, request: &Value, reply: impl Into<MockReply>) {
        self.state.respond(request, reply.into()).await;
    }

    /// Asks the client, and waits for its answer: the whole message.
    pub(crate) async fn call_client(&self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        self.next_response(id).await
    }

    /// Sends the client a request, and returns its id.
    pub(crate) async fn request(&self, method: &str, params: Value) -> i64 {
        let id = self.state.next_id.fetch_add(1, Ordering::Relaxed);
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await;
        id
    }

    /// Sends the client a notification.
    pub(crate) async fn notify(&self, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params }))
            .await;
    }

    /// Tells how far a request is, by the token that the request carries.
    pub(crate) async fn progress(&self, request: &Value, progress: f64) {
        let token = &request["params"]["_meta"]["progressToken"];
        assert!(!token.is_null(), "no progress was asked for: {request}");
        self.notify(
            "notifications/progress",
            json!({ "progressToken": token, "progress": progress }),
        )
        .await;
    }

    /// Sends a message as a line.
    pub(crate) async fn send(&self, message: Value) {
        self.send_line(&message.to_string()).await;
    }

    /// Sends a line, whatever it says.
    pub(crate) async fn send_line(&self, line: &str) {
        self.state.write(format!("{line}\n").as_bytes()).await;
    }

    /// Sends bytes, whatever they are.
    pub(crate) async fn send_bytes(&self, bytes: &[u8]) {
        self.state.write(bytes).await;
    }

    /// Ends its output, as a process that exits does; goes on reading.
    pub(crate) async fn close(&self) {
        if let Some(mut writer) = self.state.writer.lock().await.take() {
            let _ = writer.shutdown().await;
        }
    }

    /// Stops reading: the client's output piles up until the stream is full.
    pub(crate) fn stop_reading(&self) {
        self.reader_task.abort();
    }
}

impl Drop for MockServer {
    fn drop(&mut self) {
        self.reader_task.abort();
    }
}

/// The result of `server/discover` of a server that offers everything.
pub(crate) fn discover_result() -> Value {
    json!({
        "supportedVersions": [MODERN],
        "capabilities": all_capabilities(),
        "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "fake", "version": "1" } },
    })
}

/// The result of `initialize` of a server that offers everything.
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

/// What the reading task and the test share.
struct MockServerState {
    era: MockEra,
    script: Mutex<RawServer>,
    inbox: watch::Sender<ReceivedMessages>,
    writer: AsyncMutex<Option<WriteHalf<DuplexStream>>>,
    next_id: AtomicI64,
}

#[derive(Default)]
struct ReceivedMessages {
    /// Each message, and whether the test has taken it.
    messages: Vec<(Value, bool)>,
    bytes: Vec<u8>,
    ended: bool,
}

impl ReceivedMessages {
    fn take(&mut self, matches: impl Fn(&Value) -> bool) -> Option<Value> {
        let mut messages = self.messages.iter_mut();
        let (message, taken) = messages.find(|(message, taken)| !taken && matches(message))?;
        *taken = true;
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
            self.inbox.send_modify(|inbox| {
                inbox.messages.push((message.clone(), false));
                inbox.bytes.append(&mut line);
            });
            if message.get("id").is_some() && message["method"].is_string() {
                let reply = self.scripted_reply(&message);
                self.respond(&message, reply).await;
            }
        }
        self.inbox.send_modify(|inbox| inbox.ended = true);
    }

    fn scripted_reply(&self, request: &Value) -> MockReply {
        let method = request["method"].as_str().unwrap_or("");
        match self.script.lock().unwrap().get_mut(method) {
            Some(answer) => answer(request),
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

    /// Adds what every result of a modern server has.
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
            // Fails where the client has gone, which is for the test to see.
            let _ = writer.write_all(bytes).await;
        }
    }
}

mod tests;
