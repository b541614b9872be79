//! Changes that come over HTTP, and sessions that end while somebody only listens.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use serde_json::{Value, json};
use turnbuckle_client::{Change, Subscription, SubscriptionEvent};
use turnbuckle_protocol::types::SubscriptionFilter;

use crate::{
    fake_http::{Events, FakeHttp, Reply, Seen},
    http_peer::{LATEST_LEGACY, MODERN, by_method, connect, posted, server},
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

async fn hear(listening: &mut Subscription) -> SubscriptionEvent {
    let heard = tokio::time::timeout(Duration::from_secs(300), listening.next()).await;
    heard
        .expect("something is heard")
        .expect("it goes on")
        .unwrap()
}

/// A session whose server says that tools can change, and whose streams a test runs.
fn changing(streams: impl Fn(&Seen, usize) -> Option<Reply> + Send + Sync + 'static) -> FakeHttp {
    let opened = AtomicUsize::new(0);
    server(LATEST_LEGACY, move |seen| {
        if seen.method == "GET" {
            return streams(seen, opened.fetch_add(1, Ordering::SeqCst) + 1);
        }
        (seen.rpc() == "initialize").then(|| {
            let result = json!({
                "protocolVersion": LATEST_LEGACY,
                "capabilities": { "tools": { "listChanged": true } },
                "serverInfo": { "name": "fake", "version": "1" },
            });
            let session = format!("session-{}", opened.load(Ordering::SeqCst));
            Reply::result(seen, &result).header("Mcp-Session-Id", &session)
        })
    })
}

async fn hold(events: Events, message: &str) {
    tokio::time::sleep(Duration::from_secs(1)).await;
    events.text(message);
    events.closed().await;
}

#[tokio::test(start_paused = true)]
async fn a_modern_listener_hears_changes_on_the_response_and_listens_again_when_it_breaks() {
    let fake = server(MODERN, |seen| {
        (seen.rpc() == "subscriptions/listen").then(|| {
            let id = seen.json()["id"].clone();
            Reply::events(move |events| async move {
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
    let client = connect(&fake, MODERN).await;

    let mut listening = client.listen(tools()).await.unwrap();

    for _ in 0..3 {
        assert!(matches!(
            hear(&mut listening).await,
            SubscriptionEvent::Acknowledged(_)
        ));
        assert!(matches!(
            hear(&mut listening).await,
            SubscriptionEvent::Change(Change::Tools)
        ));
        assert!(matches!(
            hear(&mut listening).await,
            SubscriptionEvent::Interrupted
        ));
    }
    let asked = posted(&fake, "subscriptions/listen");
    assert_ne!(asked[0].json()["id"], asked[1].json()["id"]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_goes_on_where_it_ended_has_no_gap() {
    let fake = changing(|_, number| {
        Some(Reply::events(move |events| async move {
            let message = format!("id: {number}\ndata: {}\n\n", changed(None));
            tokio::time::sleep(Duration::from_secs(1)).await;
            events.text(&message);
        }))
    });
    let client = connect(&fake, LATEST_LEGACY).await;
    let mut listening = client.listen(tools()).await.unwrap();
    assert!(matches!(
        hear(&mut listening).await,
        SubscriptionEvent::Acknowledged(_)
    ));

    for _ in 0..3 {
        assert!(matches!(
            hear(&mut listening).await,
            SubscriptionEvent::Change(Change::Tools)
        ));
    }
    assert_eq!(by_method(&fake, "GET")[2].header("last-event-id"), "2");
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_ids_that_breaks_is_a_gap() {
    let fake = changing(|_, _| {
        Some(Reply::events(|events| async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            events.message(&changed(None));
            events.cut();
        }))
    });
    let client = connect(&fake, LATEST_LEGACY).await;
    let mut listening = client.listen(tools()).await.unwrap();

    for _ in 0..3 {
        assert!(matches!(
            hear(&mut listening).await,
            SubscriptionEvent::Acknowledged(_)
        ));
        assert!(matches!(
            hear(&mut listening).await,
            SubscriptionEvent::Change(Change::Tools)
        ));
        assert!(matches!(
            hear(&mut listening).await,
            SubscriptionEvent::Interrupted
        ));
    }
}

#[tokio::test(start_paused = true)]
async fn a_listener_survives_the_end_of_its_session() {
    let fake = changing(|seen, number| match number {
        1 => Some(Reply::events(|events| async move {
            hold(
                events.clone(),
                &format!("id: 1\ndata: {}\n\n", changed(None)),
            )
            .await;
        })),
        _ if seen.header("mcp-session-id") == "session-0" => Some(Reply::status(404)),
        _ => Some(Reply::events(|events| async move {
            hold(events.clone(), &format!("data: {}\n\n", changed(None))).await;
        })),
    });
    let client = connect(&fake, LATEST_LEGACY).await;
    let mut listening = client.listen(tools()).await.unwrap();
    assert!(matches!(
        hear(&mut listening).await,
        SubscriptionEvent::Acknowledged(_)
    ));
    assert!(matches!(
        hear(&mut listening).await,
        SubscriptionEvent::Change(Change::Tools)
    ));

    fake.hang_up();

    assert!(matches!(
        hear(&mut listening).await,
        SubscriptionEvent::Interrupted
    ));
    assert!(matches!(
        hear(&mut listening).await,
        SubscriptionEvent::Acknowledged(_)
    ));
    assert!(matches!(
        hear(&mut listening).await,
        SubscriptionEvent::Change(Change::Tools)
    ));
    assert_eq!(posted(&fake, "initialize").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ends_while_nobody_listens_is_left_until_somebody_calls() {
    let fake = changing(|_, number| match number {
        1 => Some(Reply::events(|_| async {})),
        _ => Some(Reply::status(404)),
    });
    let client = connect(&fake, LATEST_LEGACY).await;

    tokio::time::sleep(Duration::from_secs(600)).await;

    assert_eq!(posted(&fake, "initialize").len(), 1);
    client.call_tool("a", json!({})).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn closing_ends_a_listener() {
    for revision in [MODERN, LATEST_LEGACY] {
        let fake = server(revision, |seen| {
            let id = seen.json()["id"].clone();
            let listen = seen.method == "GET" || seen.rpc() == "subscriptions/listen";
            listen.then(|| {
                Reply::events(move |events| async move {
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
        let client = connect(&fake, revision).await;
        let mut listening = client.listen(tools()).await.unwrap();
        assert!(matches!(
            hear(&mut listening).await,
            SubscriptionEvent::Acknowledged(_)
        ));

        client.close().await;

        assert!(
            matches!(hear(&mut listening).await, SubscriptionEvent::Ended),
            "{revision}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn who_is_no_longer_let_in_hears_so() {
    for (revision, status) in [(MODERN, 401), (LATEST_LEGACY, 403)] {
        let heard = AtomicUsize::new(0);
        let fake = server(revision, move |seen| {
            let asked = seen.rpc() == "subscriptions/listen" || seen.method == "GET";
            if !asked {
                return None;
            }
            if heard.fetch_add(1, Ordering::SeqCst) > 0 {
                return Some(Reply::status(status));
            }
            let id = seen.json()["id"].clone();
            Some(Reply::events(move |events| async move {
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
        let client = connect(&fake, revision).await;
        let mut listening = client.listen(tools()).await.unwrap();

        let problem = async {
            loop {
                match listening.next().await {
                    Some(Err(problem)) => return problem,
                    Some(Ok(_)) => {}
                    None => panic!("the end says why"),
                }
            }
        };

        let problem = tokio::time::timeout(Duration::from_secs(300), problem).await;
        let problem = problem.expect("it is said in time");
        assert_eq!(problem.status().map(|told| told.as_u16()), Some(status));
    }
}
