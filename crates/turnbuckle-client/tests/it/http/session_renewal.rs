//! Session renewal while other requests are in flight.

use std::{
    future::IntoFuture,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use turnbuckle_client::Client;
use turnbuckle_protocol::types::{ContentBlock, CreateMessageResult, SubscriptionFilter};

use crate::servers::{
    mock_http::{EventWriter, MockHttpServer, MockResponse, RecordedRequest},
    mock_mcp_http::{
        LATEST_LEGACY, builder_for, by_method, connect, posted_messages, server, target_of,
    },
};

/// A server that ends its first session on a tool call, and rejects requests without a session.
///
/// `respond` comes first, and receives the number of handshakes.
fn strict_server(
    respond: impl Fn(&RecordedRequest, usize) -> Option<MockResponse> + Send + Sync + 'static,
) -> MockHttpServer {
    let handshakes = AtomicUsize::new(0);
    server(LATEST_LEGACY, move |request| {
        let increment = usize::from(request.rpc() == "initialize");
        let number = handshakes.fetch_add(increment, Ordering::SeqCst) + increment;
        let by_session = || match (request.rpc().as_str(), request.header("mcp-session-id")) {
            ("initialize", _) => None,
            ("tools/call", "session-1") => Some(MockResponse::status(404)),
            (_, "") => Some(MockResponse::status(400)),
            _ => None,
        };
        respond(request, number).or_else(by_session)
    })
}

/// A slow response to the second handshake.
fn slow_handshake(request: &RecordedRequest, number: usize) -> Option<MockResponse> {
    (request.rpc() == "initialize" && number == 2).then(|| {
        let result = json!({
            "protocolVersion": LATEST_LEGACY, "capabilities": { "tools": {} },
            "serverInfo": { "name": "fake", "version": "1" },
        });
        let response = json!({ "jsonrpc": "2.0", "id": request.json()["id"], "result": result });
        let reply = MockResponse::events(move |events| async move {
            sleep(Duration::from_secs(1)).await;
            events.message(&response);
        });
        reply.header("Mcp-Session-Id", "session-2")
    })
}

/// Returns whether the second handshake is done.
fn is_second(request: &RecordedRequest) -> bool {
    request.rpc() == "notifications/initialized" && request.header("mcp-session-id") == "session-2"
}

async fn call(client: &Client) -> Result<(), String> {
    let called = client.call_tool("a", json!({})).await;
    called.map(|_| ()).map_err(|error| format!("{error:?}"))
}

#[tokio::test(start_paused = true)]
async fn a_call_during_renewal_waits_for_the_new_session() {
    let mock = strict_server(slow_handshake);
    let client = connect(&mock, LATEST_LEGACY).await;
    let first = tokio::spawn(client.call_tool("a", json!({})).into_future());
    mock.first(|request| request.rpc() == "initialize" && request.json()["id"] != 1)
        .await;

    let second = call(&client).await;

    assert_eq!(second, Ok(()));
    first.await.unwrap().unwrap();
    assert_eq!(
        posted_messages(&mock, "initialize").len(),
        2,
        "one for both"
    );
    let calls = posted_messages(&mock, "tools/call").into_iter();
    let early = calls.filter(|request| request.header("mcp-session-id") == "session-2");
    let done = mock.first(is_second).await.at;
    assert_eq!(early.filter(|request| request.at < done).count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_failed_renewal_is_tried_again_by_the_next_call() {
    for failing in ["initialize", "notifications/initialized"] {
        let mock = strict_server(move |request, number| {
            (request.rpc() == failing && number == 2).then(|| MockResponse::status(503))
        });
        let client = connect(&mock, LATEST_LEGACY).await;

        let first = call(&client).await;
        let second = call(&client).await;

        assert!(first.is_err(), "{failing}");
        assert_eq!(second, Ok(()), "{failing}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_during_renewal_does_not_interrupt_it() {
    let mock = strict_server(slow_handshake);
    let client = connect(&mock, LATEST_LEGACY).await;

    let dropped = timeout(Duration::from_millis(100), call(&client)).await;
    let next = call(&client).await;

    assert!(dropped.is_err());
    assert_eq!(next, Ok(()));
    let sent = posted_messages(&mock, "notifications/initialized").len();
    assert_eq!(sent, posted_messages(&mock, "initialize").len());
}

#[tokio::test(start_paused = true)]
async fn requests_of_an_ended_session_get_no_response_in_the_next() {
    let sampling_request = json!({
        "jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage",
        "params": { "messages": [], "maxTokens": 1 },
    });
    let mock = strict_server(move |request, _| {
        let sampling_request = sampling_request.clone();
        (request.method == "GET" && request.header("mcp-session-id") == "session-1").then(|| {
            MockResponse::events(move |events| async move {
                events.message(&sampling_request);
                events.closed().await;
            })
        })
    });
    let client = builder_for(LATEST_LEGACY).on_sampling(|_| async {
        sleep(Duration::from_secs(10)).await;
        Ok(CreateMessageResult::new("m", ContentBlock::text("late")))
    });
    let client = client.connect(target_of(&mock)).await.unwrap();

    sleep(Duration::from_secs(1)).await;
    call(&client).await.unwrap();
    sleep(Duration::from_secs(20)).await;

    let responses = mock.requests().into_iter().filter(|request| {
        let message = request.json();
        message["method"] == Value::Null && message["id"] == 1
    });
    assert_eq!(responses.count(), 0, "another request may have that id now");
}

#[tokio::test(start_paused = true)]
async fn closing_during_renewal_opens_no_get_stream() {
    let mock = strict_server(|request, number| {
        (request.rpc() == "notifications/initialized" && number == 2).then(|| {
            MockResponse::events(|events| async move {
                sleep(Duration::from_secs(1)).await;
                drop(events);
            })
        })
    });
    let client = connect(&mock, LATEST_LEGACY).await;
    let waiting = tokio::spawn(client.call_tool("a", json!({})).into_future());
    mock.first(is_second).await;

    client.close().await;
    sleep(Duration::from_secs(5)).await;

    assert!(waiting.await.unwrap().is_err());
    assert_eq!(
        by_method(&mock, "GET").len(),
        1,
        "the one of the first session"
    );
}

/// The response of servers after the examples of the TypeScript SDK to a request of an unknown session.
fn no_valid_session(id: &Value) -> MockResponse {
    let message = "Bad Request: No valid session ID provided";
    let error = json!({ "code": -32000, "message": message });
    MockResponse::json(&json!({ "jsonrpc": "2.0", "error": error, "id": id })).with_status(400)
}

#[tokio::test(start_paused = true)]
async fn status_400_for_an_unknown_session_leads_to_one_new_session() {
    for repeats_id in [false, true] {
        // Session 1 is lost by a restart.
        let mock = server(LATEST_LEGACY, move |request| {
            let is_lost =
                request.rpc() == "tools/call" && request.header("mcp-session-id") == "session-1";
            let id = request.json()["id"].clone();
            is_lost.then(|| no_valid_session(if repeats_id { &id } else { &Value::Null }))
        });
        let client = connect(&mock, LATEST_LEGACY).await;

        assert_eq!(call(&client).await, Ok(()));
        assert_eq!(call(&client).await, Ok(()));

        assert_eq!(posted_messages(&mock, "initialize").len(), 2);
        assert_eq!(posted_messages(&mock, "tools/call").len(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_knows_no_session_is_initialized_again_only_once_per_call() {
    let mock = server(LATEST_LEGACY, |request| {
        (request.rpc() == "tools/call").then(|| no_valid_session(&Value::Null))
    });
    let client = connect(&mock, LATEST_LEGACY).await;

    assert!(call(&client).await.is_err());

    assert_eq!(posted_messages(&mock, "initialize").len(), 2);
    assert_eq!(posted_messages(&mock, "tools/call").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn another_error_with_status_400_starts_no_new_session() {
    for (code, message) in [
        (-32602, "unknown session ID in the arguments"),
        (-32000, "the budget is exhausted"),
    ] {
        let mock = server(LATEST_LEGACY, move |request| {
            (request.rpc() == "tools/call").then(|| {
                let error = json!({ "code": code, "message": message });
                let id = request.json()["id"].clone();
                MockResponse::json(&json!({ "jsonrpc": "2.0", "error": error, "id": id }))
                    .with_status(400)
            })
        });
        let client = connect(&mock, LATEST_LEGACY).await;

        let error = client.call_tool("a", json!({})).await.unwrap_err();

        assert_eq!(error.rpc().unwrap().code, code);
        assert_eq!(posted_messages(&mock, "initialize").len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_get_stream_rejected_with_status_400_renews_the_session() {
    let streams = AtomicUsize::new(0);
    let mock = server(LATEST_LEGACY, move |request| {
        if request.method != "GET" {
            return None;
        }
        Some(match streams.fetch_add(1, Ordering::SeqCst) {
            0 => MockResponse::events(|events| async move { drop(events) }),
            1 => MockResponse::text("text/html", "Invalid or missing session ID").with_status(400),
            _ => MockResponse::events(EventWriter::closed),
        })
    });
    let client = connect(&mock, LATEST_LEGACY).await;

    let _changes = client.listen(SubscriptionFilter::default()).await.unwrap();

    mock.first(is_second).await;
}
