//! The self-check of the example `elicitation`: a client that calls it and compares the results.

#[path = "../support/client.rs"]
mod client;

pub(super) use client::is_requested;
use client::{CheckResult, Client, text};
use serde_json::{Value, json};

use super::server;

/// The responses of the user.
fn user(method: &str, params: &Value) -> Value {
    assert_eq!(method, "elicitation/create");
    if params["mode"] == "url" {
        assert_eq!(params["url"], "https://bakery.example/pay/42");
        return json!({ "action": "accept" });
    }
    let form = &params["requestedSchema"];
    assert_eq!(form["required"], json!(["loaves", "kind"]));
    assert_eq!(form["properties"]["kind"]["enum"], json!(["Rye", "Wheat"]));
    json!({ "action": "accept", "content": { "loaves": 2, "kind": "Rye" } })
}

pub(super) async fn run() -> CheckResult {
    let can_ask = json!({ "elicitation": { "form": {}, "url": {} } });

    // A client of 2026-07-28 gets the input request as a result, and retries with the response.
    let client = Client::connect(server()).with_capabilities(can_ask.clone());
    let mut client = client.respond_with(user);
    let result = client.tool("order", json!({})).await?;
    assert_eq!(text(&result), "2 Rye, no remark");
    let result = client.tool("pay", json!({})).await?;
    assert!(text(&result).starts_with("The user went"), "{result}");

    // A client of 2025-11-25 gets a request while the call waits.
    let client = Client::connect_legacy(server(), "2025-11-25", can_ask.clone()).await?;
    let mut client = client.respond_with(user);
    let result = client.tool("order", json!({})).await?;
    assert_eq!(text(&result), "2 Rye, no remark");
    let result = client.tool("pay", json!({})).await?;
    assert!(text(&result).starts_with("The user went"), "{result}");

    // Users may decline.
    let client = Client::connect(server()).with_capabilities(can_ask);
    let mut client = client.respond_with(|_, _| json!({ "action": "decline" }));
    let result = client.tool("order", json!({})).await?;
    assert_eq!(text(&result), "The user wants no bread.");
    Ok(())
}
