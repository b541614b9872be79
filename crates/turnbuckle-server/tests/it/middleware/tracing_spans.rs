//! The span of each request, by the OpenTelemetry semantic conventions for MCP.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use turnbuckle_server::{
    Server, Tool,
    middleware::{Next, Operation, OperationResponse, Timing},
};

use crate::{
    http::test_client::{self, HttpTestClient},
    middleware::{
        layers::{server, tool},
        span_recorder::SpanRecorder,
    },
    ndjson::test_client::{Peer, modern, modern_with},
};

fn fields<const N: usize>(expected: [(&'static str, &str); N]) -> BTreeMap<&'static str, String> {
    expected
        .map(|(name, value)| (name, value.to_owned()))
        .into()
}

#[tokio::test]
async fn the_span_of_a_tool_call_has_the_attributes_of_the_conventions() {
    let (recorder, _guard) = SpanRecorder::listen();
    let mut peer = Peer::new(server());

    peer.call_modern("tools/call", tool("ok")).await;

    let seen = recorder.request();
    let expected = fields([
        ("otel.name", "tools/call ok"),
        ("otel.kind", "server"),
        ("mcp.method.name", "tools/call"),
        ("mcp.protocol.version", "2026-07-28"),
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "ok"),
        ("jsonrpc.request.id", "101"),
        ("network.transport", "pipe"),
    ]);
    assert_eq!(seen.fields, expected);
    assert!(seen.closed);
}

#[tokio::test]
async fn spans_of_prompts_resources_and_lists_have_their_target() {
    let (recorder, _guard) = SpanRecorder::listen();
    let mut peer = Peer::new(server());
    let about = [
        (
            "prompts/get",
            json!({ "name": "greet" }),
            "prompts/get greet",
            "gen_ai.prompt.name",
        ),
        // The name does not contain the URI: there may be many.
        (
            "resources/read",
            json!({ "uri": "test://a" }),
            "resources/read",
            "mcp.resource.uri",
        ),
        ("tools/list", json!({}), "tools/list", ""),
        // Unknown names are not part of it either.
        (
            "tools/call",
            tool("invented"),
            "tools/call",
            "gen_ai.tool.name",
        ),
    ];

    for (method, params, _, _) in &about {
        peer.call_modern(method, params.clone()).await;
    }

    for (seen, (method, params, name, field)) in recorder.requests().iter().zip(&about) {
        assert_eq!(seen.field("otel.name"), *name);
        assert_eq!(seen.field("mcp.method.name"), *method);
        let target = params["name"].as_str().or(params["uri"].as_str());
        assert_eq!(seen.field(field), target.unwrap_or_default());
        let executes = if *method == "tools/call" {
            "execute_tool"
        } else {
            ""
        };
        assert_eq!(seen.field("gen_ai.operation.name"), executes);
    }
}

#[tokio::test]
async fn failures_have_a_type_and_errors_a_code() {
    for (name, kind, code) in [
        ("ok", "", ""),
        ("wrong", "tool_error", ""),
        ("count", "tool_error", ""),
        ("unknown", "-32602", "-32602"),
        ("panic", "-32603", "-32603"),
        ("ask", "", ""),
    ] {
        let (recorder, _guard) = SpanRecorder::listen();
        let mut peer = Peer::new(server());

        let params = modern_with(tool(name), json!({ "elicitation": {} }));
        peer.call("tools/call", params).await;

        let seen = recorder.request();
        assert_eq!(seen.field("error.type"), kind, "{name}");
        assert_eq!(seen.field("rpc.response.status_code"), code, "{name}");
        let status = if kind.is_empty() { "" } else { "ERROR" };
        assert_eq!(seen.field("otel.status_code"), status, "{name}");
    }
}

#[tokio::test]
async fn the_span_of_a_cancelled_call_records_the_cancellation() {
    let (recorder, _guard) = SpanRecorder::listen();
    let mut peer = Peer::new(server());
    let id = peer.request("tools/call", modern(tool("sleep"))).await;
    peer.cancel(id).await;
    peer.call_modern("tools/list", json!({})).await;
    tokio::task::yield_now().await;

    let seen = &recorder.requests()[0];
    assert_eq!(seen.field("error.type"), "cancelled");
    assert!(seen.closed);
}

#[tokio::test]
async fn the_span_of_an_http_session_has_a_truncated_session_id() {
    let (recorder, _guard) = SpanRecorder::listen();
    let caller = HttpTestClient::new(server()).in_session("2025-06-18").await;

    caller.tool(1, "ok", json!({})).await.json().await;

    let requests = recorder.requests();
    let [handshake, call] = &requests[..] else {
        panic!("two requests: {requests:?}")
    };
    assert_eq!(handshake.field("otel.name"), "initialize");
    assert_eq!(call.field("otel.name"), "tools/call ok");
    assert_eq!(call.field("mcp.protocol.version"), "2025-06-18");
    assert_eq!(call.field("network.transport"), "tcp");
    let session = caller.session.as_deref().unwrap();
    assert_eq!(call.field("mcp.session.id"), format!("{}…", &session[..6]));
}

#[tokio::test]
async fn handlers_and_layers_run_inside_the_span() {
    let (recorder, _guard) = SpanRecorder::listen();
    let layer = async |_: Operation, next: Next| -> OperationResponse {
        tracing::info!("layer");
        next.run().await
    };
    let talk = Tool::new("talk", async || {
        tracing::info!("before");
        tokio::task::yield_now().await;
        tracing::info!("after");
        Ok(String::new())
    });
    let mut peer = Peer::new(Server::new("talk", "1").tool(talk).layer(layer));

    peer.call_modern("tools/call", tool("talk")).await;

    assert_eq!(recorder.request().events, ["layer", "before", "after"]);
}

#[tokio::test]
async fn timing_may_write_events() {
    let (recorder, _guard) = SpanRecorder::listen();
    let mut peer = Peer::new(server().layer(Timing::events()));

    peer.call_modern("tools/call", tool("ok")).await;

    assert_eq!(recorder.request().events, ["operation finished"]);
}

#[tokio::test]
async fn the_span_of_a_socket_connection_has_the_client_address() {
    let (recorder, _guard) = SpanRecorder::listen();
    let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(turnbuckle_server::http::serve(socket, server()));
    let message = test_client::modern("tools/list", json!({})).to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n\r\n{message}",
        message.len()
    );
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");

    let seen = recorder.request();
    assert_eq!(seen.field("client.address"), "127.0.0.1");
    let port = stream.local_addr().unwrap().port().to_string();
    assert_eq!(seen.field("client.port"), port);
    assert_eq!(seen.field("network.transport"), "tcp");
}

#[tokio::test]
async fn blocking_handlers_run_inside_the_span_on_their_own_thread() {
    let (recorder, _guard) = SpanRecorder::listen();
    let block = Tool::blocking("block", || Ok(String::new()));
    let mut peer = Peer::new(Server::new("block", "1").tool(block));

    peer.call_modern("tools/call", tool("block")).await;

    let here = std::thread::current().id();
    assert!(
        recorder
            .request()
            .threads
            .iter()
            .any(|thread| *thread != here)
    );
}

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn traced(mut params: Value) -> Value {
    params["_meta"]["traceparent"] = json!(PARENT);
    params["_meta"]["tracestate"] = json!("rojo=00f067aa0ba902b7");
    params["_meta"]["baggage"] = json!("user=ada");
    params
}

#[tokio::test]
async fn the_span_carries_the_trace_of_the_caller_and_nothing_malformed() {
    let (recorder, _guard) = SpanRecorder::listen();
    let mut peer = Peer::new(server());
    peer.call_modern("tools/call", traced(tool("ok"))).await;
    let mut malformed = traced(tool("ok"));
    malformed["_meta"]["traceparent"] = json!("00-xyz");
    let response = peer.call_modern("tools/call", malformed).await;
    assert!(response["error"].is_null());
    let mut no_text = traced(tool("ok"));
    no_text["_meta"]["traceparent"] = json!({ "a": 1 });
    let response = peer.call_modern("tools/call", no_text).await;
    assert!(response["error"].is_null());

    let requests = recorder.requests();
    assert_eq!(requests[0].field("traceparent"), PARENT);
    assert_eq!(requests[0].field("tracestate"), "rojo=00f067aa0ba902b7");
    for malformed in &requests[1..] {
        assert_eq!(malformed.field("traceparent"), "");
        assert_eq!(malformed.field("tracestate"), "");
    }
}
