//! Clients that begin with a handshake.

use serde_json::json;
use turnbuckle_ledger::req;

use crate::http_caller::{Caller, initialize, server};

#[tokio::test]
async fn a_handshake_begins_a_session_in_which_tools_are_called() {
    req!("http.session.assign");
    let caller = Caller::new(server()).in_session("2025-06-18").await;

    let answered = caller.tool(1, "echo", json!({ "message": "hello" })).await;

    assert_eq!(answered.status(), 200);
    assert_eq!(answered.header("mcp-session-id"), None);
    assert_eq!(
        answered.json().await["result"]["content"][0]["text"],
        "hello"
    );
}

#[tokio::test]
async fn without_a_session_a_request_is_told_to_begin_one() {
    req!("http.session.missing-400");
    let caller = Caller::new(server());

    let answered = caller.tool(1, "echo", json!({ "message": "hello" })).await;

    assert_eq!(answered.refusal().await, (400, -32600));
}

#[tokio::test]
async fn progress_and_answer_come_as_events_with_ids() {
    req!("http.resume.event-id", "http.sse.prime");
    let caller = Caller::new(server()).in_session("2025-11-25").await;

    let mut stream = caller
        .tool(1, "progress", json!({ "steps": 2 }))
        .await
        .stream();

    assert!(stream.prime().await.ends_with("-1"));
    assert!(stream.decoder.retry().is_some());
    let messages = stream.messages().await;
    assert_eq!(messages.len(), 3);
    assert_eq!(messages[2]["result"]["content"][0]["text"], "done");
}

#[tokio::test]
async fn the_newest_version_in_a_handshake_gets_the_newest_with_a_handshake() {
    let caller = Caller::new(server());

    let answer = caller.post(&initialize("2026-07-28")).await.json().await;

    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
}
