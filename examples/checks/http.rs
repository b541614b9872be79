//! The self-check of the example `http`: a client that calls it and compares the results.
#![expect(clippy::print_stdout, reason = "the check prints what it does")]

use std::error::Error;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::oneshot,
};
use turnbuckle::{http, http::MemoryConnector};

use super::clock;

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"now","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
const HEADERS: &str = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: now\r\n";

pub(super) async fn run() -> Result<(), Box<dyn Error>> {
    let (connector, listener) = http::memory();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(clock().serve_until(listener, async { drop(stopped.await) }));

    let ours = format!("Host: clock.example\r\n{HEADERS}");
    let answer = post(&connector, &ours, CALL).await?;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("half past nine"), "{answer}");

    let elsewhere = format!("Host: evil.example\r\n{HEADERS}");
    let answer = post(&connector, &elsewhere, CALL).await?;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");

    let page = format!("{ours}Origin: https://app.example\r\n");
    let answer = post(&connector, &page, CALL).await?;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");

    let other_page = format!("{ours}Origin: https://evil.example\r\n");
    let answer = post(&connector, &other_page, CALL).await?;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");

    let answer = post(&connector, &ours, &" ".repeat(100_000)).await?;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");

    let mut stream = connector.connect().await?;
    let open = "GET /sse HTTP/1.1\r\nHost: clock.example\r\nAccept: text/event-stream\r\n\r\n";
    stream.write_all(open.as_bytes()).await?;
    let mut beginning = String::new();
    while !beginning.contains("event: endpoint") {
        let mut part = [0; 1024];
        let length = stream.read(&mut part).await?;
        assert!(length > 0, "the stream ended: {beginning}");
        beginning.push_str(&String::from_utf8_lossy(&part[..length]));
    }
    println!("GET /sse: {}", beginning.lines().next().unwrap_or_default());

    // From here on no connection is accepted, and running requests may finish.
    let _ = stop.send(());
    Ok(serving.await??)
}

async fn post(
    connector: &MemoryConnector,
    headers: &str,
    body: &str,
) -> Result<String, Box<dyn Error>> {
    let length = body.len();
    let request = format!(
        "POST /mcp HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    let mut stream = connector.connect().await?;
    // A server may close the connection early.
    let _ = stream.write_all(request.as_bytes()).await;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    println!("POST /mcp: {}", answer.lines().next().unwrap_or_default());
    Ok(answer)
}
