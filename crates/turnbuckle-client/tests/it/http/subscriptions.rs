//! Changes over HTTP, and sessions that end during a subscription.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use serde_json::{Value, json};
use turnbuckle_client::{Change, Subscription, SubscriptionEvent};
use turnbuckle_protocol::types::SubscriptionFilter;

use crate::servers::{
    mock_http::{EventWriter, MockHttpServer, MockResponse, RecordedRequest},
    mock_mcp_http::{LATEST_LEGACY, MODERN, by_method, connect, posted_messages, server},
};

fn tools() -> SubscriptionFilter {
    SubscriptionFilter::new().tools_list_changed(true)
}

fn changed(subscription: Option<&Value>) -> Value {
    let mut message =
        json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {} });
    if let Some(id) = subscription {
        message["params"]["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": id });
    }
    message
}

async fn next_event(listening: &mut Subscription) -> SubscriptionEvent {
    let received = tokio::time::timeout(Duration::from_secs(300), listening.next()).await;
    received
        .expect("an event is received")
        .expect("the subscription is open")
        .unwrap()
}

/// A session with `listChanged` for tools; `streams` handles the GET streams.
fn changing_server(
    streams: impl Fn(&RecordedRequest, usize) -> Option<MockResponse> + Send + Sync + 'static,
) -> MockHttpServer {
    let opened = AtomicUsize::new(0);
    server(LATEST_LEGACY, move |request| {
        if request.method == "GET" {
            return streams(request, opened.fetch_add(1, Ordering::SeqCst) + 1);
        }
        (request.rpc() == "initialize").then(|| {
            let result = json!({
                "protocolVersion": LATEST_LEGACY,
                "capabilities": { "tools": { "listChanged": true } },
                "serverInfo": { "name": "fake", "version": "1" },
            });
            let session = format!("session-{}", opened.load(Ordering::SeqCst));
            MockResponse::result(request, &result).header("Mcp-Session-Id", &session)
        })
    })
}

async fn hold(events: EventWriter, message: &str) {
    tokio::time::sleep(Duration::from_secs(1)).await;
    events.text(message);
    events.closed().await;
}

#[tokio::test(start_paused = true)]
async fn a_modern_subscription_is_renewed_when_its_response_stream_breaks() {
    let mock = server(MODERN, |request| {
        (request.rpc() == "subscriptions/listen").then(|| {
            let id = request.json()["id"].clone();
            MockResponse::events(move |events| async move {
                events.message(&json!({
                    "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                    "params": {
                        "notifications": { "toolsListChanged": true },
                        "_meta": { "io.modelcontextprotocol/subscriptionId": id },
                    },
                }));
                tokio::time::sleep(Duration::from_secs(1)).await;
                events.message(&changed(Some(&id)));
                tokio::time::sleep(Duration::from_secs(1)).await;
                events.cut();
            })
        })
    });
    let client = connect(&mock, MODERN).await;

    let mut listening = client.listen(tools()).await.unwrap();

    for _ in 0..3 {
        assert!(matches!(
            next_event(&mut listening).await,
            SubscriptionEvent::Acknowledged(_)
        ));
        assert!(matches!(
            next_event(&mut listening).await,
            SubscriptionEvent::Change(Change::Tools)
        ));
        assert!(matches!(
            next_event(&mut listening).await,
            SubscriptionEvent::Interrupted
        ));
    }
    let listens = posted_messages(&mock, "subscriptions/listen");
    assert_ne!(listens[0].json()["id"], listens[1].json()["id"]);
}

#[tokio::test(start_paused = true)]
async fn a_resumed_get_stream_has_no_gap() {
    let mock = changing_server(|_, number| {
        Some(MockResponse::events(move |events| async move {
            let message = format!("id: {number}\ndata: {}\n\n", changed(None));
            tokio::time::sleep(Duration::from_secs(1)).await;
            events.text(&message);
        }))
    });
    let client = connect(&mock, LATEST_LEGACY).await;
    let mut listening = client.listen(tools()).await.unwrap();
    assert!(matches!(
        next_event(&mut listening).await,
        SubscriptionEvent::Acknowledged(_)
    ));

    for _ in 0..3 {
        assert!(matches!(
            next_event(&mut listening).await,
            SubscriptionEvent::Change(Change::Tools)
        ));
    }
    assert_eq!(by_method(&mock, "GET")[2].header("last-event-id"), "2");
}

#[tokio::test(start_paused = true)]
async fn a_broken_get_stream_without_ids_is_a_gap() {
    let mock = changing_server(|_, _| {
        Some(MockResponse::events(|events| async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            events.message(&changed(None));
            events.cut();
        }))
    });
    let client = connect(&mock, LATEST_LEGACY).await;
    let mut listening = client.listen(tools()).await.unwrap();

    for _ in 0..3 {
        assert!(matches!(
            next_event(&mut listening).await,
            SubscriptionEvent::Acknowledged(_)
        ));
        assert!(matches!(
            next_event(&mut listening).await,
            SubscriptionEvent::Change(Change::Tools)
        ));
        assert!(matches!(
            next_event(&mut listening).await,
            SubscriptionEvent::Interrupted
        ));
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscription_survives_the_end_of_its_session() {
    let mock = changing_server(|request, number| match number {
        1 => Some(MockResponse::events(|events| async move {
            hold(
                events.clone(),
                &format!("id: 1\ndata: {}\n\n", changed(None)),
            )
            .await;
        })),
        _ if request.header("mcp-session-id") == "session-0" => Some(MockResponse::status(404)),
        _ => Some(MockResponse::events(|events| async move {
            hold(events.clone(), &format!("data: {}\n\n", changed(None))).await;
        })),
    });
    let client = connect(&mock, LATEST_LEGACY).await;
    let mut listening = client.listen(tools()).await.unwrap();
    assert!(matches!(
        next_event(&mut listening).await,
        SubscriptionEvent::Acknowledged(_)
    ));
    assert!(matches!(
        next_event(&mut listening).await,
        SubscriptionEvent::Change(Change::Tools)
    ));

    mock.disconnect_all();

    assert!(matches!(
        next_event(&mut listening).await,
        SubscriptionEvent::Interrupted
    ));
    assert!(matches!(
        next_event(&mut listening).await,
        SubscriptionEvent::Acknowledged(_)
    ));
    assert!(matches!(
        next_event(&mut listening).await,
        SubscriptionEvent::Change(Change::Tools)
    ));
    assert_eq!(posted_messages(&mock, "initialize").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn without_subscribers_an_ended_session_is_renewed_by_the_next_call() {
    let mock = changing_server(|_, number| match number {
        1 => Some(MockResponse::events(|_| async {})),
        _ => Some(MockResponse::status(404)),
    });
    let client = connect(&mock, LATEST_LEGACY).await;

    tokio::time::sleep(Duration::from_secs(600)).await;

    assert_eq!(posted_messages(&mock, "initialize").len(), 1);
    client.call_tool("a", json!({})).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn closing_ends_a_subscription() {
    for revision in [MODERN, LATEST_LEGACY] {
        let mock = server(revision, |request| {
            let id = request.json()["id"].clone();
            let listen = request.method == "GET" || request.rpc() == "subscriptions/listen";
            listen.then(|| {
                MockResponse::events(move |events| async move {
                    events.message(&json!({
                        "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                        "params": {
                            "notifications": {},
                            "_meta": { "io.modelcontextprotocol/subscriptionId": id },
                        },
                    }));
                    events.closed().await;
                })
            })
        });
        let client = connect(&mock, revision).await;
        let mut listening = client.listen(tools()).await.unwrap();
        assert!(matches!(
            next_event(&mut listening).await,
            SubscriptionEvent::Acknowledged(_)
        ));

        client.close().await;

        assert!(
            matches!(next_event(&mut listening).await, SubscriptionEvent::Ended),
            "{revision}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscription_ends_when_it_is_no_longer_authorized() {
    for (revision, status) in [(MODERN, 401), (LATEST_LEGACY, 403)] {
        let count = AtomicUsize::new(0);
        let mock = server(revision, move |request| {
            let opens_stream = request.rpc() == "subscriptions/listen" || request.method == "GET";
            if !opens_stream {
                return None;
            }
            if count.fetch_add(1, Ordering::SeqCst) > 0 {
                return Some(MockResponse::status(status));
            }
            let id = request.json()["id"].clone();
            Some(MockResponse::events(move |events| async move {
                events.message(&json!({
                    "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                    "params": {
                        "notifications": {},
                        "_meta": { "io.modelcontextprotocol/subscriptionId": id },
                    },
                }));
                tokio::time::sleep(Duration::from_secs(1)).await;
            }))
        });
        let client = connect(&mock, revision).await;
        let mut listening = client.listen(tools()).await.unwrap();

        let error = async {
            loop {
                match listening.next().await {
                    Some(Err(error)) => return error,
                    Some(Ok(_)) => {}
                    None => panic!("the end has a reason"),
                }
            }
        };

        let error = tokio::time::timeout(Duration::from_secs(300), error).await;
        let error = error.expect("the end is reported in time");
        assert_eq!(
            error.status().map(|reported| reported.as_u16()),
            Some(status)
        );
    }
}
