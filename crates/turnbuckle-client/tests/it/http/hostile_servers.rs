//! Hostile and broken servers: every call ends, with an error that gives the reason.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use turnbuckle_client::{
    Anomaly, CallError, Client, ClientLimits, ConnectError, Timeouts, TransportError,
    http::HttpError,
};

use crate::servers::{
    mock_http::{MockHttpServer, MockResponse, RecordedRequest},
    mock_mcp_http::{
        LATEST_LEGACY, MODERN, builder_for, by_method, connect, on_call, posted_messages,
        response_to, server, target_of,
    },
};

const BOTH: [&str; 2] = [LATEST_LEGACY, MODERN];

/// Calls a tool of a hostile server.
async fn call(mock: &MockHttpServer, revision: &str) -> CallError {
    let client = connect(mock, revision).await;
    client.call_tool("a", json!({})).await.unwrap_err()
}

/// Returns the HTTP error of a call.
fn cause(error: CallError) -> TransportError {
    match error {
        CallError::Disconnected { source, .. } | CallError::EffectUnknown { source, .. } => source,
        other => panic!("{other:?}"),
    }
}

fn http_cause(error: CallError) -> std::sync::Arc<HttpError> {
    match cause(error) {
        TransportError::Http(cause) => cause,
        other => panic!("{other:?}"),
    }
}

/// A client with small limits.
async fn connect_with_small_limits(mock: &MockHttpServer, revision: &str) -> Client {
    let mut limits = ClientLimits::default();
    limits.max_message_bytes = 10_000;
    builder_for(revision)
        .limits(limits)
        .connect(target_of(mock))
        .await
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_redirect_to_another_origin_is_not_followed() {
    for status in [307, 308] {
        for revision in BOTH {
            let mock = server(
                revision,
                on_call(move |_| {
                    MockResponse::status(status).header("Location", "http://evil.example/mcp")
                }),
            );
            let http = target_of(&mock).bearer("sesame").header("X-Key", "sesame");
            let client = builder_for(revision).connect(http).await.unwrap();
            let connections = mock.connections();

            let error = client.call_tool("a", json!({})).await.unwrap_err();

            let cause = http_cause(error);
            let HttpError::OtherOrigin { origin } = &*cause else {
                panic!("{cause}");
            };
            assert_eq!(origin, "http://evil.example");
            assert_eq!(posted_messages(&mock, "tools/call").len(), 1);
            assert!(
                mock.connections() <= connections + 1,
                "no other host is dialled"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_redirect_loop_ends() {
    let mock = server(
        MODERN,
        on_call(|_| MockResponse::status(307).header("Location", "/mcp")),
    );

    let cause = http_cause(call(&mock, MODERN).await);

    assert!(matches!(*cause, HttpError::TooManyRedirects { .. }));
    assert_eq!(posted_messages(&mock, "tools/call").len(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_redirect_within_the_origin_is_followed_with_all_headers() {
    for revision in BOTH {
        let mock = server(revision, |request| {
            (request.path == "/mcp").then(|| MockResponse::status(307).header("Location", "/mcp/"))
        });
        let client = builder_for(revision)
            .connect(target_of(&mock).bearer("sesame"))
            .await
            .unwrap();

        client.call_tool("a", json!({})).await.unwrap();

        let calls = posted_messages(&mock, "tools/call");
        assert_eq!(calls[1].path, "/mcp/");
        assert_eq!(calls[0].headers, calls[1].headers);
        assert_eq!(calls[0].body, calls[1].body);
    }
}

#[tokio::test(start_paused = true)]
async fn an_html_page_is_reported_with_an_excerpt() {
    for revision in BOTH {
        let page = format!("<title>Log in\u{1b}[2J</title>{}", "x".repeat(100_000));
        let mock = server(
            revision,
            on_call(move |_| MockResponse::text("text/html", page.clone())),
        );

        let cause = http_cause(call(&mock, revision).await);

        let HttpError::UnexpectedContentType { excerpt, .. } = &*cause else {
            panic!("{cause}");
        };
        assert!(
            excerpt.starts_with("<title>Log in[2J</title>xxx"),
            "{excerpt}"
        );
        assert_eq!(excerpt.chars().count(), 200);
    }
}

#[tokio::test(start_paused = true)]
async fn json_labelled_as_an_event_stream_is_an_invalid_response() {
    let mock = server(
        MODERN,
        on_call(|request| {
            MockResponse::text("text/event-stream", response_to(request, "x").to_string())
        }),
    );

    let cause = cause(call(&mock, MODERN).await);

    assert!(matches!(cause, TransportError::Closed), "{cause:?}");
}

#[tokio::test(start_paused = true)]
async fn a_compressed_response_is_rejected() {
    let mock = server(
        MODERN,
        on_call(|_| {
            let bomb = vec![0x1f, 0x8b, 0x08, 0, 0, 0, 0, 0];
            MockResponse::text("application/json", bomb).header("Content-Encoding", "gzip")
        }),
    );

    let cause = http_cause(call(&mock, MODERN).await);

    assert!(matches!(*cause, HttpError::UnexpectedEncoding { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_huge_challenge_is_truncated_and_the_status_is_reported() {
    for size in [8_000, 9_000, 300_000] {
        let mock = server(
            MODERN,
            on_call(move |_| {
                MockResponse::status(401)
                    .header("WWW-Authenticate", &format!("Bearer {}", "x".repeat(size)))
            }),
        );

        let TransportError::ErrorResponse(rejection) = cause(call(&mock, MODERN).await) else {
            panic!("no refusal");
        };

        assert_eq!(rejection.status, 401);
        assert_eq!(rejection.challenge.is_some(), size == 8_000);
    }
}

#[tokio::test(start_paused = true)]
async fn endless_headers_end_the_call() {
    let mock = server(
        MODERN,
        on_call(|_| {
            MockResponse::raw(format!(
                "HTTP/1.1 200 OK\r\n{}",
                "X-A: b\r\n".repeat(100_000)
            ))
        }),
    );

    let cause = http_cause(call(&mock, MODERN).await);

    assert!(matches!(*cause, HttpError::ConnectionBroken(_)), "{cause}");
}

#[tokio::test(start_paused = true)]
async fn a_busy_stream_without_a_response_times_out() {
    for revision in BOTH {
        let mock = server(
            revision,
            on_call(|_| {
                MockResponse::events(|events| async move {
                    let reported = json!({
                        "jsonrpc": "2.0", "method": "notifications/message",
                        "params": { "level": "info", "data": "x".repeat(1000) },
                    });
                    loop {
                        events.message(&reported);
                        events.text(": beat\n\nid: 7\n\n");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                })
            }),
        );
        let client = connect(&mock, revision).await;
        let started_at = Instant::now();
        let patience = Timeouts {
            idle: Duration::from_secs(5),
            total: Duration::from_secs(10),
        };

        let called = client.call_tool("a", json!({})).timeouts(patience).await;

        assert!(
            matches!(called, Err(CallError::TimedOut { .. })),
            "{called:?}"
        );
        assert!(started_at.elapsed() <= Duration::from_secs(10));
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_beyond_the_limit_ends_its_call() {
    for revision in BOTH {
        let mock = server(
            revision,
            on_call(|request| {
                let response = response_to(request, &"x".repeat(20_000));
                MockResponse::events(move |events| async move { events.message(&response) })
            }),
        );
        let client = connect_with_small_limits(&mock, revision).await;

        let error = client.call_tool("a", json!({})).await.unwrap_err();

        let cause = cause(error);
        assert!(
            matches!(cause, TransportError::MessageTooLarge { limit: 10_000 }),
            "{cause:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_endless_line_ends_its_call() {
    for revision in BOTH {
        let mock = server(
            revision,
            on_call(|_| {
                MockResponse::events(|events| async move {
                    loop {
                        events.text(&"x".repeat(1000));
                        tokio::task::yield_now().await;
                    }
                })
            }),
        );
        let client = connect_with_small_limits(&mock, revision).await;

        let error = client.call_tool("a", json!({})).await.unwrap_err();

        assert!(matches!(
            cause(error),
            TransportError::MessageTooLarge { .. }
        ));
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_beyond_the_limit_ends_its_call() {
    for revision in BOTH {
        let mock = server(
            revision,
            on_call(|request| MockResponse::json(&response_to(request, &"x".repeat(20_000)))),
        );
        let client = connect_with_small_limits(&mock, revision).await;

        let error = client.call_tool("a", json!({})).await.unwrap_err();

        assert!(matches!(
            cause(error),
            TransportError::MessageTooLarge { limit: 10_000 }
        ));
    }
}

#[tokio::test(start_paused = true)]
async fn an_endless_chunked_body_ends_its_call() {
    let mock = server(
        MODERN,
        on_call(|_| {
            let endless = MockResponse::events(|events| async move {
                loop {
                    events.text("[[[[[[[[[[");
                    tokio::task::yield_now().await;
                }
            });
            endless
                .without_type()
                .header("content-type", "application/json")
        }),
    );
    let client = connect_with_small_limits(&mock, MODERN).await;

    let error = client.call_tool("a", json!({})).await.unwrap_err();

    assert!(matches!(
        cause(error),
        TransportError::MessageTooLarge { .. }
    ));
}

#[tokio::test(start_paused = true)]
async fn only_the_start_of_an_endless_error_body_is_read() {
    for kind in ["text/plain", "application/json"] {
        let mock = server(
            MODERN,
            on_call(move |_| {
                let endless = MockResponse::events(|events| async move {
                    loop {
                        events.text("no no no no ");
                        tokio::task::yield_now().await;
                    }
                });
                endless
                    .without_type()
                    .header("content-type", kind)
                    .with_status(500)
            }),
        );
        let client = connect_with_small_limits(&mock, MODERN).await;

        let error = client.call_tool("a", json!({})).await.unwrap_err();

        assert_eq!(error.status().unwrap(), 500, "{error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_with_another_id_is_an_anomaly() {
    for revision in BOTH {
        let mock = server(
            revision,
            on_call(|request| {
                let id = request.json()["id"].as_i64().unwrap();
                let mut unknown = response_to(request, "not yours");
                unknown["id"] = json!(id + 1);
                let response = response_to(request, "yours");
                MockResponse::events(move |events| async move {
                    events.message(&unknown);
                    events.message(&response);
                })
            }),
        );
        let (sender, mut received) = tokio::sync::mpsc::unbounded_channel();
        let client = builder_for(revision)
            .on_anomaly(move |anomaly| sender.send(anomaly).unwrap())
            .connect(target_of(&mock))
            .await
            .unwrap();

        let output = client.call_tool("a", json!({})).await.unwrap();

        assert_eq!(output.content[0].as_text(), Some("yours"));
        assert!(matches!(
            received.recv().await,
            Some(Anomaly::UnexpectedResponse(_))
        ));
    }
}

#[tokio::test(start_paused = true)]
async fn a_million_blank_bytes_before_the_response_are_skipped() {
    let mock = server(
        MODERN,
        on_call(|request| {
            let response = response_to(request, "done");
            MockResponse::events(move |events| async move {
                for _ in 0..1000 {
                    events.text(&format!(": {}\n\n", "x".repeat(1000)));
                }
                events.message(&response);
            })
        }),
    );
    let client = connect_with_small_limits(&mock, MODERN).await;

    client.call_tool("a", json!({})).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_session_id_with_control_characters_is_rejected() {
    let mock = MockHttpServer::in_memory(|_| {
        MockResponse::raw(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: a\u{1b}[2J\r\nContent-Length: 2\r\n\r\n{}",
        )
    });

    let connected = builder_for(LATEST_LEGACY).connect(target_of(&mock)).await;

    let Err(ConnectError::Unreachable(TransportError::Http(_))) = connected else {
        panic!("{connected:?}");
    };
    assert_eq!(mock.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_the_probe_times_out() {
    for revision in BOTH {
        let mock = MockHttpServer::in_memory(|_| MockResponse::silence());

        let connected = builder_for(revision).connect(target_of(&mock)).await;

        assert!(
            matches!(connected, Err(ConnectError::TimedOut { .. })),
            "{connected:?}"
        );
        assert!(by_method(&mock, "GET").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn each_broken_connection_fails_one_call() {
    for bytes in [
        "",
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{",
    ] {
        let mock = server(MODERN, on_call(move |_| MockResponse::raw(bytes)));
        let client = connect(&mock, MODERN).await;

        for number in 1..=3 {
            let error = client.call_tool("a", json!({})).await.unwrap_err();

            let cause = http_cause(error);
            assert!(matches!(*cause, HttpError::ConnectionBroken(_)), "{cause}");
            assert!(!cause.is_unsent());
            assert_eq!(
                posted_messages(&mock, "tools/call").len(),
                number,
                "never sent twice"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_posted_request_answered_under_an_id_of_another_type_fails_at_once() {
    fn under_text_id(request: &RecordedRequest) -> Value {
        let mut message = response_to(request, "done");
        message["id"] = message["id"].to_string().into();
        message
    }
    for revision in BOTH {
        for in_stream in [false, true] {
            let mock = server(
                revision,
                on_call(move |request| {
                    let message = under_text_id(request);
                    if in_stream {
                        MockResponse::events(async move |events| {
                            events.message(&message);
                            events.closed().await;
                        })
                    } else {
                        MockResponse::json(&message)
                    }
                }),
            );

            let error = call(&mock, revision).await;

            let id = &posted_messages(&mock, "tools/call")[0].json()["id"];
            assert_eq!(
                error.to_string(),
                format!(
                    r#"the response to `tools/call` is invalid: answered request "{id}" (string); {id} (number) was asked"#
                )
            );
        }
    }
}
