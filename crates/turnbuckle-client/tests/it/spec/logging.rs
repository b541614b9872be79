//! Log levels and log messages.

use std::sync::{Arc, Mutex};

use serde_json::json;
use turnbuckle_client::Client;
use turnbuckle_protocol::types::LogLevel;
use turnbuckle_spec_coverage::req;

use crate::servers::mock_ndjson::{LEGACY, MockServer};

const LEVELS: [&str; 8] = [
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
];

fn level(name: &str) -> LogLevel {
    name.parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn in_a_session_the_log_level_is_set_by_its_name() {
    req!("logging.levels");
    for revision in LEGACY {
        let server = MockServer::legacy(revision);
        server.respond("logging/setLevel", json!({}));
        let client = server.connect().await;

        for name in LEVELS {
            client.set_log_level(level(name)).await.unwrap();

            let requested = server.next("logging/setLevel").await;
            assert_eq!(requested["params"], json!({ "level": name }));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_modern_request_has_the_log_level() {
    req!("logging.levels");
    for name in LEVELS {
        let server = MockServer::modern();
        server.respond("tools/list", json!({ "tools": [] }));
        let client = Client::builder("test", "1").log_level(level(name));
        let client = server.connect_with(client).await;

        client.tools().all().await.unwrap();

        let requested = server.next("tools/list").await;
        let meta = &requested["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/logLevel"], name);
    }
}

#[tokio::test(start_paused = true)]
async fn log_messages_of_all_levels_are_received() {
    let server = MockServer::legacy("2025-11-25");
    server.respond("tools/list", json!({ "tools": [] }));
    let messages = Arc::new(Mutex::new(Vec::new()));
    let client = Client::builder("test", "1").on_log({
        let messages = messages.clone();
        move |message| messages.lock().unwrap().push(message.level)
    });
    let client = server.connect_with(client).await;

    for name in LEVELS.iter().chain(["loud", "", "ERROR"].iter()) {
        let params = json!({ "level": name, "logger": "fake", "data": { "any": ["thing"] } });
        server.notify("notifications/message", params).await;
    }

    client.tools().all().await.unwrap();
    assert_eq!(*messages.lock().unwrap(), LEVELS.map(level));
}

#[tokio::test(start_paused = true)]
async fn the_log_level_of_the_builder_is_sent_after_the_handshake() {
    let server = MockServer::legacy("2025-11-25");
    server.respond("logging/setLevel", json!({}));
    let client = Client::builder("test", "1").log_level(LogLevel::Warning);

    let _client = server.connect_with(client).await;

    let requested = server.next("logging/setLevel").await;
    assert_eq!(requested["params"], json!({ "level": "warning" }));
}

#[tokio::test(start_paused = true)]
async fn a_log_level_that_is_set_later_is_sent_with_modern_requests() {
    let server = MockServer::modern();
    server.respond("tools/list", json!({ "tools": [] }));
    let client = server.connect().await;

    client.set_log_level(LogLevel::Error).await.unwrap();
    client.tools().all().await.unwrap();

    let requested = server.next("tools/list").await;
    let meta = &requested["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/logLevel"], "error");
    assert_eq!(server.count("logging/setLevel"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_method_outside_the_revision_is_not_sent() {
    let server = MockServer::modern();
    let client = server.connect().await;

    let error = client.subscribe("note:a").await.unwrap_err();

    assert_eq!(
        error.to_string(),
        "revision 2026-07-28 has no `resources/subscribe`"
    );
    assert_eq!(server.count("resources/subscribe"), 0);
}
