//! The folders that a client shows, and how servers hear of changes.

use serde_json::json;
use turnbuckle_client::{Client, Roots};
use turnbuckle_spec_coverage::req;

use crate::fake_lines::{FakeServer, LEGACY};

#[tokio::test(start_paused = true)]
async fn roots_are_declared_listed_and_told_of() {
    req!(
        "roots.capability",
        "roots.list-changed",
        "roots.uri.file",
        "roots.list.shape"
    );
    for revision in LEGACY {
        let server = FakeServer::legacy(revision);
        let roots = Roots::new(["file:///a"]).unwrap();
        let _client = server
            .connect_as(Client::builder("test", "1").roots(roots.clone()))
            .await;
        let hello = server.next("initialize").await;
        assert_eq!(
            hello["params"]["capabilities"]["roots"],
            json!({ "listChanged": true })
        );

        roots.add("file:///b").unwrap();

        let told = server.next("notifications/roots/list_changed").await;
        assert!(told.get("id").is_none());
        let listed = server.ask("roots/list", json!({})).await;
        assert_eq!(
            listed["result"],
            json!({ "roots": [{ "uri": "file:///a" }, { "uri": "file:///b" }] })
        );
        roots.add("file:///b").unwrap();
        server.expect_silence().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_newest_revision_is_not_told_of_changes() {
    req!("roots.list-changed.removed", "roots.capability-modern");
    let server = FakeServer::modern();
    server.answer("tools/call", json!({ "content": [] }));
    let roots = Roots::new(["file:///a"]).unwrap();
    let client = server
        .connect_as(Client::builder("test", "1").roots(roots.clone()))
        .await;

    roots.remove("file:///a");

    server.expect_silence().await;
    client.call_tool("any", json!({})).await.unwrap();
    let call = server.next("tools/call").await;
    let declared = &call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(declared["roots"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn roots_outlive_their_client() {
    let roots = Roots::new(["file:///a"]).unwrap();
    let server = FakeServer::legacy("2025-11-25");
    let client = server
        .connect_as(Client::builder("test", "1").roots(roots.clone()))
        .await;

    drop(client);
    server.left().await;

    roots.add("file:///b").unwrap();
    assert_eq!(server.count("notifications/roots/list_changed"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_client_without_roots_says_so() {
    req!("roots.error.unsupported");
    for revision in LEGACY {
        let server = FakeServer::legacy(revision);
        let _client = server.connect().await;

        let answer = server.ask("roots/list", json!({})).await;

        assert_eq!(answer["error"]["code"], -32601);
    }
}
