//! Requests that stand on their own.

use serde_json::json;
use turnbuckle_ledger::req;

use crate::http_caller::{Caller, modern, modern_headers, server};

#[tokio::test]
async fn a_call_that_only_returns_is_one_json_body() {
    req!(
        "http.post.request-content-type",
        "http.endpoint.single-post"
    );
    let caller = Caller::new(server());

    let answered = caller
        .modern_tool("echo", json!({ "message": "hello" }))
        .await;

    assert_eq!(answered.status(), 200);
    assert_eq!(answered.header("mcp-session-id"), None);
    let answer = answered.json().await;
    assert_eq!(answer["id"], 7);
    assert_eq!(answer["result"]["content"][0]["text"], "hello");
    assert_eq!(answer["result"]["resultType"], "complete");
}

#[tokio::test]
async fn a_notification_before_the_answer_makes_a_stream() {
    req!(
        "http.sse.modern-notifications",
        "http.sse.modern-final-closes",
        "http.sse.no-buffering-header",
        "http.sse.event-format"
    );
    let caller = Caller::new(server());

    let answered = caller.modern_tool("progress", json!({ "steps": 3 })).await;

    assert_eq!(
        answered.header("cache-control"),
        Some("no-cache, no-transform")
    );
    assert_eq!(answered.header("x-accel-buffering"), Some("no"));
    let messages = answered.stream().messages().await;
    assert_eq!(messages.len(), 4);
    assert_eq!(messages[0]["method"], "notifications/progress");
    assert_eq!(messages[3]["result"]["content"][0]["text"], "done");
}

#[tokio::test]
async fn an_unknown_method_is_not_found() {
    req!("http.unknown-method.404");
    let caller = Caller::new(server());

    assert_eq!(
        caller
            .modern("unknown/method", json!({}))
            .await
            .refusal()
            .await,
        (404, -32601)
    );
}

#[tokio::test]
async fn a_header_that_differs_from_the_body_is_refused() {
    req!(
        "http.header.body-mismatch",
        "http.header.mismatch-status",
        "http.header.mismatch-error"
    );
    let caller = Caller::new(server());
    let message = modern("tools/list", json!({}));
    let other = modern("tools/call", json!({}));

    let builder = modern_headers(caller.request(http::Method::POST), &other);
    let answered = caller.send(builder, message.to_string()).await;

    assert_eq!(answered.refusal().await, (400, -32020));
}
