//! Skills: instructions that a model reads when it needs them, from a folder and from anywhere else.
//!
//! The folder `skills` beside this file is served as it stands; what is changed there while the server runs is served
//! as well. A tool writes down what was learned, as another skill.
//!
//! ```console
//! $ cargo run -q --example skills
//! ```
//!
//! serves on stdio. With `--check` it asks itself, prints the answers and ends.
#![expect(clippy::print_stdout, reason = "the example shows what it does")]

use std::error::Error;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use turnbuckle::{Context, Server, Skill, Skills, Tool, ToolError};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/skills");

#[derive(Deserialize, JsonSchema)]
struct Learned {
    /// A short name: lower-case letters, digits and hyphens.
    name: String,
    /// What it is about, and when to use it.
    description: String,
    /// What to do, in Markdown.
    instructions: String,
}

/// Keeps what was learned for as long as the server runs. A database would keep it for longer.
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
        check().await
    } else {
        Ok(turnbuckle::stdio::serve(server()).await?)
    }
}

/// Asks for everything once, as a client would.
async fn check() -> Result<(), Box<dyn Error>> {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(theirs);
    tokio::spawn(turnbuckle::ndjson::serve(reader, writer, server()));
    let mut peer = BufReader::new(ours);

    let lesson = json!({ "name": "knots", "description": "Ties knots.", "instructions": "Over, under, pull." });
    let learned = ask(
        &mut peer,
        "tools/call",
        json!({ "name": "learn", "arguments": lesson }),
    )
    .await?;
    let listed = ask(&mut peer, "skills/list", json!({})).await?;
    let folder = json!({ "uri": "skill://writing/changelog" });
    ask(&mut peer, "resources/directory/read", folder).await?;
    let file = json!({ "uri": "skill://writing/changelog/examples/good.md" });
    ask(&mut peer, "resources/read", file).await?;

    let names: Vec<_> = listed["skills"].as_array().into_iter().flatten().collect();
    let names: Vec<_> = names
        .iter()
        .map(|one| one["frontmatter"]["name"].as_str())
        .collect();
    let expected = [Some("knots"), Some("release"), Some("changelog")];
    let is_told = learned["content"][0]["text"] == "Learned: skill://learned/knots/SKILL.md";
    (names == expected && is_told)
        .then_some(())
        .ok_or_else(|| "the answers are not as expected".into())
}

async fn ask(
    peer: &mut BufReader<DuplexStream>,
    method: &str,
    mut params: Value,
) -> Result<Value, Box<dyn Error>> {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    peer.write_all(format!("{request}\n").as_bytes()).await?;
    let mut answer = String::new();
    peer.read_line(&mut answer).await?;
    println!("{method}: {answer}");
    let mut answer: Value = serde_json::from_str(&answer)?;
    match answer["result"].take() {
        Value::Null => Err("this is not a result".into()),
        result => Ok(result),
    }
}
