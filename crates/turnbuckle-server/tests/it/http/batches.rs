//! JSON-RPC batches.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use turnbuckle_server::{
    Context, SamplingBuilder, Tool,
    http::{Http, SessionMode},
};
use turnbuckle_spec_coverage::req;

use crate::http::test_client::{Empty, HttpTestClient, initialize, modern, server, tool};

#[tokio::test]
async fn batches_exist_in_one_revision() {
    req!("base.batch.receive", "base.batch.send");
    let batch = json!([
        tool(1, "echo", &json!({ "message": "a" })),
        tool(2, "echo", &json!({ "message": "b" }))
    ]);
    for version in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let caller = HttpTestClient::new(server()).in_session(version).await;
        assert_eq!(
            caller.post(&batch).await.status_and_code().await,
            (400, -32600),
            "{version}"
        );
    }
    let caller = HttpTestClient::new(server()).in_session("2025-03-26").await;

    let responses = caller.post(&batch).await.json().await;

    let texts: Vec<_> = responses
        .as_array()
        .unwrap()
        .iter()
        .map(|response| {
            (
                response["id"].clone(),
                response["result"]["content"][0]["text"].clone(),
            )
        })
        .collect();
    assert_eq!(texts, [(json!(1), json!("a")), (json!(2), json!("b"))]);
}

#[tokio::test]
async fn a_batch_without_requests_is_answered_with_202() {
    let caller = HttpTestClient::new(server()).in_session("2025-03-26").await;

    let batch = json!([
        { "jsonrpc": "2.0", "method": "notifications/initialized" },
        { "jsonrpc": "2.0", "id": 9, "result": {} },
    ]);

    assert_eq!(caller.post(&batch).await.status(), 202);
}

#[tokio::test]
async fn disallowed_messages_in_a_batch_are_rejected() {
    let caller = HttpTestClient::new(server()).in_session("2025-03-26").await;
    let without_session =
        HttpTestClient::with_options(Http::new(server()).sessions(SessionMode::Off));
    let standing_alone = modern("tools/list", json!({}));

    for batch in [
        json!([]),
        json!([initialize("2025-03-26")]),
        json!([{ "jsonrpc": "2.0", "id": 1, "method": "ping" }, standing_alone]),
    ] {
        for caller in [&caller, &without_session] {
            assert_eq!(
                caller.post(&batch).await.status_and_code().await,
                (400, -32600),
                "{batch}"
            );
        }
    }
    let mixed = json!([7, { "jsonrpc": "2.0", "id": 1, "method": "ping" }, { "jsonrpc": "2.0", "id": 1, "method": "ping" }]);
    let responses = caller.post(&mixed).await.json().await;
    assert_eq!(responses[0]["id"], json!(null));
    assert_eq!(responses[0]["error"]["code"], -32600);
    assert_eq!(responses.as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn a_slow_batch_is_answered_with_a_stream_of_responses() {
    let caller = HttpTestClient::new(server()).in_session("2025-03-26").await;
    let batch = json!([
        tool(1, "echo", &json!({ "message": "a" })),
        tool(2, "progress", &json!({ "steps": 2 })),
    ]);

    let messages = caller.post(&batch).await.stream().messages().await;

    let responses: Vec<_> = messages
        .iter()
        .filter(|message| message.get("result").is_some())
        .collect();
    assert_eq!(responses.len(), 2);
    assert_eq!(messages.len(), 4);
}

#[tokio::test]
async fn batches_need_no_session_where_sessions_are_disabled() {
    req!("versioning.http.header-absent-2025-03-26");
    let mut caller = HttpTestClient::with_options(Http::new(server()).sessions(SessionMode::Off));
    let batch = json!([
        tool(1, "progress", &json!({ "steps": 2 })),
        { "jsonrpc": "2.0", "method": "notifications/initialized" },
    ]);

    let responses = caller.post(&batch).await.json().await;

    assert_eq!(responses.as_array().unwrap().len(), 1);
    assert_eq!(responses[0]["result"]["content"][0]["text"], "done");
    caller.version = Some("2025-06-18".to_owned());
    assert_eq!(
        caller.post(&batch).await.status_and_code().await,
        (400, -32600)
    );
}

#[tokio::test]
async fn a_rejected_batch_has_the_id_null_before_2025_11_25() {
    let batch = json!([{ "jsonrpc": "2.0", "id": 1, "method": "ping" }]);
    let handshake = json!([initialize("2025-03-26")]);

    for (version, batch, has_id) in [
        ("2024-11-05", &batch, true),
        ("2025-03-26", &handshake, true),
        ("2025-06-18", &batch, true),
        ("2025-11-25", &batch, false),
    ] {
        let caller = HttpTestClient::new(server()).in_session(version).await;
        let refused = caller.post(batch).await.json().await;
        let id = refused.get("id");
        assert_eq!(id, has_id.then_some(&json!(null)), "{version}");
    }
}

#[tokio::test]
async fn a_malformed_response_in_a_batch_fails_its_client_request_without_a_reply() {
    let ask = Tool::new("ask", async |_: Empty, cx: Context| {
        cx.sample("reply", SamplingBuilder::text("hello?")).await?;
        Ok("answered".to_owned())
    });
    let caller = HttpTestClient::new(server().tool(ask))
        .in_session("2025-03-26")
        .await;
    let mut stream = caller.tool(1, "ask", json!({})).await.stream();
    let client_request = stream.message().await.unwrap();

    let both = json!({ "code": 1, "message": "no" });
    let broken =
        json!([{ "jsonrpc": "2.0", "id": client_request["id"], "result": {}, "error": both }]);
    assert_eq!(caller.post(&broken).await.status(), 202);

    let response = tokio::time::timeout(Duration::from_secs(5), stream.message());
    let response = response.await.expect("the response is sent").unwrap();
    assert_eq!(response["id"], 1);
    assert_eq!(response["result"]["isError"], true);
    let without_session =
        HttpTestClient::with_options(Http::new(server()).sessions(SessionMode::Off));
    assert_eq!(without_session.post(&broken).await.status(), 202);
}

#[tokio::test]
async fn a_call_with_many_messages_does_not_block_other_calls() {
    let received = Arc::new(AtomicBool::new(false));
    let (says, hears) = (received.clone(), received);
    let chatty = Tool::new("chatty", move |_: Empty, cx: Context| {
        let received = hears.clone();
        async move {
            let mut step = 0;
            while !received.load(Ordering::SeqCst) && step < 100_000 {
                step += 1;
                cx.progress(step, 100_000).await;
            }
            Ok(step.to_string())
        }
    });
    let interrupt = Tool::new("interrupt", move |_: Empty| {
        let received = says.clone();
        async move {
            tokio::task::yield_now().await;
            received.store(true, Ordering::SeqCst);
            Ok("done".to_owned())
        }
    });
    let caller = HttpTestClient::new(server().tool(chatty).tool(interrupt))
        .in_session("2025-03-26")
        .await;
    let batch = json!([
        tool(1, "chatty", &json!({})),
        tool(2, "interrupt", &json!({}))
    ]);

    let messages = caller.post(&batch).await.stream().messages().await;

    assert!(messages.len() < 1_000, "{} messages", messages.len());
}
