//! Lists that do not end, or hold more than anyone wants.

use serde_json::{Value, json};
use turnbuckle_client::{CallError, Client, ClientLimits};

use crate::fake_lines::FakeServer;

fn tools(count: usize) -> Vec<Value> {
    vec![json!({ "name": "t", "inputSchema": { "type": "object" } }); count]
}

/// A server whose pages never end, each with a cursor of its own.
fn endless(per_page: usize) -> FakeServer {
    let server = FakeServer::modern();
    let page = tools(per_page);
    let mut number = 0;
    server.on("tools/list", move |_| {
        number += 1;
        json!({ "tools": page, "nextCursor": number.to_string() })
    });
    server
}

#[tokio::test(start_paused = true)]
async fn a_million_tools_are_too_many() {
    let server = endless(5_000);
    let client = server.connect().await;

    let error = client.tools().all().await.unwrap_err();

    assert!(matches!(error, CallError::EndlessList { .. }), "{error:?}");
    assert_eq!(server.count("tools/list"), 21, "100,000 are enough");
}

#[tokio::test(start_paused = true)]
async fn pages_without_end_end() {
    let mut limits = ClientLimits::default();
    limits.max_list_pages = 100;
    let server = endless(0);
    let client = Client::builder("test", "1").limits(limits);
    let client = server.connect_as(client).await;

    let error = client.tools().all().await.unwrap_err();

    assert!(matches!(error, CallError::EndlessList { .. }), "{error:?}");
    assert!(server.count("tools/list") <= 101);
}

#[tokio::test(start_paused = true)]
async fn a_list_can_be_left_before_its_end() {
    let server = endless(10);
    let client = server.connect().await;
    let mut tools = client.tools();

    for _ in 0..15 {
        tools.next().await.unwrap().unwrap();
    }
    drop(tools);

    server.expect_silence().await;
    assert_eq!(
        server.count("tools/list"),
        2,
        "no page is fetched ahead of need"
    );
}
