//! Log messages for the client, of the levels that it wants.
//!
//! They are for the people who watch a client at work. What the operator of the server should know goes to `tracing`.
//!
//! ```console
//! $ cargo run -q --example logging                # on stdio
//! $ cargo run -q --example logging -- --check     # asks itself and prints the answers
//! ```

mod check;

use check::{Checked, Client};
use serde_json::json;
use turnbuckle::{Context, Server, Tool, ToolError, stdio, types::LogLevel};

async fn scan(cx: Context) -> Result<String, ToolError> {
    cx.log(LogLevel::Debug, "scanning the network").await;
    // Anything that serde can write is data; a name tells loggers apart.
    cx.log_as(
        LogLevel::Warning,
        Some("printers"),
        json!({ "printer": "hall", "paper": "low" }),
    )
    .await;
    Ok("found one printer".to_owned())
}

fn server() -> Server {
    Server::new("network", "1.0.0").tool(Tool::new("scan", scan).description("Looks for printers"))
}

#[tokio::main]
async fn main() -> Checked {
    if check::is_wanted() {
        return ask().await;
    }
    Ok(stdio::serve(server()).await?)
}

async fn ask() -> Checked {
    // Since 2026-07-28 each request says what it wants to hear; without a level, nothing.
    let mut client = Client::join(server());
    client.tool("scan", json!({})).await?;
    let message = client.heard("notifications/message").await?;
    assert_eq!(message["level"], "debug");
    assert_eq!(message["data"], "scanning the network");
    let message = client.heard("notifications/message").await?;
    assert_eq!(message["logger"], "printers");
    assert_eq!(message["data"]["paper"], "low");

    client.log_level("error");
    client.tool("scan", json!({})).await?;
    assert!(!client.has_heard("notifications/message"));

    // Before, a client said it once for all its requests.
    let mut client = Client::shake_hands(server(), "2025-06-18", json!({})).await?;
    client
        .call("logging/setLevel", json!({ "level": "warning" }))
        .await?;
    client.tool("scan", json!({})).await?;
    let message = client.heard("notifications/message").await?;
    assert_eq!(message["level"], "warning");
    assert!(!client.has_heard("notifications/message"));
    Ok(())
}
