//! Many clients at once.

use serde_json::json;
use turnbuckle_server::http::Http;
use turnbuckle_spec_coverage::req;
use turnbuckle_store::{Store, StoreLimits};

use crate::http::test_client::{HttpTestClient, initialize, server};

#[tokio::test]
async fn thousands_of_open_streams_are_all_notified() {
    req!("http.sse.connection-limits");
    let server = server();
    let caller = HttpTestClient::with_options(Http::new(server.clone()).max_in_flight(2_000));
    let listen = json!({ "notifications": { "toolsListChanged": true } });
    let mut streams = Vec::new();
    for _ in 0..2_000 {
        let http_response = caller.modern("subscriptions/listen", listen.clone()).await;
        let mut stream = http_response.stream();
        stream.message().await.unwrap();
        streams.push(stream);
    }

    // The permits are used up; the order does not matter.
    let refused = caller.modern("tools/list", json!({})).await;
    assert_eq!(refused.status(), 503);
    server.tools_changed();

    for stream in &mut streams {
        let received = stream.message().await.unwrap();
        assert_eq!(received["method"], "notifications/tools/list_changed");
    }
    drop(streams);
    assert_eq!(caller.modern("tools/list", json!({})).await.status(), 200);
}

#[tokio::test]
async fn unbounded_initialize_requests_are_limited() {
    let mut limits = StoreLimits::default();
    limits.sessions.max_sessions = 1_000;
    let store = Store::memory_with(limits);
    let caller = HttpTestClient::new(server().store(store.clone()));

    for _ in 0..1_100 {
        let http_response = caller.post(&initialize("2025-11-25")).await;
        assert_eq!(http_response.status(), 200);
    }

    let held = store.sessions.len().await.unwrap();
    assert_eq!(held, 1_000);
    assert_eq!(caller.modern("tools/list", json!({})).await.status(), 200);
}
