//! Stateless requests.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use turnbuckle_server::{Context, Server, Tool};
use turnbuckle_spec_coverage::req;

use crate::http::test_client::{
    Empty, HttpTestClient, HttpTestResponse, MODERN, modern, modern_headers, server,
};

#[tokio::test]
async fn a_call_that_only_returns_is_one_json_body() {
    req!(
        "http.post.request-content-type",
        "http.endpoint.single-post"
    );
    let caller = HttpTestClient::new(server());

    let http_response = caller
        .modern_tool("echo", json!({ "message": "hello" }))
        .await;

    assert_eq!(http_response.status(), 200);
    assert_eq!(
        http_response.header("content-type"),
        Some("application/json")
    );
    let response = http_response.json().await;
    assert_eq!(response["id"], 7);
    assert_eq!(response["result"]["content"][0]["text"], "hello");
    assert_eq!(response["result"]["resultType"], "complete");
}

#[tokio::test]
async fn stateless_requests_ignore_session_ids() {
    req!("http.modern-only.session-ignore");
    let mut caller = HttpTestClient::new(server());
    caller.session = Some("no-such-session".to_owned());

    let http_response = caller
        .modern_tool("echo", json!({ "message": "hello" }))
        .await;

    assert_eq!(http_response.status(), 200);
    assert_eq!(http_response.header("mcp-session-id"), None);
}

#[tokio::test]
async fn a_stateless_request_with_a_session_header_is_stateless() {
    req!(
        "versioning.dual.server-select-modern",
        "stateless.no-prior-context"
    );
    let mut caller = HttpTestClient::new(server()).in_session("2025-06-18").await;
    caller.version = None;

    let http_response = caller
        .modern_tool("echo", json!({ "message": "hello" }))
        .await;

    assert_eq!(http_response.header("mcp-session-id"), None);
    assert_eq!(
        http_response.json().await["result"]["resultType"],
        "complete"
    );
}

#[tokio::test]
async fn a_notification_before_the_response_makes_a_stream() {
    req!(
        "http.sse.modern-notifications",
        "http.sse.modern-final-closes",
        "http.sse.no-buffering-header",
        "http.sse.event-format"
    );
    let caller = HttpTestClient::new(server());

    let http_response = caller.modern_tool("progress", json!({ "steps": 3 })).await;

    assert_eq!(
        http_response.header("cache-control"),
        Some("no-cache, no-transform")
    );
    assert_eq!(
        http_response.header("content-type"),
        Some("text/event-stream")
    );
    assert_eq!(http_response.header("x-accel-buffering"), Some("no"));
    let messages = http_response.stream().messages().await;
    assert_eq!(messages.len(), 4);
    assert_eq!(messages[0]["method"], "notifications/progress");
    assert_eq!(messages[3]["result"]["content"][0]["text"], "done");
}

#[tokio::test]
async fn a_modern_stream_cannot_be_resumed() {
    req!("http.sse.no-resume", "http.modern-only.last-event-id");
    let caller = HttpTestClient::new(server());
    let message = modern(
        "tools/call",
        json!({ "name": "progress", "arguments": { "steps": 1 } }),
    );
    let builder = modern_headers(caller.request(Method::POST), &message);

    let http_response = caller
        .send(builder.header("last-event-id", "1-1"), message.to_string())
        .await;

    let mut stream = http_response.stream();
    let mut events = 0;
    while let Some(event) = stream.event().await {
        assert_eq!(event.last_event_id, "");
        events += 1;
    }
    assert_eq!(events, 2, "it is a request like any other");
}

#[tokio::test]
async fn a_modern_client_is_never_sent_a_request() {
    req!("http.sse.modern-no-requests");
    let ask = Tool::new("ask", async |_: Empty, cx: Context| {
        cx.progress(1, 2).await;
        cx.sample("reply", turnbuckle_server::SamplingBuilder::text("hello?"))
            .await?;
        Ok("asked".to_owned())
    });
    let caller = HttpTestClient::new(Server::new("test", "1").tool(ask));
    let mut message = modern("tools/call", json!({ "name": "ask", "arguments": {} }));
    message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({ "sampling": {} });
    let builder = modern_headers(caller.request(Method::POST), &message);

    let http_response = caller.send(builder, message.to_string()).await;

    let messages = http_response.stream().messages().await;
    assert!(
        messages
            .iter()
            .all(|message| { message.get("method").is_none() || message.get("id").is_none() })
    );
    assert_eq!(
        messages.last().unwrap()["result"]["resultType"],
        "input_required"
    );
}

#[tokio::test]
async fn a_progress_token_alone_makes_no_stream() {
    let caller = HttpTestClient::new(server());

    let http_response = caller.modern("tools/list", json!({})).await;

    assert!(!http_response.is_stream());
}

#[tokio::test(start_paused = true)]
async fn a_slow_response_becomes_a_stream_with_heartbeats() {
    req!("http.sse.keepalive");
    let caller = HttpTestClient::new(server());
    let started = tokio::time::Instant::now();

    let http_response = caller.modern_tool("sleep", json!({})).await;
    assert_eq!(started.elapsed(), Duration::from_secs(10));
    let mut stream = http_response.stream();
    // The first byte at once.
    assert_eq!(stream.bytes().await.unwrap()[0], b':');
    assert_eq!(started.elapsed(), Duration::from_secs(10));
    let heartbeat = stream.bytes().await.unwrap();

    assert_eq!(heartbeat[0], b':');
    assert_eq!(started.elapsed(), Duration::from_secs(25));
    let response = stream.message().await.unwrap();
    assert_eq!(response["result"]["content"][0]["text"], "awake");
    assert_eq!(stream.message().await, None);
}

#[tokio::test]
async fn dropping_the_stream_cancels_the_call() {
    req!("http.cancel.disconnect", "http.cancel.stop");
    let (dropped, is_dropped) = tokio::sync::oneshot::channel::<()>();
    let guard = std::sync::Arc::new(std::sync::Mutex::new(Some(dropped)));
    let tool = Tool::new("hang", move |_: Empty, cx: Context| {
        let guard = guard.lock().unwrap().take();
        async move {
            cx.progress(1, 2).await;
            std::future::pending::<()>().await;
            drop(guard);
            Ok("never".to_owned())
        }
    });
    let caller = HttpTestClient::new(Server::new("test", "1").tool(tool));
    let mut stream = caller.modern_tool("hang", json!({})).await.stream();
    assert_eq!(stream.message().await.unwrap()["params"]["progress"], 1.0);

    drop(stream);

    assert!(is_dropped.await.is_err(), "the handler was dropped");
}

/// Sends a request with a body and headers that a test can modify.
async fn spoilt(
    spoil_body: impl FnOnce(&mut Value),
    spoil_headers: impl FnOnce(&mut http::HeaderMap),
) -> HttpTestResponse {
    let caller = HttpTestClient::new(server());
    let mut message = modern(
        "tools/call",
        json!({ "name": "echo", "arguments": { "message": "hi" } }),
    );
    let mut builder = modern_headers(caller.request(Method::POST), &message);
    spoil_body(&mut message);
    spoil_headers(builder.headers_mut().unwrap());
    caller.send(builder, message.to_string()).await
}

#[tokio::test]
async fn missing_meta_is_reported_before_other_errors() {
    req!(
        "meta.request.missing-field-error",
        "meta.request.missing-field-status"
    );
    for key in ["protocolVersion", "clientCapabilities"] {
        let key = format!("io.modelcontextprotocol/{key}");
        let http_response = spoilt(
            |message| {
                let meta = message["params"]["_meta"].as_object_mut().unwrap();
                meta.remove(&key);
            },
            // The header is wrong too, but it is checked later.
            |headers| drop(headers.insert("mcp-method", "wrong".parse().unwrap())),
        )
        .await;
        assert_eq!(
            http_response.status_and_code().await,
            (400, -32602),
            "{key}"
        );
    }
    let no_meta = spoilt(|message| message["params"]["_meta"] = json!({}), |_| {}).await;
    assert_eq!(no_meta.status_and_code().await, (400, -32602));
}

#[tokio::test]
async fn the_version_header_must_equal_the_body() {
    req!(
        "http.version-header.mismatch",
        "http.header.missing-standard"
    );
    let other = spoilt(
        |message| {
            message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("v999");
        },
        |_| {},
    )
    .await;
    let missing = spoilt(
        |_| {},
        |headers| drop(headers.remove("mcp-protocol-version")),
    )
    .await;
    let twice = spoilt(
        |_| {},
        |headers| {
            headers.append("mcp-protocol-version", MODERN.parse().unwrap());
        },
    )
    .await;

    for http_response in [other, missing, twice] {
        assert_eq!(http_response.status_and_code().await, (400, -32020));
    }
    for name in ["mcp-protocol-version", "mcp-method", "mcp-name"] {
        let missing = spoilt(|_| {}, |headers| drop(headers.remove(name))).await;
        assert_eq!(missing.status_and_code().await, (400, -32020), "{name}");
    }
}

#[tokio::test]
async fn an_unknown_version_is_answered_with_the_supported_ones() {
    req!(
        "versioning.unsupported.error",
        "versioning.unsupported.data",
        "versioning.unsupported.http-400",
        in: ["2026-07-28"]
    );
    let http_response = spoilt(
        |message| {
            message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] =
                json!("v999.0.0");
        },
        |headers| drop(headers.insert("mcp-protocol-version", "v999.0.0".parse().unwrap())),
    )
    .await;

    assert_eq!(http_response.status(), 400);
    let error = http_response.json().await["error"].clone();
    assert_eq!(error["code"], -32022);
    assert_eq!(error["data"]["requested"], "v999.0.0");
    let supported = error["data"]["supported"].as_array().unwrap();
    assert!(supported.contains(&json!(MODERN)) && supported.contains(&json!("2025-11-25")));
}

#[tokio::test]
async fn mcp_headers_must_occur_once_and_match_the_body() {
    req!(
        "http.header.body-mismatch",
        "http.header.mismatch-status",
        "http.header.mismatch-error",
        "http.header.case-sensitive-values"
    );
    for (name, value) in [
        ("mcp-method", None),
        ("mcp-method", Some("tools/list")),
        ("mcp-method", Some("TOOLS/CALL")),
        ("mcp-name", None),
        ("mcp-name", Some("other")),
        ("mcp-name", Some("=?base64?!!!?=")),
        ("mcp-name", Some("=?base64?ZWNobx==?=")),
        ("mcp-name", Some("=?base64?ZWNobw?=")),
    ] {
        let http_response = spoilt(
            |_| {},
            |headers| match value {
                Some(value) => drop(headers.insert(name, value.parse().unwrap())),
                None => drop(headers.remove(name)),
            },
        )
        .await;
        assert_eq!(
            http_response.status_and_code().await,
            (400, -32020),
            "{name} {value:?}"
        );
    }
    let twice = spoilt(
        |_| {},
        |headers| {
            headers.append("mcp-name", "echo".parse().unwrap());
        },
    )
    .await;
    assert_eq!(twice.status_and_code().await, (400, -32020));
}

#[tokio::test]
async fn names_may_be_encoded_and_padded() {
    req!(
        "http.header.decode-before-compare",
        "http.header.trim-whitespace"
    );
    for value in ["=?base64?ZWNobw==?=", "  echo  "] {
        let http_response = spoilt(
            |_| {},
            |headers| drop(headers.insert("mcp-name", value.parse().unwrap())),
        )
        .await;
        assert_eq!(http_response.status(), 200, "{value}");
    }
    let padded = [
        ("mcp-method", " tools/call "),
        ("mcp-method", "\ttools/call\t"),
        ("mcp-name", "\techo"),
    ];
    for (name, value) in padded {
        let padded =
            |headers: &mut http::HeaderMap| drop(headers.insert(name, value.parse().unwrap()));
        assert_eq!(spoilt(|_| {}, padded).await.status(), 200, "{value:?}");
    }
}

#[tokio::test]
async fn methods_of_the_other_era_are_not_found() {
    req!("http.unknown-method.404");
    let caller = HttpTestClient::new(server());

    for method in [
        "unknown/method",
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
    ] {
        let http_response = caller.modern(method, json!({ "uri": "test://a" })).await;
        assert_eq!(
            http_response.status_and_code().await,
            (404, -32601),
            "{method}"
        );
    }
}

#[tokio::test]
async fn an_unknown_tool_is_answered_with_status_200() {
    let caller = HttpTestClient::new(server());

    let http_response = caller.modern_tool("__proto__", json!({})).await;

    assert_eq!(http_response.status_and_code().await, (200, -32602));
}

#[tokio::test]
async fn a_subscription_sends_the_requested_changes_until_the_client_disconnects() {
    let caller = HttpTestClient::new(server());
    let listen = json!({ "notifications": { "toolsListChanged": true } });
    let mut stream = caller.modern("subscriptions/listen", listen).await.stream();

    let acknowledged = stream.message().await.unwrap();
    caller.modern_tool("change", json!({})).await;
    let changed = stream.message().await.unwrap();

    assert_eq!(
        acknowledged["method"],
        "notifications/subscriptions/acknowledged"
    );
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    let id = &changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
    assert_eq!(id, 7);
}

#[tokio::test]
async fn handlers_see_headers_and_extensions() {
    let tool = Tool::new("look", async |_: Empty, cx: Context| {
        let agent = cx
            .get::<http::HeaderMap>()
            .and_then(|headers| headers.get("user-agent"))
            .map(|agent| agent.to_str().unwrap().to_owned());
        let subject = cx.principal().map(|principal| principal.subject.clone());
        Ok(format!("{agent:?} {subject:?}"))
    });
    let mut caller = HttpTestClient::new(Server::new("test", "1").tool(tool));
    caller.principal = Some(turnbuckle_protocol::Principal::new("issuer", "alice"));
    let message = modern("tools/call", json!({ "name": "look", "arguments": {} }));
    let builder = modern_headers(caller.request(Method::POST), &message).header("user-agent", "x");

    let response = caller.send(builder, message.to_string()).await.json().await;

    assert_eq!(
        response["result"]["content"][0]["text"],
        r#"Some("x") Some("alice")"#
    );
}

#[tokio::test]
async fn a_tampered_cursor_is_rejected() {
    let caller = HttpTestClient::new(server());

    let http_response = caller
        .modern("tools/list", json!({ "cursor": "AAAA" }))
        .await;

    assert_eq!(http_response.status_and_code().await, (200, -32602));
}
