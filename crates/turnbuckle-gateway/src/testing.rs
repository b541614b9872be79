//! In-memory testing of servers behind a gateway, with clients and servers of all eras.
//!
//! ```
//! use serde_json::json;
//! use turnbuckle_gateway::testing::every_pair;
//! use turnbuckle_server::{Server, Tool};
//!
//! fn server() -> Server {
//!     Server::new("clock", "1.0.0")
//!         .tool(Tool::new("now", async || Ok("half past nine".to_owned())))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! every_pair(server, async |peer, _pair| {
//!     let mut peer = peer.await;
//!     let answer = peer.call_tool("now", json!({})).await;
//!     answer.text().to_owned()
//! })
//! .await;
//! # }
//! ```

use std::fmt;

use turnbuckle_client::{LifecycleMode, Target, ndjson::NdjsonClient};
use turnbuckle_protocol::Revision;
use turnbuckle_server::{
    Server, ndjson,
    testing::{Combination, PeerBuilder, TransportKind},
};

use crate::{Gateway, RunningGateway, Sharing, Upstream};

/// Capacity of the streams between a gateway and its server, in bytes.
const STREAM_CAPACITY: usize = 64 * 1024;

/// A client, and the server that it uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EraPair {
    /// The transport and revision of the client.
    pub client: Combination,
    /// The server behind the gateway. `None` if the client is connected to the server itself.
    pub server: Option<PairServer>,
}

/// How a gateway uses the server of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PairServer {
    /// The era of the server.
    pub mode: LifecycleMode,
    /// Whether all callers share a connection, on which a legacy server gets one call at a time. Otherwise each session has
    /// one.
    pub is_shared: bool,
}

impl fmt::Display for EraPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "client: {}; ", self.client)?;
        match self.server {
            None => f.write_str("without a gateway"),
            Some(PairServer { mode, is_shared }) => {
                let sharing = if is_shared { "shared" } else { "not shared" };
                write!(f, "server: {mode:?}, {sharing}")
            }
        }
    }
}

/// Runs a probe with a legacy and a modern client, each connected to the server itself, and through a gateway to the server
/// in both eras, with a shared connection and with its own.
///
/// `server` creates the server. The probe gets a client, which it can give capabilities and responses, and returns what it
/// observed. With the gateway it must observe the same as without.
///
/// # Panics
///
/// If what a client observes differs from what it observes without a gateway.
pub async fn every_pair<T: PartialEq + fmt::Debug>(
    server: impl Fn() -> Server,
    probe: impl AsyncFn(PeerBuilder, EraPair) -> T,
) {
    let revisions = [Revision::LATEST_LEGACY, Revision::MODERN];
    let clients = revisions.map(|revision| Combination::new(TransportKind::Ndjson, revision));
    every_pair_with(clients, server, probe).await;
}

/// Like [`every_pair`], with these clients.
///
/// # Panics
///
/// As [`every_pair`].
pub async fn every_pair_with<T: PartialEq + fmt::Debug>(
    clients: impl IntoIterator<Item = Combination>,
    server: impl Fn() -> Server,
    probe: impl AsyncFn(PeerBuilder, EraPair) -> T,
) {
    for client in clients {
        let mut pair = EraPair {
            client,
            server: None,
        };
        let expected = probe(client.connect(server()), pair).await;
        for mode in [LifecycleMode::Legacy, LifecycleMode::Modern] {
            for is_shared in [false, true] {
                let behind = PairServer { mode, is_shared };
                pair.server = Some(behind);
                let gateway = start(server(), behind).await;
                let observed = probe(client.connect(gateway.server()), pair).await;
                gateway.close().await;
                assert_eq!(
                    observed, expected,
                    "with a gateway the result differs ({pair})"
                );
            }
        }
    }
}

/// Starts a gateway to a server in memory.
async fn start(server: Server, behind: PairServer) -> RunningGateway {
    let target = move || {
        let (near, far) = tokio::io::duplex(STREAM_CAPACITY);
        let (reader, writer) = tokio::io::split(far);
        let server = server.clone();
        tokio::spawn(async move {
            // The end of the connection is seen by the gateway.
            let _ = ndjson::serve(reader, writer, server).await;
        });
        let (reader, writer) = tokio::io::split(near);
        Target::from(NdjsonClient::new(reader, writer))
    };
    let sharing = if behind.is_shared {
        Sharing::All
    } else {
        Sharing::Session
    };
    let upstream = Upstream::new("server", target)
        .lifecycle_mode(behind.mode)
        .sharing(sharing)
        .one_at_a_time(behind.is_shared);
    let gateway = Gateway::new("gateway", "1.0.0").upstream(upstream);
    gateway
        .start()
        .await
        .expect("a server in memory can be reached")
}
