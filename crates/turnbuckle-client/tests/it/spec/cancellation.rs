//! Cancellation of calls.

use std::future::IntoFuture;

use serde_json::{Value, json};
use turnbuckle_client::{Anomaly, CallError, Client};
use turnbuckle_spec_coverage::req;

use crate::servers::mock_ndjson::{EVERY, MockServer};

fn cancelled(server: &MockServer) -> Vec<Value> {
    let mut received = server.received();
    received.retain(|message| message["method"] == "notifications/cancelled");
    received
}

#[tokio::test(start_paused = true)]
async fn dropping_a_call_cancels_it_by_its_id() {
    req!(
        "cancellation.request-id",
        "cancellation.reference.direction",
        "cancellation.reference.client-issued",
        "cancellation.reference.in-progress",
        "stdio.cancel.notification"
    );
    for revision in EVERY {
        let server = MockServer::for_revision(revision);
        server.withhold("tools/call");
        let client = server.connect().await;
        let [kept, given_up, answered] = ["pending", "cancelled", "finished"]
            .map(|name| tokio::spawn(client.call_tool(name, ()).into_future()));
        let next_call = async |name: &str| {
            let named = |call: &Value| call["params"]["name"] == name;
            server.next_matching(name, named).await
        };
        server
            .reply(&next_call("finished").await, json!({ "content": [] }))
            .await;
        answered.await.unwrap().unwrap();

        given_up.abort();
        let notification = server.next("notifications/cancelled").await;
        server.expect_no_message().await;

        assert_eq!(notification.get("id"), None);
        let id = &next_call("cancelled").await["id"];
        assert_eq!(notification["params"]["requestId"], *id);
        assert_eq!(cancelled(&server).len(), 1);
        assert!(!kept.is_finished());
        kept.abort();
        let notification = server.next("notifications/cancelled").await;
        let id = &next_call("pending").await["id"];
        assert_eq!(notification["params"]["requestId"], *id);
    }
}

#[tokio::test(start_paused = true)]
async fn late_messages_of_a_cancelled_call_are_ignored() {
    req!("cancellation.sender.ignore-late");
    for revision in EVERY {
        let server = MockServer::for_revision(revision);
        server.withhold("tools/call");
        let (sender, mut anomalies) = tokio::sync::mpsc::unbounded_channel();
        let builder = Client::builder("hasty", "1.0")
            .on_anomaly(move |anomalies| sender.send(anomalies).unwrap());
        let client = server.connect_with(builder).await;
        let call = tokio::spawn(client.call_tool("slow", ()).into_future());
        let requested = server.next("tools/call").await;
        call.abort();
        server.next("notifications/cancelled").await;

        server.progress(&requested, 1.0).await;
        server.reply(&requested, json!({ "content": [] })).await;
        client.ping().await.unwrap();

        assert_eq!(anomalies.try_recv().ok(), None, "{revision}");
        server.reply(&requested, json!({ "content": [] })).await;
        let repeated = anomalies.recv().await.unwrap();
        assert!(
            matches!(repeated, Anomaly::UnexpectedResponse(_)),
            "{repeated:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn finished_and_unsent_calls_are_not_cancelled() {
    req!("cancellation.reference.in-progress");
    for revision in EVERY {
        let server = MockServer::for_revision(revision);
        server.respond("tools/call", json!({ "content": [] }));
        let client = server.connect().await;

        drop(client.call_tool("never", ()));
        drop(client.call_tool("never", ()).into_future());
        client.call_tool("quick", ()).await.unwrap();
        client.call_tool("refused", vec![1]).await.unwrap_err();

        server.expect_no_message().await;
        assert_eq!(cancelled(&server), [] as [Value; 0], "{revision}");
        assert_eq!(server.count("tools/call"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_times_out_is_cancelled() {
    req!("cancellation.request-id");
    for revision in EVERY {
        let server = MockServer::for_revision(revision);
        server.withhold("tools/call");
        let client = server.connect().await;

        let error = client.call_tool("slow", ()).await.unwrap_err();

        assert!(matches!(error, CallError::TimedOut { .. }), "{error:?}");
        let requested = server.next("tools/call").await;
        let notification = server.next("notifications/cancelled").await;
        assert_eq!(notification["params"]["requestId"], requested["id"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_that_crosses_the_cancellation_is_ignored() {
    req!("cancellation.race");
    for revision in EVERY {
        let server = MockServer::for_revision(revision);
        server.withhold("tools/call");
        server.respond("tools/list", json!({ "tools": [] }));
        let client = server.connect().await;
        let call = tokio::spawn(client.call_tool("slow", ()).into_future());
        let requested = server.next("tools/call").await;
        call.abort();
        server.next("notifications/cancelled").await;

        server.reply(&requested, json!({ "content": [] })).await;
        server.reply(&requested, json!({ "content": [] })).await;

        client.tools().all().await.unwrap();
        server.expect_no_message().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_cancellation_by_the_server_is_ignored() {
    req!("cancellation.race");
    let server = MockServer::legacy("2025-11-25");
    server.respond("tools/list", json!({ "tools": [] }));
    let client = server.connect().await;
    let id = server.request("ping", json!({})).await;
    server.next_response(id).await;

    for params in [
        json!({ "requestId": id }),
        json!({ "requestId": "never" }),
        json!({ "requestId": null }),
        json!({}),
    ] {
        server.notify("notifications/cancelled", params).await;
    }

    client.tools().all().await.unwrap();
}
