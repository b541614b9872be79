//! The end of listening, and subscriptions that are easily counted wrong.

use std::{future::IntoFuture, time::Duration};

use serde_json::json;
use turnbuckle_client::{Client, LifecycleMode, Subscription, SubscriptionEvent};
use turnbuckle_protocol::types::SubscriptionFilter;

use crate::{fake_lines::FakeServer, scripted::Script};

async fn until_end(mut listening: Subscription) -> usize {
    let mut heard = 0;
    let all = async {
        loop {
            match listening.next().await {
                Some(Ok(SubscriptionEvent::Ended)) => return,
                Some(Ok(_)) => heard += 1,
                other => panic!("{other:?}"),
            }
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(60), all).await;
    ended.expect("it ends");
    heard
}

#[tokio::test(start_paused = true)]
async fn closing_the_client_ends_it() {
    let server = FakeServer::legacy("2025-11-25");
    let client = Client::builder("test", "1.0").lifecycle_mode(LifecycleMode::Legacy);
    let client = server.connect_as(client).await;
    let filter = SubscriptionFilter::new().tools_list_changed(true);
    let listening = client.listen(filter).await.unwrap();

    client.close().await;

    assert_eq!(until_end(listening).await, 1);
}

#[tokio::test(start_paused = true)]
async fn the_end_is_heard_even_where_changes_found_no_room() {
    let (mut script, client) = Script::modern(Client::builder("test", "1.0")).await;
    let filter = SubscriptionFilter::new().tools_list_changed(true);
    let listening = tokio::spawn(client.listen(filter).into_future());
    let request = script.next().await;
    let id = &request["id"];
    let told = json!({ "notifications": { "toolsListChanged": true } });
    script.tell("subscriptions/acknowledged", id, told).await;
    let listening = listening.await.unwrap().unwrap();

    for _ in 0..600 {
        script.tell("tools/list_changed", id, json!({})).await;
    }
    let cancelled = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id },
    });
    script.say(format!("{cancelled}\n")).await;
    tokio::time::sleep(Duration::from_secs(1)).await;

    assert!(until_end(listening).await > 256);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_is_named_twice_is_subscribed_to_once() {
    let server = FakeServer::legacy("2025-11-25");
    server.answer("resources/subscribe", json!({}));
    server.answer("resources/unsubscribe", json!({}));
    let client = Client::builder("test", "1.0").lifecycle_mode(LifecycleMode::Legacy);
    let client = server.connect_as(client).await;
    let twice = vec!["note:a".to_owned(), "note:a".to_owned()];

    let listening = client.listen(SubscriptionFilter::new().resource_subscriptions(twice));
    let listening = listening.await.unwrap();

    assert_eq!(server.count("resources/subscribe"), 1);
    drop(listening);
    server.next("resources/unsubscribe").await;
}
