//! HTTP+SSE of 2024-11-05: one stream for everything that comes, one URL for everything that goes.

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

use crate::{
    fake_http::{Events, FakeHttp, Reply, Seen},
    http_peer::{at, by_method, output, posted, settle},
};

/// What is done with a call of a tool: the message, and the stream to answer on.
type OnCall = Arc<dyn Fn(Value, &Events) -> Reply + Send + Sync>;

/// A server with its endpoint event, the handshake, and what a test does with calls.
fn server(endpoint: &'static str, on_call: OnCall) -> FakeHttp {
    let stream: Arc<Mutex<Option<Events>>> = Arc::default();
    FakeHttp::in_memory(move |seen| {
        if seen.method == "GET" {
            let stream = Arc::clone(&stream);
            return Reply::events(move |events| async move {
                events.text(&format!(": hello\n\nevent: endpoint\ndata: {endpoint}\n\n"));
                *stream.lock().unwrap() = Some(events.clone());
                events.ended().await;
            });
        }
        if seen.path == "/mcp" {
            return Reply::status(405);
        }
        let events = stream.lock().unwrap().clone().unwrap();
        handle(seen, &events, &on_call)
    })
}

fn handle(seen: &Seen, events: &Events, on_call: &OnCall) -> Reply {
    let id = seen.json()["id"].clone();
    match seen.rpc().as_str() {
        "initialize" => {
            let result = json!({
                "protocolVersion": "2024-11-05", "capabilities": { "tools": {} },
                "serverInfo": { "name": "old", "version": "1" },
            });
            events.message(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
        }
        "tools/call" => return on_call(seen.json(), events),
        _ => {}
    }
    Reply::status(202)
}

/// Answers every call.
fn answering() -> OnCall {
    Arc::new(|call, events| {
        events.message(&json!({ "jsonrpc": "2.0", "id": call["id"], "result": output("done") }));
        Reply::status(202)
    })
}

async fn connect(fake: &FakeHttp) -> Result<Client, ConnectError> {
    Client::builder("test", "1.0").connect(at(fake)).await
}

#[tokio::test(start_paused = true)]
async fn everything_is_posted_to_the_endpoint_that_the_stream_names() {
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
        let fake = server(endpoint, answering());
        let client = connect(&fake).await.unwrap();

        let called = client.call_tool("a", json!({})).await.unwrap();

        assert_eq!(called.content[0].as_text(), Some("done"));
        let seen = fake.seen();
        let tried: Vec<_> = seen[..2]
            .iter()
            .map(|seen| (seen.rpc(), seen.path.as_str()))
            .collect();
        assert_eq!(
            tried,
            [
                ("server/discover".into(), "/mcp"),
                ("initialize".into(), "/mcp")
            ]
        );
        assert_eq!(seen[2].method, "GET");
        assert_eq!(seen[2].header("accept"), "text/event-stream");
        assert!(seen[3..].len() >= 3);
        for seen in &seen[3..] {
            assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", path));
            assert_eq!(seen.header("content-type"), "application/json");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_elsewhere_gets_nothing() {
    for endpoint in [
        "http://evil.example/m",
        "//evil.example/m",
        "https://fake.test/m",
        "javascript:x",
        "http://u@fake.test/",
    ] {
        let fake = server(endpoint, answering());

        let only = at(&fake).http_sse_only().bearer("sesame");
        let problem = Client::builder("test", "1")
            .connect(only)
            .await
            .unwrap_err();

        let ConnectError::Unreachable(TransportError::Http(cause)) = &problem else {
            panic!("{endpoint}: {problem:?}");
        };
        let named = matches!(
            **cause,
            HttpError::OtherOrigin { .. } | HttpError::InvalidEndpoint { .. }
        );
        assert!(named, "{endpoint}: {cause}");
        settle().await;
        assert!(by_method(&fake, "POST").is_empty());
        assert_eq!(fake.connections(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_names_no_endpoint_is_not_waited_for() {
    let fake = FakeHttp::in_memory(|seen| match seen.method.as_str() {
        "GET" => Reply::events(|events| async move {
            loop {
                events.text(": beat\n\n");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }),
        _ => Reply::status(404),
    });

    let problem = tokio::time::timeout(Duration::from_secs(60), connect(&fake)).await;

    // The first refusal says more about a server that may be no MCP server at all.
    let Ok(Err(ConnectError::Unreachable(TransportError::ErrorResponse(refusal)))) = problem else {
        panic!("{problem:?}");
    };
    assert_eq!(refusal.status, 404);
}

#[tokio::test(start_paused = true)]
async fn the_older_transport_is_not_tried_where_the_newer_era_is_wanted() {
    let fake = FakeHttp::in_memory(|_| Reply::status(405));

    let connected = Client::builder("test", "1")
        .lifecycle_mode(LifecycleMode::Modern)
        .connect(at(&fake))
        .await;

    assert!(connected.is_err());
    assert!(by_method(&fake, "GET").is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_stream_ends_every_call_and_the_next_one_begins_anew() {
    let (call, mut called) = mpsc::unbounded_channel();
    let fake = server(
        "/messages",
        Arc::new(move |message, events| {
            call.send((message, events.clone())).unwrap();
            Reply::status(202)
        }),
    );
    let client = connect(&fake).await.unwrap();
    let calls =
        ["a", "b"].map(|name| tokio::spawn(client.call_tool(name, json!({})).into_future()));
    let (_, events) = called.recv().await.unwrap();
    called.recv().await.unwrap();

    events.end();

    for call in calls {
        let problem = call.await.unwrap().unwrap_err();
        let CallError::Disconnected { source, .. } = &problem else {
            panic!("{problem:?}");
        };
        assert!(matches!(source, TransportError::Closed), "{source:?}");
    }
    let again = tokio::spawn(client.call_tool("c", json!({})).into_future());
    let (message, events) = called.recv().await.unwrap();
    events.message(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": output("again") }));
    assert_eq!(
        again.await.unwrap().unwrap().content[0].as_text(),
        Some("again")
    );
    assert_eq!(by_method(&fake, "GET").len(), 2);
    assert!(posted(&fake, "notifications/cancelled").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_refused_post_ends_its_call_alone() {
    let fake = server(
        "/messages",
        Arc::new(|message, events| match message["params"]["name"].as_str() {
            Some("page") => Reply::text("text/html", "<h1>No</h1>").with_status(502),
            Some("error") => {
                let error = json!({ "jsonrpc": "2.0", "error": { "code": -5, "message": "no" } });
                Reply::json(&error).with_status(400)
            }
            _ => answering()(message, events),
        }),
    );
    let client = connect(&fake).await.unwrap();

    let page = client.call_tool("page", json!({})).await.unwrap_err();
    let error = client.call_tool("error", json!({})).await.unwrap_err();
    let fine = client.call_tool("fine", json!({})).await;

    assert_eq!(page.status().unwrap(), 502);
    assert_eq!(error.rpc().unwrap().code, -5);
    assert!(fine.is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_answer_may_come_before_its_post_is_answered() {
    let fake = server(
        "/messages",
        Arc::new(|message, events| {
            answering()(message, events);
            Reply::silence()
        }),
    );
    let client = connect(&fake).await.unwrap();

    client.call_tool("a", json!({})).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_is_cancelled_by_a_message() {
    req!("cancellation.request-id");
    let fake = server("/messages", Arc::new(|_, _| Reply::status(202)));
    let client = connect(&fake).await.unwrap();
    let call = tokio::spawn(client.call_tool("a", json!({})).into_future());
    let asked = fake.first(|seen| seen.rpc() == "tools/call").await;
    settle().await;

    call.abort();

    let told = fake
        .first(|seen| seen.rpc() == "notifications/cancelled")
        .await;
    assert_eq!(told.path, "/messages");
    assert_eq!(told.json()["params"]["requestId"], asked.json()["id"]);
}

#[tokio::test(start_paused = true)]
async fn closing_ends_the_stream_and_the_calls() {
    let fake = server("/messages", Arc::new(|_, _| Reply::status(202)));
    let client = connect(&fake).await.unwrap();
    let call = tokio::spawn(client.call_tool("a", json!({})).into_future());
    fake.first(|seen| seen.rpc() == "tools/call").await;

    client.close().await;

    for problem in [call.await.unwrap(), client.call_tool("b", json!({})).await] {
        let CallError::Disconnected { source, .. } = problem.unwrap_err() else {
            panic!("another error");
        };
        assert!(matches!(source, TransportError::ClientClosed), "{source:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_beyond_the_limit_ends_the_stream() {
    let fake = server(
        "/messages",
        Arc::new(|message, events| {
            let large = "x".repeat(20_000);
            events.message(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": large }));
            Reply::status(202)
        }),
    );
    let mut limits = turnbuckle_client::ClientLimits::default();
    limits.max_message_bytes = 10_000;
    let client = Client::builder("test", "1")
        .limits(limits)
        .connect(at(&fake))
        .await
        .unwrap();

    let problem = client.call_tool("a", json!({})).await.unwrap_err();

    let CallError::Disconnected { source, .. } = problem else {
        panic!("{problem:?}");
    };
    assert!(
        matches!(source, TransportError::MessageTooLarge { limit: 10_000 }),
        "{source:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_new_session_that_failed_is_tried_again_by_the_next_call() {
    let stream: Arc<Mutex<Option<Events>>> = Arc::default();
    let begun = Mutex::new(0);
    let fake = FakeHttp::in_memory(move |seen| {
        if seen.method == "GET" {
            let stream = Arc::clone(&stream);
            return Reply::events(move |events| async move {
                events.text("event: endpoint\ndata: /post\n\n");
                *stream.lock().unwrap() = Some(events.clone());
                events.ended().await;
            });
        }
        let events = stream.lock().unwrap().clone().unwrap();
        let mut begun = begun.lock().unwrap();
        *begun += usize::from(seen.rpc() == "initialize");
        match *begun {
            1 if seen.rpc() == "tools/call" => Reply::status(404),
            2 if seen.rpc() == "initialize" => Reply::status(503),
            2 => Reply::status(400),
            _ => handle(seen, &events, &answering()),
        }
    });
    let client = Client::builder("test", "1.0").connect(at(&fake).http_sse_only());
    let client = client.await.unwrap();

    client.call_tool("a", json!({})).await.unwrap_err();
    client.call_tool("a", json!({})).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_is_cancelled_before_close_returns() {
    let fake = server("/post", Arc::new(|_, _| Reply::status(202)));
    let client = connect(&fake).await.unwrap();
    let call = client.call_tool("a", json!({})).into_future();
    tokio::select! {
        answer = call => panic!("{answer:?}"),
        _ = fake.first(|seen| seen.rpc() == "tools/call") => {}
    }

    client.close().await;

    assert_eq!(posted(&fake, "notifications/cancelled").len(), 1);
}
