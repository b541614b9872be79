//! The transports of the test client.

use std::{collections::HashMap, future::poll_fn, io, task::Poll};

use ::http::{Method, StatusCode};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::{AbortHandle, JoinHandle, JoinSet},
};

use super::{TestEventStream, TestHttpClient, TestHttpResponse};
use crate::ndjson::NdjsonServer;

/// A description of a transport failure.
pub(super) type TestTransportError = String;

/// The client side of a transport.
#[expect(clippy::large_enum_variant, reason = "a test has only one")]
pub(super) enum TestTransport {
    Ndjson(ByteStreams),
    Http(HttpTestTransport),
    HttpSse(HttpSseTestTransport),
}

impl TestTransport {
    pub(super) async fn send(&mut self, message: &Value) -> Result<(), TestTransportError> {
        match self {
            Self::Ndjson(transport) => transport.send(message).await,
            Self::Http(transport) => transport.send(message).await,
            Self::HttpSse(transport) => transport.send(message).await,
        }
    }

    /// Returns the next message, or `None` at the end. Cancel safe.
    pub(super) async fn receive(&mut self) -> Result<Option<Value>, TestTransportError> {
        match self {
            Self::Ndjson(transport) => transport.receive().await,
            Self::Http(transport) => transport.receive().await,
            Self::HttpSse(transport) => Ok(transport.receive().await),
        }
    }

    /// Drops a request, if that cancels it. Returns whether it does.
    pub(super) fn abort_request(&mut self, id: i64) -> bool {
        match self {
            Self::Http(transport) => transport.abort_request(id),
            Self::Ndjson(_) | Self::HttpSse(_) => false,
        }
    }

    /// Closes the transport.
    pub(super) async fn close(self) -> io::Result<()> {
        match self {
            Self::Ndjson(transport) => transport.close().await,
            Self::Http(transport) => {
                transport.close().await;
                Ok(())
            }
            Self::HttpSse(_) => Ok(()),
        }
    }
}

type Reader = Box<dyn AsyncRead + Send + Unpin>;
type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// Two byte streams, and the server task if it runs here.
pub(super) struct ByteStreams {
    lines: tokio::io::Lines<BufReader<Reader>>,
    writer: Writer,
    serving: Option<JoinHandle<io::Result<()>>>,
}

impl ByteStreams {
    pub(super) fn new(reader: Reader, writer: Writer) -> Self {
        Self {
            lines: BufReader::new(reader).lines(),
            writer,
            serving: None,
        }
    }

    /// Serves a server on the other end.
    pub(super) fn serve(lines: NdjsonServer) -> Self {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let (far_reader, far_writer) = tokio::io::split(far);
        let (reader, writer) = tokio::io::split(near);
        Self {
            serving: Some(tokio::spawn(lines.serve(far_reader, far_writer))),
            ..Self::new(Box::new(reader), Box::new(writer))
        }
    }

    pub(super) async fn send(&mut self, message: &Value) -> Result<(), TestTransportError> {
        let line = format!("{message}\n");
        let written = self.writer.write_all(line.as_bytes()).await;
        let written = match written {
            Ok(()) => self.writer.flush().await,
            failed => failed,
        };
        written.map_err(|error| format!("the server stopped reading: {error}"))
    }

    pub(super) async fn receive(&mut self) -> Result<Option<Value>, TestTransportError> {
        let line = self.lines.next_line().await;
        let line = line.map_err(|error| format!("reading from the connection failed: {error}"))?;
        line.map(|line| serde_json::from_str(&line))
            .transpose()
            .map_err(|error| format!("the server wrote a line that is not JSON: {error}"))
    }

    pub(super) async fn close(mut self) -> io::Result<()> {
        self.writer.shutdown().await?;
        // Remaining output must be read, or the server blocks.
        while self.lines.next_line().await?.is_some() {}
        match self.serving {
            Some(serving) => serving.await.map_err(io::Error::other)?,
            None => Ok(()),
        }
    }
}

/// A message from any response, or an error.
type Incoming = Result<Value, TestTransportError>;

/// The running requests of one client. Dropping it closes their connections.
pub(super) struct HttpTestTransport {
    client: TestHttpClient,
    sender: UnboundedSender<Incoming>,
    receiver: UnboundedReceiver<Incoming>,
    running: HashMap<i64, AbortHandle>,
    tasks: JoinSet<()>,
}

impl HttpTestTransport {
    pub(super) fn new(client: TestHttpClient) -> Self {
        let (sender, receiver) = unbounded_channel();
        Self {
            client,
            sender,
            receiver,
            running: HashMap::new(),
            tasks: JoinSet::new(),
        }
    }

    pub(super) async fn send(&mut self, message: &Value) -> Result<(), TestTransportError> {
        match (message["method"].as_str(), message.get("id")) {
            (Some("initialize"), Some(_)) => self.initialize(message).await,
            (Some(_), Some(id)) => {
                let id = id.as_i64();
                self.post_request(message, id).await;
                Ok(())
            }
            (method, _) => {
                let response = respond(self.client.clone(), message.clone()).await;
                if response.status() != StatusCode::ACCEPTED {
                    return Err(error_text(response).await);
                }
                if method == Some("notifications/initialized") && self.client.session.is_some() {
                    self.listen().await;
                }
                Ok(())
            }
        }
    }

    pub(super) async fn receive(&mut self) -> Result<Option<Value>, TestTransportError> {
        self.receiver.recv().await.transpose()
    }

    pub(super) fn abort_request(&mut self, id: i64) -> bool {
        if let Some(running) = self.running.remove(&id) {
            running.abort();
        }
        // In a session, a closed connection does not cancel a request.
        self.client.session.is_none()
    }

    pub(super) async fn close(self) {
        if self.client.session.is_some() {
            self.client.delete().await;
        }
    }

    /// Sends `initialize` and takes the session id from the response.
    async fn initialize(&mut self, message: &Value) -> Result<(), TestTransportError> {
        let response = respond(self.client.clone(), message.clone()).await;
        if response.status() != StatusCode::OK {
            return Err(error_text(response).await);
        }
        self.client.session = response.header("mcp-session-id").map(str::to_owned);
        let response = response.json().await;
        let negotiated = response["result"]["protocolVersion"].as_str();
        self.client.version = negotiated.map(str::to_owned);
        self.sender.send(Ok(response)).ok();
        Ok(())
    }

    /// Opens the GET stream and forwards its messages.
    async fn listen(&mut self) {
        let response = self.client.get(None).await;
        if !response.is_stream() {
            return;
        }
        let (mut events, sender) = (response.events(), self.sender.clone());
        self.tasks.spawn(async move {
            while let Some(message) = events.read_message().await {
                if sender.send(Ok(message)).is_err() {
                    return;
                }
            }
        });
    }

    /// Posts a request, and forwards its response from a task.
    async fn post_request(&mut self, message: &Value, id: Option<i64>) {
        let client = self.client.clone();
        let mut post = Box::pin(run_post(client, message.clone(), self.sender.clone()));
        // Polled once first, so that the server starts requests in order.
        let started = poll_fn(|cx| Poll::Ready(post.as_mut().poll(cx))).await;
        if started.is_pending() {
            let running = self.tasks.spawn(post);
            self.running.extend(id.map(|id| (id, running)));
        }
    }
}

async fn respond(client: TestHttpClient, message: Value) -> TestHttpResponse {
    let request = client.post_builder(&message);
    let response = client.call(request, message.to_string().into()).await;
    TestHttpResponse::new(response, client.timeout)
}

/// Posts a request and forwards messages until its response.
async fn run_post(client: TestHttpClient, message: Value, sender: UnboundedSender<Incoming>) {
    let id = message["id"].clone();
    let mut response = respond(client.clone(), message).await;
    while response.is_stream() {
        let mut events = response.events();
        while let Some(message) = events.read_message().await {
            let responded = message.get("method").is_none() && message["id"] == id;
            if sender.send(Ok(message)).is_err() || responded {
                return;
            }
        }
        if events.last_event_id().is_empty() {
            let error = format!("the stream of request {id} ended before its response");
            sender.send(Err(error)).ok();
            return;
        }
        // Resumes the stream.
        response = client.get(Some(events.last_event_id())).await;
    }
    let is_json = response.header("content-type") == Some("application/json");
    let incoming = if is_json {
        Ok(response.json().await)
    } else {
        Err(error_text(response).await)
    };
    sender.send(incoming).ok();
}

async fn error_text(response: TestHttpResponse) -> TestTransportError {
    let status = response.status();
    let body = response.bytes().await;
    format!("HTTP {status}: {}", String::from_utf8_lossy(&body))
}

/// A client with an open stream.
pub(super) struct HttpSseTestTransport {
    client: TestHttpClient,
    events: TestEventStream,
    /// The URL for messages.
    uri: String,
}

impl HttpSseTestTransport {
    /// Opens the stream and reads its first event.
    pub(super) async fn open(client: TestHttpClient) -> Self {
        let response = client
            .send(client.request_builder(Method::GET, "/sse"), "")
            .await;
        let mut events = response.events();
        let first = events.next().await.expect("the stream begins");
        assert_eq!(first.name, "endpoint", "the first event is `endpoint`");
        Self {
            client,
            events,
            uri: first.data,
        }
    }

    pub(super) async fn send(&mut self, message: &Value) -> Result<(), TestTransportError> {
        let request = self.client.request_builder(Method::POST, &self.uri);
        let response = self.client.send(request, message.to_string()).await;
        let status = response.status();
        if status == StatusCode::ACCEPTED {
            return Ok(());
        }
        let body = response.bytes().await;
        Err(format!("HTTP {status}: {}", String::from_utf8_lossy(&body)))
    }

    pub(super) async fn receive(&mut self) -> Option<Value> {
        self.events.read_message().await
    }
}
