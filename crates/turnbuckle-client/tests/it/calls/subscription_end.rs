//! The end of subscriptions, and duplicate resources.

use std::{future::IntoFuture, time::Duration};

use serde_json::json;
use turnbuckle_client::{Client, LifecycleMode, Subscription, SubscriptionEvent};
use turnbuckle_protocol::types::SubscriptionFilter;

use crate::servers::{mock_ndjson::MockServer, raw_ndjson::RawServer};

async fn count_events(mut subscription: Subscription) -> usize {
    let mut received = 0;
    let all = async {
        loop {
            match subscription.next().await {
                Some(Ok(SubscriptionEvent::Ended)) => return,
                Some(Ok(_)) => received += 1,
                other => panic!("{other:?}"),
            }
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(60), all).await;
    ended.expect("it ends");
    received
}

#[tokio::test(start_paused = true)]
async fn closing_the_client_ends_a_subscription() {
    let server = MockServer::legacy("2025-11-25");
    let client = Client::builder("test", "1.0").lifecycle_mode(LifecycleMode::Legacy);
    let client = server.connect_with(client).await;
    let filter = SubscriptionFilter::new().tools_list_changed(true);
    let subscription = client.listen(filter).await.unwrap();

    client.close().await;

    assert_eq!(count_events(subscription).await, 1);
}

#[tokio::test(start_paused = true)]
async fn the_end_is_received_even_if_changes_were_dropped() {
    let (mut script, client) = RawServer::modern(Client::builder("test", "1.0")).await;
    let filter = SubscriptionFilter::new().tools_list_changed(true);
    let subscription = tokio::spawn(client.listen(filter).into_future());
    let request = script.next().await;
    let id = &request["id"];
    let reported = json!({ "notifications": { "toolsListChanged": true } });
    script
        .notify_subscription("subscriptions/acknowledged", id, reported)
        .await;
    let subscription = subscription.await.unwrap().unwrap();

    for _ in 0..600 {
        script
            .notify_subscription("tools/list_changed", id, json!({}))
            .await;
    }
    let cancelled = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id },
    });
    script.write(format!("{cancelled}\n")).await;
    tokio::time::sleep(Duration::from_secs(1)).await;

    assert!(count_events(subscription).await > 256);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_is_listed_twice_is_subscribed_to_once() {
    let server = MockServer::legacy("2025-11-25");
    server.respond("resources/subscribe", json!({}));
    server.respond("resources/unsubscribe", json!({}));
    let client = Client::builder("test", "1.0").lifecycle_mode(LifecycleMode::Legacy);
    let client = server.connect_with(client).await;
    let repeated = vec!["note:a".to_owned(), "note:a".to_owned()];

    let subscription = client.listen(SubscriptionFilter::new().resource_subscriptions(repeated));
    let subscription = subscription.await.unwrap();

    assert_eq!(server.count("resources/subscribe"), 1);
    drop(subscription);
    server.next("resources/unsubscribe").await;
}
