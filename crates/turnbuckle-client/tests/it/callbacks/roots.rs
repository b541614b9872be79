//! Roots, and the notification of their changes.

use serde_json::json;
use turnbuckle_client::{Client, Roots};
use turnbuckle_spec_coverage::req;

use crate::servers::mock_ndjson::{LEGACY, MockServer};

#[tokio::test(start_paused = true)]
async fn roots_are_declared_listed_and_their_changes_are_sent() {
    req!(
        "roots.capability",
        "roots.list-changed",
        "roots.uri.file",
        "roots.list.shape"
    );
    for revision in LEGACY {
        let server = MockServer::legacy(revision);
        let roots = Roots::new(["file:///a"]).unwrap();
        let _client = server
            .connect_with(Client::builder("test", "1").roots(roots.clone()))
            .await;
        let handshake = server.next("initialize").await;
        assert_eq!(
            handshake["params"]["capabilities"]["roots"],
            json!({ "listChanged": true })
        );

        roots.add("file:///b").unwrap();

        let reported = server.next("notifications/roots/list_changed").await;
        assert!(reported.get("id").is_none());
        let listed = server.call_client("roots/list", json!({})).await;
        assert_eq!(
            listed["result"],
            json!({ "roots": [{ "uri": "file:///a" }, { "uri": "file:///b" }] })
        );
        roots.add("file:///b").unwrap();
        server.expect_no_message().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_modern_era_has_no_roots_notification() {
    req!("roots.list-changed.removed", "roots.capability-modern");
    let server = MockServer::modern();
    server.respond("tools/call", json!({ "content": [] }));
    let roots = Roots::new(["file:///a"]).unwrap();
    let client = server
        .connect_with(Client::builder("test", "1").roots(roots.clone()))
        .await;

    roots.remove("file:///a");

    server.expect_no_message().await;
    client.call_tool("any", json!({})).await.unwrap();
    let call = server.next("tools/call").await;
    let declared = &call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(declared["roots"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn roots_outlive_their_client() {
    let roots = Roots::new(["file:///a"]).unwrap();
    let server = MockServer::legacy("2025-11-25");
    let client = server
        .connect_with(Client::builder("test", "1").roots(roots.clone()))
        .await;

    drop(client);
    server.client_closed().await;

    roots.add("file:///b").unwrap();
    assert_eq!(server.count("notifications/roots/list_changed"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_client_without_roots_rejects_the_request() {
    req!("roots.error.unsupported");
    for revision in LEGACY {
        let server = MockServer::legacy(revision);
        let _client = server.connect().await;

        let response = server.call_client("roots/list", json!({})).await;

        assert_eq!(response["error"]["code"], -32601);
    }
}
