//! Lingering close: clients that are still sending when they get the response.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    net::{TcpListener, TcpStream},
    time::{Instant, timeout},
};
use turnbuckle_server::http::{Http, HttpSse, memory};

use crate::{auth::test_authenticator::with_authenticator, http::test_client::server};

/// More than the buffers of two sockets hold.
const LARGE: usize = 24 * 1024 * 1024;

const USUAL: &str = "host: localhost\r\ncontent-type: application/json\r\naccept: */*\r\n";

/// Serves on a port of this machine, and connects to it.
async fn connect(http: Http) -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(http.serve(listener));
    TcpStream::connect(address).await.unwrap()
}

/// Sends a head and a large body completely, then reads the response.
async fn send_all(stream: &mut TcpStream, head: &str) -> String {
    let sending = async {
        stream.write_all(head.as_bytes()).await?;
        let piece = vec![b' '; 64 * 1024];
        for _ in 0..LARGE / piece.len() {
            stream.write_all(&piece).await?;
        }
        let mut response = String::new();
        stream.read_to_string(&mut response).await?;
        Ok::<_, std::io::Error>(response)
    };
    let response = timeout(Duration::from_secs(60), sending).await;
    response
        .expect("it comes to an end")
        .expect("the connection is not reset")
}

#[tokio::test]
async fn a_client_that_sends_too_much_reads_the_error_response() {
    let mut stream = connect(Http::new(server()).body_limit(10_000)).await;

    let head = format!("POST /mcp HTTP/1.1\r\n{USUAL}content-length: {LARGE}\r\n\r\n");
    let response = send_all(&mut stream, &head).await;

    assert!(response.starts_with("HTTP/1.1 413"), "{response}");
    assert!(response.contains("connection: close"), "{response}");
    assert!(response.contains("exceeds 10000 bytes"), "{response}");
}

#[tokio::test]
async fn a_client_that_sends_an_oversized_chunk_reads_the_error_response() {
    let mut stream = connect(Http::new(server()).body_limit(10_000)).await;

    let head =
        format!("POST /mcp HTTP/1.1\r\n{USUAL}transfer-encoding: chunked\r\n\r\n{LARGE:x}\r\n");
    let response = send_all(&mut stream, &head).await;

    assert!(response.starts_with("HTTP/1.1 413"), "{response}");
    assert!(response.contains("connection: close"), "{response}");
}

#[tokio::test]
async fn every_response_sent_before_the_body_is_readable() {
    let plain = || Http::new(server()).http_sse(HttpSse::new());
    let foreign = USUAL.replace("localhost", "evil.example");
    let text = USUAL.replace("application/json", "text/plain");
    let picky = USUAL.replace("*/*", "text/html");
    let packed = format!("{USUAL}content-encoding: gzip\r\n");
    for (http, first_line, headers, status) in [
        (plain(), "POST /mcp", foreign.as_str(), 403),
        (plain(), "POST /mcp", &text, 415),
        (plain(), "POST /mcp", &packed, 415),
        (plain(), "POST /mcp", &picky, 406),
        (plain(), "PUT /mcp", USUAL, 405),
        (plain(), "POST /elsewhere", USUAL, 404),
        (plain(), "POST /health", USUAL, 405),
        (plain(), "POST /messages?sessionId=unknown", USUAL, 404),
        (plain(), "POST /messages?sessionId=unknown", &text, 415),
        (plain().max_in_flight(0), "POST /mcp", USUAL, 503),
        (with_authenticator(server()), "POST /mcp", USUAL, 401),
    ] {
        let mut stream = connect(http).await;

        let head = format!("{first_line} HTTP/1.1\r\n{headers}content-length: {LARGE}\r\n\r\n");
        let response = send_all(&mut stream, &head).await;

        let wanted = format!("HTTP/1.1 {status}");
        assert!(response.starts_with(&wanted), "{first_line}: {response}");
        assert!(response.contains("connection: close"), "{response}");
    }
}

#[tokio::test]
async fn rejecting_a_small_body_keeps_the_connection_open() {
    let mut stream = connect(Http::new(server())).await;
    for _ in 0..3 {
        let head = USUAL.replace("application/json", "text/plain");
        let request = format!("POST /mcp HTTP/1.1\r\n{head}content-length: 5\r\n\r\nhello");
        stream.write_all(request.as_bytes()).await.unwrap();

        let mut response = String::new();
        while !response.ends_with("}}") {
            response.push(char::from(stream.read_u8().await.unwrap()));
        }

        assert!(response.starts_with("HTTP/1.1 415"), "{response}");
        assert!(!response.contains("connection: close"), "{response}");
    }
}

/// A connection in memory with a rejected body, after its response is read.
async fn refused() -> DuplexStream {
    let (connector, listener) = memory();
    tokio::spawn(Http::new(server()).body_limit(10).serve(listener));
    let mut stream = connector.connect().await.unwrap();
    let head = format!("POST /mcp HTTP/1.1\r\n{USUAL}content-length: {LARGE}0000\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 413"), "{response}");
    stream
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stops_sending_is_disconnected() {
    let mut stream = refused().await;
    let began = Instant::now();
    tokio::time::sleep(Duration::from_millis(4_900)).await;
    stream.write_all(b"x").await.expect("it may go on");

    tokio::time::sleep(Duration::from_millis(5_100)).await;

    stream
        .write_all(b"x")
        .await
        .expect_err("the server has stopped reading");
    assert_eq!(began.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_sends_slowly_without_end_is_disconnected() {
    let mut stream = refused().await;
    let began = Instant::now();

    while stream.write_all(b"x").await.is_ok() {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }

    assert!((30..=31).contains(&began.elapsed().as_secs()));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_sends_quickly_without_end_is_disconnected() {
    let mut stream = refused().await;
    let piece = vec![b' '; 256 * 1024];
    let mut sent = 0;

    while stream.write_all(&piece).await.is_ok() {
        sent += piece.len();
        assert!(sent < 80 * 1024 * 1024, "there is an end to it");
    }

    assert!(sent > 60 * 1024 * 1024, "{sent}");
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_does_not_wait_for_clients_that_still_send() {
    let (connector, listener) = memory();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let http = Http::new(server()).body_limit(10);
    let serving = tokio::spawn(http.serve_until(listener, async { drop(stopped.await) }));
    let mut stream = connector.connect().await.unwrap();
    let head = format!("POST /mcp HTTP/1.1\r\n{USUAL}content-length: {LARGE}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    let began = Instant::now();

    stop.send(()).unwrap();
    serving.await.unwrap().unwrap();

    assert_eq!(began.elapsed().as_secs(), 0);
}
