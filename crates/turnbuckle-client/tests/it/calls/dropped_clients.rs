//! Dropped clients release their connection, whatever the server does.

use std::{
    future::{IntoFuture, pending},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex, split},
    time::{sleep, timeout},
};
use turnbuckle_client::{
    CallError, Client, ClientBuilder, FormRequest, LifecycleMode, TransportError,
    ndjson::NdjsonClient,
};
use turnbuckle_protocol::types::ElicitResult;

use crate::servers::{
    mock_http::{MockHttpServer, MockResponse},
    mock_mcp_http::{LATEST_LEGACY, connect, server, target_of},
    mock_ndjson::MockServer,
};

fn legacy() -> ClientBuilder {
    Client::builder("test", "1.0").lifecycle_mode(LifecycleMode::Legacy)
}

/// Connects to a server that reads nothing after the handshake; returns the server's end of a small pipe.
async fn connect_unread(builder: ClientBuilder) -> (Client, BufReader<DuplexStream>) {
    let (near, far) = duplex(1024);
    let (reader, writer) = split(near);
    let start_connect = tokio::spawn(builder.connect(NdjsonClient::new(reader, writer)));
    let mut far = BufReader::new(far);
    let mut line = String::new();
    far.read_line(&mut line).await.unwrap();
    let input_request: Value = serde_json::from_str(&line).unwrap();
    let response = json!({ "jsonrpc": "2.0", "id": input_request["id"], "result": {
        "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
        "serverInfo": { "name": "deaf", "version": "1" },
    }});
    say(&mut far, &response).await;
    far.read_line(&mut line).await.unwrap();
    (start_connect.await.unwrap().unwrap(), far)
}

async fn say(far: &mut BufReader<DuplexStream>, message: &Value) {
    far.write_all(format!("{message}\n").as_bytes())
        .await
        .unwrap();
}

/// Waits until the other end of a connection is closed.
async fn gone(far: &mut BufReader<DuplexStream>) -> bool {
    let has_noise = async {
        while far.write_all(b"\n").await.is_ok() {
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(Duration::from_secs(60), has_noise).await.is_ok()
}

#[tokio::test(start_paused = true)]
async fn an_open_form_does_not_keep_the_connection() {
    let server = MockServer::legacy("2025-11-25");
    let (open, mut opened) = tokio::sync::mpsc::unbounded_channel();
    let builder = legacy().on_form_elicitation(move |_: FormRequest| {
        let _ = open.send(());
        pending::<ElicitResult>()
    });
    let client = server.connect_with(builder).await;
    let schema = json!({ "type": "object", "properties": {} });
    let form = json!({ "mode": "form", "message": "who?", "requestedSchema": schema });
    server.request("elicitation/create", form).await;
    opened.recv().await.unwrap();

    drop(client);

    server.client_closed().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_reads_no_responses_does_not_keep_the_connection() {
    let (client, mut far) = connect_unread(legacy()).await;
    for id in 0..200 {
        let ping = json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
        say(&mut far, &ping).await;
        tokio::task::yield_now().await;
    }

    drop(client);

    assert!(gone(&mut far).await, "the connection is still there");
}

#[tokio::test(start_paused = true)]
async fn closing_fails_calls_that_are_not_sent_yet() {
    let (client, _far) = connect_unread(legacy()).await;
    let calls = [(); 200].map(|()| {
        let call = client.call_tool("a", json!({ "text": "x".repeat(2000) }));
        tokio::spawn(call.into_future())
    });
    sleep(Duration::from_secs(1)).await;

    client.close().await;

    for call in calls {
        let ended = timeout(Duration::from_secs(5), call).await;
        let error = ended.expect("it ends").unwrap().unwrap_err();
        let CallError::Disconnected { source, .. } = error else {
            panic!("{error:?}");
        };
        assert!(matches!(source, TransportError::ClientClosed), "{source:?}");
    }
}

/// A response that never starts, and counts the clients that closed the connection.
fn never_respond(left: &Arc<AtomicUsize>) -> MockResponse {
    let left = Arc::clone(left);
    let reply = MockResponse::events(|events| async move {
        events.closed().await;
        left.fetch_add(1, Ordering::SeqCst);
    });
    reply.with_status(0)
}

#[tokio::test(start_paused = true)]
async fn an_unread_cancellation_does_not_keep_the_connection() {
    let left = Arc::<AtomicUsize>::default();
    let seen_leaving = Arc::clone(&left);
    let mock = server(LATEST_LEGACY, move |recorded| {
        match recorded.rpc().as_str() {
            "tools/call" => Some(MockResponse::silence()),
            "notifications/cancelled" => Some(never_respond(&left)),
            _ => None,
        }
    });
    let client = connect(&mock, LATEST_LEGACY).await;

    let call = client.call_tool("a", json!({})).into_future();
    timeout(Duration::from_secs(1), call).await.unwrap_err();
    drop(client);
    sleep(Duration::from_secs(120)).await;

    assert_eq!(seen_leaving.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn an_unread_cancellation_does_not_keep_the_http_sse_connection() {
    let left = Arc::<AtomicUsize>::default();
    let seen_leaving = Arc::clone(&left);
    let stream = std::sync::Mutex::new(None::<crate::servers::mock_http::EventWriter>);
    let stream = Arc::new(stream);
    let mock = MockHttpServer::in_memory(move |recorded| {
        if recorded.method == "GET" {
            let (stream, left) = (Arc::clone(&stream), Arc::clone(&left));
            return MockResponse::events(move |events| async move {
                events.text("event: endpoint\ndata: /post\n\n");
                *stream.lock().unwrap() = Some(events.clone());
                events.closed().await;
                left.fetch_add(1, Ordering::SeqCst);
            });
        }
        match recorded.rpc().as_str() {
            "initialize" => {
                let result = json!({
                    "protocolVersion": "2024-11-05", "capabilities": { "tools": {} },
                    "serverInfo": { "name": "old", "version": "1" },
                });
                let id = recorded.json()["id"].clone();
                let stream = stream.lock().unwrap().clone().unwrap();
                stream.message(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
                MockResponse::status(202)
            }
            "notifications/cancelled" => never_respond(&left),
            _ => MockResponse::status(202),
        }
    });
    let client = legacy()
        .connect(target_of(&mock).http_sse_only())
        .await
        .unwrap();

    let call = client.call_tool("a", json!({})).into_future();
    timeout(Duration::from_secs(1), call).await.unwrap_err();
    drop(client);
    sleep(Duration::from_secs(120)).await;

    assert_eq!(
        seen_leaving.load(Ordering::SeqCst),
        2,
        "the stream and the message"
    );
}
