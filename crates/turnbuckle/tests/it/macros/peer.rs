//! Sends one request to a server in memory.

use serde_json::Value;
use turnbuckle::{Server, testing::Peer};

/// Sends a stateless request and returns the whole response.
pub(crate) async fn request(server: &Server, method: &str, params: Value) -> Value {
    let mut peer = Peer::connect(server.clone()).await;
    let answer = peer.request(method, params).await;
    peer.close().await.unwrap();
    answer.json().clone()
}

/// Sends the same request to both servers, expects equal responses, and returns one.
pub(crate) async fn request_both(servers: &[Server; 2], method: &str, params: Value) -> Value {
    let [attributes, builders] = servers;
    let answer = request(attributes, method, params.clone()).await;
    assert_eq!(answer, request(builders, method, params).await);
    answer
}

pub(crate) fn server() -> Server {
    Server::new("desk", "1.0.0")
}
