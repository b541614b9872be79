//! The body of a request that the authenticator rejects.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    time::sleep,
};
use turnbuckle_server::http;

use crate::{auth::test_authenticator::with_authenticator, http::test_client::server};

const BODY: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

#[tokio::test(start_paused = true)]
async fn a_connection_survives_a_rejected_head_followed_by_its_body() {
    let mut stream = connect().await;

    for _ in 0..3 {
        write(&mut stream, &head(BODY.len(), "")).await;
        // Until then, everything that does not need the body is done.
        sleep(Duration::from_millis(10)).await;
        write(&mut stream, BODY).await;

        let response = response(&mut stream).await;

        assert!(response.starts_with("HTTP/1.1 401"), "{response}");
        assert!(!response.contains("connection: close"), "{response}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_body_gets_connection_close() {
    let large = 10 * 1024 * 1024;
    for head in [
        head(BODY.len(), ""),
        head(large, ""),
        head(BODY.len(), "expect: 100-continue\r\n"),
    ] {
        let mut stream = connect().await;
        write(&mut stream, &head).await;

        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();

        assert!(text.starts_with("HTTP/1.1 401"), "{text}");
        assert!(text.contains("connection: close"), "{text}");
    }
}

async fn connect() -> DuplexStream {
    let (connector, listener) = http::memory();
    tokio::spawn(with_authenticator(server()).serve(listener));
    connector.connect().await.unwrap()
}

fn head(length: usize, more: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\n{more}content-length: {length}\r\n\r\n"
    )
}

async fn write(stream: &mut DuplexStream, text: &str) {
    stream.write_all(text.as_bytes()).await.unwrap();
}

/// Reads a response up to the end of its error object.
async fn response(stream: &mut DuplexStream) -> String {
    let mut text = String::new();
    while !text.ends_with("}}") {
        let byte = stream.read_u8().await.expect("the connection goes on");
        text.push(char::from(byte));
    }
    text
}
