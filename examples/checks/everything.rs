//! The self-check of the example `everything`: a client that uses every feature once.

#[path = "../support/client.rs"]
mod client;

use client::{CheckResult, Client};
use serde_json::{Value, json};
use turnbuckle::Server;

pub(super) async fn run(server: Server) -> CheckResult {
    let mut client = Client::connect(server)
        .with_capabilities(
            json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} }),
        )
        .respond_with(answer);
    let wanted = json!({ "toolsListChanged": true, "resourceSubscriptions": ["notes://all"] });
    let listen = json!({ "notifications": wanted });
    client.start("subscriptions/listen", listen).await?;
    client
        .notification("notifications/subscriptions/acknowledged")
        .await?;
    for (name, arguments) in [
        ("add", json!({ "text": "Water the plants" })),
        ("add", json!({ "text": " " })),
        ("find", json!({ "text": "plants" })),
        ("count_words", json!({})),
        ("remind", json!({ "text": "Feed the cat", "seconds": 0.1 })),
        ("tidy", json!({})),
        ("card", json!({})),
        ("sign", json!({})),
        ("connect", json!({})),
        ("summarize", json!({})),
        ("places", json!({})),
    ] {
        client.tool(name, arguments).await?;
    }
    for (method, params) in [
        ("server/discover", json!({})),
        ("tools/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({ "uri": "notes://all" })),
        ("resources/read", json!({ "uri": "notes://pixel" })),
        ("resources/read", json!({ "uri": "notes://note/1" })),
        ("prompts/list", json!({})),
        (
            "prompts/get",
            json!({ "name": "review", "arguments": { "tone": "frank" } }),
        ),
        (
            "completion/complete",
            json!({
                "ref": { "type": "ref/resource", "uri": "notes://note/{number}" },
                "argument": { "name": "number", "value": "" }
            }),
        ),
    ] {
        to_the_last_page(&mut client, method, params).await?;
    }
    Ok(())
}

async fn to_the_last_page(client: &mut Client, method: &str, mut params: Value) -> CheckResult {
    loop {
        let mut result = client.call(method, params.clone()).await?;
        match result.get_mut("nextCursor") {
            Some(cursor) => params["cursor"] = cursor.take(),
            None => return Ok(()),
        }
    }
}

/// The responses of a user, a model and an editor.
fn answer(method: &str, _: &Value) -> Value {
    match method {
        "elicitation/create" => {
            json!({ "action": "accept", "content": { "name": "Ada Lovelace" } })
        }
        "sampling/createMessage" => json!({
            "role": "assistant", "model": "none", "content": { "type": "text", "text": "There is work to do." }
        }),
        _ => json!({ "roots": [{ "uri": "file:///home/ada/engine" }] }),
    }
}
