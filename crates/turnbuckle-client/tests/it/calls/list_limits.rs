//! Limits of paginated lists.

use serde_json::{Value, json};
use turnbuckle_client::{CallError, Client, ClientLimits};

use crate::servers::mock_ndjson::MockServer;

fn tools(count: usize) -> Vec<Value> {
    vec![json!({ "name": "t", "inputSchema": { "type": "object" } }); count]
}

/// A server with endless pages, each with another cursor.
fn endless(per_page: usize) -> MockServer {
    let server = MockServer::modern();
    let page = tools(per_page);
    let mut number = 0;
    server.on("tools/list", move |_| {
        number += 1;
        json!({ "tools": page, "nextCursor": number.to_string() })
    });
    server
}

#[tokio::test(start_paused = true)]
async fn a_list_with_too_many_items_is_an_error() {
    let server = endless(5_000);
    let client = server.connect().await;

    let error = client.tools().all().await.unwrap_err();

    assert!(matches!(error, CallError::EndlessList { .. }), "{error:?}");
    assert_eq!(server.count("tools/list"), 21, "100,000 are enough");
}

#[tokio::test(start_paused = true)]
async fn a_list_with_too_many_pages_is_an_error() {
    let mut limits = ClientLimits::default();
    limits.max_list_pages = 100;
    let server = endless(0);
    let client = Client::builder("test", "1").limits(limits);
    let client = server.connect_with(client).await;

    let error = client.tools().all().await.unwrap_err();

    assert!(matches!(error, CallError::EndlessList { .. }), "{error:?}");
    assert!(server.count("tools/list") <= 101);
}

#[tokio::test(start_paused = true)]
async fn later_pages_are_not_fetched_if_the_list_is_dropped() {
    let server = endless(10);
    let client = server.connect().await;
    let mut tools = client.tools();

    for _ in 0..15 {
        tools.next().await.unwrap().unwrap();
    }
    drop(tools);

    server.expect_no_message().await;
    assert_eq!(
        server.count("tools/list"),
        2,
        "no page is fetched ahead of need"
    );
}
