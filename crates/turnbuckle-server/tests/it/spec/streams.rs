//! Streams of messages, and HTTP status codes of requests.

use std::{collections::HashSet, time::Duration};

use http::Method;
use serde_json::{Value, json};
use turnbuckle_protocol::types::LogLevel;
use turnbuckle_server::{Context, SamplingBuilder, Server, Tool};
use turnbuckle_spec_coverage::req;

use crate::http::test_client::{
    Empty, HttpTestClient, HttpTestResponse, initialize, modern, modern_headers, server as plain,
};

/// Tools that send many messages, and one that sends a client request.
fn server() -> Server {
    let talk = Tool::new("talk", async |_: Empty, cx: Context| {
        for step in 1..=5 {
            cx.progress(step, 5).await;
            cx.log(LogLevel::Info, "talking").await;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok("talked".to_owned())
    });
    let think = Tool::new("think", async |_: Empty, cx: Context| {
        Ok(cx.sample("s", SamplingBuilder::text("?")).await?.model)
    });
    plain().tool(talk).tool(think)
}

/// A call with a progress token and optional log messages.
async fn talk(caller: &HttpTestClient, token: i64, level: Option<&str>) -> HttpTestResponse {
    let mut message = modern("tools/call", json!({ "name": "talk", "arguments": {} }));
    message["id"] = json!(token);
    let meta = &mut message["params"]["_meta"];
    meta["progressToken"] = json!(token);
    if let Some(level) = level {
        meta["io.modelcontextprotocol/logLevel"] = json!(level);
    }
    let builder = modern_headers(caller.request(Method::POST), &message);
    caller.send(builder, message.to_string()).await
}

#[tokio::test(start_paused = true)]
async fn a_stream_carries_only_messages_of_its_request() {
    req!(
        "http.sse.modern-related",
        "logging.request.own-stream",
        "subscriptions.no-request-scoped"
    );
    let caller = HttpTestClient::new(server());
    let listen = json!({ "notifications": { "toolsListChanged": true } });
    let mut listener = caller.modern("subscriptions/listen", listen).await.stream();
    listener.message().await.unwrap();

    let (loud, quiet) = tokio::join!(
        async {
            talk(&caller, 1, Some("debug"))
                .await
                .stream()
                .messages()
                .await
        },
        async { talk(&caller, 2, None).await.stream().messages().await }
    );

    let count = |messages: &[Value], method: &str| {
        messages
            .iter()
            .filter(|one| one["method"] == method)
            .count()
    };
    for (messages, token) in [(&loud, 1), (&quiet, 2)] {
        assert_eq!(count(messages, "notifications/progress"), 5);
        for message in messages
            .iter()
            .filter(|one| one["method"] == "notifications/progress")
        {
            assert_eq!(message["params"]["progressToken"], token);
        }
        assert_eq!(messages.last().unwrap()["id"], token);
    }
    assert_eq!(count(&loud, "notifications/message"), 5);
    assert_eq!(count(&quiet, "notifications/message"), 0);
    caller.modern_tool("change", json!({})).await;
    let next = listener.message().await.unwrap();
    assert_eq!(
        next["method"], "notifications/tools/list_changed",
        "and nothing before it"
    );
}

#[tokio::test(start_paused = true)]
async fn no_message_is_sent_after_the_client_disconnected() {
    req!("http.cancel.silence");
    let caller = HttpTestClient::new(server());
    let listen = json!({ "notifications": { "toolsListChanged": true } });
    let mut listener = caller.modern("subscriptions/listen", listen).await.stream();
    listener.message().await.unwrap();
    let mut left = talk(&caller, 1, Some("debug")).await.stream();
    left.message().await.unwrap();

    drop(left);

    let silence = tokio::time::timeout(Duration::from_secs(5), listener.message()).await;
    assert!(silence.is_err(), "{silence:?}");
}

#[tokio::test]
async fn a_missing_capability_is_a_bad_request() {
    req!(
        "meta.capability.missing-status",
        "base.error.reserved-range-meaning"
    );
    let caller = HttpTestClient::new(server());

    let http_response = caller.modern_tool("think", json!({})).await;

    assert_eq!(http_response.status_and_code().await, (400, -32021));
}

#[tokio::test]
async fn ids_of_sessions_cannot_be_guessed() {
    req!("security.session.random", "http.session.id-strength");
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut ids = HashSet::new();
        for _ in 0..200 {
            // Two identical servers use different ids, too.
            let caller = HttpTestClient::new(server());
            let http_response = caller.post(&initialize(version)).await;
            let id = http_response.header("mcp-session-id").unwrap().to_owned();
            assert!(id.len() >= 22, "room for 128 bits: {id}");
            assert!(ids.insert(id));
            let settled = http_response.json().await;
            assert_eq!(settled["result"]["protocolVersion"], version);
        }
        for at in 0..22 {
            let letters: HashSet<_> = ids.iter().map(|id| id.as_bytes()[at]).collect();
            assert!(letters.len() > 8, "{version}: place {at} hardly varies");
        }
    }
}

#[tokio::test]
async fn client_request_ids_stay_unique_after_a_session_was_idle() {
    req!("base.request.id-unique-session");
    let caller = HttpTestClient::new(server()).in_session("2025-11-25").await;
    let mut seen = HashSet::new();
    for id in 1..=20 {
        let mut stream = caller.tool(id, "think", json!({})).await.stream();
        stream.prime().await;
        let client_request = stream.message().await.unwrap();
        assert_eq!(client_request["method"], "sampling/createMessage");
        assert!(
            seen.insert(client_request["id"].to_string()),
            "{client_request}"
        );
        let result = json!({
            "role": "assistant", "model": "m", "content": { "type": "text", "text": "x" },
        });
        let response = json!({ "jsonrpc": "2.0", "id": client_request["id"], "result": result });
        assert_eq!(caller.post(&response).await.status(), 202);
        assert_eq!(stream.message().await.unwrap()["id"], id);
        assert_eq!(stream.message().await, None);
    }
}
