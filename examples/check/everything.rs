//! Asks the server of `everything.rs` for everything, and prints what it answers.

use serde_json::{Value, json};
use turnbuckle::Server;

use crate::check::{Checked, Client};

pub(crate) async fn run(server: Server) -> Checked {
    let mut client = Client::join(server)
        .offering(json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} }))
        .answering(answer);
    let wanted = json!({ "toolsListChanged": true, "resourceSubscriptions": ["notes://all"] });
    let listen = json!({ "notifications": wanted });
    client.begin("subscriptions/listen", listen).await?;
    client
        .heard("notifications/subscriptions/acknowledged")
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

async fn to_the_last_page(client: &mut Client, method: &str, mut params: Value) -> Checked {
    loop {
        let mut result = client.call(method, params.clone()).await?;
        match result.get_mut("nextCursor") {
            Some(cursor) => params["cursor"] = cursor.take(),
            None => return Ok(()),
        }
    }
}

/// What a user, a model and an editor might say.
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
