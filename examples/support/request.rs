//! Sends one request to a server in memory, and prints the request and the response.
#![expect(clippy::print_stdout, reason = "the example shows what it does")]

use std::error::Error;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use turnbuckle::{Server, ndjson};

/// Calls a tool and returns its result.
pub(crate) async fn call(
    server: &Server,
    tool: &str,
    arguments: Value,
) -> Result<Value, Box<dyn Error>> {
    let params = json!({ "name": tool, "arguments": arguments });
    send(server, "tools/call", params).await
}

/// Sends a stateless request and returns its result.
pub(crate) async fn send(
    server: &Server,
    method: &str,
    mut params: Value,
) -> Result<Value, Box<dyn Error>> {
    println!("> {method} {params}");
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (theirs_in, theirs_out) = tokio::io::split(theirs);
    let serving = tokio::spawn(ndjson::serve(theirs_in, theirs_out, server.clone()));
    let (mut responses, mut requests) = tokio::io::split(ours);
    requests
        .write_all(format!("{request}\n").as_bytes())
        .await?;
    requests.shutdown().await?;
    let mut response = String::new();
    responses.read_to_string(&mut response).await?;
    serving.await??;
    print!("< {response}");
    let mut response: Value = serde_json::from_str(&response)?;
    let result = response.get_mut("result").map(Value::take);
    result.ok_or_else(|| "this is not a result".into())
}
