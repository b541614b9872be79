//! One request to a server in memory.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use turnbuckle::{Server, lines::serve_lines};

/// Sends a request that stands on its own, and returns the whole answer.
pub(crate) async fn ask(server: &Server, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (mut reader, mut writer) = tokio::io::split(ours);
    let (theirs_in, theirs_out) = tokio::io::split(theirs);
    let serving = tokio::spawn(serve_lines(theirs_in, theirs_out, server.clone()));
    writer
        .write_all(format!("{request}\n").as_bytes())
        .await
        .unwrap();
    writer.shutdown().await.unwrap();
    let mut answer = String::new();
    reader.read_to_string(&mut answer).await.unwrap();
    serving.await.unwrap().unwrap();
    serde_json::from_str(&answer).unwrap()
}

/// Asks both servers for the same, expects the same of them, and returns it.
pub(crate) async fn ask_both(servers: &[Server; 2], method: &str, params: Value) -> Value {
    let [attributes, builders] = servers;
    let answer = ask(attributes, method, params.clone()).await;
    assert_eq!(answer, ask(builders, method, params).await);
    answer
}

pub(crate) fn server() -> Server {
    Server::new("desk", "1.0.0")
}
