//! The end of subscriptions, and duplicate resources.

use std::{future::IntoFuture, time::Duration};

use serde_json::{Value, json};
use turnbuckle_client::{Client, ClientBuilder, LifecycleMode, Subscription, SubscriptionEvent};
use turnbuckle_protocol::types::SubscriptionFilter;

use crate::servers::{
    mock_ndjson::MockServer,
    raw_ndjson::{RawServer, text_result},
};

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

/// Opens a subscription at a modern server; returns the listen request too.
async fn subscribe(builder: ClientBuilder) -> (RawServer, Client, Subscription, Value) {
    let (mut script, client) = RawServer::modern(builder).await;
    let filter = SubscriptionFilter::new().tools_list_changed(true);
    let subscription = tokio::spawn(client.listen(filter).into_future());
    let request = script.next().await;
    let granted = json!({ "notifications": { "toolsListChanged": true } });
    script
        .notify_subscription("subscriptions/acknowledged", &request["id"], granted)
        .await;
    let subscription = subscription.await.unwrap().unwrap();
    (script, client, subscription, request)
}

/// Some servers do not exit at the end of their input while a listen request is open.
#[tokio::test(start_paused = true)]
async fn closing_the_client_cancels_a_listen_request() {
    let (mut script, client, subscription, request) = subscribe(Client::builder("test", "1")).await;

    client.close().await;

    let cancelled = script.next().await;
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
    assert_eq!(script.next_line().await, "");
    assert_eq!(count_events(subscription).await, 1);
}

#[tokio::test(start_paused = true)]
async fn the_response_to_a_cancelled_listen_request_is_expected() {
    let (sender, mut anomaly) = tokio::sync::mpsc::unbounded_channel();
    let builder =
        Client::builder("test", "1").on_anomaly(move |anomaly| sender.send(anomaly).unwrap());
    let (mut script, client, subscription, request) = subscribe(builder).await;

    drop(subscription);
    let cancelled = script.next().await;
    assert_eq!(cancelled["method"], "notifications/cancelled");
    script
        .respond(&request, json!({ "resultType": "complete" }))
        .await;
    let call = tokio::spawn(client.call_tool("any", json!({})).into_future());
    let next = script.next().await;
    script.respond(&next, text_result("done")).await;

    assert!(call.await.unwrap().is_ok());
    assert_eq!(anomaly.try_recv().ok(), None);
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
