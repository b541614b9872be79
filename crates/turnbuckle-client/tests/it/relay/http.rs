//! Relayed calls over HTTP: sessions, lost responses, and the streams that messages arrive on.

use std::{
    io,
    sync::atomic::{AtomicUsize, Ordering},
};

use http::{HeaderName, HeaderValue};
use serde_json::{Value, json};
use turnbuckle_client::{CallError, Client, TransportError, http::HttpTarget, relay::RelayRequest};
use turnbuckle_protocol::types::ResultType;
use turnbuckle_server::{
    Context, Server, Tool,
    http::{self as server_http, HttpSse},
};

use crate::{
    relay::{Event, Events, Response, recording},
    servers::{
        mock_http::{EventWriter, MockHttpServer, MockResponse, RecordedRequest},
        mock_mcp_http::{
            LATEST_LEGACY, LEGACY, MODERN, builder_for, on_call, posted_messages, response_to,
            server, target_of,
        },
    },
};

async fn connect(
    mock: &MockHttpServer,
    revision: &str,
    response: Option<Response>,
) -> (Client, Events) {
    let (builder, events) = recording(builder_for(revision), response);
    (builder.connect(target_of(mock)).await.unwrap(), events)
}

fn call() -> RelayRequest {
    RelayRequest::new("tools/call", r#"{"name":"a"}"#)
}

fn log(data: &str) -> Value {
    let params = json!({ "data": data, "level": "info" });
    json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params })
}

#[tokio::test(start_paused = true)]
async fn a_result_is_returned_byte_for_byte() {
    const RESULT: &str = r#"{ "b" : 1.50,"resultType":"input_required","_meta":{"x/y" :null}}"#;
    for revision in [LATEST_LEGACY, MODERN] {
        let mock = server(
            revision,
            on_call(|request| {
                let id = &request.json()["id"];
                let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{RESULT}}}"#);
                MockResponse::text("application/json", body)
            }),
        );
        let (client, _events) = connect(&mock, revision, None).await;

        let result = client.relay(client.relay_id(), &call()).await.unwrap();

        let is_modern = revision == MODERN;
        assert_eq!(*result.kind() == ResultType::InputRequired, is_modern);
        assert_eq!(result.into_bytes(), RESULT, "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn headers_repeat_the_method_and_what_the_caller_sets() {
    let mock = server(MODERN, |_| None);
    let (client, _events) = connect(&mock, MODERN, None).await;
    let mut request = RelayRequest::new("com.example/x".to_owned(), "{}");
    request.name = Some("naïve".to_owned());
    request.param_headers = vec![(
        HeaderName::from_static("mcp-param-region"),
        HeaderValue::from_static("eu"),
    )];

    client.relay(client.relay_id(), &request).await.unwrap();
    client.relay(client.relay_id(), &call()).await.unwrap();

    let sent = &posted_messages(&mock, "com.example/x")[0];
    assert_eq!(sent.header("mcp-method"), "com.example/x");
    assert_eq!(sent.header("mcp-name"), "=?base64?bmHDr3Zl?=");
    assert_eq!(sent.header("mcp-param-region"), "eu");
    assert_eq!(sent.header("mcp-protocol-version"), MODERN);
    let unnamed = &posted_messages(&mock, "tools/call")[0];
    assert_eq!(unnamed.header("mcp-method"), "tools/call");
    assert_eq!(unnamed.header("mcp-name"), "");
}

#[tokio::test(start_paused = true)]
async fn a_legacy_request_has_no_such_headers() {
    let mock = server(LATEST_LEGACY, |_| None);
    let (client, _events) = connect(&mock, LATEST_LEGACY, None).await;
    let mut request = call();
    request.name = Some("a".to_owned());
    request.param_headers = vec![(
        HeaderName::from_static("mcp-param-region"),
        HeaderValue::from_static("eu"),
    )];

    client.relay(client.relay_id(), &request).await.unwrap();

    let sent = &posted_messages(&mock, "tools/call")[0];
    for name in ["mcp-method", "mcp-name", "mcp-param-region"] {
        assert_eq!(sent.header(name), "", "{name}");
    }
    assert_eq!(sent.header("mcp-session-id"), "session-1");
}

#[tokio::test(start_paused = true)]
async fn a_method_that_no_header_can_carry_is_not_sent() {
    let mock = server(MODERN, |_| None);
    let (client, _events) = connect(&mock, MODERN, None).await;

    let request = RelayRequest::new("a\nb", "{}");
    let error = client.relay(client.relay_id(), &request).await.unwrap_err();

    assert!(matches!(error, CallError::Unsendable { .. }), "{error}");
    assert!(error.is_unsent());
}

/// Each call sends a request, a log message and the progress of a call with another token on its stream.
#[tokio::test(start_paused = true)]
async fn messages_are_attributed_to_the_call_of_their_stream() {
    for revision in LEGACY {
        let mock = server(
            revision,
            on_call(|request| {
                let (id, response) = (request.json()["id"].clone(), response_to(request, "done"));
                MockResponse::events(move |events| async move {
                    events.message(&log(&id.to_string()));
                    events.message(&json!({
                        "jsonrpc": "2.0", "id": format!("for-{id}"), "method": "roots/list",
                    }));
                    events.message(&json!({
                        "jsonrpc": "2.0", "method": "notifications/progress",
                        "params": { "progress": 1, "progressToken": 1000 + id.as_i64().unwrap() },
                    }));
                    events.message(&response);
                })
            }),
        );
        let response = Some(Ok(r#"{"roots":[]}"#.to_owned()));
        let (client, mut events) = connect(&mock, revision, response).await;
        let (first, second) = (client.relay_id(), client.relay_id());
        let request = call();

        let (first_result, second_result) = tokio::join!(
            client.relay(first, &request),
            client.relay(second, &request)
        );

        first_result.unwrap();
        second_result.unwrap();
        let received = events.take();
        for id in [first, second] {
            let params = json!({ "data": id.to_string(), "level": "info" }).to_string();
            let method = "notifications/message".to_owned();
            let log = Event::Notification(method, params, Some(id));
            assert!(received.contains(&log), "{revision}: {received:?}");
            let request = Event::Request("roots/list".to_owned(), "{}".to_owned(), Some(id));
            assert!(received.contains(&request), "{revision}: {received:?}");
            let by_token = received.iter().any(|event| {
                matches!(event, Event::Notification(method, _, Some(call))
                    if method == "notifications/progress" && call.as_i64() == 1000 + id.as_i64())
            });
            assert!(by_token, "{revision}: {received:?}");
        }
        assert_eq!(received.len(), 6, "{revision}: {received:?}");
        for id in [first, second] {
            let answers = |request: &RecordedRequest| request.json()["id"] == format!("for-{id}");
            let response = mock.first(answers).await;
            assert_eq!(response.json()["result"], json!({ "roots": [] }));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_modern_notification_is_attributed_and_comes_before_the_result() {
    let mock = server(
        MODERN,
        on_call(|request| {
            let response = response_to(request, "done");
            MockResponse::events(move |events| async move {
                events.message(&log("a"));
                events.message(&response);
            })
        }),
    );
    let (client, mut events) = connect(&mock, MODERN, None).await;
    let id = client.relay_id();

    client.relay(id, &call()).await.unwrap();

    let received = events.take();
    assert!(
        matches!(&received[..], [Event::Notification(_, _, Some(call))] if *call == id),
        "{received:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn messages_of_the_get_stream_and_of_other_calls_belong_to_no_call() {
    let mock = server(LATEST_LEGACY, |request| {
        let stream = |message| {
            MockResponse::events(move |events: EventWriter| async move {
                events.message(&message);
                events.closed().await;
            })
        };
        match (request.method.as_str(), request.rpc().as_str()) {
            ("GET", _) => Some(stream(log("general"))),
            (_, "tools/list") => {
                let id = &request.json()["id"];
                let response = json!({ "jsonrpc": "2.0", "id": id, "result": { "tools": [] } });
                Some(MockResponse::events(move |events| async move {
                    events.message(&log("typed"));
                    events.message(&response);
                }))
            }
            _ => None,
        }
    });
    let (client, mut events) = connect(&mock, LATEST_LEGACY, None).await;

    let general = events.next().await;
    client.list_tools(None).await.unwrap();
    let typed = events.next().await;

    for (event, data) in [(general, "general"), (typed, "typed")] {
        let Event::Notification(_, params, None) = event else {
            panic!("{event:?}");
        };
        assert!(params.contains(data), "{params}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_ended_session_is_renewed_once_and_reported_as_a_gap() {
    for (status, body) in [
        (404, json!({})),
        (
            400,
            json!({
                "jsonrpc": "2.0", "id": null,
                "error": { "code": -32000, "message": "Bad Request: No valid session ID provided" },
            }),
        ),
    ] {
        let mock = server(LATEST_LEGACY, move |request| {
            let is_lost =
                request.rpc() == "tools/call" && request.header("mcp-session-id") == "session-1";
            is_lost.then(|| MockResponse::json(&body).with_status(status))
        });
        let (client, mut events) = connect(&mock, LATEST_LEGACY, None).await;
        let id = client.relay_id();

        client.relay(id, &call()).await.unwrap();

        let calls = posted_messages(&mock, "tools/call");
        let sessions: Vec<_> = calls
            .iter()
            .map(|call| call.header("mcp-session-id"))
            .collect();
        assert_eq!(sessions, ["session-1", "session-2"]);
        assert_eq!(calls[1].body, calls[0].body);
        assert_eq!(events.take(), [Event::Gap]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ends_again_is_not_renewed_again() {
    let mock = server(LATEST_LEGACY, on_call(|_| MockResponse::status(404)));
    let (client, _events) = connect(&mock, LATEST_LEGACY, None).await;

    let error = client.relay(client.relay_id(), &call()).await.unwrap_err();

    assert!(
        matches!(
            error,
            CallError::Disconnected {
                source: TransportError::SessionEnded,
                ..
            }
        ),
        "{error}"
    );
    assert!(error.is_unsent());
    assert_eq!(posted_messages(&mock, "tools/call").len(), 2);
    assert_eq!(posted_messages(&mock, "initialize").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_lost_response_is_not_repeated() {
    for revision in [LATEST_LEGACY, MODERN] {
        for method in ["tools/call", "tools/list", "com.example/x"] {
            let mock = server(revision, move |request| {
                (request.rpc() == method).then(|| {
                    MockResponse::events(|events| async move {
                        events.text(": started\n\n");
                        events.cut();
                    })
                })
            });
            let (client, _events) = connect(&mock, revision, None).await;

            let request = RelayRequest::new(method, "{}");
            let error = client.relay(client.relay_id(), &request).await.unwrap_err();

            let expected = match revision {
                MODERN => matches!(error, CallError::EffectUnknown { .. }),
                _ => matches!(error, CallError::Disconnected { .. }),
            };
            assert!(expected, "{revision} {method}: {error}");
            assert!(!error.is_unsent(), "{revision} {method}: {error}");
            assert_eq!(posted_messages(&mock, method).len(), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_a_modern_call_closes_its_response() {
    let (closed, is_closed) = tokio::sync::oneshot::channel::<()>();
    let closed = std::sync::Mutex::new(Some(closed));
    let mock = server(
        MODERN,
        on_call(move |_| {
            let closed = closed.lock().unwrap().take();
            MockResponse::events(|events| async move {
                events.closed().await;
                drop(closed);
            })
        }),
    );
    let (client, _events) = connect(&mock, MODERN, None).await;
    let call = tokio::spawn(async move { client.relay(client.relay_id(), &call()).await });
    mock.first(|request| request.rpc() == "tools/call").await;

    call.abort();

    assert!(is_closed.await.is_err());
    assert_eq!(posted_messages(&mock, "notifications/cancelled").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn dropping_a_legacy_call_sends_a_notification() {
    let mock = server(LATEST_LEGACY, on_call(|_| MockResponse::silence()));
    let (client, _events) = connect(&mock, LATEST_LEGACY, None).await;
    let id = client.relay_id();
    let pending = tokio::spawn({
        let client = client.clone();
        async move { client.relay(id, &call()).await }
    });
    mock.first(|request| request.rpc() == "tools/call").await;

    pending.abort();

    let is_cancellation = |request: &RecordedRequest| request.rpc() == "notifications/cancelled";
    let cancelled = mock.first(is_cancellation).await;
    assert_eq!(cancelled.json()["params"]["requestId"], id.as_i64());
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_get_stream_is_a_gap() {
    let streams = AtomicUsize::new(0);
    let mock = server(LATEST_LEGACY, move |request| {
        (request.method == "GET").then(|| {
            let first = streams.fetch_add(1, Ordering::SeqCst) == 0;
            MockResponse::events(move |events| async move {
                if first {
                    events.message(&log("a"));
                } else {
                    events.closed().await;
                }
            })
        })
    });

    let (_client, mut events) = connect(&mock, LATEST_LEGACY, None).await;

    assert!(matches!(events.next().await, Event::Notification(..)));
    assert_eq!(events.next().await, Event::Gap);
}

/// Without a session, the handler would receive nothing until the next call.
#[tokio::test(start_paused = true)]
async fn a_session_that_ends_between_calls_is_renewed() {
    let mock = server(LATEST_LEGACY, |request| {
        if request.method != "GET" {
            return None;
        }
        let resumes_first = request.header("mcp-session-id") == "session-1"
            && request.header("last-event-id") == "1";
        Some(match request.header("mcp-session-id") {
            "session-1" if resumes_first => MockResponse::status(404),
            "session-1" => MockResponse::events(|events| async move {
                events.text("id: 1\ndata: \n\n");
            }),
            _ => MockResponse::events(EventWriter::closed),
        })
    });

    let (_client, mut events) = connect(&mock, LATEST_LEGACY, None).await;

    assert_eq!(events.next().await, Event::Gap);
    assert_eq!(posted_messages(&mock, "initialize").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn closing_the_client_ends_the_connection() {
    for revision in [LATEST_LEGACY, MODERN] {
        let mock = server(revision, |_| None);
        let (client, mut events) = connect(&mock, revision, None).await;

        client.close().await;
        let error = client.relay(client.relay_id(), &call()).await.unwrap_err();

        assert_eq!(events.take(), [Event::End], "{revision}");
        assert!(matches!(error, CallError::NotConnected { .. }), "{error}");
        assert!(error.is_unsent());
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_reached_has_not_processed_the_call() {
    let mock = server(MODERN, |request| {
        let result = json!({ "resultType": "complete", "supportedVersions": [MODERN],
            "capabilities": {}, "ttlMs": 0, "cacheScope": "private" });
        Some(MockResponse::result(request, &result).header("Connection", "close"))
    });
    let (dials, dial) = (AtomicUsize::new(0), mock.dial());
    let target = HttpTarget::new(mock.url("/mcp")).connector(move || {
        let first = dials.fetch_add(1, Ordering::SeqCst) == 0;
        let stream = dial();
        async move {
            if first {
                stream.await
            } else {
                Err(io::ErrorKind::ConnectionRefused.into())
            }
        }
    });
    let (builder, _events) = recording(builder_for(MODERN), None);
    let client = builder.connect(target).await.unwrap();

    let error = client.relay(client.relay_id(), &call()).await.unwrap_err();

    assert!(matches!(error, CallError::Disconnected { .. }), "{error}");
    assert!(error.is_unsent(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn messages_on_http_sse_belong_to_no_call_and_its_end_is_reported_once() {
    let tool = Tool::raw(
        "ask",
        json!({ "type": "object" }),
        async |_: Value, cx: Context| {
            let roots = cx.roots("roots").await?;
            Ok(roots[0].uri.to_string())
        },
    );
    let (connector, listener) = server_http::memory();
    let http = server_http::Http::new(Server::new("asker", "1").tool(tool));
    let http = http.allow_host("own.test").http_sse(HttpSse::new());
    tokio::spawn(http.serve(listener));
    let target = HttpTarget::new("http://own.test/sse").connector(move || {
        let connector = connector.clone();
        async move { connector.connect().await }
    });
    let response = Ok(r#"{"roots":[{"uri":"file:///a"}]}"#.to_owned());
    let (builder, mut events) = recording(builder_for(LATEST_LEGACY), Some(response));
    let client = builder.connect(target).await.unwrap();

    let request = RelayRequest::new("tools/call", r#"{"name":"ask","arguments":{}}"#);
    let result = client.relay(client.relay_id(), &request).await.unwrap();

    assert!(result.json().contains("file:///a"), "{}", result.json());
    let requests = events.take();
    assert!(
        matches!(&requests[..], [Event::Request(method, _, None)] if method == "roots/list"),
        "{requests:?}"
    );
    client.close().await;
    assert_eq!(events.take(), [Event::End]);
}
