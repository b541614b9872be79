//! Skills: instructions that a model reads when it needs them, from a folder and from code.
//!
//! The server serves the folder `skills` next to this file, including changes while it runs. A tool adds another skill.
//!
//! ```console
//! $ cargo example skills --features skills
//! ```
//!
//! serves on stdio. With `--check` it sends requests to itself and prints the responses.

#[path = "checks/skills.rs"]
mod check;

use std::error::Error;

use schemars::JsonSchema;
use serde::Deserialize;
use turnbuckle::{Context, Server, Skill, Skills, Tool, ToolError};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/skills");

#[derive(Deserialize, JsonSchema)]
struct Learned {
    /// A short name: lower-case letters, digits and hyphens.
    name: String,
    /// The purpose of the skill, and when to use it.
    description: String,
    /// The instructions, in Markdown.
    instructions: String,
}

/// Adds a skill for as long as the server runs.
async fn learn(args: Learned, cx: Context) -> Result<String, ToolError> {
    let skill = Skill::new(args.name, args.description, args.instructions)
        .and_then(|skill| skill.under("learned"))
        .map_err(|error| ToolError::new(error.to_string()))?;
    let uri = skill.uri();
    cx.server().add_skill(skill);
    Ok(format!("Learned: {uri}"))
}

fn server() -> Server {
    Server::new("apprentice", "1.0.0")
        .skills(Skills::from_folder(FOLDER))
        .tool(Tool::new("learn", learn).description("Writes down how something is done"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().any(|argument| argument == "--check") {
        check::run().await
    } else {
        Ok(turnbuckle::stdio::serve(server()).await?)
    }
}
