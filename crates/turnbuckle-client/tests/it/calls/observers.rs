//! Observers that panic.

use serde_json::json;
use turnbuckle_client::{Client, ClientBuilder};

use crate::servers::mock_ndjson::{EVERY, MockServer};

/// A client with observers that all panic.
fn panicking_client() -> ClientBuilder {
    Client::builder("test", "1")
        .on_log(|_| panic!("a log message"))
        .on_anomaly(|_| panic!("an anomaly"))
        .on_traffic(|_| panic!("a message"))
}

#[tokio::test(start_paused = true)]
async fn a_panicking_observer_does_not_fail_a_call() {
    for revision in EVERY {
        let server = MockServer::for_revision(revision);
        server.withhold("tools/call");
        let client = server.connect_with(panicking_client()).await;
        let call = client.call_tool("work", json!({}));
        let call = call.on_progress(|_| panic!("progress"));
        let call = tokio::spawn(std::future::IntoFuture::into_future(call));
        let requested = server.next("tools/call").await;

        server.progress(&requested, 1.0).await;
        server.send_line("noise").await;
        let log = json!({ "level": "info", "data": "x" });
        server.notify("notifications/message", log).await;
        server.reply(&requested, json!({ "content": [] })).await;

        call.await.unwrap().unwrap();
    }
}
