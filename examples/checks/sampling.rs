//! The self-check of the example `sampling`: a client that calls it and compares the results.

#[path = "../support/client.rs"]
mod client;

pub(super) use client::is_requested;
use client::{CheckResult, Client, text};
use serde_json::{Value, json};

use super::server;

/// The response of the client's model.
fn model(method: &str, params: &Value) -> Value {
    assert_eq!(method, "sampling/createMessage");
    assert_eq!(params["messages"][0]["content"]["text"], "Good morning");
    assert_eq!(params["maxTokens"], 200);
    assert_eq!(params["modelPreferences"]["hints"][0]["name"], "small");
    let said = json!({ "type": "text", "text": "God morgen" });
    json!({ "role": "assistant", "model": "tiny-1", "content": said })
}

pub(super) async fn run() -> CheckResult {
    let arguments = json!({ "text": "Good morning" });
    let can_sample = json!({ "sampling": {} });

    let mut client = Client::connect(server())
        .with_capabilities(can_sample.clone())
        .respond_with(model);
    let result = client.tool("translate", arguments.clone()).await?;
    assert_eq!(text(&result), "God morgen (says tiny-1)");

    let client = Client::connect_legacy(server(), "2024-11-05", can_sample).await?;
    let mut client = client.respond_with(model);
    let result = client.tool("translate", arguments.clone()).await?;
    assert_eq!(text(&result), "God morgen (says tiny-1)");

    // A client without sampling gets the required capability.
    let call = json!({ "name": "translate", "arguments": arguments });
    let mut client = Client::connect(server());
    let error = client.call_error("tools/call", call).await?;
    assert_eq!(error["code"], -32021);
    assert_eq!(
        error["data"]["requiredCapabilities"],
        json!({ "sampling": {} })
    );
    Ok(())
}
