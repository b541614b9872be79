//! Sampling: a tool asks the client's model.
//!
//! ```console
//! $ cargo run -q --example sampling                # on stdio
//! $ cargo run -q --example sampling -- --check     # asks itself and prints the answers
//! ```

mod check;

use check::{Checked, Client, text};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use turnbuckle::{
    Context, SamplingBuilder, Server, Tool, ToolError, stdio,
    types::{ModelHint, ModelPreferences},
};

#[derive(Deserialize, JsonSchema)]
struct Translate {
    /// What to translate.
    text: String,
}

async fn translate(args: Translate, cx: Context) -> Result<String, ToolError> {
    let question = SamplingBuilder::text(args.text)
        .system_prompt(
            "Translate what the user says into Norwegian. Answer with the translation only.",
        )
        .max_tokens(200)
        .preferences(
            ModelPreferences::new()
                .hints([ModelHint::new("small")])
                .speed_priority(0.9),
        );
    let answer = cx.sample("translation", question).await?;
    Ok(format!("{} (says {})", answer.text(), answer.model))
}

fn server() -> Server {
    Server::new("dictionary", "1.0.0").tool(
        Tool::new("translate", translate)
            .description("Translates into Norwegian")
            .read_only(),
    )
}

#[tokio::main]
async fn main() -> Checked {
    if check::is_wanted() {
        return ask().await;
    }
    Ok(stdio::serve(server()).await?)
}

/// What the client's model says.
fn model(method: &str, params: &Value) -> Value {
    assert_eq!(method, "sampling/createMessage");
    assert_eq!(params["messages"][0]["content"]["text"], "Good morning");
    assert_eq!(params["maxTokens"], 200);
    assert_eq!(params["modelPreferences"]["hints"][0]["name"], "small");
    let said = json!({ "type": "text", "text": "God morgen" });
    json!({ "role": "assistant", "model": "tiny-1", "content": said })
}

async fn ask() -> Checked {
    let arguments = json!({ "text": "Good morning" });
    let can_sample = json!({ "sampling": {} });

    let mut client = Client::join(server())
        .offering(can_sample.clone())
        .answering(model);
    let result = client.tool("translate", arguments.clone()).await?;
    assert_eq!(text(&result), "God morgen (says tiny-1)");

    let client = Client::shake_hands(server(), "2024-11-05", can_sample).await?;
    let mut client = client.answering(model);
    let result = client.tool("translate", arguments.clone()).await?;
    assert_eq!(text(&result), "God morgen (says tiny-1)");

    // A client that has no model to offer learns what it would need.
    let call = json!({ "name": "translate", "arguments": arguments });
    let mut client = Client::join(server());
    let error = client.refused("tools/call", call).await?;
    assert_eq!(error["code"], -32021);
    assert_eq!(
        error["data"]["requiredCapabilities"],
        json!({ "sampling": {} })
    );
    Ok(())
}
