//! Unauthorized streams: the GET stream, resumed streams, and those of HTTP+SSE.

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
    authorization::credentials::{TestCredentials, protected_server, token, unauthorized},
    servers::{
        mock_http::{EventWriter, MockHttpServer, MockResponse, RecordedRequest},
        mock_mcp_http::{
            LATEST_LEGACY, builder_for, by_method, posted_messages, response_to, server, target_of,
            text_result,
        },
    },
};

fn log(text: &str) -> Value {
    json!({
        "jsonrpc": "2.0", "method": "notifications/message",
        "params": { "level": "info", "data": text },
    })
}

/// A session that requires token N for the Nth stream.
fn with_streams(
    streams: impl Fn(u64) -> Option<MockResponse> + Send + Sync + 'static,
) -> MockHttpServer {
    let opened = AtomicUsize::new(0);
    server(LATEST_LEGACY, move |request| {
        if request.rpc() == "initialize" {
            let result = json!({
                "protocolVersion": LATEST_LEGACY,
                "capabilities": { "tools": { "listChanged": true }, "logging": {} },
                "serverInfo": { "name": "fake", "version": "1" },
            });
            return Some(MockResponse::result(request, &result).header("Mcp-Session-Id", "s"));
        }
        if request.method != "GET" {
            return None;
        }
        let number = opened.load(Ordering::SeqCst) as u64 + 1;
        if token(request) < number {
            return Some(unauthorized());
        }
        opened.fetch_add(1, Ordering::SeqCst);
        streams(number)
    })
}

#[tokio::test(start_paused = true)]
async fn the_get_stream_is_resumed_with_new_credentials() {
    let mock = with_streams(|number| {
        Some(MockResponse::events(move |events| async move {
            events.text(&format!("id: e-{number}\ndata: {}\n\n", log("said")));
            if number == 3 {
                events.closed().await;
            }
        }))
    });
    let credentials = TestCredentials::default();
    let (sender, mut received) = mpsc::unbounded_channel();

    let _client = builder_for(LATEST_LEGACY)
        .on_log(move |message| sender.send(message.data).unwrap())
        .connect(target_of(&mock).authorization(credentials.clone()))
        .await
        .unwrap();
    for _ in 0..3 {
        assert_eq!(received.recv().await.unwrap(), "said");
    }

    let gets = by_method(&mock, "GET");
    let requested: Vec<_> = gets
        .iter()
        .map(|get| (token(get), get.header("last-event-id")))
        .collect();
    assert_eq!(
        requested,
        [
            (0, ""),
            (1, ""),
            (1, "e-1"),
            (2, "e-1"),
            (2, "e-2"),
            (3, "e-2")
        ]
    );
    assert!(
        credentials
            .rejections()
            .iter()
            .all(|sender| sender.method == "GET")
    );
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_learns_that_the_get_stream_is_unauthorized() {
    for fails in [true, false] {
        let mock = with_streams(|_| {
            Some(MockResponse::events(|events| async move {
                tokio::time::sleep(Duration::from_secs(5)).await;
                drop(events);
            }))
        });
        let credentials = TestCredentials::default().with_token();
        let target = target_of(&mock).authorization(credentials.clone());
        let client = builder_for(LATEST_LEGACY).connect(target).await.unwrap();
        if fails {
            credentials.fail();
        } else {
            credentials.give_up();
        }

        let filter = SubscriptionFilter::new().tools_list_changed(true);
        let mut subscription = client.listen(filter).await.unwrap();
        let error = loop {
            match subscription.next().await.unwrap() {
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
                    source: TransportError::ErrorResponse(rejection),
                    ..
                },
            ) => assert_eq!(rejection.status, 401),
            _ => panic!("{error:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_resumed_response_stream_is_authorized_again() {
    for revision in ["2025-03-26", "2025-06-18", LATEST_LEGACY] {
        let call: Arc<Mutex<Option<RecordedRequest>>> = Arc::default();
        let mock = server(revision, move |request| {
            if request.rpc() == "tools/call" {
                *call.lock().unwrap() = Some(request.clone());
                return Some(MockResponse::events(|events| async move {
                    events.text("id: e-1\nretry: 100\ndata:\n\n");
                }));
            }
            if request.method != "GET" || request.header("last-event-id").is_empty() {
                return None;
            }
            let call = call.lock().unwrap().clone()?;
            Some(match token(request) {
                0 | 1 => unauthorized(),
                _ => MockResponse::events(move |events| async move {
                    events.message(&response_to(&call, "done"));
                }),
            })
        });
        // Longer than any timeout.
        let credentials = TestCredentials::with_login_time(Duration::from_secs(3600)).with_token();
        let target = target_of(&mock).authorization(credentials.clone());
        let client = builder_for(revision).connect(target).await.unwrap();

        let text_result = client.call_tool("a", json!({})).await.unwrap();

        assert_eq!(text_result.content[0].as_text(), Some("done"));
        assert_eq!(posted_messages(&mock, "tools/call").len(), 1);
        assert_eq!(credentials.rejections()[0].method, "GET");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unauthorized_resumption_reports_its_reason() {
    let mock = protected_server(
        LATEST_LEGACY,
        |request| match request.header("last-event-id") {
            "" => 1,
            _ => 2,
        },
        |request| {
            let broken =
                || MockResponse::events(|events| async move { events.text("id: e-1\ndata:\n\n") });
            (request.rpc() == "tools/call").then(broken)
        },
    );
    let credentials = TestCredentials::default().with_token();
    let target = target_of(&mock).authorization(credentials.clone());
    let client = builder_for(LATEST_LEGACY).connect(target).await.unwrap();
    credentials.fail();

    let error = client.call_tool("a", json!({})).await.unwrap_err();

    assert!(
        matches!(error, CallError::Authorization { .. }),
        "{error:?}"
    );
}

mod http_sse {
    use super::*;

    /// An HTTP+SSE server that requires a token for its stream, and a newer one for each message.
    fn old(stream_from: u64, post_from: u64) -> MockHttpServer {
        let stream: Arc<Mutex<Option<EventWriter>>> = Arc::default();
        MockHttpServer::in_memory(move |request| {
            match (request.method.as_str(), request.path.as_str()) {
                ("GET", _) if token(request) < stream_from => unauthorized(),
                ("GET", _) => {
                    let stream = Arc::clone(&stream);
                    MockResponse::events(move |events| async move {
                        events.text("event: endpoint\ndata: /post\n\n");
                        *stream.lock().unwrap() = Some(events.clone());
                        events.ended().await;
                    })
                }
                (_, "/mcp") if token(request) == 0 => unauthorized(),
                (_, "/mcp") => MockResponse::status(405),
                _ if token(request) < post_from => unauthorized(),
                _ => {
                    let events = stream.lock().unwrap().clone().unwrap();
                    let result = match request.rpc().as_str() {
                        "initialize" => json!({
                            "protocolVersion": "2024-11-05", "capabilities": { "tools": {} },
                            "serverInfo": { "name": "old", "version": "1" },
                        }),
                        "tools/call" => text_result("done"),
                        _ => return MockResponse::status(202),
                    };
                    let id = &request.json()["id"];
                    events.message(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
                    MockResponse::status(202)
                }
            }
        })
    }

    #[tokio::test(start_paused = true)]
    async fn the_stream_and_the_posts_of_http_sse_carry_credentials() {
        let mock = old(2, 3);
        let credentials = TestCredentials::with_login_time(Duration::from_secs(300));

        let target = target_of(&mock).authorization(credentials.clone());
        let client = Client::builder("test", "1").connect(target).await.unwrap();
        client.call_tool("a", json!({})).await.unwrap();

        let rejections = credentials.rejections();
        let rejected: Vec<_> = rejections
            .iter()
            .map(|rejections| (rejections.method.as_str(), rejections.generation))
            .collect();
        assert_eq!(rejected, [("POST", 0), ("GET", 1), ("POST", 2)]);
        assert_eq!(client.server().revision.as_str(), "2024-11-05");
        let requested = credentials.requests();
        assert!(requested.contains(&("POST".to_owned(), "http://fake.test/post".to_owned())));
    }

    #[tokio::test(start_paused = true)]
    async fn an_unauthorized_http_sse_stream_reports_its_reason() {
        let mock = old(2, 2);
        let credentials = TestCredentials::default().with_token();
        credentials.fail();

        let target = target_of(&mock)
            .http_sse_only()
            .authorization(credentials.clone());
        let failed = Client::builder("test", "1").connect(target).await;
        credentials.give_up();
        let target = target_of(&mock).http_sse_only().authorization(credentials);
        let rejected = Client::builder("test", "1").connect(target).await;

        assert!(matches!(failed, Err(ConnectError::Authorization(_))));
        let Err(ConnectError::Unreachable(TransportError::ErrorResponse(rejection))) = rejected
        else {
            panic!("{rejected:?}");
        };
        assert!(rejection.challenge.is_some());
    }
}
