//! Sessions on Streamable HTTP: created, used, renewed and ended.

use std::{
    future::IntoFuture,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use serde_json::json;
use turnbuckle_client::{
    CallError, Client, ConnectError, TransportError,
    http::{HttpError, HttpTarget},
};
use turnbuckle_spec_coverage::req;

use crate::servers::{
    mock_http::{MockHttpServer, MockResponse, RecordedRequest},
    mock_mcp_http::{
        LATEST_LEGACY, LEGACY, builder_for, by_method, connect, connect_error, on_call,
        posted_messages, run_ready_tasks, server, target_of,
    },
};

#[tokio::test(start_paused = true)]
async fn every_request_after_initialize_has_session_id_and_revision() {
    req!(
        "http.session.client-sends",
        "http.version-header.client",
        "http.version-header.negotiated",
        "http.get.client",
        "http.get.accept"
    );
    for revision in LEGACY {
        let mock = server(revision, |_| None);
        let client = connect(&mock, revision).await;

        client.call_tool("a", json!({})).await.unwrap();
        mock.first(|request| request.method == "GET").await;
        client.close().await;

        let requests = mock.requests();
        let (first, later) = requests.split_first().unwrap();
        assert_eq!(first.rpc(), "initialize");
        assert_eq!(first.header("mcp-session-id"), "");
        assert_eq!(first.header("mcp-protocol-version"), "");
        assert_eq!(
            later.len(),
            4,
            "initialized, a call, the stream and the end"
        );
        let version = match revision {
            "2025-03-26" => "",
            revision => revision,
        };
        for requests in later {
            assert_eq!(
                requests.header("mcp-session-id"),
                "session-1",
                "{requests:?}"
            );
            assert_eq!(
                requests.header("mcp-protocol-version"),
                version,
                "{requests:?}"
            );
        }
        let stream = &by_method(&mock, "GET")[0];
        assert_eq!(stream.header("accept"), "text/event-stream");
        assert_eq!(stream.header("last-event-id"), "");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_may_omit_the_session_id() {
    for revision in LEGACY {
        let mock = server(revision, |request| {
            let result = json!({
                "protocolVersion": LATEST_LEGACY, "capabilities": { "tools": {} },
                "serverInfo": { "name": "fake", "version": "1" },
            });
            (request.rpc() == "initialize").then(|| MockResponse::result(request, &result))
        });
        let client = connect(&mock, revision).await;

        client.call_tool("a", json!({})).await.unwrap();
        client.close().await;
        run_ready_tasks().await;

        assert!(
            mock.requests()
                .iter()
                .all(|request| request.header("mcp-session-id").is_empty())
        );
        assert!(by_method(&mock, "DELETE").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn an_invalid_session_id_is_rejected() {
    for id in ["", "a b", "tab\tbed", "sitzung-\u{e4}", "b\u{7f}"] {
        let mock = server(LATEST_LEGACY, move |request| {
            (request.rpc() == "initialize")
                .then(|| MockResponse::result(request, &json!({})).header("Mcp-Session-Id", id))
        });

        let failure = connect_error(&mock, LATEST_LEGACY).await;

        let ConnectError::Unreachable(TransportError::Http(cause)) = &failure else {
            panic!("{id:?}: {failure:?}");
        };
        let rejected = matches!(
            **cause,
            HttpError::InvalidSessionId | HttpError::ConnectionBroken(_)
        );
        assert!(rejected, "{id:?}: {cause:?}");
        assert_eq!(mock.requests().len(), 1, "nothing is sent after it");
    }
}

#[tokio::test(start_paused = true)]
async fn an_ended_session_is_renewed_and_the_call_is_repeated() {
    req!("http.session.client-restart");
    for body in [
        "",
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"gone"}}"#,
    ] {
        for revision in LEGACY {
            let mock = server(revision, move |request| {
                let ended = request.header("mcp-session-id") == "session-1";
                (request.rpc() == "tools/call" && ended)
                    .then(|| MockResponse::text("application/json", body).with_status(404))
            });
            let client = connect(&mock, revision).await;

            let calls = ["a", "b", "c"].map(|name| {
                let call = client.call_tool(name, json!({}));
                tokio::spawn(call.into_future())
            });
            for call in calls {
                call.await.unwrap().unwrap();
            }

            let handshakes = posted_messages(&mock, "initialize");
            assert_eq!(handshakes.len(), 2, "one renewal for all calls");
            assert!(
                handshakes
                    .iter()
                    .all(|request| request.header("mcp-session-id").is_empty())
            );
            let last = posted_messages(&mock, "tools/call").pop().unwrap();
            assert_eq!(last.header("mcp-session-id"), "session-2");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn session_renewal_is_tried_once_per_call() {
    let mock = server(LATEST_LEGACY, on_call(|_| MockResponse::status(404)));
    let client = connect(&mock, LATEST_LEGACY).await;

    let failure = client.call_tool("a", json!({})).await.unwrap_err();

    let CallError::Disconnected { source, .. } = failure else {
        panic!("{failure:?}");
    };
    assert!(matches!(source, TransportError::SessionEnded));
    assert_eq!(posted_messages(&mock, "tools/call").len(), 2);
    assert_eq!(posted_messages(&mock, "initialize").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_session_is_deleted_once_whatever_the_server_responds() {
    req!("http.session.delete", "lifecycle.shutdown.no-message");
    for revision in LEGACY {
        for status in [200, 204, 404, 405, 500] {
            let mock = server(revision, move |request| {
                (request.method == "DELETE").then(|| MockResponse::status(status))
            });
            let client = connect(&mock, revision).await;

            client.close().await;
            client.close().await;
            drop(client);
            run_ready_tasks().await;

            let client_streams = by_method(&mock, "DELETE");
            assert_eq!(client_streams.len(), 1, "{status}");
            assert_eq!(client_streams[0].header("mcp-session-id"), "session-1");
            assert!(client_streams[0].body.is_empty());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_a_client_deletes_its_session() {
    let mock = server(LATEST_LEGACY, |_| None);
    let client = connect(&mock, LATEST_LEGACY).await;

    drop(client);

    let end = mock.first(|request| request.method == "DELETE").await;
    assert_eq!(end.header("mcp-session-id"), "session-1");
}

/// Drops a call without a response.
async fn drop_a_call(client: &Client, mock: &MockHttpServer) {
    let call = client.call_tool("a", json!({})).into_future();
    tokio::select! {
        response = call => panic!("{response:?}"),
        _ = mock.first(|request| request.rpc() == "tools/call") => {}
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_is_cancelled_in_its_session_before_the_session_ends() {
    for revision in LEGACY {
        for closed in [true, false] {
            let mock = server(revision, on_call(|_| MockResponse::silence()));
            let client = connect(&mock, revision).await;

            drop_a_call(&client, &mock).await;
            if closed {
                client.close().await;
            }
            drop(client);
            mock.first(|request| request.method == "DELETE").await;
            run_ready_tasks().await;

            let requests = mock.requests();
            let [.., cancelled, end] = &requests[..] else {
                panic!("{requests:?}");
            };
            let call = &posted_messages(&mock, "tools/call")[0];
            assert_eq!(cancelled.rpc(), "notifications/cancelled", "{revision}");
            assert_eq!(cancelled.json()["params"]["requestId"], call.json()["id"]);
            assert_eq!(cancelled.header("mcp-session-id"), "session-1");
            assert_eq!(end.method, "DELETE");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_session_a_cancellation_is_sent_before_close_returns() {
    let mock = server(LATEST_LEGACY, |request| match request.rpc().as_str() {
        "initialize" => {
            let result = json!({
                "protocolVersion": LATEST_LEGACY, "capabilities": { "tools": {} },
                "serverInfo": { "name": "fake", "version": "1" },
            });
            Some(MockResponse::result(request, &result))
        }
        "tools/call" => Some(MockResponse::silence()),
        _ => None,
    });
    let client = connect(&mock, LATEST_LEGACY).await;

    drop_a_call(&client, &mock).await;
    client.close().await;

    assert_eq!(posted_messages(&mock, "notifications/cancelled").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_unread_cancellation_delays_close_by_seconds_only() {
    let mock = server(LATEST_LEGACY, |request| match request.rpc().as_str() {
        "tools/call" | "notifications/cancelled" => Some(MockResponse::silence()),
        _ => None,
    });
    let client = connect(&mock, LATEST_LEGACY).await;
    drop_a_call(&client, &mock).await;
    let handshakes = tokio::time::Instant::now();

    client.close().await;

    assert!(handshakes.elapsed() <= Duration::from_secs(4));
    assert_eq!(by_method(&mock, "DELETE").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn close_does_not_wait_for_the_response_to_delete() {
    let mock = server(LATEST_LEGACY, |request| {
        (request.method == "DELETE").then(MockResponse::silence)
    });
    let client = connect(&mock, LATEST_LEGACY).await;
    let handshakes = tokio::time::Instant::now();

    client.close().await;

    assert!(handshakes.elapsed() <= Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn an_unread_initialized_notification_times_out() {
    let mock = server(LATEST_LEGACY, |request| {
        (request.rpc() == "notifications/initialized").then(MockResponse::silence)
    });

    let failure = connect_error(&mock, LATEST_LEGACY).await;

    let ConnectError::Unreachable(TransportError::Http(cause)) = &failure else {
        panic!("{failure:?}");
    };
    assert!(matches!(**cause, HttpError::SendTimedOut { .. }));
}

#[tokio::test(start_paused = true)]
async fn server_requests_get_responses_within_the_session() {
    for revision in LEGACY {
        let mock = server(
            revision,
            on_call(|request| {
                let response = crate::servers::mock_mcp_http::response_to(request, "done");
                MockResponse::events(move |events| async move {
                    events.message(&json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" }));
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    events.message(&response);
                })
            }),
        );
        let client = connect(&mock, revision).await;

        client.call_tool("a", json!({})).await.unwrap();

        let pong = mock.first(|request| request.json()["id"] == "p").await;
        assert_eq!(pong.json()["result"], json!({}));
        assert_eq!(pong.header("mcp-session-id"), "session-1");
    }
}

#[tokio::test(start_paused = true)]
async fn the_era_is_detected_by_the_body_of_an_error_response() {
    req!(
        "versioning.http.try-modern",
        "versioning.http.inspect-400",
        "versioning.http.fallback",
        in: ["2026-07-28"]
    );
    for body in [
        "",
        "Bad Request",
        r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"no session"},"id":null}"#,
    ] {
        for status in [400, 404, 405] {
            let mock = server(LATEST_LEGACY, move |request| {
                (request.rpc() == "server/discover")
                    .then(|| MockResponse::text("application/json", body).with_status(status))
            });

            let client = turnbuckle_client::Client::builder("test", "1")
                .connect(target_of(&mock))
                .await
                .unwrap();
            client.call_tool("a", json!({})).await.unwrap();

            assert_eq!(client.server().era, turnbuckle_client::Era::Legacy);
            let order: Vec<_> = by_method(&mock, "POST")
                .iter()
                .map(RecordedRequest::rpc)
                .collect();
            let expected = [
                "server/discover",
                "initialize",
                "notifications/initialized",
                "tools/call",
            ];
            assert_eq!(order, expected);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_era_of_an_origin_is_cached() {
    req!("versioning.era.cache");
    let mock = server(LATEST_LEGACY, |_| None);
    let eras = turnbuckle_client::LifecycleCache::new();
    let client = || turnbuckle_client::Client::builder("test", "1").lifecycle_cache(eras.clone());
    let other = HttpTarget::new(mock.url("/other")).connector(mock.dial());

    client().connect(target_of(&mock)).await.unwrap();
    client().connect(target_of(&mock)).await.unwrap();
    client().connect(other).await.unwrap();

    assert_eq!(posted_messages(&mock, "server/discover").len(), 1);
    assert_eq!(posted_messages(&mock, "initialize").len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_modern_error_does_not_lead_to_a_handshake() {
    req!("versioning.http.modern-error-stay", in: ["2026-07-28"]);
    for code in [-32020, -32021, -32022] {
        let mock = server(LATEST_LEGACY, move |request| {
            let error = json!({
                "jsonrpc": "2.0", "id": request.json()["id"],
                "error": { "code": code, "message": "no", "data": { "supported": ["2099-01-01"] } },
            });
            (request.rpc() == "server/discover")
                .then(|| MockResponse::json(&error).with_status(400))
        });

        let connected = turnbuckle_client::Client::builder("test", "1")
            .connect(target_of(&mock))
            .await;

        assert!(connected.is_err());
        assert!(posted_messages(&mock, "initialize").is_empty(), "{code}");
        assert!(by_method(&mock, "GET").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn neither_unauthorized_nor_server_errors_select_the_era() {
    for status in [401, 403, 429, 500, 503] {
        let mock = MockHttpServer::in_memory(move |_| MockResponse::status(status));

        let connected = turnbuckle_client::Client::builder("test", "1")
            .connect(target_of(&mock))
            .await;

        let Err(ConnectError::Unreachable(TransportError::ErrorResponse(rejection))) = connected
        else {
            panic!("{connected:?}");
        };
        assert_eq!(rejection.status, status);
        assert_eq!(mock.requests().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_was_downgraded_is_negotiated_again() {
    static OLDER: AtomicBool = AtomicBool::new(false);
    let mock = server(LATEST_LEGACY, |request| {
        if OLDER.load(Ordering::SeqCst) {
            let modern =
                request.header("mcp-protocol-version") == crate::servers::mock_mcp_http::MODERN;
            return modern.then(|| MockResponse::status(400));
        }
        (request.rpc() == "server/discover").then(|| {
            let result = json!({
                "resultType": "complete", "supportedVersions": [crate::servers::mock_mcp_http::MODERN],
                "capabilities": { "tools": {} }, "ttlMs": 0, "cacheScope": "private",
            });
            MockResponse::result(request, &result)
        })
    });
    let client = turnbuckle_client::Client::builder("test", "1")
        .connect(target_of(&mock))
        .await
        .unwrap();
    client.call_tool("a", json!({})).await.unwrap();
    OLDER.store(true, Ordering::SeqCst);

    client.call_tool("b", json!({})).await.unwrap();

    assert_eq!(client.server().era, turnbuckle_client::Era::Legacy);
    assert_eq!(posted_messages(&mock, "initialize").len(), 1);
}

#[tokio::test]
async fn an_invalid_url_or_header_is_rejected_before_connecting() {
    let mock = MockHttpServer::in_memory(|_| MockResponse::status(500));

    let url = builder_for(LATEST_LEGACY)
        .connect(HttpTarget::new("http://user:secret@fake.test/").connector(mock.dial()))
        .await;
    let header = builder_for(LATEST_LEGACY)
        .connect(target_of(&mock).header("X-Key", "sesame\n"))
        .await;
    let reserved = builder_for(LATEST_LEGACY)
        .connect(target_of(&mock).header("Mcp-Session-Id", "mine"))
        .await;

    assert!(matches!(url, Err(ConnectError::Url(_))), "{url:?}");
    assert!(matches!(header, Err(ConnectError::Header(_))), "{header:?}");
    assert!(
        matches!(reserved, Err(ConnectError::Header(_))),
        "{reserved:?}"
    );
    let printed = format!("{url:?} {header:?}");
    assert!(
        !printed.contains("secret") && !printed.contains("sesame"),
        "{printed}"
    );
    assert_eq!(mock.connections(), 0);
}

#[test]
fn debug_output_has_no_secrets() {
    req!("http.session.client-secure");
    let http = HttpTarget::new("http://fake.test/mcp?key=sesame").bearer("sesame");
    let broken = HttpTarget::new("http://sesame@fake.test/mcp");

    let printed = format!("{http:?} {http:#?} {broken:?}");

    assert!(printed.contains("http://fake.test/mcp"));
    assert!(!printed.contains("sesame"), "{printed}");
}
