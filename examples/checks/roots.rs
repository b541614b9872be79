//! The self-check of the example `roots`: a client that calls it and compares the results.

#[path = "../support/client.rs"]
mod client;

pub(super) use client::is_requested;
use client::{CheckResult, Client, text};
use serde_json::{Value, json};

use super::server;

/// The response of the editor.
fn editor(method: &str, _: &Value) -> Value {
    assert_eq!(method, "roots/list");
    json!({ "roots": [
        { "uri": "file:///home/ada/engine", "name": "engine" },
        { "uri": "file:///home/ada/notes" },
    ] })
}

pub(super) async fn run() -> CheckResult {
    let expected = json!([
        { "name": "engine", "uri": "file:///home/ada/engine" },
        { "name": "unnamed", "uri": "file:///home/ada/notes" },
    ]);
    let client = Client::connect(server()).with_capabilities(json!({ "roots": {} }));
    let result = client
        .respond_with(editor)
        .tool("projects", json!({}))
        .await?;
    assert_eq!(result["structuredContent"], expected);

    let client = Client::connect_legacy(server(), "2025-03-26", json!({ "roots": {} })).await?;
    let result = client
        .respond_with(editor)
        .tool("projects", json!({}))
        .await?;
    // Structured content exists since 2025-06-18; before, the text contains the same.
    let listed: Value = serde_json::from_str(text(&result))?;
    assert_eq!(listed, expected);

    let result = Client::connect(server())
        .tool("projects", json!({}))
        .await?;
    assert_eq!(result["structuredContent"], json!([]));
    Ok(())
}
