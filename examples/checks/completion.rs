//! The self-check of the example `completion`: a client that calls it and compares the results.

#[path = "../support/client.rs"]
mod client;

pub(super) use client::is_requested;
use client::{CheckResult, Client};
use serde_json::{Value, json};

use super::server;

pub(super) async fn run() -> CheckResult {
    let mut client = Client::connect(server());
    let prompt = json!({ "type": "ref/prompt", "name": "trip" });
    let flags = json!({ "type": "ref/resource", "uri": "flags://{country}" });
    for (reference, argument, typed, country, expected) in [
        (&prompt, "country", "I", "", json!(["Italy"])),
        (&prompt, "city", "r", "Italy", json!(["Rome", "Ravenna"])),
        (&prompt, "city", "r", "Norway", json!(["Røros"])),
        (&prompt, "city", "r", "", json!([])),
        (&flags, "country", "", "", json!(["Italy", "Norway"])),
    ] {
        let found = complete(&mut client, reference, argument, typed, country).await?;
        assert_eq!(found, expected, "{argument} {typed} {country}");
    }
    Ok(())
}

async fn complete(
    client: &mut Client,
    reference: &Value,
    argument: &str,
    typed: &str,
    country: &str,
) -> CheckResult<Value> {
    let params = json!({
        "ref": reference,
        "argument": { "name": argument, "value": typed },
        "context": { "arguments": { "country": country } },
    });
    let mut result = client.call("completion/complete", params).await?;
    Ok(result["completion"]["values"].take())
}
