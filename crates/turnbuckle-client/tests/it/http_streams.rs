//! Streams of the older era: the server's own, and those that break off and are taken up again.

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

use crate::{
    fake_http::{FakeHttp, Reply, Seen},
    http_peer::{
        LATEST_LEGACY, LEGACY, answer_to, at, by_method, connect, on_call, posted, server, settle,
        speaking,
    },
};

fn log(text: &str) -> Value {
    json!({
        "jsonrpc": "2.0", "method": "notifications/message",
        "params": { "level": "info", "data": text },
    })
}

/// A server whose GETs are answered in turn; when there are no more, with 405.
fn with_streams(revision: &'static str, replies: Vec<Reply>) -> FakeHttp {
    let replies = Mutex::new(VecDeque::from(replies));
    server(revision, move |seen| match seen.method.as_str() {
        "GET" => replies.lock().unwrap().pop_front(),
        _ => None,
    })
}

/// Connects, and collects the log messages.
async fn listening(fake: &FakeHttp, revision: &str) -> (Client, mpsc::UnboundedReceiver<Value>) {
    let (told, heard) = mpsc::unbounded_channel();
    let client = speaking(revision)
        .on_log(move |message| told.send(message.data).unwrap())
        .connect(at(fake))
        .await
        .unwrap();
    (client, heard)
}

#[tokio::test(start_paused = true)]
async fn the_servers_own_stream_is_read_and_taken_up_where_it_ended() {
    req!("http.resume.client-get", "http.sse.disconnect-possible");
    for revision in LEGACY {
        let fake = with_streams(
            revision,
            vec![
                Reply::events(|events| async move {
                    events.text(&format!("id: e-1\nretry: 3000\ndata: {}\n\n", log("one")));
                }),
                Reply::events(|events| async move {
                    events.message(&log("two"));
                    events.cut();
                }),
                Reply::events(|events| async move {
                    events.text(&format!("id: e-3\ndata: {}\n\n", log("three")));
                    events.closed().await;
                }),
            ],
        );

        let (_client, mut heard) = listening(&fake, revision).await;

        for expected in ["one", "two", "three"] {
            assert_eq!(heard.recv().await.unwrap(), expected);
        }
        let gets = by_method(&fake, "GET");
        let after: Vec<_> = gets.iter().map(|get| get.header("last-event-id")).collect();
        assert_eq!(after, ["", "e-1", "e-1"]);
        for pair in gets.windows(2) {
            let waited = pair[1].at - pair[0].at;
            assert!((2950..3100).contains(&waited.as_millis()), "{waited:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_without_a_stream_is_asked_for_it_once() {
    for status in [400, 404, 405, 406, 501] {
        let fake = with_streams(LATEST_LEGACY, vec![Reply::status(status)]);
        let client = connect(&fake, LATEST_LEGACY).await;

        tokio::time::sleep(Duration::from_secs(600)).await;
        client.call_tool("a", json!({})).await.unwrap();

        // What a server does not implement yet is no reason to stop asking; but there is a limit to asking.
        let asked = by_method(&fake, "GET").len();
        assert!(
            asked == 1 || status == 501 && asked == 2,
            "{status}: {asked}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_fails_is_tried_less_and_less_often() {
    let fake = server(LATEST_LEGACY, |seen| {
        (seen.method == "GET").then(|| Reply::status(503))
    });
    let _client = connect(&fake, LATEST_LEGACY).await;

    tokio::time::sleep(Duration::from_secs(3600)).await;

    let asked = by_method(&fake, "GET").len();
    assert!((50..75).contains(&asked), "{asked} times in an hour");
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_always_ends_at_once_is_not_asked_for_in_a_hurry() {
    let fake = server(LATEST_LEGACY, |seen| {
        let hurry = || Reply::events(|events| async move { events.text("retry: 0\n\n") });
        (seen.method == "GET").then(hurry)
    });
    let _client = connect(&fake, LATEST_LEGACY).await;

    tokio::time::sleep(Duration::from_secs(10)).await;

    let asked = by_method(&fake, "GET").len();
    assert!((90..=101).contains(&asked), "{asked} times in ten seconds");
}

#[tokio::test(start_paused = true)]
async fn the_servers_own_stream_ends_with_the_client() {
    req!("http.get.client-close", "lifecycle.shutdown.http");
    let (gone, mut is_gone) = mpsc::unbounded_channel();
    let fake = server(LATEST_LEGACY, move |seen| {
        let gone = gone.clone();
        (seen.method == "GET").then(|| {
            Reply::events(|events| async move {
                events.closed().await;
                gone.send(()).unwrap();
            })
        })
    });
    for drops in [false, true] {
        let client = connect(&fake, LATEST_LEGACY).await;
        settle().await;

        if !drops {
            client.close().await;
        }
        drop(client);

        is_gone.recv().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_on_the_servers_own_stream_is_nobodys() {
    let fake = with_streams(
        LATEST_LEGACY,
        vec![Reply::events(|events| async move {
            events.message(&json!({ "jsonrpc": "2.0", "id": 1, "result": {} }));
            events.closed().await;
        })],
    );
    let (told, mut heard) = mpsc::unbounded_channel();

    let _client = speaking(LATEST_LEGACY)
        .on_anomaly(move |oddity| told.send(oddity).unwrap())
        .connect(at(&fake))
        .await
        .unwrap();

    assert_eq!(
        heard.recv().await.unwrap(),
        Anomaly::UnexpectedResponse(1.into())
    );
}

/// A server whose tool begins a stream, and whose GETs with `Last-Event-ID` continue it.
///
/// Both are told the call, so that they can answer it.
fn resuming(
    revision: &'static str,
    begin: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
    resume: impl Fn(&Seen, usize) -> Reply + Send + Sync + 'static,
) -> FakeHttp {
    let call: Arc<Mutex<Option<Seen>>> = Arc::default();
    let resumed = Mutex::new(0);
    server(revision, move |seen| {
        if seen.rpc() == "tools/call" {
            *call.lock().unwrap() = Some(seen.clone());
            return Some(begin(seen));
        }
        if seen.header("last-event-id").is_empty() {
            return None;
        }
        let mut number = resumed.lock().unwrap();
        *number += 1;
        let call = call.lock().unwrap().clone().unwrap();
        Some(resume(&call, *number))
    })
}

/// Begins a stream that names itself and ends without an answer.
fn broken_off(fields: &'static str, cut: bool) -> Reply {
    Reply::events(move |events| async move {
        events.text(&format!("id: e-1\n{fields}data:\n\n"));
        tokio::time::sleep(Duration::from_millis(50)).await;
        if cut {
            events.cut();
        }
    })
}

/// The requests that continued a stream.
fn resumptions(fake: &FakeHttp) -> Vec<Seen> {
    let mut seen = by_method(fake, "GET");
    seen.retain(|seen| !seen.header("last-event-id").is_empty());
    seen
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_before_its_answer_is_taken_up_after_the_pause_it_asked_for() {
    req!(
        "http.sse.retry-respect",
        "http.sse.polling-reconnect",
        "http.resume.client-get",
        "http.resume.any-origin"
    );
    for revision in LEGACY {
        for cut in [false, true] {
            let fake = resuming(
                revision,
                move |_| broken_off("retry: 500\n", cut),
                |call, _| {
                    let answer = answer_to(call, "resumed");
                    Reply::events(move |events| async move { events.message(&answer) })
                },
            );
            let client = connect(&fake, revision).await;

            let output = client.call_tool("a", json!({})).await.unwrap();

            assert_eq!(output.content[0].as_text(), Some("resumed"));
            let resumed = resumptions(&fake);
            assert_eq!(resumed.len(), 1);
            assert_eq!(resumed[0].header("last-event-id"), "e-1");
            assert_eq!(resumed[0].header("accept"), "text/event-stream");
            assert_eq!(resumed[0].header("mcp-session-id"), "session-1");
            let waited = resumed[0].at - posted(&fake, "tools/call")[0].at;
            assert!((550..600).contains(&waited.as_millis()), "{waited:?}");
            assert_eq!(posted(&fake, "tools/call").len(), 1, "it is not sent again");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_may_have_its_answer_asked_for_again_and_again() {
    let fake = resuming(
        LATEST_LEGACY,
        |_| broken_off("retry: 1000\n", false),
        |call, number| match number {
            20 => Reply::json(&answer_to(call, "lie")),
            30 => {
                let answer = answer_to(call, "at last");
                Reply::events(move |events| async move { events.message(&answer) })
            }
            number => Reply::events(move |events| async move {
                events.text(&format!("id: e-{}\n\n", number + 1));
            }),
        },
    );
    let client = connect(&fake, LATEST_LEGACY).await;

    let lied = client.call_tool("a", json!({})).await;
    let output = client.call_tool("a", json!({})).await.unwrap();

    assert!(lied.is_err(), "an answer that is no stream is none");
    assert_eq!(output.content[0].as_text(), Some("at last"));
    let resumed = resumptions(&fake);
    assert_eq!(resumed[4].header("last-event-id"), "e-5");
    for pair in resumed[..20].windows(2) {
        assert!(pair[1].at - pair[0].at >= Duration::from_secs(1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_of_nothing_and_one_of_ages_are_kept_within_reason() {
    for (retry, shortest, longest) in [
        ("retry: 0\n", 100, 200),
        ("retry: 99999999999999999999\n", 60_000, 60_100),
        ("", 1000, 1100),
    ] {
        let fake = resuming(
            LATEST_LEGACY,
            move |_| broken_off(retry, false),
            |call, _| {
                let answer = answer_to(call, "resumed");
                Reply::events(move |events| async move { events.message(&answer) })
            },
        );
        let client = connect(&fake, LATEST_LEGACY).await;
        let patience = Timeouts {
            idle: Duration::from_secs(600),
            total: Duration::from_secs(600),
        };

        let call = client.call_tool("a", json!({})).timeouts(patience);
        call.await.unwrap();

        let waited = resumptions(&fake)[0].at - posted(&fake, "tools/call")[0].at;
        let waited = waited.as_millis() - 50;
        assert!(
            (shortest..longest).contains(&waited),
            "{retry}: {waited} ms"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn trouble_while_taking_up_passes_or_ends_the_call() {
    for (failing, works) in [(4, true), (5, false)] {
        let fake = resuming(
            LATEST_LEGACY,
            |_| broken_off("retry: 200\n", true),
            move |call, number| {
                let answer = answer_to(call, "resumed");
                match number {
                    number if number > failing => {
                        Reply::events(move |events| async move { events.message(&answer) })
                    }
                    number if number % 2 == 0 => Reply::status(502),
                    _ => Reply::raw(""),
                }
            },
        );
        let client = connect(&fake, LATEST_LEGACY).await;

        let called = client.call_tool("a", json!({})).await;

        assert_eq!(called.is_ok(), works, "{called:?}");
        assert_eq!(resumptions(&fake).len(), 5);
        assert_eq!(posted(&fake, "tools/call").len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_cannot_be_taken_up_loses_its_call_and_nothing_is_sent_twice() {
    for status in [404, 405, 400, 410] {
        let fake = resuming(
            LATEST_LEGACY,
            |_| broken_off("", false),
            move |_, _| Reply::status(status),
        );
        let client = connect(&fake, LATEST_LEGACY).await;

        let problem = client.call_tool("a", json!({})).await.unwrap_err();

        assert!(
            matches!(problem, CallError::Disconnected { .. }),
            "{problem:?}"
        );
        assert_eq!(resumptions(&fake).len(), 1);
        assert_eq!(posted(&fake, "tools/call").len(), 1);
        assert_eq!(posted(&fake, "initialize").len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_ids_cannot_be_taken_up() {
    let fake = server(
        LATEST_LEGACY,
        on_call(|_| Reply::events(|events| async move { events.text("retry: 1\n\n") })),
    );
    let client = connect(&fake, LATEST_LEGACY).await;

    let problem = client.call_tool("a", json!({})).await.unwrap_err();

    let CallError::Disconnected { source, .. } = problem else {
        panic!("{problem:?}");
    };
    assert!(matches!(source, TransportError::Closed));
    assert!(resumptions(&fake).is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_id_that_no_header_can_hold_cannot_be_taken_up() {
    let fake = resuming(
        LATEST_LEGACY,
        |_| Reply::events(|events| async move { events.text("id: \u{1}\u{8}\ndata:\n\n") }),
        |_, _| Reply::status(500),
    );
    let client = connect(&fake, LATEST_LEGACY).await;

    assert!(client.call_tool("a", json!({})).await.is_err());

    assert!(resumptions(&fake).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_while_it_waits_to_be_taken_up_is_cancelled() {
    let fake = resuming(
        LATEST_LEGACY,
        |_| broken_off("retry: 30000\n", false),
        |_, _| Reply::status(500),
    );
    let client = connect(&fake, LATEST_LEGACY).await;
    let call = tokio::spawn(client.call_tool("a", json!({})).into_future());
    tokio::time::sleep(Duration::from_secs(1)).await;

    call.abort();

    let told = fake
        .first(|seen| seen.rpc() == "notifications/cancelled")
        .await;
    let asked = &posted(&fake, "tools/call")[0];
    assert_eq!(told.json()["params"]["requestId"], asked.json()["id"]);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(resumptions(&fake).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_batch_on_a_stream_is_taken_apart() {
    let fake = server(
        "2025-03-26",
        on_call(|seen| {
            let messages = json!([log("inside"), answer_to(seen, "batched")]);
            Reply::events(move |events| async move { events.message(&messages) })
        }),
    );
    let (client, mut heard) = listening(&fake, "2025-03-26").await;

    let output = client.call_tool("a", json!({})).await.unwrap();

    assert_eq!(output.content[0].as_text(), Some("batched"));
    assert_eq!(heard.recv().await.unwrap(), "inside");
}

#[tokio::test(start_paused = true)]
async fn a_stream_with_nothing_but_heartbeats_ends_with_patience() {
    let fake = server(
        LATEST_LEGACY,
        on_call(|_| {
            Reply::events(|events| async move {
                loop {
                    events.text(": beat\n\n");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            })
        }),
    );
    let client = connect(&fake, LATEST_LEGACY).await;
    let begun = Instant::now();

    let called = client.call_tool("a", json!({})).await;

    assert!(matches!(called, Err(CallError::TimedOut { .. })));
    assert_eq!(begun.elapsed().as_secs(), 60);
}
