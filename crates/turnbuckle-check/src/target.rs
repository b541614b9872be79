//! The server to check.

use std::{fmt, io, pin::Pin, sync::Arc, thread};

use tokio::io::{AsyncRead, AsyncWrite};
use turnbuckle_client::{http::HttpTarget, stdio::ServerCommand};
use turnbuckle_protocol::revision::Revision;
use turnbuckle_text::url::{HttpScheme, HttpUrl, split_authority};

use crate::{
    rule::Transports,
    wire::{pace::ServerPace, pool::ConnectionPool, prewarm::ProcessPrewarmer},
};

/// The maximum number of revisions to check concurrently if each session is a process.
const MAX_PROCESSES: usize = 3;

/// A server to check and how to reach it.
#[derive(Clone)]
pub struct ServerTarget {
    pub(crate) label: String,
    pub(crate) transport: TargetTransport,
    /// The pace at which it starts and responds.
    pub(crate) pace: ServerPace,
}

/// The transport of a server.
#[derive(Clone)]
pub(crate) enum TargetTransport {
    /// HTTP.
    Http(HttpEndpoint),
    /// A process that is started for every session.
    ServerCommand(ProcessPrewarmer),
    /// A pair of byte streams that a callback opens.
    Streams(StreamOpener),
}

/// A server at a URL.
#[derive(Clone)]
pub(crate) struct HttpEndpoint {
    /// Opens connections.
    pub(crate) http: HttpTarget,
    /// Idle connections.
    pub(crate) pool: ConnectionPool,
    /// The endpoint: path and query.
    pub(crate) path: String,
    /// The value of `Host`.
    pub(crate) host: String,
    /// Headers of every request, such as a token; never shown.
    pub(crate) headers: Vec<(String, String)>,
    /// Uses HTTP+SSE of 2024-11-05.
    pub(crate) http_sse: bool,
    /// The port, if plain HTTP is reached over the network.
    pub(crate) network_port: Option<u16>,
}

/// Opens a pair of byte streams.
pub(crate) type StreamOpener = Arc<dyn Fn() -> StreamsFuture + Send + Sync>;
pub(crate) type StreamsFuture = Pin<Box<dyn Future<Output = io::Result<ByteStreams>> + Send>>;
pub(crate) type ByteStreams = (
    Box<dyn AsyncRead + Send + Unpin>,
    Box<dyn AsyncWrite + Send + Unpin>,
);

impl ServerTarget {
    /// Checks the server at a URL. `http` opens the connections; `headers` are sent with every
    /// request.
    pub fn http(url: &str, http: HttpTarget, headers: Vec<(String, String)>) -> Self {
        let rest = HttpScheme::split(url).map_or(url, |(_, rest)| rest);
        let (host, path) = split_authority(rest);
        let path = if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("/{path}")
        };
        Self {
            label: url.split('?').next().unwrap_or(url).to_owned(),
            transport: TargetTransport::Http(HttpEndpoint {
                http,
                pool: ConnectionPool::default(),
                path,
                host: host.to_owned(),
                headers,
                http_sse: false,
                network_port: None,
            }),
            pace: ServerPace::default(),
        }
    }

    /// Declares that the host and port of the URL are reached over the network, not through a
    /// custom connector.
    ///
    /// This enables the test for a local server that listens on other addresses than loopback.
    /// `https` is excluded because certificates do not cover the addresses that are tried.
    pub fn by_network(mut self) -> Self {
        if let TargetTransport::Http(endpoint) = &mut self.transport
            && let Ok(url) = HttpUrl::parse(&self.label)
            && url.scheme == HttpScheme::Http
        {
            endpoint.network_port = Some(url.port());
        }
        self
    }

    /// Uses HTTP+SSE of 2024-11-05 instead of Streamable HTTP.
    pub fn http_sse(mut self) -> Self {
        if let TargetTransport::Http(endpoint) = &mut self.transport {
            endpoint.http_sse = true;
        }
        self
    }

    /// Returns the same server over HTTP+SSE, as a fallback for one without Streamable HTTP.
    pub(crate) fn http_sse_fallback(&self) -> Option<Self> {
        match &self.transport {
            TargetTransport::Http(endpoint) if !endpoint.http_sse => Some(self.clone().http_sse()),
            _ => None,
        }
    }

    /// Checks a program that is started for every session.
    pub fn child(label: impl Into<String>, child: ServerCommand) -> Self {
        let pace = ServerPace::default();
        Self {
            label: label.into(),
            transport: TargetTransport::ServerCommand(ProcessPrewarmer::new(child, pace.clone())),
            pace,
        }
    }

    /// Checks a server behind byte streams, such as a socket. `open` is called for every session.
    pub fn streams<F, R, W>(
        label: impl Into<String>,
        open: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = io::Result<(R, W)>> + Send + 'static,
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        Self {
            label: label.into(),
            transport: TargetTransport::Streams(Arc::new(move || {
                let opening = open();
                Box::pin(async move {
                    let (reader, writer) = opening.await?;
                    Ok((Box::new(reader) as _, Box::new(writer) as _))
                })
            })),
            pace: ServerPace::default(),
        }
    }

    /// Returns whether a rule can be observed on this transport.
    pub(crate) fn can_observe(&self, transports: Transports) -> bool {
        match transports {
            Transports::Any => true,
            Transports::Http => {
                matches!(&self.transport, TargetTransport::Http(endpoint) if !endpoint.http_sse)
            }
            Transports::HttpSse => {
                matches!(&self.transport, TargetTransport::Http(endpoint) if endpoint.http_sse)
            }
            Transports::Ndjson => matches!(
                self.transport,
                TargetTransport::ServerCommand(_) | TargetTransport::Streams(_)
            ),
            Transports::Stdio => matches!(self.transport, TargetTransport::ServerCommand(_)),
        }
    }

    /// Returns the HTTP endpoint, if any.
    pub(crate) fn into_http_endpoint(self) -> Option<HttpEndpoint> {
        match self.transport {
            TargetTransport::Http(endpoint) => Some(endpoint),
            TargetTransport::ServerCommand(_) | TargetTransport::Streams(_) => None,
        }
    }

    /// Stops processes that were started in advance and not used.
    pub(crate) fn stop_prewarmed(&self) {
        if let TargetTransport::ServerCommand(prewarmer) = &self.transport {
            prewarmer.stop();
        }
    }

    /// Returns whether sessions share a server that runs already.
    pub(crate) fn starts_no_process(&self) -> bool {
        !matches!(self.transport, TargetTransport::ServerCommand(_))
    }

    /// Returns the number of revisions to check concurrently, once the server has started: fewer for processes, and as
    /// many as there are processors if they start slowly.
    pub(crate) fn max_concurrent_revisions(&self) -> usize {
        match self.transport {
            TargetTransport::ServerCommand(_) if self.pace.starts_slowly() => {
                thread::available_parallelism().map_or(1, |cores| cores.get().min(MAX_PROCESSES))
            }
            TargetTransport::ServerCommand(_) => MAX_PROCESSES,
            TargetTransport::Http(_) | TargetTransport::Streams(_) => Revision::ALL.len(),
        }
    }

    /// Returns the transport name used in reports.
    pub fn transport(&self) -> &'static str {
        match &self.transport {
            TargetTransport::Http(endpoint) if endpoint.http_sse => "http+sse",
            TargetTransport::Http(_) => "http",
            TargetTransport::ServerCommand(_) => "stdio",
            TargetTransport::Streams(_) => "lines",
        }
    }
}

impl fmt::Debug for ServerTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Target").field(&self.label).finish()
    }
}
