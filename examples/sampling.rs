//! Sampling: a tool requests a completion from the client's model.
//!
//! ```console
//! $ cargo example sampling                # on stdio
//! $ cargo example sampling -- --check     # calls itself and prints the responses
//! ```

#[path = "checks/sampling.rs"]
mod check;

use std::error::Error;

use schemars::JsonSchema;
use serde::Deserialize;
use turnbuckle::{Context, SamplingBuilder, Server, Tool, ToolError, stdio, types};

#[derive(Deserialize, JsonSchema)]
struct Translate {
    /// The text to translate.
    text: String,
}

async fn translate(args: Translate, cx: Context) -> Result<String, ToolError> {
    let question = SamplingBuilder::text(args.text)
        .system_prompt(
            "Translate what the user says into Norwegian. Answer with the translation only.",
        )
        .max_tokens(200)
        .preferences(
            types::ModelPreferences::new()
                .hints([types::ModelHint::new("small")])
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
async fn main() -> Result<(), Box<dyn Error>> {
    if check::is_requested() {
        return check::run().await;
    }
    Ok(stdio::serve(server()).await?)
}
