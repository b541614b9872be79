//! HTTP+SSE of 2024-11-05: one stream from the server, one URL for messages to it.

use std::{
    future::IntoFuture,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use turnbuckle_client::{
    CallError, Client, ConnectError, LifecycleMode, TransportError, http::HttpError,
};
use turnbuckle_spec_coverage::req;

use crate::servers::{
    mock_http::{EventWriter, MockHttpServer, MockResponse, RecordedRequest},
    mock_mcp_http::{by_method, posted_messages, run_ready_tasks, target_of, text_result},
};

/// Handles a tool call: the message, and the stream for the response.
type OnCall = Arc<dyn Fn(Value, &EventWriter) -> MockResponse + Send + Sync>;

/// A server with an endpoint event and a handshake; `on_call` handles tool calls.
fn server(endpoint: &'static str, on_call: OnCall) -> MockHttpServer {
    let stream: Arc<Mutex<Option<EventWriter>>> = Arc::default();
    MockHttpServer::in_memory(move |request| {
        if request.method == "GET" {
            let stream = Arc::clone(&stream);
            return MockResponse::events(move |events| async move {
                events.text(&format!(": hello\n\nevent: endpoint\ndata: {endpoint}\n\n"));
                *stream.lock().unwrap() = Some(events.clone());
                events.ended().await;
            });
        }
        if request.path == "/mcp" {
            return MockResponse::status(405);
        }
        let events = stream.lock().unwrap().clone().unwrap();
        handle(request, &events, &on_call)
    })
}

fn handle(request: &RecordedRequest, events: &EventWriter, on_call: &OnCall) -> MockResponse {
    let id = request.json()["id"].clone();
    match request.rpc().as_str() {
        "initialize" => {
            let result = json!({
                "protocolVersion": "2024-11-05", "capabilities": { "tools": {} },
                "serverInfo": { "name": "old", "version": "1" },
            });
            events.message(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
        }
        "tools/call" => return on_call(request.json(), events),
        _ => {}
    }
    MockResponse::status(202)
}

/// Responds to every call.
fn respond_to_calls() -> OnCall {
    Arc::new(|call, events| {
        events
            .message(&json!({ "jsonrpc": "2.0", "id": call["id"], "result": text_result("done") }));
        MockResponse::status(202)
    })
}

async fn connect(mock: &MockHttpServer) -> Result<Client, ConnectError> {
    Client::builder("test", "1.0")
        .connect(target_of(mock))
        .await
}

#[tokio::test(start_paused = true)]
async fn messages_are_posted_to_the_endpoint_of_the_stream() {
    req!(
        "httpsse.client-post",
        "httpsse.compat.client-legacy",
        "httpsse.compat.client-modern"
    );
    for (endpoint, path) in [
        ("/messages?session=1", "/messages?session=1"),
        ("messages", "/messages"),
        ("http://fake.test/m", "/m"),
        ("?post", "/mcp?post"),
    ] {
        let mock = server(endpoint, respond_to_calls());
        let client = connect(&mock).await.unwrap();

        let called = client.call_tool("a", json!({})).await.unwrap();

        assert_eq!(called.content[0].as_text(), Some("done"));
        let requests = mock.requests();
        let tried: Vec<_> = requests[..2]
            .iter()
            .map(|request| (request.rpc(), request.path.as_str()))
            .collect();
        assert_eq!(
            tried,
            [
                ("server/discover".into(), "/mcp"),
                ("initialize".into(), "/mcp")
            ]
        );
        assert_eq!(requests[2].method, "GET");
        assert_eq!(requests[2].header("accept"), "text/event-stream");
        assert!(requests[3..].len() >= 3);
        for requests in &requests[3..] {
            assert_eq!(
                (requests.method.as_str(), requests.path.as_str()),
                ("POST", path)
            );
            assert_eq!(requests.header("content-type"), "application/json");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_of_another_origin_is_rejected() {
    for endpoint in [
        "http://evil.example/m",
        "//evil.example/m",
        "https://fake.test/m",
        "javascript:x",
        "http://u@fake.test/",
    ] {
        let mock = server(endpoint, respond_to_calls());

        let only = target_of(&mock).http_sse_only().bearer("sesame");
        let failure = Client::builder("test", "1")
            .connect(only)
            .await
            .unwrap_err();

        let ConnectError::Unreachable(TransportError::Http(cause)) = &failure else {
            panic!("{endpoint}: {failure:?}");
        };
        let named = matches!(
            **cause,
            HttpError::OtherOrigin { .. } | HttpError::InvalidEndpoint { .. }
        );
        assert!(named, "{endpoint}: {cause}");
        run_ready_tasks().await;
        assert!(by_method(&mock, "POST").is_empty());
        assert_eq!(mock.connections(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_an_endpoint_event_times_out() {
    let mock = MockHttpServer::in_memory(|request| match request.method.as_str() {
        "GET" => MockResponse::events(|events| async move {
            loop {
                events.text(": beat\n\n");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }),
        _ => MockResponse::status(404),
    });

    let failure = tokio::time::timeout(Duration::from_secs(60), connect(&mock)).await;

    // The first error says more, because the server may not be an MCP server.
    let Ok(Err(ConnectError::Unreachable(TransportError::ErrorResponse(rejection)))) = failure
    else {
        panic!("{failure:?}");
    };
    assert_eq!(rejection.status, 404);
}

#[tokio::test(start_paused = true)]
async fn http_sse_is_not_tried_in_modern_mode() {
    let mock = MockHttpServer::in_memory(|_| MockResponse::status(405));

    let connected = Client::builder("test", "1")
        .lifecycle_mode(LifecycleMode::Modern)
        .connect(target_of(&mock))
        .await;

    assert!(connected.is_err());
    assert!(by_method(&mock, "GET").is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_stream_fails_all_calls_and_the_next_call_reconnects() {
    let (call, mut called) = mpsc::unbounded_channel();
    let mock = server(
        "/messages",
        Arc::new(move |message, events| {
            call.send((message, events.clone())).unwrap();
            MockResponse::status(202)
        }),
    );
    let client = connect(&mock).await.unwrap();
    let calls =
        ["a", "b"].map(|name| tokio::spawn(client.call_tool(name, json!({})).into_future()));
    let (_, events) = called.recv().await.unwrap();
    called.recv().await.unwrap();

    events.end();

    for call in calls {
        let failure = call.await.unwrap().unwrap_err();
        let CallError::Disconnected { source, .. } = &failure else {
            panic!("{failure:?}");
        };
        assert!(matches!(source, TransportError::Closed), "{source:?}");
    }
    let again = tokio::spawn(client.call_tool("c", json!({})).into_future());
    let (message, events) = called.recv().await.unwrap();
    events
        .message(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": text_result("again") }));
    assert_eq!(
        again.await.unwrap().unwrap().content[0].as_text(),
        Some("again")
    );
    assert_eq!(by_method(&mock, "GET").len(), 2);
    assert!(posted_messages(&mock, "notifications/cancelled").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_rejected_post_fails_only_its_call() {
    let mock = server(
        "/messages",
        Arc::new(|message, events| match message["params"]["name"].as_str() {
            Some("page") => MockResponse::text("text/html", "<h1>No</h1>").with_status(502),
            Some("error") => {
                let error = json!({ "jsonrpc": "2.0", "error": { "code": -5, "message": "no" } });
                MockResponse::json(&error).with_status(400)
            }
            _ => respond_to_calls()(message, events),
        }),
    );
    let client = connect(&mock).await.unwrap();

    let page = client.call_tool("page", json!({})).await.unwrap_err();
    let error = client.call_tool("error", json!({})).await.unwrap_err();
    let fine = client.call_tool("fine", json!({})).await;

    assert_eq!(page.status().unwrap(), 502);
    assert_eq!(error.rpc().unwrap().code, -5);
    assert!(fine.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_response_may_arrive_before_the_post_is_accepted() {
    let mock = server(
        "/messages",
        Arc::new(|message, events| {
            respond_to_calls()(message, events);
            MockResponse::silence()
        }),
    );
    let client = connect(&mock).await.unwrap();

    client.call_tool("a", json!({})).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn dropping_a_call_sends_a_cancellation() {
    req!("cancellation.request-id");
    let mock = server("/messages", Arc::new(|_, _| MockResponse::status(202)));
    let client = connect(&mock).await.unwrap();
    let call = tokio::spawn(client.call_tool("a", json!({})).into_future());
    let posted = mock.first(|request| request.rpc() == "tools/call").await;
    run_ready_tasks().await;

    call.abort();

    let cancellation = mock
        .first(|request| request.rpc() == "notifications/cancelled")
        .await;
    assert_eq!(cancellation.path, "/messages");
    assert_eq!(
        cancellation.json()["params"]["requestId"],
        posted.json()["id"]
    );
}

#[tokio::test(start_paused = true)]
async fn closing_ends_the_stream_and_the_calls() {
    let mock = server("/messages", Arc::new(|_, _| MockResponse::status(202)));
    let client = connect(&mock).await.unwrap();
    let call = tokio::spawn(client.call_tool("a", json!({})).into_future());
    mock.first(|request| request.rpc() == "tools/call").await;

    client.close().await;

    for failure in [call.await.unwrap(), client.call_tool("b", json!({})).await] {
        let CallError::Disconnected { source, .. } = failure.unwrap_err() else {
            panic!("another error");
        };
        assert!(matches!(source, TransportError::ClientClosed), "{source:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_beyond_the_limit_ends_the_stream() {
    let mock = server(
        "/messages",
        Arc::new(|message, events| {
            let large = "x".repeat(20_000);
            events.message(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": large }));
            MockResponse::status(202)
        }),
    );
    let mut limits = turnbuckle_client::ClientLimits::default();
    limits.max_message_bytes = 10_000;
    let client = Client::builder("test", "1")
        .limits(limits)
        .connect(target_of(&mock))
        .await
        .unwrap();

    let failure = client.call_tool("a", json!({})).await.unwrap_err();

    let CallError::Disconnected { source, .. } = failure else {
        panic!("{failure:?}");
    };
    assert!(
        matches!(source, TransportError::MessageTooLarge { limit: 10_000 }),
        "{source:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_failed_renewal_is_tried_again_by_the_next_call() {
    let stream: Arc<Mutex<Option<EventWriter>>> = Arc::default();
    let handshakes = Mutex::new(0);
    let mock = MockHttpServer::in_memory(move |request| {
        if request.method == "GET" {
            let stream = Arc::clone(&stream);
            return MockResponse::events(move |events| async move {
                events.text("event: endpoint\ndata: /post\n\n");
                *stream.lock().unwrap() = Some(events.clone());
                events.ended().await;
            });
        }
        let events = stream.lock().unwrap().clone().unwrap();
        let mut handshakes = handshakes.lock().unwrap();
        *handshakes += usize::from(request.rpc() == "initialize");
        match *handshakes {
            1 if request.rpc() == "tools/call" => MockResponse::status(404),
            2 if request.rpc() == "initialize" => MockResponse::status(503),
            2 => MockResponse::status(400),
            _ => handle(request, &events, &respond_to_calls()),
        }
    });
    let client = Client::builder("test", "1.0").connect(target_of(&mock).http_sse_only());
    let client = client.await.unwrap();

    client.call_tool("a", json!({})).await.unwrap_err();
    client.call_tool("a", json!({})).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_is_cancelled_before_close_returns() {
    let mock = server("/post", Arc::new(|_, _| MockResponse::status(202)));
    let client = connect(&mock).await.unwrap();
    let call = client.call_tool("a", json!({})).into_future();
    tokio::select! {
        response = call => panic!("{response:?}"),
        _ = mock.first(|request| request.rpc() == "tools/call") => {}
    }

    client.close().await;

    assert_eq!(posted_messages(&mock, "notifications/cancelled").len(), 1);
}
