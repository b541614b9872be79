//! The self-check of the example `visibility`: a client that calls it and compares the results.
#![expect(clippy::print_stdout, reason = "the check prints what it does")]

use std::{error::Error, net::SocketAddr};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Lists the tools and calls one, as each caller.
pub(super) async fn run(address: SocketAddr) -> Result<(), Box<dyn Error>> {
    for (who, sees, may_restart) in [("guest", 1, false), ("bob", 2, false), ("ada", 3, true)] {
        let listed = send(address, who, "tools/list", json!({})).await?;
        let tools = listed["result"]["tools"].as_array().map_or(0, Vec::len);
        let restart = json!({ "name": "restart" });
        let restarted = send(address, who, "tools/call", restart).await?;
        if tools != sees || restarted.get("result").is_some() != may_restart {
            return Err(format!("{who} does not see what was expected").into());
        }
    }
    Ok(())
}

async fn send(
    address: SocketAddr,
    who: &str,
    method: &str,
    mut params: Value,
) -> Result<Value, Box<dyn Error>> {
    let name = match params["name"].as_str() {
        Some(name) => format!("Mcp-Name: {name}\r\n"),
        None => String::new(),
    };
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let length = body.len();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
        Authorization: Bearer of-{who}\r\nContent-Type: application/json\r\n\
        Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
        Mcp-Method: {method}\r\n{name}Content-Length: {length}\r\n\r\n{body}"
    );
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (_, body) = answer
        .split_once("\r\n\r\n")
        .ok_or("the response lacks a body")?;
    println!("{method} by {who}: {body}");
    Ok(serde_json::from_str(body)?)
}
