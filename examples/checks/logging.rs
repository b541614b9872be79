//! The self-check of the example `logging`: a client that calls it and compares the results.

#[path = "../support/client.rs"]
mod client;

pub(super) use client::is_requested;
use client::{CheckResult, Client};
use serde_json::json;

use super::server;

pub(super) async fn run() -> CheckResult {
    // Since 2026-07-28 each request sets its log level; without a level, nothing is sent.
    let mut client = Client::connect(server());
    client.tool("scan", json!({})).await?;
    let message = client.notification("notifications/message").await?;
    assert_eq!(message["level"], "debug");
    assert_eq!(message["data"], "scanning the network");
    let message = client.notification("notifications/message").await?;
    assert_eq!(message["logger"], "printers");
    assert_eq!(message["data"]["paper"], "low");

    client.log_level("error");
    client.tool("scan", json!({})).await?;
    assert!(!client.has_notification("notifications/message"));

    // Before, a client set it once for the session.
    let mut client = Client::connect_legacy(server(), "2025-06-18", json!({})).await?;
    client
        .call("logging/setLevel", json!({ "level": "warning" }))
        .await?;
    client.tool("scan", json!({})).await?;
    let message = client.notification("notifications/message").await?;
    assert_eq!(message["level"], "warning");
    assert!(!client.has_notification("notifications/message"));
    Ok(())
}
