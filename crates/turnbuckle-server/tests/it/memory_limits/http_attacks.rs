//! Attacks on HTTP.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use http::Method;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};
use turnbuckle_protocol::{Principal, types::LogLevel};
use turnbuckle_server::{
    Context, Elicitation, ResourceTemplate, Server, Tool, Variables,
    http::{self as turnbuckle_http, Http},
};
use turnbuckle_store::{Store, StoreLimits};

use crate::{
    http::test_client::{HttpTestClient, initialize, modern, modern_headers, tool},
    memory_limits::ndjson_attacks::talkative,
};

#[derive(Deserialize, JsonSchema)]
struct Name {
    #[expect(dead_code, reason = "never answered")]
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Key {
    key: String,
}

/// The number of calls of `burst` that have sent all their messages.
static BURSTS: AtomicUsize = AtomicUsize::new(0);

fn server() -> Server {
    let ask = Tool::new("ask", async |cx: Context| {
        cx.elicit(Elicitation::form::<Name>("Who?").key("name"))
            .await?;
        Ok("asked".to_owned())
    });
    let remember = Tool::new("remember", async |cx: Context| {
        let large = async || Ok("x".repeat(100 * 1024));
        let _: String = cx.once("large", large).await?;
        cx.elicit(Elicitation::url("Go", "https://a.example/").key("page"))
            .await?;
        Ok("asked".to_owned())
    });
    let redeem = Tool::new("redeem", async |key: Key, cx: Context| {
        let work = async || Ok("x".repeat(16 * 1024));
        let outcome: String = cx.exactly_once(&key.key, work).await?;
        Ok(outcome.len())
    });
    let burst = Tool::new("burst", async |cx: Context| {
        for _ in 0..80 {
            cx.log(LogLevel::Error, "x".repeat(16 * 1024)).await;
        }
        BURSTS.fetch_add(1, Ordering::Relaxed);
        std::future::pending::<()>().await;
        Ok(String::new())
    });
    // Limits of a small server keep the attack small.
    let mut limits = StoreLimits::default();
    limits.sessions.max_extra_bytes = 8 * 1024 * 1024;
    limits.events.max_total_bytes = 8 * 1024 * 1024;
    limits.request_states.max_total_bytes = 8 * 1024 * 1024;
    limits.claims.max_total_bytes = 8 * 1024 * 1024;
    talkative()
        .store(Store::memory_with(limits))
        .tool(burst)
        .tool(ask)
        .tool(remember)
        .tool(redeem)
        .template(ResourceTemplate::new(
            "test://{+path}",
            "all",
            async |_: Variables, _: Context| Ok("content"),
        ))
}

/// Checks that other clients are still served.
async fn alive(caller: &HttpTestClient) {
    let mut other = caller.clone();
    (other.session, other.version) = (None, None);
    assert_eq!(other.modern("tools/list", json!({})).await.status(), 200);
}

/// `initialize` of many different clients that never return.
pub(crate) async fn handshakes() {
    let caller = HttpTestClient::new(server());
    let hello = initialize("2025-11-25").to_string();
    for client in 0..100_000 {
        let hello = hello.replace("\"tests\"", &format!("\"client {client}\""));
        let http_response = caller.send(caller.request(Method::POST), hello).await;
        assert_eq!(http_response.status(), 200, "it replaces an older one");
    }
    alive(&caller).await;
}

/// `initialize` requests of almost maximum size.
pub(crate) async fn large_handshakes() {
    let caller = HttpTestClient::new(server());
    for client in 0..75 {
        let mut hello = initialize("2025-11-25");
        let name = format!("{client} {}", "x".repeat(900 * 1024));
        hello["params"]["clientInfo"]["name"] = json!(name);
        let http_response = caller.post(&hello).await;
        assert_eq!(http_response.status(), 200, "it replaces an older one");
    }
    alive(&caller).await;
}

/// Connections that call a tool with endless messages, and never read.
pub(crate) async fn unread_streams() {
    let (connector, listener) = turnbuckle_http::memory();
    drop(tokio::spawn(Http::new(server()).serve(listener)));
    let mut message = modern("tools/call", json!({ "name": "forever", "arguments": {} }));
    message["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
    let body = message.to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\n\
         mcp-method: tools/call\r\nmcp-name: forever\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut connections = Vec::new();
    for _ in 0..50 {
        let mut connection = connector.connect().await.unwrap();
        connection.write_all(head.as_bytes()).await.unwrap();
        connection.write_all(body.as_bytes()).await.unwrap();
        connections.push(connection);
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    let mut first = [0; 12];
    connections[0].read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
}

/// Calls of sessions that lose their streams while they send messages.
pub(crate) async fn event_logs() {
    let caller = HttpTestClient::new(server());
    for _ in 0..4 {
        let caller = caller.clone().in_session("2025-11-25").await;
        for id in 0..32 {
            let mut stream = caller.tool(id, "burst", json!({})).await.stream();
            stream.prime().await;
            drop(stream);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    while BURSTS.load(Ordering::Relaxed) < 4 * 32 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    alive(&caller).await;
}

/// Calls with client requests, more than may run concurrently.
pub(crate) async fn pending_client_requests() {
    let caller = HttpTestClient::with_options(Http::new(server()).max_in_flight(1_000));
    let (mut sessions, mut refused) = (Vec::new(), 0);
    for _ in 0..20 {
        sessions.push(caller.clone().in_session("2025-11-25").await);
    }
    for id in 0..300 {
        for session in &sessions {
            let http_response = session.post(&tool(id, "ask", &json!({}))).await;
            refused += usize::from(http_response.status() != 200);
        }
    }
    assert_eq!(refused, 5_000, "there is an end to it");
}

/// First round trips of abandoned calls, each large enough that storing them would exceed the limit.
pub(crate) async fn round_trips() {
    let caller = HttpTestClient::new(server());
    let arguments = json!({ "padding": "x".repeat(96 * 1024) });
    for _ in 0..800 {
        let result = call_tool_with(&caller, "ask", &arguments).await;
        assert_eq!(result["resultType"], "input_required");
    }
}

/// First round trips with a state that is too large to send.
pub(crate) async fn journals() {
    let caller = HttpTestClient::new(server());
    for _ in 0..600 {
        call_tool(&caller, "remember").await;
    }
    alive(&caller).await;
}

/// Calls a tool as a client with all capabilities.
async fn call_tool(caller: &HttpTestClient, name: &str) -> Value {
    call_tool_with(caller, name, &json!({})).await
}

async fn call_tool_with(caller: &HttpTestClient, name: &str, arguments: &Value) -> Value {
    let params = json!({ "name": name, "arguments": arguments });
    let mut message = modern("tools/call", params);
    message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({ "elicitation": { "form": {}, "url": {} } });
    let request = modern_headers(caller.request(Method::POST), &message);
    let http_response = caller.send(request, message.to_string()).await;
    http_response.json().await["result"].clone()
}

/// Subscriptions of maximum size.
pub(crate) async fn filters() {
    let caller = HttpTestClient::new(server());
    let uris: Vec<_> = (0..1_000).map(|at| format!("test://{at:0>113}")).collect();
    let message = modern(
        "subscriptions/listen",
        json!({ "notifications": { "resourceSubscriptions": uris } }),
    );
    let text = message.to_string();
    let (mut streams, mut refused) = (Vec::new(), 0);
    for _ in 0..1_100 {
        let request = modern_headers(caller.request(Method::POST), &message);
        let http_response = caller.send(request, text.clone()).await;
        if http_response.is_stream() {
            let mut stream = http_response.stream();
            stream.event().await.unwrap();
            streams.push(stream);
        } else {
            refused += 1;
        }
    }
    assert!(!streams.is_empty() && refused > 0, "{refused}");
    alive(&caller).await;
}

/// Sessions with the maximum number of subscriptions.
pub(crate) async fn subscriptions() {
    let caller = HttpTestClient::new(server());
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..400 {
        let caller = caller.clone().in_session("2025-11-25").await;
        for at in 0..15 {
            let uri = format!("test://a/{at:0>8000}");
            let message = json!({
                "jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": { "uri": uri },
            });
            match caller.post(&message).await.json().await["error"] {
                Value::Null => taken += 1,
                _ => refused += 1,
            }
        }
    }
    // Idle sessions are evicted for them.
    assert_eq!((taken, refused), (6_000, 0));
    alive(&caller).await;
}

/// Side effects with `exactly_once`, for many principals.
pub(crate) async fn principals() {
    let mut caller = HttpTestClient::new(server());
    for at in 0..4_000 {
        caller.principal = Some(Principal::new(
            "https://login.example",
            format!("user {at}"),
        ));
        let http_response = caller
            .modern_tool("redeem", json!({ "key": "coupon" }))
            .await;
        assert_eq!(http_response.status(), 200);
    }
    alive(&caller).await;
}

/// Connections that send an endless request head.
pub(crate) async fn heads() {
    let (connector, listener) = turnbuckle_http::memory();
    drop(tokio::spawn(Http::new(server()).serve(listener)));
    let mut connections = Vec::new();
    for _ in 0..100 {
        let mut connection = connector.connect().await.unwrap();
        let begin = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\nx-a: ";
        connection.write_all(begin).await.unwrap();
        let piece = vec![b'x'; 64 * 1024];
        for _ in 0..160 {
            // Fails once the server has rejected the head.
            let written = timeout(Duration::from_secs(1), connection.write_all(&piece)).await;
            if !matches!(written, Ok(Ok(()))) {
                break;
            }
        }
        connections.push(connection);
    }
    let mut health = connector.connect().await.unwrap();
    let request = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n";
    health.write_all(request).await.unwrap();
    let mut first = [0; 12];
    health.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
}

/// Batches of a hundred calls with responses of 1 MiB each.
pub(crate) async fn batches() {
    let caller = HttpTestClient::new(server()).in_session("2025-03-26").await;
    let calls: Vec<_> = (1..=100).map(|id| tool(id, "large", &json!({}))).collect();

    let responses = caller.post(&Value::Array(calls)).await.json().await;

    let responses = responses.as_array().unwrap();
    assert_eq!(responses.len(), 100, "each has an answer");
    let given = responses
        .iter()
        .filter(|it| it["result"].is_object())
        .count();
    assert_eq!(given, 3, "and there is room for three of them");
}
