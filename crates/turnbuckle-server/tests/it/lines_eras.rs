//! Both eras on one connection.

use serde_json::json;
use turnbuckle_ledger::req;
use turnbuckle_server::{Server, Tool, ToolError};

use crate::lines_peer::Peer;

const LEGACY: [&str; 5] = [
    "2024-10-07",
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
];

fn server() -> Server {
    Server::new("eras", "1.0.0").tool(Tool::new("hello", async || {
        Ok::<_, ToolError>("hello".to_owned())
    }))
}

#[tokio::test(start_paused = true)]
async fn every_revision_with_a_handshake_is_spoken() {
    req!(
        "lifecycle.version.server-same",
        "lifecycle.init.server-response"
    );
    for revision in LEGACY {
        let mut peer = Peer::initialized(server(), revision, json!({})).await;

        let tools = peer.call("tools/list", json!({})).await;
        let called = peer.call_tool("hello", json!({})).await;

        assert_eq!(tools["result"]["tools"][0]["name"], "hello");
        assert_eq!(called["result"]["content"][0]["text"], "hello");
        assert_eq!(called["result"].get("resultType"), None);
        assert_eq!(peer.finish().await, [] as [serde_json::Value; 0]);
    }
}
