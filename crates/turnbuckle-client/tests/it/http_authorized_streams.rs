//! Streams that are refused: the server's own, those that are taken up again, and those of HTTP+SSE.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use turnbuckle_client::{CallError, Client, ConnectError, SubscriptionEvent, TransportError};
use turnbuckle_protocol::types::SubscriptionFilter;

use crate::{
    fake_http::{Events, FakeHttp, Reply, Seen},
    http_peer::{LATEST_LEGACY, answer_to, at, by_method, output, posted, server, speaking},
    wallet::{Wallet, guarded, token, unauthorized},
};

fn log(text: &str) -> Value {
    json!({
        "jsonrpc": "2.0", "method": "notifications/message",
        "params": { "level": "info", "data": text },
    })
}

/// A session whose streams are answered by their number, once they are let in with a token of that number.
fn with_streams(streams: impl Fn(u64) -> Option<Reply> + Send + Sync + 'static) -> FakeHttp {
    let opened = AtomicUsize::new(0);
    server(LATEST_LEGACY, move |seen| {
        if seen.rpc() == "initialize" {
            let result = json!({
                "protocolVersion": LATEST_LEGACY,
                "capabilities": { "tools": { "listChanged": true }, "logging": {} },
                "serverInfo": { "name": "fake", "version": "1" },
            });
            return Some(Reply::result(seen, &result).header("Mcp-Session-Id", "s"));
        }
        if seen.method != "GET" {
            return None;
        }
        let number = opened.load(Ordering::SeqCst) as u64 + 1;
        if token(seen) < number {
            return Some(unauthorized());
        }
        opened.fetch_add(1, Ordering::SeqCst);
        streams(number)
    })
}

#[tokio::test(start_paused = true)]
async fn the_servers_own_stream_goes_on_with_new_credentials() {
    let fake = with_streams(|number| {
        Some(Reply::events(move |events| async move {
            events.text(&format!("id: e-{number}\ndata: {}\n\n", log("said")));
            if number == 3 {
                events.closed().await;
            }
        }))
    });
    let wallet = Wallet::default();
    let (told, mut heard) = mpsc::unbounded_channel();

    let _client = speaking(LATEST_LEGACY)
        .on_log(move |message| told.send(message.data).unwrap())
        .connect(at(&fake).authorization(wallet.clone()))
        .await
        .unwrap();
    for _ in 0..3 {
        assert_eq!(heard.recv().await.unwrap(), "said");
    }

    let gets = by_method(&fake, "GET");
    let asked: Vec<_> = gets
        .iter()
        .map(|get| (token(get), get.header("last-event-id")))
        .collect();
    assert_eq!(
        asked,
        [
            (0, ""),
            (1, ""),
            (1, "e-1"),
            (2, "e-1"),
            (2, "e-2"),
            (3, "e-2")
        ]
    );
    assert!(wallet.told().iter().all(|told| told.method == "GET"));
}

#[tokio::test(start_paused = true)]
async fn who_listens_is_told_when_the_stream_is_not_let_in_any_more() {
    for fails in [true, false] {
        let fake = with_streams(|_| {
            Some(Reply::events(|events| async move {
                tokio::time::sleep(Duration::from_secs(5)).await;
                drop(events);
            }))
        });
        let wallet = Wallet::default().with_token();
        let target = at(&fake).authorization(wallet.clone());
        let client = speaking(LATEST_LEGACY).connect(target).await.unwrap();
        if fails {
            wallet.fails();
        } else {
            wallet.gives_up();
        }

        let filter = SubscriptionFilter::new().tools_list_changed(true);
        let mut listening = client.listen(filter).await.unwrap();
        let error = loop {
            match listening.next().await.unwrap() {
                Ok(SubscriptionEvent::Acknowledged(_) | SubscriptionEvent::Interrupted) => {}
                Ok(other) => panic!("{other:?}"),
                Err(error) => break error,
            }
        };

        match (fails, &error) {
            (true, CallError::Authorization { source, .. }) => {
                assert!(source.reason().contains("revoked"));
            }
            (
                false,
                CallError::Disconnected {
                    source: TransportError::ErrorResponse(refusal),
                    ..
                },
            ) => assert_eq!(refusal.status, 401),
            _ => panic!("{error:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_taken_up_again_is_authorized_again() {
    for revision in ["2025-03-26", "2025-06-18", LATEST_LEGACY] {
        let call: Arc<Mutex<Option<Seen>>> = Arc::default();
        let fake = server(revision, move |seen| {
            if seen.rpc() == "tools/call" {
                *call.lock().unwrap() = Some(seen.clone());
                return Some(Reply::events(|events| async move {
                    events.text("id: e-1\nretry: 100\ndata:\n\n");
                }));
            }
            if seen.method != "GET" || seen.header("last-event-id").is_empty() {
                return None;
            }
            let call = call.lock().unwrap().clone()?;
            Some(match token(seen) {
                0 | 1 => unauthorized(),
                _ => Reply::events(move |events| async move {
                    events.message(&answer_to(&call, "done"));
                }),
            })
        });
        // Longer than any patience.
        let wallet = Wallet::taking(Duration::from_secs(3600)).with_token();
        let target = at(&fake).authorization(wallet.clone());
        let client = speaking(revision).connect(target).await.unwrap();

        let output = client.call_tool("a", json!({})).await.unwrap();

        assert_eq!(output.content[0].as_text(), Some("done"));
        assert_eq!(posted(&fake, "tools/call").len(), 1);
        assert_eq!(wallet.told()[0].method, "GET");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_cannot_be_taken_up_again_says_why() {
    let fake = guarded(
        LATEST_LEGACY,
        |seen| match seen.header("last-event-id") {
            "" => 1,
            _ => 2,
        },
        |seen| {
            let broken =
                || Reply::events(|events| async move { events.text("id: e-1\ndata:\n\n") });
            (seen.rpc() == "tools/call").then(broken)
        },
    );
    let wallet = Wallet::default().with_token();
    let target = at(&fake).authorization(wallet.clone());
    let client = speaking(LATEST_LEGACY).connect(target).await.unwrap();
    wallet.fails();

    let error = client.call_tool("a", json!({})).await.unwrap_err();

    assert!(
        matches!(error, CallError::Authorization { .. }),
        "{error:?}"
    );
}

mod http_sse {
    use super::*;

    /// A server of HTTP+SSE that wants a token for its stream, and then a newer one for each message.
    fn old(stream_from: u64, post_from: u64) -> FakeHttp {
        let stream: Arc<Mutex<Option<Events>>> = Arc::default();
        FakeHttp::in_memory(
            move |seen| match (seen.method.as_str(), seen.path.as_str()) {
                ("GET", _) if token(seen) < stream_from => unauthorized(),
                ("GET", _) => {
                    let stream = Arc::clone(&stream);
                    Reply::events(move |events| async move {
                        events.text("event: endpoint\ndata: /post\n\n");
                        *stream.lock().unwrap() = Some(events.clone());
                        events.ended().await;
                    })
                }
                (_, "/mcp") if token(seen) == 0 => unauthorized(),
                (_, "/mcp") => Reply::status(405),
                _ if token(seen) < post_from => unauthorized(),
                _ => {
                    let events = stream.lock().unwrap().clone().unwrap();
                    let result = match seen.rpc().as_str() {
                        "initialize" => json!({
                            "protocolVersion": "2024-11-05", "capabilities": { "tools": {} },
                            "serverInfo": { "name": "old", "version": "1" },
                        }),
                        "tools/call" => output("done"),
                        _ => return Reply::status(202),
                    };
                    let id = &seen.json()["id"];
                    events.message(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
                    Reply::status(202)
                }
            },
        )
    }

    #[tokio::test(start_paused = true)]
    async fn the_stream_and_the_messages_carry_credentials() {
        let fake = old(2, 3);
        let wallet = Wallet::taking(Duration::from_secs(300));

        let target = at(&fake).authorization(wallet.clone());
        let client = Client::builder("test", "1").connect(target).await.unwrap();
        client.call_tool("a", json!({})).await.unwrap();

        let told = wallet.told();
        let refused: Vec<_> = told
            .iter()
            .map(|told| (told.method.as_str(), told.generation))
            .collect();
        assert_eq!(refused, [("POST", 0), ("GET", 1), ("POST", 2)]);
        assert_eq!(client.server().revision.as_str(), "2024-11-05");
        let asked = wallet.asked();
        assert!(asked.contains(&("POST".to_owned(), "http://fake.test/post".to_owned())));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_is_not_let_in_says_why() {
        let fake = old(2, 2);
        let wallet = Wallet::default().with_token();
        wallet.fails();

        let target = at(&fake).http_sse_only().authorization(wallet.clone());
        let failed = Client::builder("test", "1").connect(target).await;
        wallet.gives_up();
        let target = at(&fake).http_sse_only().authorization(wallet);
        let refused = Client::builder("test", "1").connect(target).await;

        assert!(matches!(failed, Err(ConnectError::Authorization(_))));
        let Err(ConnectError::Unreachable(TransportError::ErrorResponse(refusal))) = refused else {
            panic!("{refused:?}");
        };
        assert!(refusal.challenge.is_some());
    }
}
