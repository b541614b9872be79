//! HTTP/2 with prior knowledge.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::Incoming,
    client::conn::http2::{Builder, SendRequest, handshake},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::{Notify, oneshot},
    task::JoinHandle,
};
use turnbuckle_server::{
    Server, Tool,
    http::{Http, memory},
};

use crate::http::test_client::{Empty, modern, modern_headers, server};

async fn connect(server: Server) -> SendRequest<Full<Bytes>> {
    let (connector, listener) = memory();
    tokio::spawn(Http::new(server).serve(listener));
    let io = TokioIo::new(connector.connect().await.unwrap());
    let (sender, connection) = handshake(TokioExecutor::new(), io).await.unwrap();
    tokio::spawn(connection);
    sender
}

async fn call(
    sender: &mut SendRequest<Full<Bytes>>,
    host: &str,
    name: &str,
    arguments: Value,
) -> Response<Incoming> {
    let message = modern(
        "tools/call",
        json!({ "name": name, "arguments": arguments }),
    );
    let builder = Request::builder()
        .method(Method::POST)
        .uri(format!("http://{host}/mcp"))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    let request = modern_headers(builder, &message)
        .body(Full::from(message.to_string()))
        .unwrap();
    sender.send_request(request).await.unwrap()
}

#[tokio::test]
async fn calls_and_streams_share_a_connection() {
    let mut sender = connect(server()).await;

    let stream = call(&mut sender, "localhost", "progress", json!({ "steps": 2 })).await;
    let response = call(&mut sender, "localhost", "echo", json!({ "message": "hi" })).await;

    let response = response.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&response).contains(r#""text":"hi""#));
    let stream = stream.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&stream).contains(r#""text":"done""#));
}

#[tokio::test]
async fn a_foreign_authority_is_rejected() {
    let mut sender = connect(server()).await;

    let response = call(
        &mut sender,
        "evil.example",
        "echo",
        json!({ "message": "hi" }),
    )
    .await;

    assert_eq!(response.status(), 403);
}

#[tokio::test]
async fn a_stream_that_is_reset_cancels_its_call() {
    struct OnDrop(Arc<Notify>);
    impl Drop for OnDrop {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let (started, dropped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begins, drops) = (started.clone(), dropped.clone());
    let hang = Tool::new("hang", move |_: Empty| {
        let (begins, guard) = (begins.clone(), OnDrop(drops.clone()));
        async move {
            let _guard = guard;
            begins.notify_one();
            std::future::pending::<()>().await;
            Ok("never".to_owned())
        }
    });
    let mut sender = connect(server().tool(hang)).await;
    let calling = tokio::spawn({
        let mut sender = sender.clone();
        async move { call(&mut sender, "localhost", "hang", json!({})).await }
    });
    started.notified().await;

    calling.abort();

    let cancelled = tokio::time::timeout(Duration::from_secs(5), dropped.notified()).await;
    cancelled.expect("the call is dropped");
    let response = call(&mut sender, "localhost", "echo", json!({ "message": "hi" })).await;
    assert_eq!(response.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_requests_ends_after_a_while() {
    let (connector, listener) = memory();
    tokio::spawn(Http::new(server()).serve(listener));
    let io = TokioIo::new(connector.connect().await.unwrap());
    let (mut sender, connection) = handshake(TokioExecutor::new(), io).await.unwrap();
    let connection = tokio::spawn(connection);
    let began = tokio::time::Instant::now();

    for _ in 0..3 {
        let response = call(&mut sender, "localhost", "echo", json!({ "message": "hi" })).await;
        response.into_body().collect().await.unwrap();
        tokio::time::sleep(Duration::from_secs(50)).await;
    }
    assert!(!connection.is_finished(), "it is used");
    // The tool sleeps for a minute.
    let response = call(&mut sender, "localhost", "sleep", json!({})).await;
    let response = response.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&response).contains("awake"));
    assert_eq!(began.elapsed().as_secs(), 210);

    connection.await.unwrap().unwrap();

    let ended = began.elapsed().as_secs();
    assert!((270..=275).contains(&ended), "{ended}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_with_an_open_stream_does_not_end() {
    let (connector, listener) = memory();
    tokio::spawn(Http::new(server()).serve(listener));
    let io = TokioIo::new(connector.connect().await.unwrap());
    let (mut sender, connection) = handshake(TokioExecutor::new(), io).await.unwrap();
    let connection = tokio::spawn(connection);
    let message = modern(
        "subscriptions/listen",
        json!({ "notifications": { "toolsListChanged": true } }),
    );
    let builder = Request::post("http://localhost/mcp")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    let request = modern_headers(builder, &message)
        .body(Full::<Bytes>::from(message.to_string()))
        .unwrap();
    let stream = sender.send_request(request).await.unwrap();

    tokio::time::sleep(Duration::from_secs(600)).await;

    assert!(!connection.is_finished());
    drop(stream);
    connection.await.unwrap().unwrap();
}

/// Connects with a flow-control window of so many bytes per stream.
async fn connect_with_window(
    http: Http,
    bytes: u32,
) -> (SendRequest<Full<Bytes>>, JoinHandle<hyper::Result<()>>) {
    let (connector, listener) = memory();
    tokio::spawn(http.serve(listener));
    let io = TokioIo::new(connector.connect().await.unwrap());
    let (sender, connection) = Builder::new(TokioExecutor::new())
        .initial_stream_window_size(bytes)
        .handshake(io)
        .await
        .unwrap();
    (sender, tokio::spawn(connection))
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_slowly_gets_the_whole_response() {
    let (mut sender, _connection) = connect_with_window(Http::new(server()), 1_000).await;
    let message = "x".repeat(10_000);
    let arguments = json!({ "message": message });
    let mut response = call(&mut sender, "localhost", "echo", arguments).await;
    let began = tokio::time::Instant::now();

    let mut received = 0;
    while let Some(frame) = response.frame().await {
        received += frame.unwrap().into_data().unwrap().len();
        tokio::time::sleep(Duration::from_secs(50)).await;
    }

    assert!(received > message.len());
    assert!(began.elapsed() > Duration::from_secs(400));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_nothing_of_a_response_is_disconnected() {
    // With a window of 0, not even the body is polled.
    for window in [1_000, 0] {
        let http = Http::new(server()).write_timeout(Duration::from_secs(20));
        let (mut sender, connection) = connect_with_window(http, window).await;
        let arguments = json!({ "message": "x".repeat(10_000) });
        let began = tokio::time::Instant::now();
        let _unread = call(&mut sender, "localhost", "echo", arguments).await;

        let _ = connection.await.unwrap();

        let ended = began.elapsed().as_secs();
        assert!((20..=22).contains(&ended), "{window}: {ended}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_events_does_not_reach_the_write_timeout() {
    let http = Http::new(server()).write_timeout(Duration::from_secs(20));
    let (mut sender, connection) = connect_with_window(http, 1_000).await;
    // The tool sleeps for a minute.
    let response = call(&mut sender, "localhost", "sleep", json!({})).await;

    let response = response.into_body().collect().await.unwrap().to_bytes();

    assert!(String::from_utf8_lossy(&response).contains("awake"));
    assert!(!connection.is_finished());
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_for_requests_of_an_old_connection() {
    let (connector, listener) = memory();
    let (stop, stopped) = oneshot::channel::<()>();
    let http = Http::new(server()).shutdown_timeout(Duration::from_secs(90));
    let serving = tokio::spawn(http.serve_until(listener, async { drop(stopped.await) }));
    let io = TokioIo::new(connector.connect().await.unwrap());
    let (mut sender, connection) = handshake(TokioExecutor::new(), io).await.unwrap();
    tokio::spawn(connection);
    let response = call(&mut sender, "localhost", "echo", json!({ "message": "hi" })).await;
    response.into_body().collect().await.unwrap();
    tokio::time::sleep(Duration::from_secs(50)).await;
    // The tool sleeps for a minute.
    let calling =
        tokio::spawn(async move { call(&mut sender, "localhost", "sleep", json!({})).await });
    tokio::time::sleep(Duration::from_secs(5)).await;

    drop(stop);

    // Past the time at which the connection would have ended without a request.
    let response = calling.await.unwrap();
    let response = response.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&response).contains("awake"));
    serving.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_sending_a_response_is_not_closed_for_another() {
    let (connector, listener) = memory();
    tokio::spawn(Http::new(server()).max_connections(1).serve(listener));
    let (client_io, relay_io) = tokio::io::duplex(64 * 1024);
    let (mut from_client, mut to_client) = tokio::io::split(relay_io);
    let (mut from_server, mut to_server) = tokio::io::split(connector.connect().await.unwrap());
    tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
    // The client reads on only after a signal.
    let (read_on, received) = oneshot::channel::<()>();
    tokio::spawn(async move {
        let mut beginning = (&mut from_server).take(100_000);
        tokio::io::copy(&mut beginning, &mut to_client).await?;
        let _ = received.await;
        tokio::io::copy(&mut from_server, &mut to_client).await?;
        to_client.shutdown().await
    });
    let io = TokioIo::new(client_io);
    let (mut sender, connection) = handshake(TokioExecutor::new(), io).await.unwrap();
    let connection = tokio::spawn(connection);
    let message = "x".repeat(500_000);
    let arguments = json!({ "message": message });
    let response = call(&mut sender, "localhost", "echo", arguments).await;
    tokio::time::sleep(Duration::from_secs(1)).await;

    let mut refused = connector.connect().await.unwrap();

    let mut text = String::new();
    refused.read_to_string(&mut text).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 503"), "{text}");
    drop(read_on);
    let response = response.into_body().collect().await.unwrap().to_bytes();
    assert!(response.len() > message.len());
    // When all is sent, it is idle.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let _next = connector.connect().await.unwrap();
    let _ = connection.await.unwrap();
}
