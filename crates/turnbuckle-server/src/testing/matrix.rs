//! The matrix of transports and revisions.

use std::fmt;

use turnbuckle_protocol::{Revision, method};

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

/// Returns the transports and revisions in which a server can request something from its client.
///
/// A handler that requests input fails in the other revisions, so a test of it runs only in these.
///
/// ```
/// use turnbuckle_server::testing::{ClientFeature, combinations_with};
///
/// let oldest = combinations_with(ClientFeature::FormElicitation).map(|it| it.revision).min();
/// assert_eq!(oldest.unwrap().as_str(), "2025-06-18");
/// ```
pub fn combinations_with(feature: ClientFeature) -> impl Iterator<Item = Combination> {
    all_combinations().filter(move |combination| combination.supports(feature))
}

/// Something that a server can request from its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClientFeature {
    /// The roots.
    Roots,
    /// A completion of the client's model.
    Sampling,
    /// A completion with tools.
    SamplingWithTools,
    /// A form that the user fills in.
    FormElicitation,
    /// A URL that the user opens.
    UrlElicitation,
}

impl ClientFeature {
    /// Every feature.
    pub const ALL: [Self; 5] = [
        Self::Roots,
        Self::Sampling,
        Self::SamplingWithTools,
        Self::FormElicitation,
        Self::UrlElicitation,
    ];

    /// Returns the first revision with the feature.
    fn first_revision(self) -> Revision {
        match self {
            Self::Roots => method::ROOTS_LIST.first,
            Self::Sampling => method::SAMPLING_CREATE_MESSAGE.first,
            Self::FormElicitation => method::ELICITATION_CREATE.first,
            Self::SamplingWithTools | Self::UrlElicitation => Revision::V2025_11_25,
        }
    }
}

impl Combination {
    /// Returns whether a server can request something from its client in this revision.
    pub fn supports(self, feature: ClientFeature) -> bool {
        feature.first_revision() <= self.revision
    }

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
