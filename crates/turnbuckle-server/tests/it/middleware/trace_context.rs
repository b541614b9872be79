//! W3C trace context: from the client to the handler and to client requests.

use serde_json::{Value, json};
use turnbuckle_server::{Context, SamplingBuilder, Server, Tool};
use turnbuckle_spec_coverage::req;

use crate::{
    http::test_client::{self, HttpTestClient},
    ndjson::test_client::{Peer, modern_with},
};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const STATE: &str = "rojo=\"1\",congo=t61rcWkgMzE";
const BAGGAGE: &str = "user=ada,node=DF%2028";

fn server() -> Server {
    let show = Tool::new("show", async |cx: Context| {
        let Some(trace) = cx.trace() else {
            return Ok("none".to_owned());
        };
        let parts = [trace.traceparent(), trace.tracestate(), trace.baggage()];
        Ok(parts.map(|part| part.unwrap_or("-")).join(" "))
    });
    let ask = Tool::new("ask", async |cx: Context| {
        let roots = cx.roots("roots").await?;
        cx.sample("model", SamplingBuilder::text("?")).await?;
        Ok(roots.len().to_string())
    });
    Server::new("traced", "1").tool(show).tool(ask)
}

fn everything() -> Value {
    json!({ "roots": {}, "sampling": {} })
}

fn call(name: &str, traceparent: &Value) -> Value {
    let meta = json!({ "traceparent": traceparent, "tracestate": STATE, "baggage": BAGGAGE });
    json!({ "name": name, "arguments": {}, "_meta": meta })
}

fn text(response: &Value) -> &Value {
    &response["result"]["content"][0]["text"]
}

#[tokio::test]
async fn a_handler_sees_the_trace_context_on_every_transport() {
    req!("meta.trace.bare-keys");
    let expected = format!("{PARENT} {STATE} {BAGGAGE}");
    let mut legacy = Peer::initialized(server(), "2025-11-25", json!({})).await;
    let mut lines = Peer::new(server());
    let http = HttpTestClient::new(server());
    let params = call("show", &json!(PARENT));
    let mut message = test_client::modern("tools/call", json!({ "name": "show" }));
    for (key, value) in params["_meta"].as_object().unwrap() {
        message["params"]["_meta"][key] = value.clone();
    }
    let headers = test_client::modern_headers(http.request(http::Method::POST), &message);

    let responses = [
        legacy.call("tools/call", params.clone()).await,
        lines.call_modern("tools/call", params).await,
        http.send(headers, message.to_string()).await.json().await,
    ];

    for response in responses {
        assert_eq!(*text(&response), *expected, "{response}");
    }
}

#[tokio::test]
async fn malformed_trace_context_is_ignored() {
    req!("meta.trace.format");
    let mut peer = Peer::new(server());
    let long = format!("00-{}", "a".repeat(100_000));
    for wrong in [json!("00-zz-1-01"), json!(7), json!(["x"]), json!(long)] {
        let response = peer.call_modern("tools/call", call("show", &wrong)).await;
        // Baggage is independent; a state without a parent is dropped.
        assert_eq!(*text(&response), *format!("- - {BAGGAGE}"), "{response}");
    }
    let mut none = call("show", &json!("00-zz-1-01"));
    none["_meta"]["baggage"] = json!("a \"quoted\" text");
    let response = peer.call_modern("tools/call", none).await;
    assert_eq!(*text(&response), "none");
}

#[tokio::test]
async fn client_requests_in_a_session_carry_the_trace_context() {
    let mut peer = Peer::initialized(server(), "2025-06-18", everything()).await;
    peer.request("tools/call", call("ask", &json!(PARENT)))
        .await;
    let results = [
        ("roots/list", json!({ "roots": [] })),
        (
            "sampling/createMessage",
            json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "!" } }),
        ),
    ];
    for (method, result) in results {
        let client_request = peer.next().await;
        let meta = &client_request["params"]["_meta"];
        assert_eq!(client_request["method"], method);
        assert_eq!(meta["traceparent"], PARENT);
        assert_eq!(meta["tracestate"], STATE);
        assert_eq!(meta["baggage"], BAGGAGE);
        assert_eq!(meta["progressToken"], client_request["id"]);
        peer.send(json!({ "jsonrpc": "2.0", "id": client_request["id"], "result": result }))
            .await;
    }
    assert_eq!(*text(&peer.next().await), "0");

    peer.request("tools/call", json!({ "name": "ask", "arguments": {} }))
        .await;
    let untraced = peer.next().await;
    let meta = untraced["params"]["_meta"].as_object().unwrap();
    assert_eq!(meta.keys().collect::<Vec<_>>(), ["progressToken"]);
}

#[tokio::test]
async fn an_input_request_carries_the_trace_context_where_it_has_meta() {
    let mut peer = Peer::new(server());
    let first = modern_with(call("ask", &json!(PARENT)), everything());
    let asked = peer.call("tools/call", first).await;
    let client_request = &asked["result"]["inputRequests"]["roots"];
    assert_eq!(client_request["params"]["_meta"]["traceparent"], PARENT);

    // The retry has another span and belongs to the same call.
    let other = PARENT.replace("00f067aa0ba902b7", "00f067aa0ba902b8");
    let mut retry = modern_with(call("ask", &json!(other)), everything());
    retry["requestState"] = asked["result"]["requestState"].clone();
    retry["inputResponses"] = json!({ "roots": { "roots": [] } });
    let asked = peer.call("tools/call", retry).await;

    let client_request = &asked["result"]["inputRequests"]["model"];
    assert_eq!(client_request["method"], "sampling/createMessage");
    assert!(
        client_request["params"]["_meta"].is_null(),
        "{client_request}"
    );
}
