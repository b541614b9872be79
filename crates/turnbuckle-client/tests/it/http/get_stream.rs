//! The GET stream is open before the first call, if the server supports it.

use std::time::Duration;

use serde_json::json;

use crate::servers::{
    mock_http::{EventWriter, MockResponse},
    mock_mcp_http::{LATEST_LEGACY, LEGACY, by_method, connect, server},
};

/// Servers lose requests on a stream that is not open yet.
#[tokio::test(start_paused = true)]
async fn the_get_stream_is_open_before_the_first_call() {
    for revision in LEGACY {
        let mock = server(revision, |request| {
            (request.method == "GET").then(|| MockResponse::events(EventWriter::closed))
        });

        let client = connect(&mock, revision).await;

        assert_eq!(by_method(&mock, "GET").len(), 1, "{revision}");
        client.call_tool("a", json!({})).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_call_does_not_wait_for_a_silent_get_stream() {
    let mock = server(LATEST_LEGACY, |request| {
        (request.method == "GET").then(MockResponse::silence)
    });
    let started_at = tokio::time::Instant::now();

    let client = connect(&mock, LATEST_LEGACY).await;

    assert!(started_at.elapsed() <= Duration::from_secs(1));
    client.call_tool("a", json!({})).await.unwrap();
}
