//! Requests on Streamable HTTP, and their responses.

use std::{
    future::IntoFuture,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::json;
use tokio::sync::mpsc;
use turnbuckle_client::{Anomaly, CallError, Timeouts, TransportError};
use turnbuckle_spec_coverage::req;

use crate::servers::{
    mock_http::{MockHttpServer, MockResponse, RecordedRequest},
    mock_mcp_http::{
        LEGACY, MODERN, builder_for, by_method, connect, on_call, posted_messages, response_to,
        run_ready_tasks, server, target_of, text_result,
    },
};

fn every() -> impl Iterator<Item = &'static str> {
    LEGACY.into_iter().chain([MODERN])
}

#[tokio::test(start_paused = true)]
async fn every_message_is_a_separate_post() {
    req!(
        "http.post.every-message",
        "http.post.method",
        "http.post.accept-both",
        "http.post.content-type",
        "http.post.body-2025-03-26",
        "http.post.body-single",
        "http.post.body-single-modern"
    );
    for revision in every() {
        let mock = server(revision, |_| None);
        let client = connect(&mock, revision).await;

        client.call_tool("a", json!({})).await.unwrap();
        client.call_tool("b", json!({})).await.unwrap();

        let posts = by_method(&mock, "POST");
        assert_eq!(posted_messages(&mock, "tools/call").len(), 2);
        for post in posts {
            assert_eq!(post.path, "/mcp");
            assert_eq!(post.header("accept"), "application/json, text/event-stream");
            assert_eq!(post.header("content-type"), "application/json");
            assert_eq!(post.json()["jsonrpc"], "2.0", "one message, not an array");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_modern_request_repeats_method_and_name_in_headers() {
    req!(
        "http.version-header.every-post",
        "http.version-header.match-body",
        "http.header.mcp-method",
        "http.header.mcp-name",
        "http.header.mcp-name-encode"
    );
    let mock = server(MODERN, |request| {
        let result = match request.rpc().as_str() {
            "server/discover" => json!({
                "supportedVersions": [MODERN],
                "capabilities": { "tools": {}, "prompts": {}, "resources": {} },
                "ttlMs": 0,
                "cacheScope": "private",
            }),
            "prompts/get" => json!({ "messages": [] }),
            "resources/read" => json!({ "contents": [], "ttlMs": 0, "cacheScope": "private" }),
            "tools/list" => json!({ "tools": [], "ttlMs": 0, "cacheScope": "private" }),
            _ => return None,
        };
        let mut result = result;
        result["resultType"] = json!("complete");
        Some(MockResponse::result(request, &result))
    });
    let client = connect(&mock, MODERN).await;

    client.call_tool("forecast", json!({})).await.unwrap();
    client
        .call_tool("Wetter für Øslo", json!({}))
        .await
        .unwrap();
    client.get_prompt("greet", [("name", "Ada")]).await.unwrap();
    client.read_resource("file:///a%20b").await.unwrap();
    client.tools().all().await.unwrap();

    for post in mock.requests() {
        let body = post.json();
        let meta = &body["params"]["_meta"];
        assert_eq!(post.header("mcp-protocol-version"), MODERN);
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], MODERN);
        assert_eq!(post.header("mcp-method"), body["method"].as_str().unwrap());
    }
    let names = |method: &str| -> Vec<_> {
        let posts = posted_messages(&mock, method);
        let names = posts.iter().map(|post| post.header("mcp-name"));
        names.map(str::to_owned).collect()
    };
    assert_eq!(
        names("tools/call"),
        ["forecast", "=?base64?V2V0dGVyIGbDvHIgw5hzbG8=?="]
    );
    assert_eq!(names("prompts/get"), ["greet"]);
    assert_eq!(names("resources/read"), ["file:///a%20b"]);
    assert_eq!(
        names("tools/list"),
        [""],
        "what names nothing has no such header"
    );
}

#[tokio::test(start_paused = true)]
async fn a_response_may_be_json_or_an_event() {
    req!("http.post.client-both", "http.sse.comment-ignore");
    for revision in every() {
        let mock = server(
            revision,
            on_call(|request| {
                let response = response_to(request, "events");
                match request.json()["params"]["name"].as_str() {
                    Some("json") => MockResponse::json(&response_to(request, "json")),
                    _ => MockResponse::events(move |events| async move {
                        events.text(": beat\n\n");
                        tokio::time::sleep(Duration::from_secs(5)).await;
                        events.text(": beat\n\nevent: other\ndata: {\n\n");
                        events.message(&response);
                    }),
                }
            }),
        );
        let client = connect(&mock, revision).await;

        for name in ["json", "events"] {
            let text_result = client.call_tool(name, json!({})).await.unwrap();
            assert_eq!(text_result.content[0].as_text(), Some(name));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_ends_the_call_even_if_its_stream_continues() {
    let mock = server(
        MODERN,
        on_call(|request| {
            let response = response_to(request, "done");
            MockResponse::events(move |events| async move {
                events.message(&response);
                events.closed().await;
            })
        }),
    );
    let client = connect(&mock, MODERN).await;

    client.call_tool("a", json!({})).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn other_messages_of_a_response_stream_are_dispatched() {
    for revision in every() {
        let mock = server(
            revision,
            on_call(|request| {
                let token = request.json()["params"]["_meta"]["progressToken"].clone();
                let response = response_to(request, "done");
                MockResponse::events(move |events| async move {
                    events.message(&json!({
                        "jsonrpc": "2.0", "method": "notifications/progress",
                        "params": { "progressToken": token, "progress": 1 },
                    }));
                    events.message(&json!({
                        "jsonrpc": "2.0", "method": "notifications/message",
                        "params": { "level": "info", "data": "halfway" },
                    }));
                    events.message(&json!({ "jsonrpc": "2.0", "id": 999, "result": {} }));
                    events.message(&response);
                })
            }),
        );
        let (sender, mut received) = mpsc::unbounded_channel();
        let (log, oddity) = (sender.clone(), sender.clone());
        let client = builder_for(revision)
            .on_log(move |message| log.send(format!("log {}", message.data)).unwrap())
            .on_anomaly(move |anomaly| oddity.send(format!("{anomaly:?}")).unwrap())
            .connect(target_of(&mock))
            .await
            .unwrap();

        let call = client.call_tool("a", json!({}));
        call.on_progress(move |_| sender.send("progress".to_owned()).unwrap())
            .await
            .unwrap();

        let mut all = Vec::new();
        while let Ok(one) = received.try_recv() {
            all.push(one);
        }
        let unexpected_response = format!("{:?}", Anomaly::UnexpectedResponse(999.into()));
        assert_eq!(
            all,
            ["progress", "log \"halfway\"", &unexpected_response],
            "{revision}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_has_its_status_and_retry_after() {
    let error = json!({ "code": -32603, "message": "busy" });
    for body in [
        json!({ "jsonrpc": "2.0", "id": null, "error": error }),
        json!({ "jsonrpc": "2.0", "error": error }),
    ] {
        for revision in every() {
            let body = body.clone();
            let mock = server(
                revision,
                on_call(move |_| {
                    let reply = MockResponse::json(&body).with_status(503);
                    reply.header("Retry-After", "7")
                }),
            );
            let client = connect(&mock, revision).await;

            let failure = client.call_tool("a", json!({})).await.unwrap_err();

            assert!(matches!(failure, CallError::Rejected { .. }), "{failure:?}");
            assert_eq!(failure.rpc().unwrap().message, "busy");
            assert_eq!(failure.status().unwrap(), 503);
            assert_eq!(failure.retry_after(), Some(Duration::from_secs(7)));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn response_header_names_are_case_insensitive() {
    req!("http.header.case-insensitive-names");
    let mock = server(MODERN, |request| {
        let response = response_to(request, "done");
        match request.json()["params"]["name"].as_str()? {
            "busy" => Some(MockResponse::status(503).header("rEtRy-AfTeR", "7")),
            _ => {
                let events =
                    MockResponse::events(|events| async move { events.message(&response) });
                Some(
                    events
                        .without_type()
                        .header("CONTENT-TYPE", "Text/Event-Stream"),
                )
            }
        }
    });
    let client = connect(&mock, MODERN).await;

    let text_result = client.call_tool("events", json!({})).await.unwrap();
    let failure = client.call_tool("busy", json!({})).await.unwrap_err();

    assert_eq!(text_result.content[0].as_text(), Some("done"));
    assert_eq!(failure.retry_after(), Some(Duration::from_secs(7)));
}

#[tokio::test(start_paused = true)]
async fn an_error_response_without_json_rpc_has_its_http_details() {
    req!("http.header.size-limits");
    for status in [413, 431, 429, 500, 502] {
        let mock = server(
            MODERN,
            on_call(move |_| {
                let page = MockResponse::text("text/html", "<h1>No</h1>").with_status(status);
                page.header("Retry-After", "1")
            }),
        );
        let client = connect(&mock, MODERN).await;

        let failure = client.call_tool("a", json!({})).await.unwrap_err();

        assert_eq!(failure.status().unwrap(), status);
        assert_eq!(failure.retry_after(), Some(Duration::from_secs(1)));
        let CallError::Disconnected { source, .. } = &failure else {
            panic!("{failure:?}");
        };
        assert!(source.to_string().contains("<h1>No</h1>"), "{source}");
    }
}

#[tokio::test(start_paused = true)]
async fn challenges_are_reported_with_a_json_rpc_error() {
    let mock = server(
        MODERN,
        on_call(|_| {
            let error = json!({ "jsonrpc": "2.0", "error": { "code": -32600, "message": "no" } });
            let reply = MockResponse::json(&error).with_status(401);
            reply.header("WWW-Authenticate", "Bearer realm=\"mcp\"")
        }),
    );
    let client = connect(&mock, MODERN).await;

    let failure = client.call_tool("a", json!({})).await.unwrap_err();

    let CallError::Disconnected {
        source: TransportError::ErrorResponse(rejection),
        ..
    } = failure
    else {
        panic!("{failure:?}");
    };
    assert_eq!(rejection.challenge.as_deref(), Some("Bearer realm=\"mcp\""));
}

#[tokio::test(start_paused = true)]
async fn an_invalid_response_is_reported_with_its_reason() {
    type Case = (fn(&RecordedRequest) -> MockResponse, &'static str);
    let cases: [Case; 5] = [
        (|_| MockResponse::status(202), "202"),
        (|_| MockResponse::text("application/json", "{"), "JSON"),
        (
            |_| MockResponse::json(&json!({ "jsonrpc": "2.0", "id": 999, "result": {} })),
            "no response to request",
        ),
        (
            |request| {
                let both = json!({
                    "jsonrpc": "2.0", "id": request.json()["id"], "result": {},
                    "error": { "code": 1, "message": "" },
                });
                MockResponse::json(&both)
            },
            "either",
        ),
        (
            |request| MockResponse::json(&json!({ "jsonrpc": "2.0", "id": request.json()["id"] })),
            "method",
        ),
    ];
    for (reply, reason) in cases {
        let mock = server(MODERN, on_call(reply));
        let client = connect(&mock, MODERN).await;

        let failure = client.call_tool("a", json!({})).await.unwrap_err();

        assert!(
            matches!(failure, CallError::InvalidResponse { .. }),
            "{failure:?}"
        );
        assert!(failure.to_string().contains(reason), "{failure}");
    }
}

/// A server with a tool that never responds; the receiver reports that the client has closed the connection.
fn silent_tool(revision: &'static str) -> (MockHttpServer, mpsc::UnboundedReceiver<()>) {
    let (gone, is_gone) = mpsc::unbounded_channel();
    let mock = server(
        revision,
        on_call(move |_| {
            let gone = gone.clone();
            MockResponse::events(move |events| async move {
                events.text(": started\n\n");
                events.closed().await;
                gone.send(()).unwrap();
            })
        }),
    );
    (mock, is_gone)
}

#[tokio::test(start_paused = true)]
async fn dropping_a_modern_call_closes_its_response_without_a_notification() {
    req!("cancellation.http-close", "cancellation.client-send");
    let (mock, mut gone) = silent_tool(MODERN);
    let client = connect(&mock, MODERN).await;
    let call = tokio::spawn(client.call_tool("a", json!({})).into_future());
    mock.first(|request| request.rpc() == "tools/call").await;

    call.abort();

    gone.recv().await.unwrap();
    run_ready_tasks().await;
    assert!(posted_messages(&mock, "notifications/cancelled").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_modern_call_that_times_out_closes_its_response() {
    req!("lifecycle.timeout.cancel-modern");
    let (mock, mut gone) = silent_tool(MODERN);
    let client = connect(&mock, MODERN).await;
    let patience = Timeouts {
        idle: Duration::from_secs(3),
        total: Duration::from_secs(9),
    };

    let failure = client.call_tool("a", json!({})).timeouts(patience).await;

    assert!(matches!(failure, Err(CallError::TimedOut { .. })));
    gone.recv().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn dropping_a_call_in_a_session_sends_a_cancellation() {
    req!(
        "http.sse.cancel-explicit",
        "lifecycle.timeout.cancel",
        "cancellation.request-id"
    );
    for revision in LEGACY {
        let (mock, _gone) = silent_tool(revision);
        let client = connect(&mock, revision).await;
        let call = tokio::spawn(client.call_tool("a", json!({})).into_future());
        let posted = mock.first(|request| request.rpc() == "tools/call").await;

        call.abort();

        let cancellation = mock
            .first(|request| request.rpc() == "notifications/cancelled")
            .await;
        assert_eq!(
            cancellation.json()["params"]["requestId"],
            posted.json()["id"]
        );
        assert_eq!(cancellation.header("mcp-session-id"), "session-1");
        assert_eq!(
            cancellation.header("mcp-protocol-version"),
            posted.header("mcp-protocol-version")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_finished_call_is_not_cancelled() {
    req!("cancellation.reference.in-progress");
    for revision in LEGACY {
        let mock = server(revision, |_| None);
        let client = connect(&mock, revision).await;

        client.call_tool("a", json!({})).await.unwrap();
        run_ready_tasks().await;

        assert!(posted_messages(&mock, "notifications/cancelled").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_modern_stream_that_ends_early_fails_its_call_and_is_not_resumed() {
    req!("http.sse.no-resume");
    for cut in [false, true] {
        let mock = server(
            MODERN,
            on_call(move |_| {
                MockResponse::events(move |events| async move {
                    events.text("id: 1\nretry: 1\ndata:\n\n");
                    if cut {
                        events.cut();
                    }
                })
            }),
        );
        let client = connect(&mock, MODERN).await;

        let failure = client.call_tool("a", json!({})).await.unwrap_err();
        let _ = client.call_tool("a", json!({})).await;
        tokio::time::sleep(Duration::from_secs(100)).await;

        assert!(
            matches!(failure, CallError::EffectUnknown { .. }),
            "{failure:?}"
        );
        assert!(by_method(&mock, "GET").is_empty());
        let calls = posted_messages(&mock, "tools/call");
        assert_eq!(calls.len(), 2, "it is never sent again by itself");
        assert_ne!(calls[0].json()["id"], calls[1].json()["id"]);
        assert!(
            calls
                .iter()
                .all(|call| call.header("last-event-id").is_empty())
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_modern_client_has_no_session_and_does_not_respond_to_requests() {
    req!("http.post.no-responses");
    let mock = server(MODERN, |request| {
        let ping = json!({ "jsonrpc": "2.0", "id": 5, "method": "ping" });
        let response = response_to(request, "done");
        let reply = match request.rpc().as_str() {
            "tools/call" => MockResponse::events(|events| async move {
                events.message(&ping);
                events.message(&response);
            }),
            _ => return None,
        };
        Some(reply.header("Mcp-Session-Id", "unasked-for"))
    });
    let client = connect(&mock, MODERN).await;

    client.call_tool("a", json!({})).await.unwrap();
    client.call_tool("a", json!({})).await.unwrap();
    client.close().await;
    run_ready_tasks().await;

    for request in mock.requests() {
        assert_eq!(request.method, "POST");
        assert_eq!(request.header("mcp-session-id"), "");
        assert!(!request.rpc().is_empty(), "a response was posted");
    }
}

#[tokio::test(start_paused = true)]
async fn closing_fails_pending_and_later_calls() {
    for revision in every() {
        let (mock, mut gone) = silent_tool(revision);
        let client = connect(&mock, revision).await;
        let call = tokio::spawn(client.call_tool("a", json!({})).into_future());
        mock.first(|request| request.rpc() == "tools/call").await;

        client.close().await;

        for failure in [call.await.unwrap(), client.call_tool("b", json!({})).await] {
            let failure = failure.unwrap_err();
            let CallError::Disconnected { source, .. } = &failure else {
                panic!("{failure:?}");
            };
            assert!(matches!(source, TransportError::ClientClosed), "{source:?}");
        }
        gone.recv().await.unwrap();
        assert_eq!(posted_messages(&mock, "tools/call").len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn many_calls_are_pending_concurrently() {
    req!("http.streams.many");
    for revision in every() {
        let mock = server(
            revision,
            on_call(|request| {
                let name = request.json()["params"]["name"]
                    .as_str()
                    .unwrap()
                    .to_owned();
                let response = response_to(request, &name);
                MockResponse::events(move |events| async move {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    events.message(&response);
                })
            }),
        );
        let client = connect(&mock, revision).await;
        let started_at = tokio::time::Instant::now();

        let calls = (0..50).map(|number| {
            let call = client.call_tool(number.to_string(), json!({}));
            (number, tokio::spawn(call.into_future()))
        });
        for (number, call) in calls.collect::<Vec<_>>() {
            let text_result = call.await.unwrap().unwrap();
            assert_eq!(
                text_result.content[0].as_text(),
                Some(number.to_string().as_str())
            );
        }

        assert!(started_at.elapsed() < Duration::from_secs(3));
    }
}

#[tokio::test(start_paused = true)]
async fn the_message_trace_has_both_directions_and_no_headers() {
    let mock = server(MODERN, |_| None);
    let trace = Arc::new(Mutex::new(String::new()));
    let recorded = Arc::clone(&trace);
    let client = builder_for(MODERN)
        .on_traffic(move |traffic| {
            let line = format!("{:?} {}\n", traffic.direction, traffic.message);
            recorded.lock().unwrap().push_str(&line);
        })
        .connect(target_of(&mock).bearer("sesame"))
        .await
        .unwrap();

    client.call_tool("a", json!({})).await.unwrap();

    let trace = trace.lock().unwrap();
    assert_eq!(
        trace
            .lines()
            .filter(|line| line.starts_with("Sent"))
            .count(),
        2
    );
    assert_eq!(
        trace
            .lines()
            .filter(|line| line.starts_with("Received"))
            .count(),
        2
    );
    assert!(trace.contains(&text_result("done").to_string()));
    assert!(!trace.contains("sesame"));
    assert_eq!(mock.requests()[0].header("authorization"), "Bearer sesame");
}
