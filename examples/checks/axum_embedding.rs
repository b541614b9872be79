//! The self-check of the example `axum_embedding`: a client that calls it and compares the results.
#![expect(clippy::print_stdout, reason = "the check prints what it does")]

use std::{error::Error, net::SocketAddr};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Sends requests to both routes over a plain socket and prints the responses.
pub(super) async fn run(address: SocketAddr) -> Result<(), Box<dyn Error>> {
    let health = send(address, "GET /health", "", "").await?;
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let headers = "Content-Type: application/json\r\n\
        Accept: application/json, text/event-stream\r\n\
        MCP-Protocol-Version: 2026-07-28\r\n\
        Mcp-Method: tools/call\r\n\
        Mcp-Name: whoami\r\n\
        X-Tenant: Ada\r\n";
    let answer = send(address, "POST /mcp", headers, call).await?;
    let as_expected = health.ends_with("fine") && answer.contains("You are Ada.");
    as_expected
        .then_some(())
        .ok_or_else(|| "the answers are not as expected".into())
}

async fn send(
    address: SocketAddr,
    line: &str,
    headers: &str,
    body: &str,
) -> Result<String, Box<dyn Error>> {
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    );
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let body = answer
        .split_once("\r\n\r\n")
        .map_or(&*answer, |(_, body)| body);
    println!("{line}: {body}");
    Ok(body.to_owned())
}
