//! Where a client and a server meet.

use std::fmt;

use turnbuckle_protocol::Revision;

use super::Connect;
use crate::{
    Server,
    http::{Http, HttpSse},
    lines::Lines,
};

/// A transport, in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// One message per line, as on stdio.
    Lines,
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE, the transport of 2024-11-05.
    HttpSse,
}

impl Transport {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Lines, Self::Http, Self::HttpSse];

    /// The revisions whose clients use this transport, oldest first.
    pub fn revisions(self) -> &'static [Revision] {
        let all = &Revision::ALL;
        let streamable = all
            .iter()
            .position(|revision| *revision == Revision::V2025_03_26)
            .unwrap_or(all.len());
        match self {
            Self::Lines => all,
            Self::Http => &all[streamable..],
            Self::HttpSse => &all[..streamable],
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lines => "lines",
            Self::Http => "HTTP",
            Self::HttpSse => "HTTP+SSE",
        })
    }
}

/// A transport with the revision that is spoken over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Edge {
    /// How messages travel.
    pub transport: Transport,
    /// What the client speaks.
    pub revision: Revision,
}

/// Every transport with every revision whose clients use it.
///
/// ```
/// use serde_json::json;
/// use turnbuckle_server::{Server, Tool, ToolError, testing::edges};
///
/// # fn server() -> Server {
/// #     Server::new("clock", "1.0.0")
/// #         .tool(Tool::new("now", async || Ok::<_, ToolError>("half past nine".to_owned())))
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// for edge in edges() {
///     let mut peer = edge.connect(server()).await;
///     assert_eq!(peer.call_tool("now", json!({})).await.text(), "half past nine", "{edge}");
/// }
/// # }
/// ```
pub fn edges() -> impl Iterator<Item = Edge> {
    Transport::ALL.into_iter().flat_map(|transport| {
        let revisions = transport.revisions().iter().copied();
        revisions.map(move |revision| Edge::new(transport, revision))
    })
}

impl Edge {
    /// One transport and one revision; every server speaks all of them everywhere.
    pub fn new(transport: Transport, revision: Revision) -> Self {
        Self {
            transport,
            revision,
        }
    }

    /// Joins a client to a server.
    pub fn connect(self, server: Server) -> Connect {
        let connect = match self.transport {
            Transport::Lines => Connect::lines(Lines::new(server)),
            Transport::Http => Connect::http(Http::new(server)),
            Transport::HttpSse => Connect::http_sse(Http::new(server).http_sse(HttpSse::new())),
        };
        connect.speaking(self.revision)
    }
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.transport, self.revision)
    }
}
