//! A mock HTTP server with scripted responses, valid or not, which records its requests.
//!
//! Implements HTTP itself, so that it can send what a library would not.

#![allow(
    dead_code,
    reason = "unit tests and integration tests use different parts"
)]
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::{
    collections::VecDeque,
    future::Future,
    io,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use tokio::{
    io::{
        AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader,
        DuplexStream, ReadHalf, WriteHalf,
    },
    net::TcpListener,
    sync::{Notify, mpsc, watch},
};
use turnbuckle_spec_coverage::saw_message;

/// A mock server, and its recorded requests. It ends with the runtime of the test.
#[derive(Clone)]
pub(crate) struct MockHttpServer {
    base: String,
    dial: mpsc::UnboundedSender<DuplexStream>,
    shared: Arc<MockHttpState>,
}

/// A received request.
#[derive(Clone, Debug)]
pub(crate) struct RecordedRequest {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// The time at which it was complete, by the clock of the runtime.
    pub(crate) at: tokio::time::Instant,
}

struct MockHttpState {
    respond: Box<dyn Fn(&RecordedRequest) -> MockResponse + Send + Sync>,
    requests: Mutex<Vec<RecordedRequest>>,
    arrived: Notify,
    connections: AtomicUsize,
    /// The number of calls of [`MockHttpServer::disconnect_all`].
    disconnects: watch::Sender<usize>,
}

impl MockHttpServer {
    /// Serves connections within this process: for tests on paused time.
    pub(crate) fn in_memory(
        respond: impl Fn(&RecordedRequest) -> MockResponse + Send + Sync + 'static,
    ) -> Self {
        let (dial, mut dialed) = mpsc::unbounded_channel();
        let shared = Arc::new(MockHttpState::new(respond));
        let serving = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Some(stream) = dialed.recv().await {
                tokio::spawn(Arc::clone(&serving).serve(stream));
            }
        });
        Self {
            base: "http://fake.test".to_owned(),
            dial,
            shared,
        }
    }

    /// Serves on a loopback port: for tests with more than one process.
    pub(crate) async fn on_loopback(
        respond: impl Fn(&RecordedRequest) -> MockResponse + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let fake = Self {
            base,
            ..Self::in_memory(respond)
        };
        let serving = Arc::clone(&fake.shared);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(Arc::clone(&serving).serve(stream));
            }
        });
        fake
    }

    /// Responds with these responses in order, and then with 500.
    pub(crate) fn scripted(replies: impl IntoIterator<Item = MockResponse>) -> Self {
        let replies = Mutex::new(VecDeque::from_iter(replies));
        Self::in_memory(move |_| {
            let next = replies.lock().unwrap().pop_front();
            next.unwrap_or_else(|| MockResponse::status(500))
        })
    }

    /// Returns the URL of a path that starts with a slash.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Returns a connector in memory.
    pub(crate) fn dial(
        &self,
    ) -> impl Fn() -> Pin<Box<dyn Future<Output = io::Result<DuplexStream>> + Send>>
    + Clone
    + Send
    + Sync
    + 'static {
        let dial = self.dial.clone();
        move || {
            let (ours, theirs) = tokio::io::duplex(64 * 1024);
            let dialed = dial.send(theirs).map(|()| ours);
            let dialed = dialed.map_err(|_| io::ErrorKind::ConnectionRefused.into());
            Box::pin(std::future::ready(dialed))
        }
    }

    /// Returns all requests so far.
    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// Waits for the request with this number, counted from zero.
    pub(crate) async fn nth(&self, number: usize) -> RecordedRequest {
        self.wait(|request| request.get(number).cloned()).await
    }

    /// Waits for the first matching request.
    pub(crate) async fn first(
        &self,
        matches: impl Fn(&RecordedRequest) -> bool,
    ) -> RecordedRequest {
        self.wait(|request| request.iter().find(|request| matches(request)).cloned())
            .await
    }

    async fn wait<T>(&self, find: impl Fn(&[RecordedRequest]) -> Option<T>) -> T {
        loop {
            let arrived = self.shared.arrived.notified();
            tokio::pin!(arrived);
            arrived.as_mut().enable();
            if let Some(found) = find(&self.shared.requests.lock().unwrap()) {
                return found;
            }
            arrived.await;
        }
    }

    /// Closes all open connections.
    pub(crate) fn disconnect_all(&self) {
        self.shared.disconnects.send_modify(|times| *times += 1);
    }

    /// Returns the number of connections.
    pub(crate) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }
}

impl RecordedRequest {
    /// Returns a header as text; empty if it is missing.
    pub(crate) fn header(&self, name: &str) -> &str {
        let Some(value) = self.headers.get(name) else {
            return "";
        };
        assert!(!value.is_empty(), "{name} is empty");
        value.to_str().unwrap()
    }

    /// Returns the body as JSON; null if it is not JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Returns the method of the message in the body; empty without one.
    pub(crate) fn rpc(&self) -> String {
        self.json()["method"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }
}

/// A scripted response.
pub(crate) struct MockResponse {
    status: u16,
    headers: Vec<(String, String)>,
    body: MockBody,
}

/// A running script.
type ScriptFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

enum MockBody {
    Complete(Vec<u8>),
    EventWriter(Box<dyn FnOnce(EventWriter) -> ScriptFuture + Send>),
    Raw(Vec<u8>),
}

impl MockResponse {
    /// A response without a body.
    pub(crate) fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: MockBody::Complete(Vec::new()),
        }
    }

    /// A response with a JSON body.
    pub(crate) fn json(value: &Value) -> Self {
        Self::text("application/json", value.to_string())
    }

    /// A JSON-RPC response with this result.
    pub(crate) fn result(request: &RecordedRequest, result: &Value) -> Self {
        Self::json(
            &serde_json::json!({ "jsonrpc": "2.0", "id": request.json()["id"], "result": result }),
        )
    }

    /// A response with a body of any content type.
    pub(crate) fn text(content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let reply = Self {
            body: MockBody::Complete(body.into()),
            ..Self::status(200)
        };
        reply.header("content-type", content_type)
    }

    /// A response stream with the events of a script; it ends with the script.
    pub(crate) fn events<F>(script: impl FnOnce(EventWriter) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let reply = Self {
            body: MockBody::EventWriter(Box::new(|events| Box::pin(script(events)))),
            ..Self::status(200)
        };
        reply.header("content-type", "text/event-stream")
    }

    /// No response, until the client closes the connection.
    pub(crate) fn silence() -> Self {
        Self {
            status: 0,
            ..Self::events(|events| async move { events.closed().await })
        }
    }

    /// These bytes, including the head; then the connection is closed.
    pub(crate) fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            body: MockBody::Raw(bytes.into()),
            ..Self::status(0)
        }
    }

    pub(crate) fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Removes the content type, so that a test can set a wrong one.
    pub(crate) fn without_type(mut self) -> Self {
        self.headers.retain(|(name, _)| name != "content-type");
        self
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    fn head(&self, framing: &str) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} Status\r\n{framing}\r\n", self.status);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        head.into_bytes()
    }
}

/// Writes the events of a response stream.
#[derive(Clone)]
pub(crate) struct EventWriter {
    out: mpsc::UnboundedSender<Vec<u8>>,
    client_gone: watch::Receiver<bool>,
    end: Arc<Notify>,
    cut: Arc<AtomicBool>,
}

impl EventWriter {
    /// Sends a message as an event without an id.
    pub(crate) fn message(&self, message: &Value) {
        self.text(&format!("data: {message}\n\n"));
    }

    /// Sends text unchanged: fields, comments, half an event.
    pub(crate) fn text(&self, text: &str) {
        saw_message(text);
        let mut chunk = format!("{:x}\r\n", text.len()).into_bytes();
        chunk.extend_from_slice(text.as_bytes());
        chunk.extend_from_slice(b"\r\n");
        // Dropped if the client has closed the connection.
        let _ = self.out.send(chunk);
    }

    /// Waits until the client has closed the connection.
    pub(crate) async fn closed(mut self) {
        let _ = self.client_gone.wait_for(|client_gone| *client_gone).await;
    }

    /// Ends the stream, even if its script still runs.
    pub(crate) fn end(&self) {
        self.end.notify_one();
    }

    /// Waits until the client has closed the connection, or until [`end`](Self::end).
    pub(crate) async fn ended(self) {
        let end = Arc::clone(&self.end);
        tokio::select! {
            () = end.notified() => {}
            () = self.closed() => {}
        }
    }

    /// Closes the connection in the middle of the body.
    pub(crate) fn cut(self) {
        self.cut.store(true, Ordering::SeqCst);
    }
}

impl MockHttpState {
    fn new(respond: impl Fn(&RecordedRequest) -> MockResponse + Send + Sync + 'static) -> Self {
        Self {
            respond: Box::new(respond),
            requests: Mutex::default(),
            arrived: Notify::new(),
            connections: AtomicUsize::new(0),
            disconnects: watch::Sender::new(0),
        }
    }

    async fn serve<S: AsyncRead + AsyncWrite + Send + 'static>(self: Arc<Self>, stream: S) {
        self.connections.fetch_add(1, Ordering::SeqCst);
        let (reader, mut writer) = tokio::io::split(stream);
        let mut reader = BufReader::new(reader);
        while let Some(request) = read_request(&mut reader).await {
            saw_message(&String::from_utf8_lossy(&request.body));
            let reply = (self.respond)(&request);
            self.requests.lock().unwrap().push(request);
            self.arrived.notify_waiters();
            let mut disconnects = self.disconnects.subscribe();
            let sent = tokio::select! {
                sent = send(reply, &mut reader, &mut writer) => sent,
                _ = disconnects.changed() => false,
            };
            if !sent {
                break;
            }
        }
        let _ = writer.shutdown().await;
    }
}

async fn read_request<S: AsyncRead>(
    reader: &mut BufReader<ReadHalf<S>>,
) -> Option<RecordedRequest> {
    let mut first = String::new();
    reader.read_line(&mut first).await.ok()?;
    let mut words = first.split_ascii_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = HeaderMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        let name: HeaderName = name.parse().unwrap();
        headers.append(name, HeaderValue::from_str(value.trim()).unwrap());
    }
    let length = headers.get("content-length");
    let length = length.map_or(0, |length| length.to_str().unwrap().parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).await.ok()?;
    Some(RecordedRequest {
        method,
        path,
        headers,
        body: body.into(),
        at: tokio::time::Instant::now(),
    })
}

/// Sends a response; returns `false` if the connection must be closed.
async fn send<S: AsyncRead + AsyncWrite>(
    reply: MockResponse,
    reader: &mut BufReader<ReadHalf<S>>,
    writer: &mut WriteHalf<S>,
) -> bool {
    match &reply.body {
        MockBody::Raw(bytes) => {
            let _ = writer.write_all(bytes).await;
            false
        }
        MockBody::Complete(body) => {
            saw_message(&String::from_utf8_lossy(body));
            let mut bytes = reply.head(&format!("Content-Length: {}", body.len()));
            bytes.extend_from_slice(body);
            writer.write_all(&bytes).await.is_ok()
        }
        MockBody::EventWriter(_) => {
            if reply.status != 0 {
                let head = reply.head("Transfer-Encoding: chunked");
                let _ = writer.write_all(&head).await;
            }
            let MockBody::EventWriter(script) = reply.body else {
                unreachable!("the kind of body is known");
            };
            stream(script, reader, writer).await
        }
    }
}

/// Runs a script, and detects that the client closes the connection.
async fn stream<S: AsyncRead + AsyncWrite>(
    script: impl FnOnce(EventWriter) -> ScriptFuture,
    reader: &mut BufReader<ReadHalf<S>>,
    writer: &mut WriteHalf<S>,
) -> bool {
    let (out, mut chunks) = mpsc::unbounded_channel();
    let (left, client_gone) = watch::channel(false);
    let cut = Arc::new(AtomicBool::new(false));
    let mut script = script(EventWriter {
        out,
        client_gone,
        end: Arc::default(),
        cut: Arc::clone(&cut),
    });
    let mut running = true;
    while running {
        tokio::select! {
            biased;
            Some(chunk) = chunks.recv() => {
                let _ = writer.write_all(&chunk).await;
            }
            () = &mut script => running = false,
            // A client that waits for a response sends nothing, so readable input is its end.
            _ = reader.fill_buf(), if !*left.borrow() => {
                let _ = left.send(true);
            }
        }
    }
    while let Ok(chunk) = chunks.try_recv() {
        let _ = writer.write_all(&chunk).await;
    }
    let whole = !cut.load(Ordering::SeqCst) && !*left.borrow();
    whole && writer.write_all(b"0\r\n\r\n").await.is_ok()
}
