//! Calls that are given up.

use std::future::IntoFuture;

use serde_json::{Value, json};
use turnbuckle_client::{Anomaly, CallError, Client};
use turnbuckle_spec_coverage::req;

use crate::fake_lines::{EVERY, FakeServer};

fn cancelled(server: &FakeServer) -> Vec<Value> {
    let mut received = server.received();
    received.retain(|message| message["method"] == "notifications/cancelled");
    received
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_is_cancelled_by_its_id() {
    req!(
        "cancellation.request-id",
        "cancellation.reference.direction",
        "cancellation.reference.client-issued",
        "cancellation.reference.in-progress",
        "stdio.cancel.notification"
    );
    for revision in EVERY {
        let server = FakeServer::speaking(revision);
        server.hold("tools/call");
        let client = server.connect().await;
        let [kept, given_up, answered] = ["kept", "given up", "answered"]
            .map(|name| tokio::spawn(client.call_tool(name, ()).into_future()));
        let asked = async |name: &str| {
            let named = |call: &Value| call["params"]["name"] == name;
            server.take(name, named).await
        };
        server
            .reply(&asked("answered").await, json!({ "content": [] }))
            .await;
        answered.await.unwrap().unwrap();

        given_up.abort();
        let notice = server.next("notifications/cancelled").await;
        server.expect_silence().await;

        assert_eq!(notice.get("id"), None);
        let id = &asked("given up").await["id"];
        assert_eq!(notice["params"]["requestId"], *id);
        assert_eq!(cancelled(&server).len(), 1);
        assert!(!kept.is_finished());
        kept.abort();
        let notice = server.next("notifications/cancelled").await;
        let id = &asked("kept").await["id"];
        assert_eq!(notice["params"]["requestId"], *id);
    }
}

#[tokio::test(start_paused = true)]
async fn what_comes_late_for_a_call_that_was_given_up_is_passed_over() {
    req!("cancellation.sender.ignore-late");
    for revision in EVERY {
        let server = FakeServer::speaking(revision);
        server.hold("tools/call");
        let (told, mut odd) = tokio::sync::mpsc::unbounded_channel();
        let builder =
            Client::builder("hasty", "1.0").on_anomaly(move |odd| told.send(odd).unwrap());
        let client = server.connect_as(builder).await;
        let call = tokio::spawn(client.call_tool("slow", ()).into_future());
        let asked = server.next("tools/call").await;
        call.abort();
        server.next("notifications/cancelled").await;

        server.progress(&asked, 1.0).await;
        server.reply(&asked, json!({ "content": [] })).await;
        client.ping().await.unwrap();

        assert_eq!(odd.try_recv().ok(), None, "{revision}");
        server.reply(&asked, json!({ "content": [] })).await;
        let twice = odd.recv().await.unwrap();
        assert!(matches!(twice, Anomaly::UnexpectedResponse(_)), "{twice:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_answered_or_never_sent_is_not_cancelled() {
    req!("cancellation.reference.in-progress");
    for revision in EVERY {
        let server = FakeServer::speaking(revision);
        server.answer("tools/call", json!({ "content": [] }));
        let client = server.connect().await;

        drop(client.call_tool("never", ()));
        drop(client.call_tool("never", ()).into_future());
        client.call_tool("quick", ()).await.unwrap();
        client.call_tool("refused", vec![1]).await.unwrap_err();

        server.expect_silence().await;
        assert_eq!(cancelled(&server), [] as [Value; 0], "{revision}");
        assert_eq!(server.count("tools/call"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_is_cancelled() {
    req!("cancellation.request-id");
    for revision in EVERY {
        let server = FakeServer::speaking(revision);
        server.hold("tools/call");
        let client = server.connect().await;

        let error = client.call_tool("slow", ()).await.unwrap_err();

        assert!(matches!(error, CallError::TimedOut { .. }), "{error:?}");
        let asked = server.next("tools/call").await;
        let notice = server.next("notifications/cancelled").await;
        assert_eq!(notice["params"]["requestId"], asked["id"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_crosses_the_cancellation_is_ignored() {
    req!("cancellation.race");
    for revision in EVERY {
        let server = FakeServer::speaking(revision);
        server.hold("tools/call");
        server.answer("tools/list", json!({ "tools": [] }));
        let client = server.connect().await;
        let call = tokio::spawn(client.call_tool("slow", ()).into_future());
        let asked = server.next("tools/call").await;
        call.abort();
        server.next("notifications/cancelled").await;

        server.reply(&asked, json!({ "content": [] })).await;
        server.reply(&asked, json!({ "content": [] })).await;

        client.tools().all().await.unwrap();
        server.expect_silence().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_by_the_server_that_comes_late_is_ignored() {
    req!("cancellation.race");
    let server = FakeServer::legacy("2025-11-25");
    server.answer("tools/list", json!({ "tools": [] }));
    let client = server.connect().await;
    let id = server.request("ping", json!({})).await;
    server.next_answer(id).await;

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
