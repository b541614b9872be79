//! One request to a server in memory.

use serde_json::Value;
use turnbuckle::{Server, testing::Peer};

/// Sends a request that stands on its own, and returns the whole answer.
pub(crate) async fn ask(server: &Server, method: &str, params: Value) -> Value {
    let mut peer = Peer::connect(server.clone()).await;
    let answer = peer.request(method, params).await;
    peer.close().await.unwrap();
    answer.json().clone()
}

/// Asks both servers for the same, expects the same of them, and returns it.
pub(crate) async fn ask_both(servers: &[Server; 2], method: &str, params: Value) -> Value {
    let [attributes, builders] = servers;
    let answer = ask(attributes, method, params.clone()).await;
    assert_eq!(answer, ask(builders, method, params).await);
    answer
}

pub(crate) fn server() -> Server {
    Server::new("desk", "1.0.0")
}
