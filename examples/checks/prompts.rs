//! The self-check of the example `prompts`: a client that calls it and compares the results.

#[path = "../support/client.rs"]
mod client;

pub(super) use client::is_requested;
use client::{CheckResult, Client};
use serde_json::json;

use super::server;

pub(super) async fn run() -> CheckResult {
    let mut client = Client::connect(server());
    let list = client.call("prompts/list", json!({})).await?;
    let arguments = &list["prompts"][0]["arguments"];
    assert_eq!(arguments[0]["name"], "language");
    assert_eq!(arguments[0]["description"], "The language of the code.");
    assert_eq!(arguments[0]["required"], true);
    assert_eq!(arguments[1]["required"], false);

    let review = json!({ "name": "review", "arguments": { "language": "Rust" } });
    let got = client.call("prompts/get", review).await?;
    assert_eq!(
        got["messages"][0]["content"]["text"],
        "Review this Rust code, with an eye on clarity."
    );

    let onboarding = json!({ "name": "onboarding" });
    let got = client.call("prompts/get", onboarding).await?;
    assert_eq!(got["description"], "The first day in the team");
    assert_eq!(got["messages"][1]["role"], "assistant");
    assert_eq!(
        got["messages"][1]["content"]["resource"]["uri"],
        "team://rules"
    );

    let incomplete = json!({ "name": "review", "arguments": {} });
    let error = client.call_error("prompts/get", incomplete).await?;
    assert_eq!(error["code"], -32602);
    Ok(())
}
