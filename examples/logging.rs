//! Log messages for the client, at the levels that it requests.
//!
//! They are for the user of the client. Messages for the operator of the server go to `tracing`.
//!
//! ```console
//! $ cargo example logging                # on stdio
//! $ cargo example logging -- --check     # calls itself and prints the responses
//! ```

#[path = "checks/logging.rs"]
mod check;

use std::error::Error;

use serde_json::json;
use turnbuckle::{Context, Server, Tool, ToolError, stdio, types::LogLevel};

async fn scan(cx: Context) -> Result<String, ToolError> {
    cx.log(LogLevel::Debug, "scanning the network").await;
    // Data is any value that serde can serialize; a name distinguishes loggers.
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
async fn main() -> Result<(), Box<dyn Error>> {
    if check::is_requested() {
        return check::run().await;
    }
    Ok(stdio::serve(server()).await?)
}
