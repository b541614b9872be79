//! Streams of sessions: their messages and their resumption.

use std::{
    sync::{Arc, Mutex, mpsc::channel},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use turnbuckle_protocol::types::LogLevel;
use turnbuckle_server::{Context, Server, Tool, http::Http};
use turnbuckle_spec_coverage::req;
use turnbuckle_store::{Store, StoreLimits};

use crate::http::test_client::{Empty, HttpTestClient, SESSIONS, Stream, initialize, server};

/// A server with a tool `work` that reports progress once per permit, three times, and then returns.
fn stepwise() -> (Server, Arc<Semaphore>) {
    let steps = Arc::new(Semaphore::new(0));
    let permits = steps.clone();
    let work = Tool::new("work", move |_: Empty, cx: Context| {
        let permits = permits.clone();
        async move {
            for step in 1..=3 {
                permits.acquire().await.unwrap().forget();
                cx.progress(step, 3).await;
            }
            permits.acquire().await.unwrap().forget();
            Ok("done".to_owned())
        }
    });
    (server().tool(work), steps)
}

/// Reads the next message and the id of its event.
async fn next(stream: &mut Stream) -> (String, Value) {
    let event = stream.event().await.expect("another event");
    (
        event.last_event_id,
        serde_json::from_str(&event.data).unwrap(),
    )
}

#[tokio::test]
async fn progress_and_response_are_events_with_ids() {
    req!(
        "http.resume.event-id",
        "http.sse.prime",
        "http.sse.retry-field",
        "http.sse.close-after"
    );
    let caller = HttpTestClient::new(server()).in_session("2025-11-25").await;

    let mut stream = caller
        .tool(1, "progress", json!({ "steps": 2 }))
        .await
        .stream();

    let prime = stream.prime().await;
    assert!(stream.retry().is_some());
    let (first, progress) = next(&mut stream).await;
    assert_eq!(progress["params"]["progress"], 1.0);
    assert_ne!(prime, first);
    let rest = stream.messages().await;
    assert_eq!(rest.len(), 2);
    assert_eq!(rest[1]["result"]["content"][0]["text"], "done");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_message_arrives_while_the_handler_computes() {
    let (seen, wait) = channel();
    let wait = Arc::new(Mutex::new(wait));
    let compute = Tool::new("compute", move |_: Empty, cx: Context| {
        let wait = wait.clone();
        async move {
            cx.progress(1, 2).await;
            tokio::task::yield_now().await;
            let outcome = wait.lock().unwrap().recv_timeout(Duration::from_secs(30));
            Ok(outcome.map_or("not seen", |()| "seen").to_owned())
        }
    });
    let caller = HttpTestClient::new(server().tool(compute));
    let caller = caller.in_session("2025-11-25").await;

    let mut stream = caller.tool(1, "compute", json!({})).await.stream();
    stream.prime().await;
    let (_, progress) = next(&mut stream).await;
    assert_eq!(progress["params"]["progress"], 1.0);
    seen.send(()).unwrap();

    let (_, response) = next(&mut stream).await;
    assert_eq!(response["result"]["content"][0]["text"], "seen");
}

#[tokio::test]
async fn older_clients_get_no_priming_event() {
    let caller = HttpTestClient::new(server()).in_session("2025-06-18").await;

    let stream = caller
        .tool(1, "progress", json!({ "steps": 2 }))
        .await
        .stream();

    assert_eq!(stream.messages().await.len(), 3);
}

#[tokio::test]
async fn every_event_of_a_session_has_an_id_of_its_own() {
    req!(
        "http.resume.event-id-unique",
        "http.resume.event-id-stream",
        "http.get.no-response"
    );

    for revision in SESSIONS {
        let caller = HttpTestClient::new(server()).in_session(revision).await;
        let (mut general, first) = caller.opened().await;
        let mut ids = vec![first];

        for id in 0..3 {
            let mut stream = caller
                .tool(id, "progress", json!({ "steps": 3 }))
                .await
                .stream();
            while let Some(event) = stream.event().await {
                ids.push(event.last_event_id);
            }
        }
        caller.tool(9, "change", json!({})).await;
        let (id, received) = next(&mut general).await;
        ids.push(id);

        assert!(
            received.get("method").is_some(),
            "answers stay on their streams"
        );
        let count = ids.len();
        ids.sort();
        ids.dedup();
        // Streams of the newest one begin with a priming event.
        let expected = if revision == "2025-11-25" { 17 } else { 14 };
        assert_eq!((ids.len(), count), (expected, expected), "{revision}");
    }
}

#[tokio::test]
async fn a_lost_connection_cancels_nothing_and_the_remaining_events_arrive_once_in_order() {
    req!(
        "http.sse.disconnect-not-cancel",
        "http.sse.resumable",
        "http.resume.last-event-id",
        "http.resume.same-stream",
        "http.sse.response-eventually"
    );
    let (server, steps) = stepwise();
    let caller = HttpTestClient::new(server).in_session("2025-11-25").await;
    steps.add_permits(1);
    let mut stream = caller.tool(1, "work", json!({})).await.stream();
    stream.prime().await;
    let (last, _) = next(&mut stream).await;
    // Another stream; its events must not arrive here.
    let mut other = caller.get(None).await.stream();
    other.prime().await;

    drop(stream);
    steps.add_permits(1);
    caller.tool(2, "change", json!({})).await;
    tokio::task::yield_now().await;
    let mut resumed = caller.get(Some(&last)).await.stream();
    let (_, second) = next(&mut resumed).await;
    steps.add_permits(2);
    let (_, third) = next(&mut resumed).await;
    let (_, response) = next(&mut resumed).await;

    assert_eq!(second["params"]["progress"], 2.0);
    assert_eq!(third["params"]["progress"], 3.0);
    assert_eq!(
        (&response["id"], &response["result"]["content"][0]["text"]),
        (&json!(1), &json!("done"))
    );
    assert!(
        resumed.event().await.is_none(),
        "the stream ends with its answer"
    );
    let (_, changed) = next(&mut other).await;
    assert_eq!(changed["method"], "notifications/tools/list_changed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeatedly_broken_stream_loses_and_repeats_nothing() {
    let caller = HttpTestClient::new(server()).in_session("2025-11-25").await;
    let http_response = caller.tool(1, "progress", json!({ "steps": 500 })).await;
    let mut stream = http_response.stream();
    let mut last = stream.prime().await;
    let mut progress = Vec::new();

    for reading in 1.. {
        let mut response = None;
        // Every connection breaks a little later than the one before.
        for _ in 0..reading {
            let (id, message) = next(&mut stream).await;
            last = id;
            match message["params"]["progress"].as_f64() {
                Some(step) => progress.push(step),
                None => response = Some(message),
            }
            if response.is_some() {
                break;
            }
        }
        if response.is_some() {
            break;
        }
        drop(stream);
        stream = caller.get(Some(&last)).await.stream();
    }

    let expected: Vec<_> = (1..=500).map(f64::from).collect();
    assert_eq!(progress, expected);
}

#[tokio::test]
async fn a_finished_stream_can_still_be_read() {
    let caller = HttpTestClient::new(server()).in_session("2025-11-25").await;
    let mut stream = caller
        .tool(1, "progress", json!({ "steps": 3 }))
        .await
        .stream();
    let start = stream.prime().await;
    let (_, first) = next(&mut stream).await;
    let rest = stream.messages().await;

    let again = caller.get(Some(&start)).await.stream().messages().await;

    assert_eq!(again[0], first);
    assert_eq!(again[1..], rest);
}

#[tokio::test]
async fn events_of_others_are_unknown() {
    let caller = HttpTestClient::new(server());
    let alice = caller.clone().in_session("2025-11-25").await;
    let bob = caller.clone().in_session("2025-11-25").await;
    let mut stream = alice
        .tool(1, "progress", json!({ "steps": 1 }))
        .await
        .stream();
    let event = stream.prime().await;

    for id in [event.as_str(), "999-1", "nonsense", "", "1-999999"] {
        let http_response = bob.get(Some(id)).await;
        assert_eq!(http_response.status_and_code().await, (400, -32600), "{id}");
    }
    assert_eq!(alice.get(Some(&event)).await.status(), 200);
}

#[tokio::test]
async fn a_handler_may_close_its_stream_and_the_response_is_fetched_later() {
    req!("http.sse.polling-close");
    let gate = Arc::new(Semaphore::new(0));
    let permits = gate.clone();
    let reconnect = Tool::new("reconnect", move |_: Empty, cx: Context| {
        let permits = permits.clone();
        async move {
            cx.close_stream();
            permits.acquire().await.unwrap().forget();
            Ok("fetched".to_owned())
        }
    });
    let caller = HttpTestClient::new(server().tool(reconnect))
        .in_session("2025-11-25")
        .await;

    let mut stream = caller.tool(1, "reconnect", json!({})).await.stream();
    let id = stream.prime().await;
    assert!(stream.retry().is_some());
    assert!(stream.event().await.is_none(), "the connection ends");
    let mut resumed = caller.get(Some(&id)).await.stream();
    gate.add_permits(1);

    let (_, response) = next(&mut resumed).await;
    assert_eq!(response["result"]["content"][0]["text"], "fetched");
    assert!(resumed.event().await.is_none());
}

#[tokio::test]
async fn streams_are_not_closed_for_clients_that_cannot_resume() {
    req!("http.sse.no-early-close");
    let tool = Tool::new("reconnect", async |_: Empty, cx: Context| {
        cx.close_stream();
        tokio::task::yield_now().await;
        Ok("stayed".to_owned())
    });
    let caller = HttpTestClient::new(server().tool(tool));
    for version in ["2025-03-26", "2025-06-18"] {
        let older = caller.clone().in_session(version).await;
        let old = older.tool(1, "reconnect", json!({})).await.json().await;
        assert_eq!(old["result"]["content"][0]["text"], "stayed");
    }

    let modern = caller
        .modern_tool("reconnect", json!({}))
        .await
        .json()
        .await;

    assert_eq!(modern["result"]["content"][0]["text"], "stayed");
}

#[tokio::test(start_paused = true)]
async fn each_change_is_sent_on_the_newest_stream_only() {
    req!(
        "http.streams.no-broadcast",
        "http.get.unrelated",
        "http.get.messages"
    );

    for revision in SESSIONS {
        let caller = HttpTestClient::new(server()).in_session(revision).await;
        let mut older = caller.get(None).await.stream();
        let mut newer = caller.get(None).await.stream();
        if revision == "2025-11-25" {
            older.prime().await;
            newer.prime().await;
        }

        caller.tool(1, "change", json!({})).await;

        let (_, received) = next(&mut newer).await;
        assert_eq!(received["method"], "notifications/tools/list_changed");
        let silent = tokio::time::timeout(Duration::from_secs(1), older.event()).await;
        assert!(silent.is_err(), "the older stream stays open and silent");
        drop(newer);
        caller.tool(2, "change", json!({})).await;
        let (_, received) = next(&mut older).await;
        assert_eq!(received["method"], "notifications/tools/list_changed");
    }
}

#[tokio::test(start_paused = true)]
async fn each_change_is_sent_once_while_streams_open_and_close() {
    req!("http.streams.no-broadcast");

    for revision in SESSIONS {
        let caller = HttpTestClient::new(server()).in_session(revision).await;
        let (mut first, id) = caller.opened().await;
        let changes = async |stream: &mut Stream| {
            for number in 1..4 {
                caller.tool(number, "change", json!({})).await;
                let (_, received) = next(stream).await;
                assert_eq!(received["method"], "notifications/tools/list_changed");
            }
        };
        changes(&mut first).await;

        let mut second = caller.get(None).await.stream();
        if revision == "2025-11-25" {
            second.prime().await;
        }
        changes(&mut second).await;
        drop(second);
        changes(&mut first).await;
        drop(first);
        let mut resumed = caller.get(Some(&id)).await.stream();
        // The events of the first stream again, without those of the second.
        for _ in 0..6 {
            next(&mut resumed).await;
        }
        changes(&mut resumed).await;

        let silent = tokio::time::timeout(Duration::from_secs(1), resumed.event()).await;
        assert!(silent.is_err(), "no event is repeated");
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_session_in_another_process_ends_its_stream() {
    let store = Store::memory();
    let server = server().store(store.clone());
    let caller = HttpTestClient::new(server.clone())
        .in_session("2025-11-25")
        .await;
    let mut stream = caller.get(None).await.stream();
    stream.prime().await;
    for _ in 0..2 {
        server.tools_changed();
        next(&mut stream).await;
    }

    let session = caller.session.as_ref().unwrap().parse().unwrap();
    assert!(store.sessions.remove(&session).await.unwrap());

    let end = tokio::time::timeout(Duration::from_secs(60), stream.event()).await;
    assert!(end.is_ok_and(|event| event.is_none()));
}

#[tokio::test(start_paused = true)]
async fn a_change_while_disconnected_is_sent_after_reconnecting() {
    let caller = HttpTestClient::new(server()).in_session("2025-11-25").await;
    let mut stream = caller.get(None).await.stream();
    let id = stream.prime().await;
    drop(stream);

    caller.tool(1, "change", json!({})).await;
    caller.tool(2, "change", json!({})).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    let mut resumed = caller.get(Some(&id)).await.stream();

    for _ in 0..2 {
        let (_, received) = next(&mut resumed).await;
        assert_eq!(received["method"], "notifications/tools/list_changed");
    }
    caller.tool(3, "change", json!({})).await;
    next(&mut resumed).await;
}

#[tokio::test]
async fn updates_are_sent_to_subscribers() {
    let server = server();
    let caller = HttpTestClient::new(server.clone());
    let subscriber = caller.clone().in_session("2025-11-25").await;
    let other = caller.clone().in_session("2025-11-25").await;
    let subscribe = json!({
        "jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": { "uri": "test://a" },
    });
    subscriber.post(&subscribe).await;
    let mut theirs = subscriber.get(None).await.stream();
    let mut others = other.get(None).await.stream();
    theirs.prime().await;
    others.prime().await;

    server.resource_updated("test://a");
    server.tools_changed();

    let (_, received) = next(&mut theirs).await;
    assert_eq!(received["params"]["uri"], "test://a");
    let (_, received) = next(&mut others).await;
    assert_eq!(received["method"], "notifications/tools/list_changed");
}

#[tokio::test(start_paused = true)]
async fn changes_are_announced_on_a_get_stream_before_initialized() {
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let server = server();
        let mut caller = HttpTestClient::new(server.clone());
        let http_response = caller.post(&initialize(revision)).await;
        caller.session = http_response.header("mcp-session-id").map(str::to_owned);
        let subscribe = json!({
            "jsonrpc": "2.0", "id": 7, "method": "resources/subscribe", "params": { "uri": "test://a" },
        });
        caller.post(&subscribe).await;
        let mut stream = caller.get(None).await.stream();

        server.tools_changed();
        server.resource_updated("test://a");

        let mut received = Vec::new();
        while received.len() < 2 {
            let event = stream.event().await.expect("the stream goes on");
            if let Ok(message) = serde_json::from_str::<Value>(&event.data) {
                received.push(message["method"].clone());
            }
        }
        assert_eq!(
            received,
            [
                "notifications/tools/list_changed",
                "notifications/resources/updated"
            ],
            "{revision}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_session_ends_its_streams_and_calls() {
    let caller = HttpTestClient::new(server()).in_session("2025-11-25").await;
    let mut general = caller.get(None).await.stream();
    general.prime().await;
    let calling = tokio::spawn({
        let caller = caller.clone();
        async move { caller.tool(1, "sleep", json!({})).await }
    });
    tokio::time::sleep(Duration::from_millis(20)).await;

    caller.delete().await;

    assert!(general.event().await.is_none());
    let cancelled = calling.await.unwrap().stream();
    assert_eq!(cancelled.messages().await, Vec::<Value>::new());
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_gets_no_response() {
    let caller = HttpTestClient::new(server()).in_session("2025-11-25").await;
    let other = HttpTestClient::new(server()).in_session("2025-11-25").await;
    let calling = tokio::spawn({
        let caller = caller.clone();
        async move { caller.tool(5, "sleep", json!({})).await }
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    let cancel = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 5 },
    });

    // The id of a call of another session is unknown here.
    other.post(&cancel).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(!calling.is_finished());
    caller.post(&cancel).await;

    let cancelled = calling.await.unwrap().stream();
    assert_eq!(cancelled.messages().await, Vec::<Value>::new());
}

#[tokio::test]
async fn an_id_in_use_is_rejected_and_the_first_call_continues() {
    let (server, steps) = stepwise();
    let caller = HttpTestClient::new(server).in_session("2025-11-25").await;
    steps.add_permits(1);
    let mut first = caller.tool(1, "work", json!({})).await.stream();
    first.prime().await;
    next(&mut first).await;

    let second = caller.tool(1, "echo", json!({ "message": "hi" })).await;
    assert_eq!(second.status_and_code().await, (400, -32600));
    steps.add_permits(3);

    assert_eq!(first.messages().await.last().unwrap()["id"], 1);
    let reused = caller.tool(1, "echo", json!({ "message": "hi" })).await;
    assert_eq!(reused.status(), 200);
}

#[tokio::test]
async fn a_client_request_is_sent_on_the_stream_of_its_call() {
    req!("http.sse.messages-before", "http.sse.messages-related");
    let ask = Tool::new("ask", async |_: Empty, cx: Context| {
        let reply = cx
            .sample("reply", turnbuckle_server::SamplingBuilder::text("hello?"))
            .await?;
        Ok(format!("{reply:?}").contains("hi there").to_string())
    });
    let caller = HttpTestClient::new(server().tool(ask))
        .in_session("2025-11-25")
        .await;
    let mut stream = caller.tool(1, "ask", json!({})).await.stream();
    stream.prime().await;

    let (_, client_request) = next(&mut stream).await;
    assert_eq!(client_request["method"], "sampling/createMessage");
    let reply = json!({
        "jsonrpc": "2.0", "id": client_request["id"],
        "result": { "role": "assistant", "content": { "type": "text", "text": "hi there" }, "model": "m" },
    });
    assert_eq!(caller.post(&reply).await.status(), 202);

    let (_, response) = next(&mut stream).await;
    assert_eq!(response["result"]["content"][0]["text"], "true");
}

#[tokio::test(start_paused = true)]
async fn a_slow_call_becomes_a_stream_and_keeps_its_session_alive() {
    let tool = Tool::new("long", async |_: Empty| {
        tokio::time::sleep(Duration::from_secs(7_200)).await;
        Ok("done".to_owned())
    });
    let caller = HttpTestClient::with_options(Http::new(server().tool(tool)))
        .in_session("2025-11-25")
        .await;
    let started = tokio::time::Instant::now();

    let mut stream = caller.tool(1, "long", json!({})).await.stream();
    assert_eq!(started.elapsed(), Duration::from_secs(10));
    stream.prime().await;
    let (_, response) = next(&mut stream).await;

    assert_eq!(response["result"]["content"][0]["text"], "done");
    let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" });
    assert_eq!(caller.post(&ping).await.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_gets_everything() {
    let caller = HttpTestClient::new(server()).in_session("2025-11-25").await;
    let mut stream = caller
        .tool(1, "progress", json!({ "steps": 5_000 }))
        .await
        .stream();

    // More than the log holds, so the call waits for the reader.
    tokio::time::sleep(Duration::from_millis(100)).await;
    stream.prime().await;
    let messages = stream.messages().await;

    assert_eq!(messages.len(), 5_001);
    assert_eq!(messages[4_999]["params"]["progress"], 5_000.0);
}

/// A server with sessions that expire after five minutes.
fn forgetful(server: Server) -> Server {
    let mut limits = StoreLimits::default();
    limits.sessions.idle = Duration::from_secs(5 * 60);
    server.store(Store::memory_with(limits))
}

#[tokio::test(start_paused = true)]
async fn reading_changes_keeps_the_session_alive_without_heartbeats() {
    let server = forgetful(server());
    let http = Http::new(server.clone()).stream_heartbeat(Duration::MAX);
    let caller = HttpTestClient::with_options(http)
        .in_session("2025-11-25")
        .await;
    let mut stream = caller.get(None).await.stream();
    stream.prime().await;

    for _ in 0..5 {
        tokio::time::sleep(Duration::from_secs(2 * 60)).await;
        server.tools_changed();
        next(&mut stream).await;
        // It is polled again, as a connection does after a write.
        let silent = tokio::time::timeout(Duration::from_millis(1), stream.event()).await;
        assert!(silent.is_err());
    }

    let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" });
    assert_eq!(caller.post(&ping).await.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_always_lags_keeps_its_session() {
    let tool = Tool::new("talk", async |_: Empty, cx: Context| {
        for _ in 0..10 {
            cx.log(LogLevel::Info, "x".repeat(40 * 1024)).await;
        }
        Ok("done".to_owned())
    });
    let caller = HttpTestClient::new(forgetful(server().tool(tool)))
        .in_session("2025-11-25")
        .await;
    let mut stream = caller.tool(1, "talk", json!({})).await.stream();
    stream.prime().await;

    for _ in 0..10 {
        tokio::time::sleep(Duration::from_secs(2 * 60)).await;
        next(&mut stream).await;
    }

    let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" });
    assert_eq!(caller.post(&ping).await.status(), 200);
}

#[tokio::test]
async fn a_stream_needs_a_client_that_reads_events() {
    let caller = HttpTestClient::new(server()).in_session("2025-11-25").await;
    let mut builder = caller.request(http::Method::GET);
    builder
        .headers_mut()
        .unwrap()
        .insert("accept", "application/json".parse().unwrap());

    assert_eq!(
        caller.send(builder, "").await.status_and_code().await,
        (406, -32600)
    );
}

/// A server with a tool `large` that returns this many bytes after one progress report.
fn with_large_answer(bytes: usize) -> Server {
    let large = Tool::new("large", move |_: Empty, cx: Context| async move {
        cx.progress(1, 2).await;
        tokio::task::yield_now().await;
        Ok("x".repeat(bytes))
    });
    server().tool(large)
}

/// Calls `large`, loses the connection before the response, and returns the id of the last event.
async fn lose_large_answer(caller: &HttpTestClient) -> String {
    let mut stream = caller.tool(1, "large", json!({})).await.stream();
    let last = stream.prime().await;
    drop(stream);
    let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" });
    // The call has ended once its id is unused.
    while caller
        .tool(1, "echo", json!({ "message": "a" }))
        .await
        .status()
        != 200
    {
        assert_eq!(caller.post(&ping).await.status(), 200);
        tokio::task::yield_now().await;
    }
    tokio::task::yield_now().await;
    last
}

#[tokio::test]
async fn a_large_response_survives_a_lost_connection() {
    let caller = HttpTestClient::new(with_large_answer(2 * 1024 * 1024))
        .in_session("2025-11-25")
        .await;
    let last = lose_large_answer(&caller).await;

    let messages = caller.get(Some(&last)).await.stream().messages().await;

    let response = messages.last().expect("the answer");
    let text = response["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(text.len(), 2 * 1024 * 1024);
}

#[tokio::test]
async fn resuming_a_stream_with_an_expired_response_is_an_error() {
    let mut limits = StoreLimits::default();
    limits.events.max_total_bytes = 16 * 1024;
    let server = with_large_answer(64 * 1024).store(Store::memory_with(limits));
    let caller = HttpTestClient::new(server).in_session("2025-11-25").await;
    let last = lose_large_answer(&caller).await;

    let resumed = caller.get(Some(&last)).await;

    assert_eq!(resumed.status_and_code().await, (400, -32600));
}

#[tokio::test(start_paused = true)]
async fn a_call_is_answered_as_json_when_no_stream_can_be_opened() {
    let mut limits = StoreLimits::default();
    limits.events.max_streams = 1;
    let caller = HttpTestClient::new(server().store(Store::memory_with(limits)))
        .in_session("2025-11-25")
        .await;
    let _open = caller.tool(2, "sleep", json!({})).await.stream();

    let http_response = caller.tool(1, "progress", json!({ "steps": 3 })).await;

    assert_eq!(http_response.status(), 200);
    let response = http_response.json().await;
    assert_eq!(response["id"], 1);
    assert_eq!(response["result"]["content"][0]["text"], "done");
}
