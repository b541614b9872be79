//! Roots: a tool asks in which folders the user works.
//!
//! ```console
//! $ cargo run -q --example roots                # on stdio
//! $ cargo run -q --example roots -- --check     # asks itself and prints the answers
//! ```

mod check;

use check::{Checked, Client};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use turnbuckle::{ClientRequestError, Context, Server, Tool, ToolError, stdio};

#[derive(Serialize, JsonSchema)]
struct Project {
    /// What people call it.
    name: String,
    /// Where it is.
    uri: String,
}

async fn projects(cx: Context) -> Result<Vec<Project>, ToolError> {
    let roots = match cx.roots("roots").await {
        Ok(roots) => roots,
        // Not every client has folders. A tool that can do without them says so instead of failing.
        Err(ClientRequestError::MissingCapability { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let project = |root: turnbuckle::types::Root| Project {
        name: root.name.unwrap_or_else(|| "unnamed".to_owned()),
        uri: root.uri,
    };
    Ok(roots.into_iter().map(project).collect())
}

fn server() -> Server {
    Server::new("projects", "1.0.0").tool(
        Tool::new("projects", projects)
            .description("Lists what the user works on")
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

/// What the editor says.
fn editor(method: &str, _: &Value) -> Value {
    assert_eq!(method, "roots/list");
    json!({ "roots": [
        { "uri": "file:///home/ada/engine", "name": "engine" },
        { "uri": "file:///home/ada/notes" },
    ] })
}

async fn ask() -> Checked {
    let expected = json!([
        { "name": "engine", "uri": "file:///home/ada/engine" },
        { "name": "unnamed", "uri": "file:///home/ada/notes" },
    ]);
    let client = Client::join(server()).offering(json!({ "roots": {} }));
    let result = client.answering(editor).tool("projects", json!({})).await?;
    assert_eq!(result["structuredContent"], expected);

    let client = Client::shake_hands(server(), "2025-03-26", json!({ "roots": {} })).await?;
    let result = client.answering(editor).tool("projects", json!({})).await?;
    // Structured content came with 2025-06-18; before, the same stands in the text.
    let listed: Value = serde_json::from_str(check::text(&result))?;
    assert_eq!(listed, expected);

    let result = Client::join(server()).tool("projects", json!({})).await?;
    assert_eq!(result["structuredContent"], json!([]));
    Ok(())
}
