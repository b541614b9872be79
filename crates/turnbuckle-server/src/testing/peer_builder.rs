//! Builds a test client and connects it.

use std::{fmt, pin::Pin, time::Duration};

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use turnbuckle_protocol::{
    Revision,
    types::{LogLevel, tasks::EXTENSION},
};

use super::{
    DEFAULT_TIMEOUT, Peer, Responder, TestHttpClient, TransportKind, all_capabilities, http,
    peer::TestClientIdentity,
    recording::Recording,
    transport::{ByteStreams, HttpSseTestTransport, HttpTestTransport, TestTransport},
};
use crate::{http::Http, ndjson::NdjsonServer};

/// Builds a test client. Await it to connect.
///
/// By default it uses the newest revision and declares nothing.
#[must_use = "nothing happens before it is awaited"]
pub struct PeerBuilder {
    transport: PeerTransport,
    revision: Revision,
    capabilities: Option<Value>,
    log_level: Option<LogLevel>,
    tasks: bool,
    responder: Option<Responder>,
    timeout: Duration,
}

/// The transport to the server.
enum PeerTransport {
    Ndjson(NdjsonServer),
    Streams(ByteStreams),
    Http(TestHttpClient),
    HttpSse(TestHttpClient),
}

impl PeerBuilder {
    /// Connects over newline-delimited JSON, with options.
    pub fn ndjson(ndjson: NdjsonServer) -> Self {
        Self::at(PeerTransport::Ndjson(ndjson))
    }

    /// Connects over two byte streams: a custom transport, or another process.
    pub fn streams(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        let streams = ByteStreams::new(Box::new(reader), Box::new(writer));
        Self::at(PeerTransport::Streams(streams))
    }

    /// Connects over Streamable HTTP, with options and without a socket.
    pub fn http(options: Http) -> Self {
        Self::at(PeerTransport::Http(http(options)))
    }

    /// Connects over HTTP+SSE at `/sse`, which the options must enable.
    pub fn http_sse(options: Http) -> Self {
        Self::at(PeerTransport::HttpSse(http(options)))
    }

    fn at(transport: PeerTransport) -> Self {
        Self {
            transport,
            revision: Revision::MODERN,
            capabilities: None,
            log_level: None,
            tasks: false,
            responder: None,
            timeout: DEFAULT_TIMEOUT,
        }
    }

    /// Uses a revision with sessions, such as `2025-11-25`.
    ///
    /// # Panics
    ///
    /// If the revision does not exist or is stateless.
    pub fn legacy(self, revision: &str) -> Self {
        match revision.parse::<Revision>() {
            Ok(revision) if !revision.is_stateless() => self.revision(revision),
            _ => panic!("`{revision}` is not a revision with sessions"),
        }
    }

    /// Uses the newest stateless revision.
    pub fn modern(self) -> Self {
        self.revision(Revision::MODERN)
    }

    /// Sets the revision.
    pub fn revision(mut self, revision: Revision) -> Self {
        self.revision = revision;
        self
    }

    /// Sets the client's capabilities. None by default; all client requests, if there is a
    /// [responder](Self::respond_with).
    pub fn capabilities(mut self, capabilities: Value) -> Self {
        self.capabilities = Some(capabilities);
        self
    }

    /// Enables log messages of at least this level.
    pub fn log_level(mut self, level: LogLevel) -> Self {
        self.log_level = Some(level);
        self
    }

    /// Calls tools as tasks, if the revision and the tool allow it, and waits for their results.
    pub fn tasks(mut self) -> Self {
        self.tasks = true;
        self
    }

    /// Sets the responder for client requests: takes the method and parameters, returns the result. Used in every
    /// revision.
    pub fn respond_with(
        mut self,
        responder: impl FnMut(&str, &Value) -> Value + Send + 'static,
    ) -> Self {
        self.responder = Some(Box::new(responder));
        self
    }

    /// Sets the timeout of expectations; 100 seconds by default.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    async fn connect(self) -> Peer {
        let transport = self.transport.kind();
        let recording = Recording::new(format_args!("over {transport}, {}", self.revision));
        let capabilities = self.effective_capabilities();
        let identity = TestClientIdentity {
            revision: self.revision,
            log_level: self.log_level,
            tasks: self.tasks,
            capabilities,
        };
        let transport = self.transport.open().await;
        let mut peer = Peer::new(transport, identity, recording, self.responder, self.timeout);
        peer.initialize().await;
        peer
    }

    fn effective_capabilities(&self) -> Value {
        let mut capabilities = match (&self.capabilities, &self.responder) {
            (Some(capabilities), _) => capabilities.clone(),
            (None, Some(_)) => all_capabilities(),
            (None, None) => json!({}),
        };
        // Earlier revisions have tasks too, but clients do not declare them.
        if self.tasks && self.revision.is_stateless() {
            capabilities["extensions"][EXTENSION] = json!({});
        }
        capabilities
    }
}

impl PeerTransport {
    fn kind(&self) -> TransportKind {
        match self {
            Self::Ndjson(_) | Self::Streams(_) => TransportKind::Ndjson,
            Self::Http(_) => TransportKind::Http,
            Self::HttpSse(_) => TransportKind::HttpSse,
        }
    }

    async fn open(self) -> TestTransport {
        match self {
            Self::Ndjson(lines) => TestTransport::Ndjson(ByteStreams::serve(lines)),
            Self::Streams(streams) => TestTransport::Ndjson(streams),
            Self::Http(client) => TestTransport::Http(HttpTestTransport::new(client)),
            Self::HttpSse(client) => {
                TestTransport::HttpSse(HttpSseTestTransport::open(client).await)
            }
        }
    }
}

impl IntoFuture for PeerBuilder {
    type Output = Peer;
    type IntoFuture = Pin<Box<dyn Future<Output = Peer> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.connect())
    }
}

impl fmt::Debug for PeerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerBuilder")
            .field("transport", &self.transport.kind())
            .field("revision", &self.revision)
            .finish_non_exhaustive()
    }
}
