//! Messages that a client writes to the standard input of a server.

use serde_json::json;
use turnbuckle_client::{Anomaly, Change, Client, SubscriptionEvent};
use turnbuckle_protocol::types::SubscriptionFilter;
use turnbuckle_spec_coverage::req;

use crate::servers::raw_ndjson::{RawServer, text_result};

#[tokio::test(start_paused = true)]
async fn dropping_a_call_cancels_it_by_its_id() {
    req!("stdio.cancel.notification");
    let (mut script, client) = RawServer::modern(Client::builder("test", "1")).await;
    let call = tokio::spawn(client.call_tool("any", json!({})).into_future());
    let request = script.next().await;

    call.abort();

    let cancelled = script.next().await;
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_gets_no_responses() {
    req!("stdio.client.no-responses");
    let (sender, mut anomaly) = tokio::sync::mpsc::unbounded_channel();
    let builder =
        Client::builder("test", "1").on_anomaly(move |anomaly| sender.send(anomaly).unwrap());
    let (mut script, client) = RawServer::modern(builder).await;

    for method in ["ping", "roots/list", "sampling/createMessage", "unheard/of"] {
        let request = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": {} });
        script.write(format!("{request}\n")).await;
        let unwelcome = Anomaly::DisallowedRequest {
            method: method.to_owned(),
        };
        assert_eq!(anomaly.recv().await, Some(unwelcome));
    }
    let call = tokio::spawn(client.call_tool("any", json!({})).into_future());

    let next = script.next().await;
    assert_eq!(
        next["method"], "tools/call",
        "nothing was written in between"
    );
    script.respond(&next, text_result("done")).await;
    assert!(call.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn each_subscription_receives_messages_with_its_id() {
    req!("stdio.subscription.correlate");
    let (mut script, client) = RawServer::modern(Client::builder("test", "1")).await;
    let mut ids = Vec::new();
    let mut subscriptions = Vec::new();
    for _ in 0..2 {
        let filter = SubscriptionFilter::new().tools_list_changed(true);
        let listen = tokio::spawn(client.listen(filter).into_future());
        let id = script.next().await["id"].clone();
        let requested = json!({ "toolsListChanged": true });
        script
            .notify_subscription(
                "subscriptions/acknowledged",
                &id,
                json!({ "notifications": requested }),
            )
            .await;
        let mut subscription = listen.await.unwrap().unwrap();
        assert!(matches!(
            subscription.next().await,
            Some(Ok(SubscriptionEvent::Acknowledged(_)))
        ));
        ids.push(id);
        subscriptions.push(subscription);
    }

    for (id, times) in [(&ids[0], 1), (&ids[1], 2), (&json!("unknown"), 1)] {
        for _ in 0..times {
            script
                .notify_subscription("tools/list_changed", id, json!({}))
                .await;
        }
    }
    drop(script);

    for (mut subscription, times) in subscriptions.into_iter().zip([1, 2]) {
        for _ in 0..times {
            let change = subscription.next().await;
            assert!(matches!(
                change,
                Some(Ok(SubscriptionEvent::Change(Change::Tools)))
            ));
        }
        assert!(
            matches!(subscription.next().await, Some(Err(_))),
            "the connection has ended"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn closing_closes_stdin_without_a_message() {
    req!(
        "stdio.shutdown.client-close",
        "lifecycle.shutdown.no-message"
    );
    let (mut script, client) = RawServer::modern(Client::builder("test", "1")).await;

    client.close().await;

    assert_eq!(script.next_line().await, "");
}
