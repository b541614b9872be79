//! The server's own stream is open before the first call, if the server lets it.

use std::time::Duration;

use serde_json::json;

use crate::{
    fake_http::{Events, Reply},
    http_peer::{LATEST_LEGACY, LEGACY, by_method, connect, server},
};

/// Servers lose what they ask on a stream that nobody has opened yet.
#[tokio::test(start_paused = true)]
async fn the_stream_is_open_before_the_first_call() {
    for revision in LEGACY {
        let fake = server(revision, |seen| {
            (seen.method == "GET").then(|| Reply::events(Events::closed))
        });

        let client = connect(&fake, revision).await;

        assert_eq!(by_method(&fake, "GET").len(), 1, "{revision}");
        client.call_tool("a", json!({})).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_says_nothing_on_its_stream_is_not_waited_for() {
    let fake = server(LATEST_LEGACY, |seen| {
        (seen.method == "GET").then(Reply::silence)
    });
    let begun = tokio::time::Instant::now();

    let client = connect(&fake, LATEST_LEGACY).await;

    assert!(begun.elapsed() <= Duration::from_secs(1));
    client.call_tool("a", json!({})).await.unwrap();
}
