//! Sessions on Streamable HTTP: begun, repeated, lost, begun anew and ended.

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

use crate::{
    fake_http::{FakeHttp, Reply, Seen},
    http_peer::{
        LATEST_LEGACY, LEGACY, at, by_method, connect, connect_error, on_call, posted, server,
        settle, speaking,
    },
};

#[tokio::test(start_paused = true)]
async fn every_request_after_the_first_names_its_session_and_revision() {
    req!(
        "http.session.client-sends",
        "http.version-header.client",
        "http.version-header.negotiated",
        "http.get.client",
        "http.get.accept"
    );
    for revision in LEGACY {
        let fake = server(revision, |_| None);
        let client = connect(&fake, revision).await;

        client.call_tool("a", json!({})).await.unwrap();
        fake.first(|seen| seen.method == "GET").await;
        client.close().await;

        let seen = fake.seen();
        let (first, later) = seen.split_first().unwrap();
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
        for seen in later {
            assert_eq!(seen.header("mcp-session-id"), "session-1", "{seen:?}");
            assert_eq!(seen.header("mcp-protocol-version"), version, "{seen:?}");
        }
        let stream = &by_method(&fake, "GET")[0];
        assert_eq!(stream.header("accept"), "text/event-stream");
        assert_eq!(stream.header("last-event-id"), "");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_may_do_without_sessions() {
    for revision in LEGACY {
        let fake = server(revision, |seen| {
            let result = json!({
                "protocolVersion": LATEST_LEGACY, "capabilities": { "tools": {} },
                "serverInfo": { "name": "fake", "version": "1" },
            });
            (seen.rpc() == "initialize").then(|| Reply::result(seen, &result))
        });
        let client = connect(&fake, revision).await;

        client.call_tool("a", json!({})).await.unwrap();
        client.close().await;
        settle().await;

        assert!(
            fake.seen()
                .iter()
                .all(|seen| seen.header("mcp-session-id").is_empty())
        );
        assert!(by_method(&fake, "DELETE").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_id_that_cannot_be_one_is_refused() {
    for id in ["", "a b", "tab\tbed", "sitzung-\u{e4}", "b\u{7f}"] {
        let fake = server(LATEST_LEGACY, move |seen| {
            (seen.rpc() == "initialize")
                .then(|| Reply::result(seen, &json!({})).header("Mcp-Session-Id", id))
        });

        let problem = connect_error(&fake, LATEST_LEGACY).await;

        let ConnectError::Unreachable(TransportError::Http(cause)) = &problem else {
            panic!("{id:?}: {problem:?}");
        };
        let refused = matches!(
            **cause,
            HttpError::InvalidSessionId | HttpError::ConnectionBroken(_)
        );
        assert!(refused, "{id:?}: {cause:?}");
        assert_eq!(fake.seen().len(), 1, "nothing is sent after it");
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_over_is_begun_anew_and_the_call_repeated() {
    req!("http.session.client-restart");
    for body in [
        "",
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"gone"}}"#,
    ] {
        for revision in LEGACY {
            let fake = server(revision, move |seen| {
                let ended = seen.header("mcp-session-id") == "session-1";
                (seen.rpc() == "tools/call" && ended)
                    .then(|| Reply::text("application/json", body).with_status(404))
            });
            let client = connect(&fake, revision).await;

            let calls = ["a", "b", "c"].map(|name| {
                let call = client.call_tool(name, json!({}));
                tokio::spawn(call.into_future())
            });
            for call in calls {
                call.await.unwrap().unwrap();
            }

            let begun = posted(&fake, "initialize");
            assert_eq!(begun.len(), 2, "one begins anew for all");
            assert!(
                begun
                    .iter()
                    .all(|seen| seen.header("mcp-session-id").is_empty())
            );
            let last = posted(&fake, "tools/call").pop().unwrap();
            assert_eq!(last.header("mcp-session-id"), "session-2");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ends_again_at_once_is_not_begun_for_ever() {
    let fake = server(LATEST_LEGACY, on_call(|_| Reply::status(404)));
    let client = connect(&fake, LATEST_LEGACY).await;

    let problem = client.call_tool("a", json!({})).await.unwrap_err();

    let CallError::Disconnected { source, .. } = problem else {
        panic!("{problem:?}");
    };
    assert!(matches!(source, TransportError::SessionEnded));
    assert_eq!(posted(&fake, "tools/call").len(), 2);
    assert_eq!(posted(&fake, "initialize").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_session_is_said_once_and_whatever_the_server_thinks_of_it() {
    req!("http.session.delete", "lifecycle.shutdown.no-message");
    for revision in LEGACY {
        for status in [200, 204, 404, 405, 500] {
            let fake = server(revision, move |seen| {
                (seen.method == "DELETE").then(|| Reply::status(status))
            });
            let client = connect(&fake, revision).await;

            client.close().await;
            client.close().await;
            drop(client);
            settle().await;

            let ends = by_method(&fake, "DELETE");
            assert_eq!(ends.len(), 1, "{status}");
            assert_eq!(ends[0].header("mcp-session-id"), "session-1");
            assert!(ends[0].body.is_empty());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_dropped_ends_its_session_too() {
    let fake = server(LATEST_LEGACY, |_| None);
    let client = connect(&fake, LATEST_LEGACY).await;

    drop(client);

    let end = fake.first(|seen| seen.method == "DELETE").await;
    assert_eq!(end.header("mcp-session-id"), "session-1");
}

/// Gives up a call that the server does not answer.
async fn give_up_a_call(client: &Client, fake: &FakeHttp) {
    let call = client.call_tool("a", json!({})).into_future();
    tokio::select! {
        answer = call => panic!("{answer:?}"),
        _ = fake.first(|seen| seen.rpc() == "tools/call") => {}
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_is_cancelled_in_its_session_before_the_session_ends() {
    for revision in LEGACY {
        for closed in [true, false] {
            let fake = server(revision, on_call(|_| Reply::silence()));
            let client = connect(&fake, revision).await;

            give_up_a_call(&client, &fake).await;
            if closed {
                client.close().await;
            }
            drop(client);
            fake.first(|seen| seen.method == "DELETE").await;
            settle().await;

            let seen = fake.seen();
            let [.., cancelled, end] = &seen[..] else {
                panic!("{seen:?}");
            };
            let call = &posted(&fake, "tools/call")[0];
            assert_eq!(cancelled.rpc(), "notifications/cancelled", "{revision}");
            assert_eq!(cancelled.json()["params"]["requestId"], call.json()["id"]);
            assert_eq!(cancelled.header("mcp-session-id"), "session-1");
            assert_eq!(end.method, "DELETE");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_is_sent_before_close_returns_without_a_session_too() {
    let fake = server(LATEST_LEGACY, |seen| match seen.rpc().as_str() {
        "initialize" => {
            let result = json!({
                "protocolVersion": LATEST_LEGACY, "capabilities": { "tools": {} },
                "serverInfo": { "name": "fake", "version": "1" },
            });
            Some(Reply::result(seen, &result))
        }
        "tools/call" => Some(Reply::silence()),
        _ => None,
    });
    let client = connect(&fake, LATEST_LEGACY).await;

    give_up_a_call(&client, &fake).await;
    client.close().await;

    assert_eq!(posted(&fake, "notifications/cancelled").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_take_a_cancellation_delays_the_end_by_seconds_only() {
    let fake = server(LATEST_LEGACY, |seen| match seen.rpc().as_str() {
        "tools/call" | "notifications/cancelled" => Some(Reply::silence()),
        _ => None,
    });
    let client = connect(&fake, LATEST_LEGACY).await;
    give_up_a_call(&client, &fake).await;
    let begun = tokio::time::Instant::now();

    client.close().await;

    assert!(begun.elapsed() <= Duration::from_secs(4));
    assert_eq!(by_method(&fake, "DELETE").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_the_goodbye_is_left() {
    let fake = server(LATEST_LEGACY, |seen| {
        (seen.method == "DELETE").then(Reply::silence)
    });
    let client = connect(&fake, LATEST_LEGACY).await;
    let begun = tokio::time::Instant::now();

    client.close().await;

    assert!(begun.elapsed() <= Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_take_the_end_of_the_handshake_is_given_up() {
    let fake = server(LATEST_LEGACY, |seen| {
        (seen.rpc() == "notifications/initialized").then(Reply::silence)
    });

    let problem = connect_error(&fake, LATEST_LEGACY).await;

    let ConnectError::Unreachable(TransportError::Http(cause)) = &problem else {
        panic!("{problem:?}");
    };
    assert!(matches!(**cause, HttpError::SendTimedOut { .. }));
}

#[tokio::test(start_paused = true)]
async fn what_the_server_asks_is_answered_within_the_session() {
    for revision in LEGACY {
        let fake = server(
            revision,
            on_call(|seen| {
                let answer = crate::http_peer::answer_to(seen, "done");
                Reply::events(move |events| async move {
                    events.message(&json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" }));
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    events.message(&answer);
                })
            }),
        );
        let client = connect(&fake, revision).await;

        client.call_tool("a", json!({})).await.unwrap();

        let pong = fake.first(|seen| seen.json()["id"] == "p").await;
        assert_eq!(pong.json()["result"], json!({}));
        assert_eq!(pong.header("mcp-session-id"), "session-1");
    }
}

#[tokio::test(start_paused = true)]
async fn the_era_is_found_by_the_body_of_a_refusal() {
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
            let fake = server(LATEST_LEGACY, move |seen| {
                (seen.rpc() == "server/discover")
                    .then(|| Reply::text("application/json", body).with_status(status))
            });

            let client = turnbuckle_client::Client::builder("test", "1")
                .connect(at(&fake))
                .await
                .unwrap();
            client.call_tool("a", json!({})).await.unwrap();

            assert_eq!(client.server().era, turnbuckle_client::Era::Legacy);
            let order: Vec<_> = by_method(&fake, "POST").iter().map(Seen::rpc).collect();
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
async fn the_era_of_an_origin_is_found_once() {
    req!("versioning.era.cache");
    let fake = server(LATEST_LEGACY, |_| None);
    let eras = turnbuckle_client::LifecycleCache::new();
    let client = || turnbuckle_client::Client::builder("test", "1").lifecycle_cache(eras.clone());
    let other = HttpTarget::new(fake.url("/other")).connector(fake.dial());

    client().connect(at(&fake)).await.unwrap();
    client().connect(at(&fake)).await.unwrap();
    client().connect(other).await.unwrap();

    assert_eq!(posted(&fake, "server/discover").len(), 1);
    assert_eq!(posted(&fake, "initialize").len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_a_modern_server_makes_is_no_reason_for_a_handshake() {
    req!("versioning.http.modern-error-stay", in: ["2026-07-28"]);
    for code in [-32020, -32021, -32022] {
        let fake = server(LATEST_LEGACY, move |seen| {
            let error = json!({
                "jsonrpc": "2.0", "id": seen.json()["id"],
                "error": { "code": code, "message": "no", "data": { "supported": ["2099-01-01"] } },
            });
            (seen.rpc() == "server/discover").then(|| Reply::json(&error).with_status(400))
        });

        let connected = turnbuckle_client::Client::builder("test", "1")
            .connect(at(&fake))
            .await;

        assert!(connected.is_err());
        assert!(posted(&fake, "initialize").is_empty(), "{code}");
        assert!(by_method(&fake, "GET").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn neither_authorization_nor_trouble_says_anything_about_the_era() {
    for status in [401, 403, 429, 500, 503] {
        let fake = FakeHttp::in_memory(move |_| Reply::status(status));

        let connected = turnbuckle_client::Client::builder("test", "1")
            .connect(at(&fake))
            .await;

        let Err(ConnectError::Unreachable(TransportError::ErrorResponse(refusal))) = connected
        else {
            panic!("{connected:?}");
        };
        assert_eq!(refusal.status, status);
        assert_eq!(fake.seen().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_became_older_is_asked_anew() {
    static OLDER: AtomicBool = AtomicBool::new(false);
    let fake = server(LATEST_LEGACY, |seen| {
        if OLDER.load(Ordering::SeqCst) {
            let modern = seen.header("mcp-protocol-version") == crate::http_peer::MODERN;
            return modern.then(|| Reply::status(400));
        }
        (seen.rpc() == "server/discover").then(|| {
            let result = json!({
                "resultType": "complete", "supportedVersions": [crate::http_peer::MODERN],
                "capabilities": { "tools": {} }, "ttlMs": 0, "cacheScope": "private",
            });
            Reply::result(seen, &result)
        })
    });
    let client = turnbuckle_client::Client::builder("test", "1")
        .connect(at(&fake))
        .await
        .unwrap();
    client.call_tool("a", json!({})).await.unwrap();
    OLDER.store(true, Ordering::SeqCst);

    client.call_tool("b", json!({})).await.unwrap();

    assert_eq!(client.server().era, turnbuckle_client::Era::Legacy);
    assert_eq!(posted(&fake, "initialize").len(), 1);
}

#[tokio::test]
async fn a_url_or_a_header_that_cannot_be_is_refused_before_anything_is_sent() {
    let fake = FakeHttp::in_memory(|_| Reply::status(500));

    let url = speaking(LATEST_LEGACY)
        .connect(HttpTarget::new("http://user:secret@fake.test/").connector(fake.dial()))
        .await;
    let header = speaking(LATEST_LEGACY)
        .connect(at(&fake).header("X-Key", "sesame\n"))
        .await;
    let reserved = speaking(LATEST_LEGACY)
        .connect(at(&fake).header("Mcp-Session-Id", "mine"))
        .await;

    assert!(matches!(url, Err(ConnectError::Url(_))), "{url:?}");
    assert!(matches!(header, Err(ConnectError::Header(_))), "{header:?}");
    assert!(
        matches!(reserved, Err(ConnectError::Header(_))),
        "{reserved:?}"
    );
    let shown = format!("{url:?} {header:?}");
    assert!(
        !shown.contains("secret") && !shown.contains("sesame"),
        "{shown}"
    );
    assert_eq!(fake.connections(), 0);
}

#[test]
fn what_describes_a_server_shows_no_secret() {
    req!("http.session.client-secure");
    let http = HttpTarget::new("http://fake.test/mcp?key=sesame").bearer("sesame");
    let broken = HttpTarget::new("http://sesame@fake.test/mcp");

    let shown = format!("{http:?} {http:#?} {broken:?}");

    assert!(shown.contains("http://fake.test/mcp"));
    assert!(!shown.contains("sesame"), "{shown}");
}
