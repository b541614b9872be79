//! The matrix of transports and revisions.

use std::fmt;

use turnbuckle_protocol::Revision;

use super::PeerBuilder;
use crate::{
    Server,
    http::{Http, HttpSse},
    ndjson::NdjsonServer,
};

/// An in-memory transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransportKind {
    /// Newline-delimited JSON, as on stdio.
    Ndjson,
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE, the transport of 2024-11-05.
    HttpSse,
}

impl TransportKind {
    /// All transports.
    pub const ALL: [Self; 3] = [Self::Ndjson, Self::Http, Self::HttpSse];

    /// The revisions that use this transport, oldest first.
    pub fn revisions(self) -> &'static [Revision] {
        let all = &Revision::ALL;
        let streamable = all
            .iter()
            .position(|revision| *revision == Revision::V2025_03_26)
            .unwrap_or(all.len());
        match self {
            Self::Ndjson => all,
            Self::Http => &all[streamable..],
            Self::HttpSse => &all[..streamable],
        }
    }
}

impl fmt::Display for TransportKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ndjson => "ndjson",
            Self::Http => "HTTP",
            Self::HttpSse => "HTTP+SSE",
        })
    }
}

/// A transport with a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Combination {
    /// The transport.
    pub transport: TransportKind,
    /// The client's revision.
    pub revision: Revision,
}

/// Returns every transport with each of its revisions.
///
/// ```
/// use serde_json::json;
/// use turnbuckle_server::{Server, Tool, testing::all_combinations};
///
/// # fn server() -> Server {
/// #     Server::new("clock", "1.0.0")
/// #         .tool(Tool::new("now", async || Ok("half past nine".to_owned())))
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// for combination in all_combinations() {
///     let mut peer = combination.connect(server()).await;
///     assert_eq!(peer.call_tool("now", json!({})).await.text(), "half past nine", "{combination}");
/// }
/// # }
/// ```
pub fn all_combinations() -> impl Iterator<Item = Combination> {
    TransportKind::ALL.into_iter().flat_map(|transport| {
        let revisions = transport.revisions().iter().copied();
        revisions.map(move |revision| Combination::new(transport, revision))
    })
}

impl Combination {
    /// Creates a combination of a transport and a revision.
    pub fn new(transport: TransportKind, revision: Revision) -> Self {
        Self {
            transport,
            revision,
        }
    }

    /// Connects a client to a server.
    pub fn connect(self, server: Server) -> PeerBuilder {
        let connect = match self.transport {
            TransportKind::Ndjson => PeerBuilder::ndjson(NdjsonServer::new(server)),
            TransportKind::Http => PeerBuilder::http(Http::new(server)),
            TransportKind::HttpSse => {
                PeerBuilder::http_sse(Http::new(server).http_sse(HttpSse::new()))
            }
        };
        connect.revision(self.revision)
    }
}

impl fmt::Display for Combination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.transport, self.revision)
    }
}
