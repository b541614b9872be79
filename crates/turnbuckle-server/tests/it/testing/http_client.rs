//! The client of HTTP in the test kit.

use serde_json::{Value, json};
use turnbuckle_server::{
    http::{Http, SessionMode},
    testing::{self, PeerBuilder},
};

use crate::testing::test_server::test_server;

fn call(name: &str, arguments: &Value) -> Value {
    json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": name, "arguments": arguments, "_meta": { "progressToken": 1 } },
    })
}

fn modern(mut message: Value) -> Value {
    let meta = &mut message["params"]["_meta"];
    meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
    message
}

#[tokio::test(start_paused = true)]
async fn a_stateless_request_requires_its_headers() {
    let client = testing::http(test_server());

    for name in ["Ada", "世界", "=?base64?"] {
        let message = modern(call("greet", &json!({ "name": name })));
        let response = client.post(&message).await;
        assert_eq!(response.status(), 200);
        let mut events = response.events();
        assert_eq!(
            events.message().await.unwrap()["method"],
            "notifications/progress"
        );
        let answer = events.message().await.unwrap();
        let text = &answer["result"]["content"][0]["text"];
        assert_eq!(*text, format!("Hello, {name}!"));
        assert!(events.message().await.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn a_broken_stream_resumes_after_the_last_event() {
    let client = testing::http(test_server()).in_session("2025-11-25").await;
    let mut events = client
        .post(&call("greet", &json!({ "name": "Ada" })))
        .await
        .events();
    events.next().await.unwrap();
    assert!(!events.last_event_id().is_empty());

    let response = client.get(Some(events.last_event_id())).await;

    let mut rest = response.events();
    assert_eq!(
        rest.message().await.unwrap()["method"],
        "notifications/progress"
    );
    assert_eq!(
        rest.message().await.unwrap()["method"],
        "notifications/message"
    );
    assert_eq!(rest.message().await.unwrap()["id"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_session_ends_with_delete() {
    let client = testing::http(test_server()).in_session("2025-06-18").await;

    assert_eq!(client.delete().await.status(), 204);

    let response = client.post(&call("sum", &json!({}))).await;
    assert_eq!(response.status(), 404);
}

#[tokio::test(start_paused = true)]
async fn options_of_the_transport_are_tried_too() {
    let http = Http::new(test_server())
        .path("/elsewhere")
        .sessions(SessionMode::Off);

    let mut peer = PeerBuilder::http(http).legacy("2025-06-18").await;

    let answer = peer.call_tool("sum", json!({})).await;
    assert_eq!(answer.text(), r#"{"sum":3}"#);
}
