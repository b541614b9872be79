//! Servers that mean harm, or are merely broken: every call ends, with an error that says why.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use turnbuckle_client::{
    Anomaly, CallError, Client, ClientLimits, ConnectError, Timeouts, TransportError,
    http::HttpError,
};

use crate::{
    fake_http::{FakeHttp, Reply},
    http_peer::{
        LATEST_LEGACY, MODERN, answer_to, at, by_method, connect, on_call, posted, server, speaking,
    },
};

const BOTH: [&str; 2] = [LATEST_LEGACY, MODERN];

/// Calls a tool of a server that is up to something.
async fn call(fake: &FakeHttp, revision: &str) -> CallError {
    let client = connect(fake, revision).await;
    client.call_tool("a", json!({})).await.unwrap_err()
}

/// What broke the call.
fn cause(problem: CallError) -> TransportError {
    match problem {
        CallError::Disconnected { source, .. } | CallError::EffectUnknown { source, .. } => source,
        other => panic!("{other:?}"),
    }
}

fn http_cause(problem: CallError) -> std::sync::Arc<HttpError> {
    match cause(problem) {
        TransportError::Http(cause) => cause,
        other => panic!("{other:?}"),
    }
}

/// A client that holds little.
async fn frugal(fake: &FakeHttp, revision: &str) -> Client {
    let mut limits = ClientLimits::default();
    limits.max_message_bytes = 10_000;
    speaking(revision)
        .limits(limits)
        .connect(at(fake))
        .await
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_redirect_to_another_origin_is_not_followed_and_carries_no_secret_there() {
    for status in [307, 308] {
        for revision in BOTH {
            let fake = server(
                revision,
                on_call(move |_| {
                    Reply::status(status).header("Location", "http://evil.example/mcp")
                }),
            );
            let http = at(&fake).bearer("sesame").header("X-Key", "sesame");
            let client = speaking(revision).connect(http).await.unwrap();
            let connections = fake.connections();

            let problem = client.call_tool("a", json!({})).await.unwrap_err();

            let cause = http_cause(problem);
            let HttpError::OtherOrigin { origin } = &*cause else {
                panic!("{cause}");
            };
            assert_eq!(origin, "http://evil.example");
            assert_eq!(posted(&fake, "tools/call").len(), 1);
            assert!(
                fake.connections() <= connections + 1,
                "nobody else was dialled"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_loop_of_redirects_ends() {
    let fake = server(
        MODERN,
        on_call(|_| Reply::status(307).header("Location", "/mcp")),
    );

    let cause = http_cause(call(&fake, MODERN).await);

    assert!(matches!(*cause, HttpError::TooManyRedirects { .. }));
    assert_eq!(posted(&fake, "tools/call").len(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_redirect_within_the_origin_is_followed_with_everything() {
    for revision in BOTH {
        let fake = server(revision, |seen| {
            (seen.path == "/mcp").then(|| Reply::status(307).header("Location", "/mcp/"))
        });
        let client = speaking(revision)
            .connect(at(&fake).bearer("sesame"))
            .await
            .unwrap();

        client.call_tool("a", json!({})).await.unwrap();

        let calls = posted(&fake, "tools/call");
        assert_eq!(calls[1].path, "/mcp/");
        assert_eq!(calls[0].headers, calls[1].headers);
        assert_eq!(calls[0].body, calls[1].body);
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_instead_of_an_answer_is_shown_in_short() {
    for revision in BOTH {
        let page = format!("<title>Log in\u{1b}[2J</title>{}", "x".repeat(100_000));
        let fake = server(
            revision,
            on_call(move |_| Reply::text("text/html", page.clone())),
        );

        let cause = http_cause(call(&fake, revision).await);

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
async fn json_that_claims_to_be_events_is_no_answer() {
    let fake = server(
        MODERN,
        on_call(|seen| Reply::text("text/event-stream", answer_to(seen, "x").to_string())),
    );

    let cause = cause(call(&fake, MODERN).await);

    assert!(matches!(cause, TransportError::Closed), "{cause:?}");
}

#[tokio::test(start_paused = true)]
async fn a_compressed_answer_is_not_unpacked() {
    let fake = server(
        MODERN,
        on_call(|_| {
            let bomb = vec![0x1f, 0x8b, 0x08, 0, 0, 0, 0, 0];
            Reply::text("application/json", bomb).header("Content-Encoding", "gzip")
        }),
    );

    let cause = http_cause(call(&fake, MODERN).await);

    assert!(matches!(*cause, HttpError::UnexpectedEncoding { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_huge_challenge_is_cut_and_the_refusal_stays() {
    for size in [8_000, 9_000, 300_000] {
        let fake = server(
            MODERN,
            on_call(move |_| {
                Reply::status(401)
                    .header("WWW-Authenticate", &format!("Bearer {}", "x".repeat(size)))
            }),
        );

        let TransportError::ErrorResponse(refusal) = cause(call(&fake, MODERN).await) else {
            panic!("no refusal");
        };

        assert_eq!(refusal.status, 401);
        assert_eq!(refusal.challenge.is_some(), size == 8_000);
    }
}

#[tokio::test(start_paused = true)]
async fn endless_headers_end_the_call() {
    let fake = server(
        MODERN,
        on_call(|_| {
            Reply::raw(format!(
                "HTTP/1.1 200 OK\r\n{}",
                "X-A: b\r\n".repeat(100_000)
            ))
        }),
    );

    let cause = http_cause(call(&fake, MODERN).await);

    assert!(matches!(*cause, HttpError::ConnectionBroken(_)), "{cause}");
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_an_answer_ends_with_patience_however_busy_it_is() {
    for revision in BOTH {
        let fake = server(
            revision,
            on_call(|_| {
                Reply::events(|events| async move {
                    let told = json!({
                        "jsonrpc": "2.0", "method": "notifications/message",
                        "params": { "level": "info", "data": "x".repeat(1000) },
                    });
                    loop {
                        events.message(&told);
                        events.text(": beat\n\nid: 7\n\n");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                })
            }),
        );
        let client = connect(&fake, revision).await;
        let begun = Instant::now();
        let patience = Timeouts {
            idle: Duration::from_secs(5),
            total: Duration::from_secs(10),
        };

        let called = client.call_tool("a", json!({})).timeouts(patience).await;

        assert!(
            matches!(called, Err(CallError::TimedOut { .. })),
            "{called:?}"
        );
        assert!(begun.elapsed() <= Duration::from_secs(10));
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_beyond_the_limit_ends_its_call() {
    for revision in BOTH {
        let fake = server(
            revision,
            on_call(|seen| {
                let answer = answer_to(seen, &"x".repeat(20_000));
                Reply::events(move |events| async move { events.message(&answer) })
            }),
        );
        let client = frugal(&fake, revision).await;

        let problem = client.call_tool("a", json!({})).await.unwrap_err();

        let cause = cause(problem);
        assert!(
            matches!(cause, TransportError::MessageTooLarge { limit: 10_000 }),
            "{cause:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_line_without_end_ends_its_call() {
    for revision in BOTH {
        let fake = server(
            revision,
            on_call(|_| {
                Reply::events(|events| async move {
                    loop {
                        events.text(&"x".repeat(1000));
                        tokio::task::yield_now().await;
                    }
                })
            }),
        );
        let client = frugal(&fake, revision).await;

        let problem = client.call_tool("a", json!({})).await.unwrap_err();

        assert!(matches!(
            cause(problem),
            TransportError::MessageTooLarge { .. }
        ));
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_beyond_the_limit_ends_its_call() {
    for revision in BOTH {
        let fake = server(
            revision,
            on_call(|seen| Reply::json(&answer_to(seen, &"x".repeat(20_000)))),
        );
        let client = frugal(&fake, revision).await;

        let problem = client.call_tool("a", json!({})).await.unwrap_err();

        assert!(matches!(
            cause(problem),
            TransportError::MessageTooLarge { limit: 10_000 }
        ));
    }
}

#[tokio::test(start_paused = true)]
async fn a_chunked_body_without_end_ends_its_call() {
    let fake = server(
        MODERN,
        on_call(|_| {
            let endless = Reply::events(|events| async move {
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
    let client = frugal(&fake, MODERN).await;

    let problem = client.call_tool("a", json!({})).await.unwrap_err();

    assert!(matches!(
        cause(problem),
        TransportError::MessageTooLarge { .. }
    ));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_without_end_is_read_no_further_than_its_beginning() {
    for kind in ["text/plain", "application/json"] {
        let fake = server(
            MODERN,
            on_call(move |_| {
                let endless = Reply::events(|events| async move {
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
        let client = frugal(&fake, MODERN).await;

        let problem = client.call_tool("a", json!({})).await.unwrap_err();

        assert_eq!(problem.status().unwrap(), 500, "{problem:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_for_another_call_is_nobodys() {
    for revision in BOTH {
        let fake = server(
            revision,
            on_call(|seen| {
                let id = seen.json()["id"].as_i64().unwrap();
                let mut foreign = answer_to(seen, "not yours");
                foreign["id"] = json!(id + 1);
                let mut text = answer_to(seen, "not yours either");
                text["id"] = json!(id.to_string());
                let answer = answer_to(seen, "yours");
                Reply::events(move |events| async move {
                    events.message(&foreign);
                    events.message(&text);
                    events.message(&answer);
                })
            }),
        );
        let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
        let client = speaking(revision)
            .on_anomaly(move |oddity| told.send(oddity).unwrap())
            .connect(at(&fake))
            .await
            .unwrap();

        let output = client.call_tool("a", json!({})).await.unwrap();

        assert_eq!(output.content[0].as_text(), Some("yours"));
        for _ in 0..2 {
            assert!(matches!(
                heard.recv().await,
                Some(Anomaly::UnexpectedResponse(_))
            ));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_million_bytes_of_nothing_before_the_answer_do_no_harm() {
    let fake = server(
        MODERN,
        on_call(|seen| {
            let answer = answer_to(seen, "done");
            Reply::events(move |events| async move {
                for _ in 0..1000 {
                    events.text(&format!(": {}\n\n", "x".repeat(1000)));
                }
                events.message(&answer);
            })
        }),
    );
    let client = frugal(&fake, MODERN).await;

    client.call_tool("a", json!({})).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_session_id_with_control_characters_is_refused() {
    let fake = FakeHttp::in_memory(|_| {
        Reply::raw(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: a\u{1b}[2J\r\nContent-Length: 2\r\n\r\n{}",
        )
    });

    let connected = speaking(LATEST_LEGACY).connect(at(&fake)).await;

    let Err(ConnectError::Unreachable(TransportError::Http(_))) = connected else {
        panic!("{connected:?}");
    };
    assert_eq!(fake.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_the_first_question_is_given_up() {
    for revision in BOTH {
        let fake = FakeHttp::in_memory(|_| Reply::silence());

        let connected = speaking(revision).connect(at(&fake)).await;

        assert!(
            matches!(connected, Err(ConnectError::TimedOut { .. })),
            "{connected:?}"
        );
        assert!(by_method(&fake, "GET").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_breaks_again_and_again_breaks_one_call_each() {
    for bytes in [
        "",
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{",
    ] {
        let fake = server(MODERN, on_call(move |_| Reply::raw(bytes)));
        let client = connect(&fake, MODERN).await;

        for number in 1..=3 {
            let problem = client.call_tool("a", json!({})).await.unwrap_err();

            let cause = http_cause(problem);
            assert!(matches!(*cause, HttpError::ConnectionBroken(_)), "{cause}");
            assert!(!cause.is_unsent());
            assert_eq!(
                posted(&fake, "tools/call").len(),
                number,
                "never sent twice"
            );
        }
    }
}
