//! The client to check and how it is launched.

use std::{fmt, io, pin::Pin, sync::Arc};

use tokio::{
    io::{DuplexStream, duplex},
    sync::mpsc,
};
use turnbuckle_client::stdio::ProcessObserver;

use super::command::{ClientCommand, ClientCommandError};
use crate::rule::Transports;

/// The buffer size of an in-process connection.
const BUFFER: usize = 256 * 1024;

/// A client to check.
///
/// It is run once per scenario: it connects to the mock server and does what it does with any server.
#[derive(Clone)]
pub struct ClientTarget {
    pub(crate) label: String,
    pub(crate) launch: LaunchMode,
}

/// The way to launch a client.
#[derive(Clone)]
pub(crate) enum LaunchMode {
    /// A program.
    Command(ClientCommand),
    /// A function in this process.
    InProcess(TransportKind, ClientRunner),
}

/// The transport between the client and the mock server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransportKind {
    /// Streamable HTTP, or HTTP+SSE in revisions without it.
    Http,
    /// Newline-delimited JSON.
    Ndjson,
}

pub(crate) type ClientRunner = Arc<dyn Fn(MockServerAddress) -> ClientFuture + Send + Sync>;
pub(crate) type ClientFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The address of the mock server for a client in this process.
#[derive(Clone, Debug)]
pub struct MockServerAddress {
    pub(crate) url: String,
    pub(crate) connections: mpsc::Sender<DuplexStream>,
}

impl ClientTarget {
    /// Checks a program. In its command line, `{url}` stands for the URL of the mock server, or
    /// `{server}` for the command that starts it.
    ///
    /// `bridge` is a command that takes an address as its last argument and runs
    /// [`stdio_bridge`](crate::stdio_bridge).
    ///
    /// # Errors
    ///
    /// If the command is empty, or has none or both of the placeholders.
    pub fn command(
        words: impl IntoIterator<Item = impl Into<String>>,
        bridge: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, ClientCommandError> {
        let command = ClientCommand::new(
            words.into_iter().map(Into::into).collect(),
            bridge.into_iter().map(Into::into).collect(),
        )?;
        Ok(Self {
            label: command.label(),
            launch: LaunchMode::Command(command),
        })
    }

    /// Reports the start and the end of each process, if the client is a program.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn ProcessObserver>) -> Self {
        if let LaunchMode::Command(command) = &mut self.launch {
            command.observer = Some(observer);
        }
        self
    }

    /// Checks a client in this process over HTTP.
    pub fn on_http<F>(
        label: impl Into<String>,
        run: impl Fn(MockServerAddress) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::within(label.into(), TransportKind::Http, run)
    }

    /// Checks a client in this process over ndjson.
    pub fn on_ndjson<F>(
        label: impl Into<String>,
        run: impl Fn(MockServerAddress) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::within(label.into(), TransportKind::Ndjson, run)
    }

    fn within<F>(
        label: String,
        transport_kind: TransportKind,
        run: impl Fn(MockServerAddress) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let runner: ClientRunner = Arc::new(move |dial| Box::pin(run(dial)));
        Self {
            label,
            launch: LaunchMode::InProcess(transport_kind, runner),
        }
    }

    pub(crate) fn transport_kind(&self) -> TransportKind {
        match &self.launch {
            LaunchMode::Command(command) => command.transport_kind(),
            LaunchMode::InProcess(transport_kind, _) => *transport_kind,
        }
    }

    /// Returns whether a rule can be observed on this transport.
    pub(crate) fn can_observe(&self, transports: Transports, http_sse: bool) -> bool {
        let (http, lines) = match self.transport_kind() {
            TransportKind::Http => (true, false),
            TransportKind::Ndjson => (false, true),
        };
        match transports {
            Transports::Any => true,
            Transports::Http => http && !http_sse,
            Transports::HttpSse => http && http_sse,
            Transports::Ndjson => lines,
            Transports::Stdio => lines && matches!(self.launch, LaunchMode::Command(_)),
        }
    }

    /// Returns the transport name used in reports.
    pub(crate) fn transport(&self, http_sse: bool) -> &'static str {
        match (self.transport_kind(), &self.launch) {
            (TransportKind::Http, _) if http_sse => "http+sse",
            (TransportKind::Http, _) => "http",
            (TransportKind::Ndjson, LaunchMode::Command(_)) => "stdio",
            (TransportKind::Ndjson, LaunchMode::InProcess(..)) => "lines",
        }
    }
}

impl MockServerAddress {
    /// Returns an address and the receiver of its connections.
    pub(crate) fn new(url: String) -> (Self, mpsc::Receiver<DuplexStream>) {
        let (connections, incoming) = mpsc::channel(64);
        (Self { url, connections }, incoming)
    }

    /// Returns the URL of the endpoint, on HTTP.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Opens a connection. On ndjson each connection is a separate server process.
    ///
    /// # Errors
    ///
    /// If the mock server has stopped.
    pub async fn connect(&self) -> io::Result<DuplexStream> {
        let (client_end, far) = duplex(BUFFER);
        match self.connections.send(far).await {
            Ok(()) => Ok(client_end),
            Err(_) => Err(io::ErrorKind::ConnectionRefused.into()),
        }
    }
}

impl fmt::Debug for ClientTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ClientTarget").field(&self.label).finish()
    }
}
