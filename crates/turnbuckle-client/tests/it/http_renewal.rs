//! A session that is begun anew while other things happen.

use std::{
    future::IntoFuture,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use turnbuckle_client::Client;
use turnbuckle_protocol::types::{ContentBlock, CreateMessageResult};

use crate::{
    fake_http::{FakeHttp, Reply, Seen},
    http_peer::{LATEST_LEGACY, at, by_method, connect, posted, server, speaking},
};

/// A server whose first session is over when a tool is called, and that answers nobody without a session.
///
/// The test has the first say, and hears how often a session was begun.
fn strict(answer: impl Fn(&Seen, usize) -> Option<Reply> + Send + Sync + 'static) -> FakeHttp {
    let begun = AtomicUsize::new(0);
    server(LATEST_LEGACY, move |seen| {
        let begins = usize::from(seen.rpc() == "initialize");
        let number = begun.fetch_add(begins, Ordering::SeqCst) + begins;
        let usual = || match (seen.rpc().as_str(), seen.header("mcp-session-id")) {
            ("initialize", _) => None,
            ("tools/call", "session-1") => Some(Reply::status(404)),
            (_, "") => Some(Reply::status(400)),
            _ => None,
        };
        answer(seen, number).or_else(usual)
    })
}

/// The answer to the second handshake, which takes its time.
fn slowly(seen: &Seen, number: usize) -> Option<Reply> {
    (seen.rpc() == "initialize" && number == 2).then(|| {
        let result = json!({
            "protocolVersion": LATEST_LEGACY, "capabilities": { "tools": {} },
            "serverInfo": { "name": "fake", "version": "1" },
        });
        let answer = json!({ "jsonrpc": "2.0", "id": seen.json()["id"], "result": result });
        let reply = Reply::events(move |events| async move {
            sleep(Duration::from_secs(1)).await;
            events.message(&answer);
        });
        reply.header("Mcp-Session-Id", "session-2")
    })
}

/// Says whether the second handshake is done.
fn is_second(seen: &Seen) -> bool {
    seen.rpc() == "notifications/initialized" && seen.header("mcp-session-id") == "session-2"
}

async fn call(client: &Client) -> Result<(), String> {
    let called = client.call_tool("a", json!({})).await;
    called.map(|_| ()).map_err(|problem| format!("{problem:?}"))
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_made_meanwhile_waits_for_the_new_session() {
    let fake = strict(slowly);
    let client = connect(&fake, LATEST_LEGACY).await;
    let first = tokio::spawn(client.call_tool("a", json!({})).into_future());
    fake.first(|seen| seen.rpc() == "initialize" && seen.json()["id"] != 1)
        .await;

    let second = call(&client).await;

    assert_eq!(second, Ok(()));
    first.await.unwrap().unwrap();
    assert_eq!(posted(&fake, "initialize").len(), 2, "one for both");
    let calls = posted(&fake, "tools/call").into_iter();
    let early = calls.filter(|seen| seen.header("mcp-session-id") == "session-2");
    let done = fake.first(is_second).await.at;
    assert_eq!(early.filter(|seen| seen.at < done).count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_new_session_that_failed_is_tried_again_by_the_next_call() {
    for failing in ["initialize", "notifications/initialized"] {
        let fake = strict(move |seen, number| {
            (seen.rpc() == failing && number == 2).then(|| Reply::status(503))
        });
        let client = connect(&fake, LATEST_LEGACY).await;

        let first = call(&client).await;
        let second = call(&client).await;

        assert!(first.is_err(), "{failing}");
        assert_eq!(second, Ok(()), "{failing}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_meanwhile_leaves_no_half_a_session() {
    let fake = strict(slowly);
    let client = connect(&fake, LATEST_LEGACY).await;

    let dropped = timeout(Duration::from_millis(100), call(&client)).await;
    let next = call(&client).await;

    assert!(dropped.is_err());
    assert_eq!(next, Ok(()));
    let said = posted(&fake, "notifications/initialized").len();
    assert_eq!(said, posted(&fake, "initialize").len());
}

#[tokio::test(start_paused = true)]
async fn what_a_lost_session_asked_is_not_answered_in_the_next() {
    let question = json!({
        "jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage",
        "params": { "messages": [], "maxTokens": 1 },
    });
    let fake = strict(move |seen, _| {
        let question = question.clone();
        (seen.method == "GET" && seen.header("mcp-session-id") == "session-1").then(|| {
            Reply::events(move |events| async move {
                events.message(&question);
                events.closed().await;
            })
        })
    });
    let client = speaking(LATEST_LEGACY).on_sampling(|_| async {
        sleep(Duration::from_secs(10)).await;
        Ok(CreateMessageResult::new("m", ContentBlock::text("late")))
    });
    let client = client.connect(at(&fake)).await.unwrap();

    sleep(Duration::from_secs(1)).await;
    call(&client).await.unwrap();
    sleep(Duration::from_secs(20)).await;

    let answers = fake.seen().into_iter().filter(|seen| {
        let message = seen.json();
        message["method"] == Value::Null && message["id"] == 1
    });
    assert_eq!(answers.count(), 0, "another question may have that id now");
}

#[tokio::test(start_paused = true)]
async fn closing_meanwhile_opens_no_stream_afterwards() {
    let fake = strict(|seen, number| {
        (seen.rpc() == "notifications/initialized" && number == 2).then(|| {
            Reply::events(|events| async move {
                sleep(Duration::from_secs(1)).await;
                drop(events);
            })
        })
    });
    let client = connect(&fake, LATEST_LEGACY).await;
    let waiting = tokio::spawn(client.call_tool("a", json!({})).into_future());
    fake.first(is_second).await;

    client.close().await;
    sleep(Duration::from_secs(5)).await;

    assert!(waiting.await.unwrap().is_err());
    assert_eq!(
        by_method(&fake, "GET").len(),
        1,
        "the one of the first session"
    );
}
