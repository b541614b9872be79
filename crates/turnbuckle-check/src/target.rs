//! Where the server is that is checked.

use std::{fmt, io, pin::Pin, sync::Arc};

use tokio::io::{AsyncRead, AsyncWrite};
use turnbuckle_client::{http::Http, stdio::Child};
use turnbuckle_protocol::revision::Revision;

use crate::rule::On;
use crate::wire::{pool::Pool, starter::Starter};

/// A server to check, and how to reach it.
#[derive(Clone)]
pub struct Target {
    pub(crate) label: String,
    pub(crate) way: Reach,
}

/// How a server is reached.
#[derive(Clone)]
pub(crate) enum Reach {
    /// By HTTP.
    Http(Web),
    /// As a process that is started anew for every conversation.
    Child(Starter),
    /// By a pair of byte streams that somebody opens.
    Streams(Opener),
}

/// A server at a URL.
#[derive(Clone)]
pub(crate) struct Web {
    /// Makes connections.
    pub(crate) http: Http,
    /// Those that wait for the next request.
    pub(crate) pool: Pool,
    /// The endpoint: path and query.
    pub(crate) path: String,
    /// What `Host` says.
    pub(crate) host: String,
    /// What goes with every request, such as a token; never shown.
    pub(crate) headers: Vec<(String, String)>,
    /// Whether it is spoken to by HTTP+SSE of 2024-11-05.
    pub(crate) http_sse: bool,
    /// The port, if plain HTTP leads there by the network.
    pub(crate) network_port: Option<u16>,
}

/// Opens a pair of byte streams.
pub(crate) type Opener = Arc<dyn Fn() -> Opening + Send + Sync>;
pub(crate) type Opening = Pin<Box<dyn Future<Output = io::Result<Streams>> + Send>>;
pub(crate) type Streams = (
    Box<dyn AsyncRead + Send + Unpin>,
    Box<dyn AsyncWrite + Send + Unpin>,
);

impl Target {
    /// A server at a URL; `http` makes the connections, and `headers` go with every request.
    pub fn http(url: &str, http: Http, headers: Vec<(String, String)>) -> Self {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let at = rest.find(['/', '?']).unwrap_or(rest.len());
        let (host, path) = rest.split_at(at);
        let path = match path.starts_with('/') {
            true => path.to_owned(),
            false => format!("/{path}"),
        };
        Self {
            label: url.split('?').next().unwrap_or(url).to_owned(),
            way: Reach::Http(Web {
                http,
                pool: Pool::default(),
                path,
                host: host.to_owned(),
                headers,
                http_sse: false,
                network_port: None,
            }),
        }
    }

    /// Says that the host and port of the URL are reached by the network, not by connections that the caller makes.
    ///
    /// Then it is tried whether a server on this machine is open to other machines. `https` is left out: no certificate
    /// is for the addresses that are tried.
    pub fn by_network(mut self) -> Self {
        if let Reach::Http(web) = &mut self.way
            && self.label.starts_with("http://")
        {
            let port = web.host.rsplit_once(':').map(|(_, port)| port.parse());
            web.network_port = port.map_or(Some(80), Result::ok);
        }
        self
    }

    /// Speaks HTTP+SSE of 2024-11-05 instead of Streamable HTTP.
    pub fn http_sse(mut self) -> Self {
        if let Reach::Http(web) = &mut self.way {
            web.http_sse = true;
        }
        self
    }

    /// Returns the same server on the transport that was there before, for one that does not speak Streamable HTTP.
    pub(crate) fn older(&self) -> Option<Self> {
        match &self.way {
            Reach::Http(web) if !web.http_sse => Some(self.clone().http_sse()),
            _ => None,
        }
    }

    /// A program that is started for every conversation.
    pub fn child(label: impl Into<String>, child: Child) -> Self {
        Self {
            label: label.into(),
            way: Reach::Child(Starter::new(child)),
        }
    }

    /// A server behind byte streams, such as a socket; `open` is called for every conversation.
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
            way: Reach::Streams(Arc::new(move || {
                let opening = open();
                Box::pin(async move {
                    let (reader, writer) = opening.await?;
                    Ok((Box::new(reader) as _, Box::new(writer) as _))
                })
            })),
        }
    }

    /// Says whether a rule can be seen on the target's transport.
    pub(crate) fn shows(&self, on: On) -> bool {
        match on {
            On::Any => true,
            On::Http => matches!(&self.way, Reach::Http(web) if !web.http_sse),
            On::HttpSse => matches!(&self.way, Reach::Http(web) if web.http_sse),
            On::Lines => matches!(self.way, Reach::Child(_) | Reach::Streams(_)),
            On::Stdio => matches!(self.way, Reach::Child(_)),
        }
    }

    /// Returns how it is reached by HTTP, if it is.
    pub(crate) fn into_web(self) -> Option<Web> {
        match self.way {
            Reach::Http(web) => Some(web),
            Reach::Child(_) | Reach::Streams(_) => None,
        }
    }

    /// Lets go of what was only kept for those who might come.
    pub(crate) fn dismiss(&self) {
        if let Reach::Child(starter) = &self.way {
            starter.dismiss();
        }
    }

    /// Returns in how many revisions it may be visited at once: processes are not free.
    pub(crate) fn at_once(&self) -> usize {
        match self.way {
            Reach::Child(_) => 3,
            Reach::Http(_) | Reach::Streams(_) => Revision::ALL.len(),
        }
    }

    /// Returns the name of the transport, as reports show it.
    pub fn transport(&self) -> &'static str {
        match &self.way {
            Reach::Http(web) if web.http_sse => "http+sse",
            Reach::Http(_) => "http",
            Reach::Child(_) => "stdio",
            Reach::Streams(_) => "lines",
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Target").field(&self.label).finish()
    }
}
