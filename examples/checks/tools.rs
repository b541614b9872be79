//! The self-check of the example `tools`: a client that calls it and compares the results.

#[path = "../support/client.rs"]
mod client;

pub(super) use client::is_requested;
use client::{CheckResult, Client, text};
use serde_json::json;

use super::server;

pub(super) async fn run() -> CheckResult {
    let mut client = Client::connect(server());
    let list = client.call("tools/list", json!({})).await?;
    let tool = &list["tools"][0];
    assert_eq!(tool["inputSchema"]["required"], json!(["amount", "to"]));
    assert_eq!(tool["outputSchema"]["type"], "object");
    assert_eq!(
        tool["annotations"],
        json!({ "readOnlyHint": true, "idempotentHint": true, "openWorldHint": false })
    );

    let arguments = json!({ "amount": 2000, "to": "GBP" });
    let result = client.tool("convert", arguments).await?;
    assert_eq!(
        result["structuredContent"],
        json!({ "amount": 1700, "currency": "GBP" })
    );

    // Invalid arguments do not reach the function; the model gets the expected type.
    let arguments = json!({ "amount": "much", "to": "GBP" });
    let result = client.tool("convert", arguments).await?;
    assert_eq!(result["isError"], true);
    assert!(text(&result).contains("amount"), "{result}");

    let arguments = json!({ "amount": 2000, "to": "CHF" });
    let result = client.tool("convert", arguments).await?;
    assert_eq!(result["isError"], true);
    assert!(text(&result).contains("EUR and GBP"), "{result}");

    let result = client.tool("statement", json!({})).await?;
    assert_eq!(result["isError"], true);
    assert!(text(&result).contains("incident"), "{result}");
    assert!(!text(&result).contains("No such file"), "{result}");

    let error = client
        .call_error("tools/call", json!({ "name": "steal" }))
        .await?;
    assert_eq!(error["code"], -32602);
    Ok(())
}
