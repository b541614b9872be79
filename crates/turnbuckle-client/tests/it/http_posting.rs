//! Requests on Streamable HTTP, and the ways in which they are answered.

use std::{
    future::IntoFuture,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::json;
use tokio::sync::mpsc;
use turnbuckle_client::{Anomaly, CallError, Timeouts, TransportError};
use turnbuckle_spec_coverage::req;

use crate::{
    fake_http::{FakeHttp, Reply, Seen},
    http_peer::{
        LEGACY, MODERN, answer_to, at, by_method, connect, on_call, output, posted, server, settle,
        speaking,
    },
};

fn every() -> impl Iterator<Item = &'static str> {
    LEGACY.into_iter().chain([MODERN])
}

#[tokio::test(start_paused = true)]
async fn every_message_is_a_post_of_its_own() {
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
        let fake = server(revision, |_| None);
        let client = connect(&fake, revision).await;

        client.call_tool("a", json!({})).await.unwrap();
        client.call_tool("b", json!({})).await.unwrap();

        let posts = by_method(&fake, "POST");
        assert_eq!(posted(&fake, "tools/call").len(), 2);
        for post in posts {
            assert_eq!(post.path, "/mcp");
            assert_eq!(post.header("accept"), "application/json, text/event-stream");
            assert_eq!(post.header("content-type"), "application/json");
            assert_eq!(post.json()["jsonrpc"], "2.0", "one message, not an array");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_modern_request_says_in_headers_what_its_body_says() {
    req!(
        "http.version-header.every-post",
        "http.version-header.match-body",
        "http.header.mcp-method",
        "http.header.mcp-name",
        "http.header.mcp-name-encode"
    );
    let fake = server(MODERN, |seen| {
        let result = match seen.rpc().as_str() {
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
        Some(Reply::result(seen, &result))
    });
    let client = connect(&fake, MODERN).await;

    client.call_tool("forecast", json!({})).await.unwrap();
    client
        .call_tool("Wetter für Øslo", json!({}))
        .await
        .unwrap();
    client.get_prompt("greet", [("name", "Ada")]).await.unwrap();
    client.read_resource("file:///a%20b").await.unwrap();
    client.tools().all().await.unwrap();

    for post in fake.seen() {
        let body = post.json();
        let meta = &body["params"]["_meta"];
        assert_eq!(post.header("mcp-protocol-version"), MODERN);
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], MODERN);
        assert_eq!(post.header("mcp-method"), body["method"].as_str().unwrap());
    }
    let names = |method: &str| -> Vec<_> {
        let posts = posted(&fake, method);
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
async fn an_answer_may_be_json_or_an_event() {
    req!("http.post.client-both", "http.sse.comment-ignore");
    for revision in every() {
        let fake = server(
            revision,
            on_call(|seen| {
                let answer = answer_to(seen, "events");
                match seen.json()["params"]["name"].as_str() {
                    Some("json") => Reply::json(&answer_to(seen, "json")),
                    _ => Reply::events(move |events| async move {
                        events.text(": beat\n\n");
                        tokio::time::sleep(Duration::from_secs(5)).await;
                        events.text(": beat\n\nevent: other\ndata: {\n\n");
                        events.message(&answer);
                    }),
                }
            }),
        );
        let client = connect(&fake, revision).await;

        for name in ["json", "events"] {
            let output = client.call_tool(name, json!({})).await.unwrap();
            assert_eq!(output.content[0].as_text(), Some(name));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_ends_the_call_even_if_its_stream_goes_on() {
    let fake = server(
        MODERN,
        on_call(|seen| {
            let answer = answer_to(seen, "done");
            Reply::events(move |events| async move {
                events.message(&answer);
                events.closed().await;
            })
        }),
    );
    let client = connect(&fake, MODERN).await;

    client.call_tool("a", json!({})).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_comes_beside_the_answer_reaches_whoever_waits_for_it() {
    for revision in every() {
        let fake = server(
            revision,
            on_call(|seen| {
                let token = seen.json()["params"]["_meta"]["progressToken"].clone();
                let answer = answer_to(seen, "done");
                Reply::events(move |events| async move {
                    events.message(&json!({
                        "jsonrpc": "2.0", "method": "notifications/progress",
                        "params": { "progressToken": token, "progress": 1 },
                    }));
                    events.message(&json!({
                        "jsonrpc": "2.0", "method": "notifications/message",
                        "params": { "level": "info", "data": "halfway" },
                    }));
                    events.message(&json!({ "jsonrpc": "2.0", "id": 999, "result": {} }));
                    events.message(&answer);
                })
            }),
        );
        let (told, mut heard) = mpsc::unbounded_channel();
        let (log, oddity) = (told.clone(), told.clone());
        let client = speaking(revision)
            .on_log(move |message| log.send(format!("log {}", message.data)).unwrap())
            .on_anomaly(move |odd| oddity.send(format!("{odd:?}")).unwrap())
            .connect(at(&fake))
            .await
            .unwrap();

        let call = client.call_tool("a", json!({}));
        call.on_progress(move |_| told.send("progress".to_owned()).unwrap())
            .await
            .unwrap();

        let mut all = Vec::new();
        while let Ok(one) = heard.try_recv() {
            all.push(one);
        }
        let stranger = format!("{:?}", Anomaly::UnexpectedResponse(999.into()));
        assert_eq!(
            all,
            ["progress", "log \"halfway\"", &stranger],
            "{revision}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_keeps_its_status_and_when_to_come_again() {
    let error = json!({ "code": -32603, "message": "busy" });
    for body in [
        json!({ "jsonrpc": "2.0", "id": null, "error": error }),
        json!({ "jsonrpc": "2.0", "error": error }),
    ] {
        for revision in every() {
            let body = body.clone();
            let fake = server(
                revision,
                on_call(move |_| {
                    let reply = Reply::json(&body).with_status(503);
                    reply.header("Retry-After", "7")
                }),
            );
            let client = connect(&fake, revision).await;

            let problem = client.call_tool("a", json!({})).await.unwrap_err();

            assert!(matches!(problem, CallError::Rejected { .. }), "{problem:?}");
            assert_eq!(problem.rpc().unwrap().message, "busy");
            assert_eq!(problem.status().unwrap(), 503);
            assert_eq!(problem.retry_after(), Some(Duration::from_secs(7)));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_names_of_headers_are_read_in_any_case() {
    req!("http.header.case-insensitive-names");
    let fake = server(MODERN, |seen| {
        let answer = answer_to(seen, "done");
        match seen.json()["params"]["name"].as_str()? {
            "busy" => Some(Reply::status(503).header("rEtRy-AfTeR", "7")),
            _ => {
                let events = Reply::events(|events| async move { events.message(&answer) });
                Some(
                    events
                        .without_type()
                        .header("CONTENT-TYPE", "Text/Event-Stream"),
                )
            }
        }
    });
    let client = connect(&fake, MODERN).await;

    let output = client.call_tool("events", json!({})).await.unwrap();
    let problem = client.call_tool("busy", json!({})).await.unwrap_err();

    assert_eq!(output.content[0].as_text(), Some("done"));
    assert_eq!(problem.retry_after(), Some(Duration::from_secs(7)));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_without_a_message_keeps_what_http_says() {
    req!("http.header.size-limits");
    for status in [413, 431, 429, 500, 502] {
        let fake = server(
            MODERN,
            on_call(move |_| {
                let page = Reply::text("text/html", "<h1>No</h1>").with_status(status);
                page.header("Retry-After", "1")
            }),
        );
        let client = connect(&fake, MODERN).await;

        let problem = client.call_tool("a", json!({})).await.unwrap_err();

        assert_eq!(problem.status().unwrap(), status);
        assert_eq!(problem.retry_after(), Some(Duration::from_secs(1)));
        let CallError::Disconnected { source, .. } = &problem else {
            panic!("{problem:?}");
        };
        assert!(source.to_string().contains("<h1>No</h1>"), "{source}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_challenge_is_kept_even_beside_an_error() {
    let fake = server(
        MODERN,
        on_call(|_| {
            let error = json!({ "jsonrpc": "2.0", "error": { "code": -32600, "message": "no" } });
            let reply = Reply::json(&error).with_status(401);
            reply.header("WWW-Authenticate", "Bearer realm=\"mcp\"")
        }),
    );
    let client = connect(&fake, MODERN).await;

    let problem = client.call_tool("a", json!({})).await.unwrap_err();

    let CallError::Disconnected {
        source: TransportError::ErrorResponse(refusal),
        ..
    } = problem
    else {
        panic!("{problem:?}");
    };
    assert_eq!(refusal.challenge.as_deref(), Some("Bearer realm=\"mcp\""));
}

#[tokio::test(start_paused = true)]
async fn what_is_no_answer_says_why() {
    type Case = (fn(&Seen) -> Reply, &'static str);
    let cases: [Case; 5] = [
        (|_| Reply::status(202), "202"),
        (|_| Reply::text("application/json", "{"), "JSON"),
        (
            |_| Reply::json(&json!({ "jsonrpc": "2.0", "id": 999, "result": {} })),
            "no response to request",
        ),
        (
            |seen| {
                let both = json!({
                    "jsonrpc": "2.0", "id": seen.json()["id"], "result": {},
                    "error": { "code": 1, "message": "" },
                });
                Reply::json(&both)
            },
            "either",
        ),
        (
            |seen| Reply::json(&json!({ "jsonrpc": "2.0", "id": seen.json()["id"] })),
            "method",
        ),
    ];
    for (reply, reason) in cases {
        let fake = server(MODERN, on_call(reply));
        let client = connect(&fake, MODERN).await;

        let problem = client.call_tool("a", json!({})).await.unwrap_err();

        assert!(
            matches!(problem, CallError::InvalidResponse { .. }),
            "{problem:?}"
        );
        assert!(problem.to_string().contains(reason), "{problem}");
    }
}

/// A server whose tool never answers, and what tells that the client has gone.
fn silent_tool(revision: &'static str) -> (FakeHttp, mpsc::UnboundedReceiver<()>) {
    let (gone, is_gone) = mpsc::unbounded_channel();
    let fake = server(
        revision,
        on_call(move |_| {
            let gone = gone.clone();
            Reply::events(move |events| async move {
                events.text(": begun\n\n");
                events.closed().await;
                gone.send(()).unwrap();
            })
        }),
    );
    (fake, is_gone)
}

#[tokio::test(start_paused = true)]
async fn a_modern_call_that_is_dropped_closes_its_response_and_says_nothing() {
    req!("cancellation.http-close", "cancellation.client-send");
    let (fake, mut gone) = silent_tool(MODERN);
    let client = connect(&fake, MODERN).await;
    let call = tokio::spawn(client.call_tool("a", json!({})).into_future());
    fake.first(|seen| seen.rpc() == "tools/call").await;

    call.abort();

    gone.recv().await.unwrap();
    settle().await;
    assert!(posted(&fake, "notifications/cancelled").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_modern_call_that_takes_too_long_closes_its_response() {
    req!("lifecycle.timeout.cancel-modern");
    let (fake, mut gone) = silent_tool(MODERN);
    let client = connect(&fake, MODERN).await;
    let patience = Timeouts {
        idle: Duration::from_secs(3),
        total: Duration::from_secs(9),
    };

    let problem = client.call_tool("a", json!({})).timeouts(patience).await;

    assert!(matches!(problem, Err(CallError::TimedOut { .. })));
    gone.recv().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_of_a_session_that_is_dropped_is_cancelled_by_a_message() {
    req!(
        "http.sse.cancel-explicit",
        "lifecycle.timeout.cancel",
        "cancellation.request-id"
    );
    for revision in LEGACY {
        let (fake, _gone) = silent_tool(revision);
        let client = connect(&fake, revision).await;
        let call = tokio::spawn(client.call_tool("a", json!({})).into_future());
        let asked = fake.first(|seen| seen.rpc() == "tools/call").await;

        call.abort();

        let told = fake
            .first(|seen| seen.rpc() == "notifications/cancelled")
            .await;
        assert_eq!(told.json()["params"]["requestId"], asked.json()["id"]);
        assert_eq!(told.header("mcp-session-id"), "session-1");
        assert_eq!(
            told.header("mcp-protocol-version"),
            asked.header("mcp-protocol-version")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_answered_call_is_not_cancelled() {
    req!("cancellation.reference.in-progress");
    for revision in LEGACY {
        let fake = server(revision, |_| None);
        let client = connect(&fake, revision).await;

        client.call_tool("a", json!({})).await.unwrap();
        settle().await;

        assert!(posted(&fake, "notifications/cancelled").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_modern_stream_that_ends_loses_its_call_and_is_not_resumed() {
    req!("http.sse.no-resume");
    for cut in [false, true] {
        let fake = server(
            MODERN,
            on_call(move |_| {
                Reply::events(move |events| async move {
                    events.text("id: 1\nretry: 1\ndata:\n\n");
                    if cut {
                        events.cut();
                    }
                })
            }),
        );
        let client = connect(&fake, MODERN).await;

        let problem = client.call_tool("a", json!({})).await.unwrap_err();
        let _ = client.call_tool("a", json!({})).await;
        tokio::time::sleep(Duration::from_secs(100)).await;

        assert!(
            matches!(problem, CallError::EffectUnknown { .. }),
            "{problem:?}"
        );
        assert!(by_method(&fake, "GET").is_empty());
        let calls = posted(&fake, "tools/call");
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
async fn a_modern_client_keeps_no_session_and_answers_no_request() {
    req!("http.post.no-responses");
    let fake = server(MODERN, |seen| {
        let ping = json!({ "jsonrpc": "2.0", "id": 5, "method": "ping" });
        let answer = answer_to(seen, "done");
        let reply = match seen.rpc().as_str() {
            "tools/call" => Reply::events(|events| async move {
                events.message(&ping);
                events.message(&answer);
            }),
            _ => return None,
        };
        Some(reply.header("Mcp-Session-Id", "unasked-for"))
    });
    let client = connect(&fake, MODERN).await;

    client.call_tool("a", json!({})).await.unwrap();
    client.call_tool("a", json!({})).await.unwrap();
    client.close().await;
    settle().await;

    for seen in fake.seen() {
        assert_eq!(seen.method, "POST");
        assert_eq!(seen.header("mcp-session-id"), "");
        assert!(!seen.rpc().is_empty(), "a response was posted");
    }
}

#[tokio::test(start_paused = true)]
async fn closing_ends_the_calls_that_wait_and_those_to_come() {
    for revision in every() {
        let (fake, mut gone) = silent_tool(revision);
        let client = connect(&fake, revision).await;
        let call = tokio::spawn(client.call_tool("a", json!({})).into_future());
        fake.first(|seen| seen.rpc() == "tools/call").await;

        client.close().await;

        for problem in [call.await.unwrap(), client.call_tool("b", json!({})).await] {
            let problem = problem.unwrap_err();
            let CallError::Disconnected { source, .. } = &problem else {
                panic!("{problem:?}");
            };
            assert!(matches!(source, TransportError::ClientClosed), "{source:?}");
        }
        gone.recv().await.unwrap();
        assert_eq!(posted(&fake, "tools/call").len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn many_calls_wait_side_by_side() {
    req!("http.streams.many");
    for revision in every() {
        let fake = server(
            revision,
            on_call(|seen| {
                let name = seen.json()["params"]["name"].as_str().unwrap().to_owned();
                let answer = answer_to(seen, &name);
                Reply::events(move |events| async move {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    events.message(&answer);
                })
            }),
        );
        let client = connect(&fake, revision).await;
        let begun = tokio::time::Instant::now();

        let calls = (0..50).map(|number| {
            let call = client.call_tool(number.to_string(), json!({}));
            (number, tokio::spawn(call.into_future()))
        });
        for (number, call) in calls.collect::<Vec<_>>() {
            let output = call.await.unwrap().unwrap();
            assert_eq!(
                output.content[0].as_text(),
                Some(number.to_string().as_str())
            );
        }

        assert!(begun.elapsed() < Duration::from_secs(3));
    }
}

#[tokio::test(start_paused = true)]
async fn traffic_shows_messages_both_ways_and_no_header() {
    let fake = server(MODERN, |_| None);
    let seen = Arc::new(Mutex::new(String::new()));
    let shown = Arc::clone(&seen);
    let client = speaking(MODERN)
        .on_traffic(move |traffic| {
            let line = format!("{:?} {}\n", traffic.direction, traffic.message);
            shown.lock().unwrap().push_str(&line);
        })
        .connect(at(&fake).bearer("sesame"))
        .await
        .unwrap();

    client.call_tool("a", json!({})).await.unwrap();

    let seen = seen.lock().unwrap();
    assert_eq!(
        seen.lines().filter(|line| line.starts_with("Sent")).count(),
        2
    );
    assert_eq!(
        seen.lines()
            .filter(|line| line.starts_with("Received"))
            .count(),
        2
    );
    assert!(seen.contains(&output("done").to_string()));
    assert!(!seen.contains("sesame"));
    assert_eq!(fake.seen()[0].header("authorization"), "Bearer sesame");
}
