//! Subscriptions to changes, as a modern server sees them.

use std::future::IntoFuture;

use serde_json::{Value, json};
use turnbuckle_client::SubscriptionEvent;
use turnbuckle_protocol::types::SubscriptionFilter;
use turnbuckle_spec_coverage::req;

use crate::servers::mock_ndjson::MockServer;

/// Acknowledges every listen request.
async fn acknowledge(server: &MockServer) -> Value {
    let request = server.next("subscriptions/listen").await;
    let params = json!({
        "notifications": request["params"]["notifications"],
        "_meta": { "io.modelcontextprotocol/subscriptionId": request["id"] },
    });
    server
        .notify("notifications/subscriptions/acknowledged", params)
        .await;
    request
}

#[tokio::test(start_paused = true)]
async fn the_listen_filter_is_always_sent_as_requested() {
    req!("subscriptions.filter.required");
    let mut one = SubscriptionFilter::default();
    one.resource_subscriptions = Some(vec!["file:///a".to_owned()]);
    let mut other = SubscriptionFilter::default();
    other.tools_list_changed = Some(true);
    for (filter, expected) in [
        (SubscriptionFilter::default(), json!({})),
        (one, json!({ "resourceSubscriptions": ["file:///a"] })),
        (other, json!({ "toolsListChanged": true })),
    ] {
        let server = MockServer::modern();
        server.withhold("subscriptions/listen");
        let client = server.connect().await;

        let (subscription, request) = tokio::join!(client.listen(filter).into_future(), async {
            acknowledge(&server).await
        });

        assert_eq!(request["params"]["notifications"], expected);
        let received = subscription.unwrap().next().await;
        assert!(
            matches!(received, Some(Ok(SubscriptionEvent::Acknowledged(_)))),
            "{received:?}"
        );
    }
}
