//! Tools that are added and removed while the server runs.
//!
//! ```console
//! $ cargo example dynamic_tools                # on stdio
//! $ cargo example dynamic_tools -- --check     # calls itself and prints the responses
//! ```

#[path = "checks/dynamic_tools.rs"]
mod check;

use std::error::Error;

use schemars::JsonSchema;
use serde::Deserialize;
use turnbuckle::{Context, Server, Tool, ToolError, stdio};

#[derive(Deserialize, JsonSchema)]
struct Plugin {
    /// The name of the plugin.
    name: String,
}

/// Subscribed clients are notified that the list changed. Resources and prompts have the same methods.
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
async fn main() -> Result<(), Box<dyn Error>> {
    if check::is_requested() {
        return check::run(server()).await;
    }
    Ok(stdio::serve(server()).await?)
}
