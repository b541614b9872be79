//! Log messages: how they are asked for, and how they arrive.

use std::sync::{Arc, Mutex};

use serde_json::json;
use turnbuckle_client::Client;
use turnbuckle_protocol::types::LogLevel;
use turnbuckle_spec_coverage::req;

use crate::fake_lines::{FakeServer, LEGACY};

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
async fn a_level_is_set_by_its_name_where_a_session_remembers_it() {
    req!("logging.levels");
    for revision in LEGACY {
        let server = FakeServer::legacy(revision);
        server.answer("logging/setLevel", json!({}));
        let client = server.connect().await;

        for name in LEVELS {
            client.set_log_level(level(name)).await.unwrap();

            let asked = server.next("logging/setLevel").await;
            assert_eq!(asked["params"], json!({ "level": name }));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_level_is_said_with_each_modern_request() {
    req!("logging.levels");
    for name in LEVELS {
        let server = FakeServer::modern();
        server.answer("tools/list", json!({ "tools": [] }));
        let client = Client::builder("test", "1").log_level(level(name));
        let client = server.connect_as(client).await;

        client.tools().all().await.unwrap();

        let asked = server.next("tools/list").await;
        let meta = &asked["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/logLevel"], name);
    }
}

#[tokio::test(start_paused = true)]
async fn messages_of_every_level_arrive_and_no_others() {
    let server = FakeServer::legacy("2025-11-25");
    server.answer("tools/list", json!({ "tools": [] }));
    let told = Arc::new(Mutex::new(Vec::new()));
    let client = Client::builder("test", "1").on_log({
        let told = told.clone();
        move |message| told.lock().unwrap().push(message.level)
    });
    let client = server.connect_as(client).await;

    for name in LEVELS.iter().chain(["loud", "", "ERROR"].iter()) {
        let params = json!({ "level": name, "logger": "fake", "data": { "any": ["thing"] } });
        server.notify("notifications/message", params).await;
    }

    client.tools().all().await.unwrap();
    assert_eq!(*told.lock().unwrap(), LEVELS.map(level));
}

#[tokio::test(start_paused = true)]
async fn a_level_of_the_builder_is_told_after_the_handshake() {
    let server = FakeServer::legacy("2025-11-25");
    server.answer("logging/setLevel", json!({}));
    let client = Client::builder("test", "1").log_level(LogLevel::Warning);

    let _client = server.connect_as(client).await;

    let asked = server.next("logging/setLevel").await;
    assert_eq!(asked["params"], json!({ "level": "warning" }));
}

#[tokio::test(start_paused = true)]
async fn a_level_that_is_set_later_goes_along_with_modern_requests() {
    let server = FakeServer::modern();
    server.answer("tools/list", json!({ "tools": [] }));
    let client = server.connect().await;

    client.set_log_level(LogLevel::Error).await.unwrap();
    client.tools().all().await.unwrap();

    let asked = server.next("tools/list").await;
    let meta = &asked["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/logLevel"], "error");
    assert_eq!(server.count("logging/setLevel"), 0);
}

#[tokio::test(start_paused = true)]
async fn what_the_revision_does_not_have_is_not_asked() {
    let server = FakeServer::modern();
    let client = server.connect().await;

    let error = client.subscribe("note:a").await.unwrap_err();

    assert_eq!(
        error.to_string(),
        "revision 2026-07-28 has no `resources/subscribe`"
    );
    assert_eq!(server.count("resources/subscribe"), 0);
}
