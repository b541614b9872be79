//! Tools that come and go while the server runs.
//!
//! ```console
//! $ cargo run -q --example run_time                # on stdio
//! $ cargo run -q --example run_time -- --check     # asks itself and prints the answers
//! ```

mod check;

use check::{Checked, Client, text};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use turnbuckle::{Context, Server, Tool, ToolError, stdio};

#[derive(Deserialize, JsonSchema)]
struct Plugin {
    /// What it is called.
    name: String,
}

/// All who wait for changes are told that the list is another now. `resources` and `prompts` have the same methods.
async fn load(plugin: Plugin, cx: Context) -> Result<String, ToolError> {
    if plugin.name.is_empty() || !plugin.name.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Err(ToolError::new("`name` must be letters from a to z"));
    }
    let answer = format!("{} is at work", plugin.name);
    let tool = Tool::new(plugin.name, move || {
        let answer = answer.clone();
        async move { Ok(answer) }
    });
    cx.server().add_tool(tool);
    Ok("loaded".to_owned())
}

async fn unload(plugin: Plugin, cx: Context) -> Result<String, ToolError> {
    if cx.server().remove_tool(&plugin.name) {
        Ok("unloaded".to_owned())
    } else {
        Err(ToolError::new("there is no such plugin"))
    }
}

fn server() -> Server {
    Server::new("plugins", "1.0.0")
        .tool(Tool::new("load", load).description("Loads a plugin"))
        .tool(Tool::new("unload", unload).description("Unloads a plugin"))
}

#[tokio::main]
async fn main() -> Checked {
    if check::is_wanted() {
        return ask(server()).await;
    }
    Ok(stdio::serve(server()).await?)
}

async fn ask(server: Server) -> Checked {
    // Two clients of one server: clones share what they offer.
    let mut watcher = Client::join(server.clone());
    let wanted = json!({ "notifications": { "toolsListChanged": true } });
    watcher.begin("subscriptions/listen", wanted).await?;
    watcher
        .heard("notifications/subscriptions/acknowledged")
        .await?;

    let mut client = Client::join(server);
    client.tool("load", json!({ "name": "spelling" })).await?;
    watcher.heard("notifications/tools/list_changed").await?;
    let result = watcher.tool("spelling", json!({})).await?;
    assert_eq!(text(&result), "spelling is at work");

    client.tool("unload", json!({ "name": "spelling" })).await?;
    watcher.heard("notifications/tools/list_changed").await?;
    let call = json!({ "name": "spelling" });
    let error = watcher.refused("tools/call", call).await?;
    assert_eq!(error["code"], -32602);
    Ok(())
}
