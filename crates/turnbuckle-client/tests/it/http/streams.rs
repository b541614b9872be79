//! Streams of the legacy era: the GET stream, and response streams that are resumed.

use std::{
    collections::VecDeque,
    future::IntoFuture,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{sync::mpsc, time::Instant};
use turnbuckle_client::{Anomaly, CallError, Client, Timeouts, TransportError};
use turnbuckle_spec_coverage::req;

use crate::servers::{
    mock_http::{MockHttpServer, MockResponse, RecordedRequest},
    mock_mcp_http::{
        LATEST_LEGACY, LEGACY, builder_for, by_method, connect, on_call, posted_messages,
        response_to, run_ready_tasks, server, target_of,
    },
};

fn log(text: &str) -> Value {
    json!({
        "jsonrpc": "2.0", "method": "notifications/message",
        "params": { "level": "info", "data": text },
    })
}

/// A server that responds to GET with these responses in order, and then with 405.
fn with_streams(revision: &'static str, replies: Vec<MockResponse>) -> MockHttpServer {
    let replies = Mutex::new(VecDeque::from(replies));
    server(revision, move |request| match request.method.as_str() {
        "GET" => replies.lock().unwrap().pop_front(),
        _ => None,
    })
}

/// Connects, and collects the log messages.
async fn connect_with_log(
    mock: &MockHttpServer,
    revision: &str,
) -> (Client, mpsc::UnboundedReceiver<Value>) {
    let (sender, received) = mpsc::unbounded_channel();
    let client = builder_for(revision)
        .on_log(move |message| sender.send(message.data).unwrap())
        .connect(target_of(mock))
        .await
        .unwrap();
    (client, received)
}

#[tokio::test(start_paused = true)]
async fn the_get_stream_is_resumed_after_its_last_event() {
    req!("http.resume.client-get", "http.sse.disconnect-possible");
    for revision in LEGACY {
        let mock = with_streams(
            revision,
            vec![
                MockResponse::events(|events| async move {
                    events.text(&format!("id: e-1\nretry: 3000\ndata: {}\n\n", log("one")));
                }),
                MockResponse::events(|events| async move {
                    events.message(&log("two"));
                    events.cut();
                }),
                MockResponse::events(|events| async move {
                    events.text(&format!("id: e-3\ndata: {}\n\n", log("three")));
                    events.closed().await;
                }),
            ],
        );

        let (_client, mut received) = connect_with_log(&mock, revision).await;

        for expected in ["one", "two", "three"] {
            assert_eq!(received.recv().await.unwrap(), expected);
        }
        let gets = by_method(&mock, "GET");
        let after: Vec<_> = gets.iter().map(|get| get.header("last-event-id")).collect();
        assert_eq!(after, ["", "e-1", "e-1"]);
        for pair in gets.windows(2) {
            let waited = pair[1].at - pair[0].at;
            assert!((2950..3100).contains(&waited.as_millis()), "{waited:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_get_stream_that_is_not_supported_is_requested_once() {
    for status in [400, 404, 405, 406, 501] {
        let mock = with_streams(LATEST_LEGACY, vec![MockResponse::status(status)]);
        let client = connect(&mock, LATEST_LEGACY).await;

        tokio::time::sleep(Duration::from_secs(600)).await;
        client.call_tool("a", json!({})).await.unwrap();

        // An unsupported GET stream is requested again, but only a few times.
        let gets = by_method(&mock, "GET").len();
        assert!(gets == 1 || status == 501 && gets == 2, "{status}: {gets}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failing_get_stream_is_retried_with_backoff() {
    let mock = server(LATEST_LEGACY, |request| {
        (request.method == "GET").then(|| MockResponse::status(503))
    });
    let _client = connect(&mock, LATEST_LEGACY).await;

    tokio::time::sleep(Duration::from_secs(3600)).await;

    let gets = by_method(&mock, "GET").len();
    assert!((50..75).contains(&gets), "{gets} times in an hour");
}

#[tokio::test(start_paused = true)]
async fn a_get_stream_that_ends_at_once_is_reopened_with_a_delay() {
    let mock = server(LATEST_LEGACY, |request| {
        let hurry = || MockResponse::events(|events| async move { events.text("retry: 0\n\n") });
        (request.method == "GET").then(hurry)
    });
    let _client = connect(&mock, LATEST_LEGACY).await;

    tokio::time::sleep(Duration::from_secs(10)).await;

    let gets = by_method(&mock, "GET").len();
    assert!((90..=101).contains(&gets), "{gets} times in ten seconds");
}

#[tokio::test(start_paused = true)]
async fn the_get_stream_ends_with_the_client() {
    req!("http.get.client-close", "lifecycle.shutdown.http");
    let (gone, mut is_gone) = mpsc::unbounded_channel();
    let mock = server(LATEST_LEGACY, move |request| {
        let gone = gone.clone();
        (request.method == "GET").then(|| {
            MockResponse::events(|events| async move {
                events.closed().await;
                gone.send(()).unwrap();
            })
        })
    });
    for drops in [false, true] {
        let client = connect(&mock, LATEST_LEGACY).await;
        run_ready_tasks().await;

        if !drops {
            client.close().await;
        }
        drop(client);

        is_gone.recv().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_on_the_get_stream_is_an_anomaly() {
    let mock = with_streams(
        LATEST_LEGACY,
        vec![MockResponse::events(|events| async move {
            events.message(&json!({ "jsonrpc": "2.0", "id": 1, "result": {} }));
            events.closed().await;
        })],
    );
    let (sender, mut received) = mpsc::unbounded_channel();

    let _client = builder_for(LATEST_LEGACY)
        .on_anomaly(move |anomaly| sender.send(anomaly).unwrap())
        .connect(target_of(&mock))
        .await
        .unwrap();

    assert_eq!(
        received.recv().await.unwrap(),
        Anomaly::UnexpectedResponse(1.into())
    );
}

/// A server with a tool that responds with a stream, and GET requests with `Last-Event-ID` that continue it.
///
/// Both get the tool call, so that they can respond to it.
fn resuming(
    revision: &'static str,
    begin: impl Fn(&RecordedRequest) -> MockResponse + Send + Sync + 'static,
    resume: impl Fn(&RecordedRequest, usize) -> MockResponse + Send + Sync + 'static,
) -> MockHttpServer {
    let call: Arc<Mutex<Option<RecordedRequest>>> = Arc::default();
    let resumed = Mutex::new(0);
    server(revision, move |request| {
        if request.rpc() == "tools/call" {
            *call.lock().unwrap() = Some(request.clone());
            return Some(begin(request));
        }
        if request.header("last-event-id").is_empty() {
            return None;
        }
        let mut number = resumed.lock().unwrap();
        *number += 1;
        let call = call.lock().unwrap().clone().unwrap();
        Some(resume(&call, *number))
    })
}

/// A stream that has an event id and ends without a response.
fn interrupted(fields: &'static str, cut: bool) -> MockResponse {
    MockResponse::events(move |events| async move {
        events.text(&format!("id: e-1\n{fields}data:\n\n"));
        tokio::time::sleep(Duration::from_millis(50)).await;
        if cut {
            events.cut();
        }
    })
}

/// Returns the requests that resumed a stream.
fn resumptions(mock: &MockHttpServer) -> Vec<RecordedRequest> {
    let mut requests = by_method(mock, "GET");
    requests.retain(|request| !request.header("last-event-id").is_empty());
    requests
}

#[tokio::test(start_paused = true)]
async fn a_response_stream_that_ends_early_is_resumed_after_its_retry_delay() {
    req!(
        "http.sse.retry-respect",
        "http.sse.polling-reconnect",
        "http.resume.client-get",
        "http.resume.any-origin"
    );
    for revision in LEGACY {
        for cut in [false, true] {
            let mock = resuming(
                revision,
                move |_| interrupted("retry: 500\n", cut),
                |call, _| {
                    let response = response_to(call, "resumed");
                    MockResponse::events(move |events| async move { events.message(&response) })
                },
            );
            let client = connect(&mock, revision).await;

            let output = client.call_tool("a", json!({})).await.unwrap();

            assert_eq!(output.content[0].as_text(), Some("resumed"));
            let resumed = resumptions(&mock);
            assert_eq!(resumed.len(), 1);
            assert_eq!(resumed[0].header("last-event-id"), "e-1");
            assert_eq!(resumed[0].header("accept"), "text/event-stream");
            assert_eq!(resumed[0].header("mcp-session-id"), "session-1");
            let waited = resumed[0].at - posted_messages(&mock, "tools/call")[0].at;
            assert!((550..600).contains(&waited.as_millis()), "{waited:?}");
            assert_eq!(
                posted_messages(&mock, "tools/call").len(),
                1,
                "it is not sent again"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_stream_may_be_resumed_many_times() {
    let mock = resuming(
        LATEST_LEGACY,
        |_| interrupted("retry: 1000\n", false),
        |call, number| match number {
            20 => MockResponse::json(&response_to(call, "lie")),
            30 => {
                let response = response_to(call, "at last");
                MockResponse::events(move |events| async move { events.message(&response) })
            }
            number => MockResponse::events(move |events| async move {
                events.text(&format!("id: e-{}\n\n", number + 1));
            }),
        },
    );
    let client = connect(&mock, LATEST_LEGACY).await;

    let not_a_stream = client.call_tool("a", json!({})).await;
    let output = client.call_tool("a", json!({})).await.unwrap();

    assert!(
        not_a_stream.is_err(),
        "a response that is not a stream is invalid"
    );
    assert_eq!(output.content[0].as_text(), Some("at last"));
    let resumed = resumptions(&mock);
    assert_eq!(resumed[4].header("last-event-id"), "e-5");
    for pair in resumed[..20].windows(2) {
        assert!(pair[1].at - pair[0].at >= Duration::from_secs(1));
    }
}

#[tokio::test(start_paused = true)]
async fn retry_delays_have_a_minimum_and_a_maximum() {
    for (retry, shortest, longest) in [
        ("retry: 0\n", 100, 200),
        ("retry: 99999999999999999999\n", 60_000, 60_100),
        ("", 1000, 1100),
    ] {
        let mock = resuming(
            LATEST_LEGACY,
            move |_| interrupted(retry, false),
            |call, _| {
                let response = response_to(call, "resumed");
                MockResponse::events(move |events| async move { events.message(&response) })
            },
        );
        let client = connect(&mock, LATEST_LEGACY).await;
        let patience = Timeouts {
            idle: Duration::from_secs(600),
            total: Duration::from_secs(600),
        };

        let call = client.call_tool("a", json!({})).timeouts(patience);
        call.await.unwrap();

        let waited = resumptions(&mock)[0].at - posted_messages(&mock, "tools/call")[0].at;
        let waited = waited.as_millis() - 50;
        assert!(
            (shortest..longest).contains(&waited),
            "{retry}: {waited} ms"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn transient_failures_of_a_resumption_are_retried_and_others_end_the_call() {
    for (failing, works) in [(4, true), (5, false)] {
        let mock = resuming(
            LATEST_LEGACY,
            |_| interrupted("retry: 200\n", true),
            move |call, number| {
                let response = response_to(call, "resumed");
                match number {
                    number if number > failing => {
                        MockResponse::events(move |events| async move { events.message(&response) })
                    }
                    number if number % 2 == 0 => MockResponse::status(502),
                    _ => MockResponse::raw(""),
                }
            },
        );
        let client = connect(&mock, LATEST_LEGACY).await;

        let called = client.call_tool("a", json!({})).await;

        assert_eq!(called.is_ok(), works, "{called:?}");
        assert_eq!(resumptions(&mock).len(), 5);
        assert_eq!(posted_messages(&mock, "tools/call").len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_cannot_be_resumed_fails_its_call_without_a_second_post() {
    for status in [404, 405, 400, 410] {
        let mock = resuming(
            LATEST_LEGACY,
            |_| interrupted("", false),
            move |_, _| MockResponse::status(status),
        );
        let client = connect(&mock, LATEST_LEGACY).await;

        let error = client.call_tool("a", json!({})).await.unwrap_err();

        assert!(matches!(error, CallError::Disconnected { .. }), "{error:?}");
        assert_eq!(resumptions(&mock).len(), 1);
        assert_eq!(posted_messages(&mock, "tools/call").len(), 1);
        assert_eq!(posted_messages(&mock, "initialize").len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_event_ids_is_not_resumed() {
    let mock = server(
        LATEST_LEGACY,
        on_call(|_| MockResponse::events(|events| async move { events.text("retry: 1\n\n") })),
    );
    let client = connect(&mock, LATEST_LEGACY).await;

    let error = client.call_tool("a", json!({})).await.unwrap_err();

    let CallError::Disconnected { source, .. } = error else {
        panic!("{error:?}");
    };
    assert!(matches!(source, TransportError::Closed));
    assert!(resumptions(&mock).is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_event_id_that_is_invalid_in_a_header_is_not_resumed() {
    let mock = resuming(
        LATEST_LEGACY,
        |_| MockResponse::events(|events| async move { events.text("id: \u{1}\u{8}\ndata:\n\n") }),
        |_, _| MockResponse::status(500),
    );
    let client = connect(&mock, LATEST_LEGACY).await;

    assert!(client.call_tool("a", json!({})).await.is_err());

    assert!(resumptions(&mock).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_during_resumption_is_cancelled() {
    let mock = resuming(
        LATEST_LEGACY,
        |_| interrupted("retry: 30000\n", false),
        |_, _| MockResponse::status(500),
    );
    let client = connect(&mock, LATEST_LEGACY).await;
    let call = tokio::spawn(client.call_tool("a", json!({})).into_future());
    tokio::time::sleep(Duration::from_secs(1)).await;

    call.abort();

    let cancellation = mock
        .first(|request| request.rpc() == "notifications/cancelled")
        .await;
    let call = &posted_messages(&mock, "tools/call")[0];
    assert_eq!(
        cancellation.json()["params"]["requestId"],
        call.json()["id"]
    );
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(resumptions(&mock).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_batch_on_a_stream_is_split() {
    let mock = server(
        "2025-03-26",
        on_call(|request| {
            let messages = json!([log("inside"), response_to(request, "batched")]);
            MockResponse::events(move |events| async move { events.message(&messages) })
        }),
    );
    let (client, mut received) = connect_with_log(&mock, "2025-03-26").await;

    let output = client.call_tool("a", json!({})).await.unwrap();

    assert_eq!(output.content[0].as_text(), Some("batched"));
    assert_eq!(received.recv().await.unwrap(), "inside");
}

#[tokio::test(start_paused = true)]
async fn a_stream_with_only_heartbeats_times_out() {
    let mock = server(
        LATEST_LEGACY,
        on_call(|_| {
            MockResponse::events(|events| async move {
                loop {
                    events.text(": beat\n\n");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            })
        }),
    );
    let client = connect(&mock, LATEST_LEGACY).await;
    let started_at = Instant::now();

    let called = client.call_tool("a", json!({})).await;

    assert!(matches!(called, Err(CallError::TimedOut { .. })));
    assert_eq!(started_at.elapsed().as_secs(), 60);
}
