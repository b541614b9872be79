//! What a client writes to a server's standard input, and what it never does.

use serde_json::json;
use turnbuckle_client::{Anomaly, Change, Client, SubscriptionEvent};
use turnbuckle_protocol::types::SubscriptionFilter;
use turnbuckle_spec_coverage::req;

use crate::scripted::{Script, said};

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_is_cancelled_by_its_id() {
    req!("stdio.cancel.notification");
    let (mut script, client) = Script::modern(Client::builder("test", "1")).await;
    let call = tokio::spawn(client.call_tool("any", json!({})).into_future());
    let request = script.next().await;

    call.abort();

    let cancelled = script.next().await;
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_gets_no_answers() {
    req!("stdio.client.no-responses");
    let (sender, mut odd) = tokio::sync::mpsc::unbounded_channel();
    let builder = Client::builder("test", "1").on_anomaly(move |odd| sender.send(odd).unwrap());
    let (mut script, client) = Script::modern(builder).await;

    for method in ["ping", "roots/list", "sampling/createMessage", "unheard/of"] {
        let request = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": {} });
        script.say(format!("{request}\n")).await;
        let unwelcome = Anomaly::DisallowedRequest {
            method: method.to_owned(),
        };
        assert_eq!(odd.recv().await, Some(unwelcome));
    }
    let call = tokio::spawn(client.call_tool("any", json!({})).into_future());

    let next = script.next().await;
    assert_eq!(
        next["method"], "tools/call",
        "nothing was written in between"
    );
    script.answer(&next, said("done")).await;
    assert!(call.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn each_subscription_hears_what_bears_its_id() {
    req!("stdio.subscription.correlate");
    let (mut script, client) = Script::modern(Client::builder("test", "1")).await;
    let mut ids = Vec::new();
    let mut listening = Vec::new();
    for _ in 0..2 {
        let filter = SubscriptionFilter::new().tools_list_changed(true);
        let listen = tokio::spawn(client.listen(filter).into_future());
        let id = script.next().await["id"].clone();
        let asked = json!({ "toolsListChanged": true });
        script
            .tell(
                "subscriptions/acknowledged",
                &id,
                json!({ "notifications": asked }),
            )
            .await;
        let mut heard = listen.await.unwrap().unwrap();
        assert!(matches!(
            heard.next().await,
            Some(Ok(SubscriptionEvent::Acknowledged(_)))
        ));
        ids.push(id);
        listening.push(heard);
    }

    for (id, times) in [(&ids[0], 1), (&ids[1], 2), (&json!("nobody's"), 1)] {
        for _ in 0..times {
            script.tell("tools/list_changed", id, json!({})).await;
        }
    }
    drop(script);

    for (mut heard, times) in listening.into_iter().zip([1, 2]) {
        for _ in 0..times {
            let change = heard.next().await;
            assert!(matches!(
                change,
                Some(Ok(SubscriptionEvent::Change(Change::Tools)))
            ));
        }
        assert!(
            matches!(heard.next().await, Some(Err(_))),
            "then it is over"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn closing_ends_the_input_and_says_nothing() {
    req!(
        "stdio.shutdown.client-close",
        "lifecycle.shutdown.no-message"
    );
    let (mut script, client) = Script::modern(Client::builder("test", "1")).await;

    client.close().await;

    assert_eq!(script.line().await, "");
}
