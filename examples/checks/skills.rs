//! The self-check of the example `skills`: a client that calls it and compares the results.
#![expect(clippy::print_stdout, reason = "the check prints what it does")]

use std::error::Error;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};

use super::server;

/// Sends every request once.
pub(super) async fn run() -> Result<(), Box<dyn Error>> {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(theirs);
    tokio::spawn(turnbuckle::ndjson::serve(reader, writer, server()));
    let mut peer = BufReader::new(ours);

    let lesson = json!({ "name": "knots", "description": "Ties knots.", "instructions": "Over, under, pull." });
    let learned = request(
        &mut peer,
        "tools/call",
        json!({ "name": "learn", "arguments": lesson }),
    )
    .await?;
    let listed = request(&mut peer, "skills/list", json!({})).await?;
    let folder = json!({ "uri": "skill://writing/changelog" });
    request(&mut peer, "resources/directory/read", folder).await?;
    let file = json!({ "uri": "skill://writing/changelog/examples/good.md" });
    request(&mut peer, "resources/read", file).await?;

    let names: Vec<_> = listed["skills"].as_array().into_iter().flatten().collect();
    let names: Vec<_> = names
        .iter()
        .map(|one| one["frontmatter"]["name"].as_str())
        .collect();
    let expected = [Some("knots"), Some("release"), Some("changelog")];
    let is_told = learned["content"][0]["text"] == "Learned: skill://learned/knots/SKILL.md";
    (names == expected && is_told)
        .then_some(())
        .ok_or_else(|| "the answers are not as expected".into())
}

async fn request(
    peer: &mut BufReader<DuplexStream>,
    method: &str,
    mut params: Value,
) -> Result<Value, Box<dyn Error>> {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    peer.write_all(format!("{request}\n").as_bytes()).await?;
    let mut answer = String::new();
    peer.read_line(&mut answer).await?;
    println!("{method}: {answer}");
    let mut answer: Value = serde_json::from_str(&answer)?;
    match answer["result"].take() {
        Value::Null => Err("this is not a result".into()),
        result => Ok(result),
    }
}
