//! HTTP with its options: where it listens, to whom it answers, how much it takes, and how it ends.
//!
//! ```console
//! $ cargo run -q --example http
//! listening on http://127.0.0.1:8080/mcp
//! ```
//!
//! With `--check` it listens in memory, asks itself, prints the answers and ends.
#![expect(clippy::print_stdout, reason = "the example shows what it does")]

use std::{error::Error, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::oneshot,
};
use turnbuckle::{
    Server, Tool,
    http::{self, Http, HttpSse, MemoryConnector},
};

fn clock() -> Http {
    let now = Tool::new("now", async || Ok("half past nine".to_owned()));
    Http::new(Server::new("clock", "1.0.0").tool(now))
        // By default a server answers to this machine's own names only, so that no web page can reach it by DNS.
        .allow_host("clock.example")
        .allow_origin("https://app.example")
        // What a client can make the server hold has limits.
        .body_limit(64 * 1024)
        .max_connections(1_000)
        .max_in_flight(500)
        .body_timeout(Duration::from_secs(10))
        // For clients of 2024: a stream at /sse, messages to /messages.
        .http_sse(HttpSse::new().max_streams(100))
        .shutdown_timeout(Duration::from_secs(5))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().any(|argument| argument == "--check") {
        return ask().await;
    }
    let listener = TcpListener::bind("127.0.0.1:8080").await?;
    println!("listening on http://{}/mcp", listener.local_addr()?);
    let ctrl_c = async { drop(tokio::signal::ctrl_c().await) };
    Ok(clock().serve_until(listener, ctrl_c).await?)
}

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"now","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
const HEADERS: &str = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: now\r\n";

async fn ask() -> Result<(), Box<dyn Error>> {
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

    // From here on no connection is accepted, and what runs may come to its end.
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
    // A server that has seen enough hangs up early.
    let _ = stream.write_all(request.as_bytes()).await;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    println!("POST /mcp: {}", answer.lines().next().unwrap_or_default());
    Ok(answer)
}
