//! Tools that report progress, log, take long, or send change notifications.

use std::time::Duration;

use tokio::time::sleep;
use turnbuckle_protocol::types::LogLevel;
use turnbuckle_server::{Context, Server, Tool, ToolError};

pub(crate) fn register(server: Server) -> Server {
    let read_only = |tool: Tool, description: &str| tool.description(description).read_only();
    server
        .tool(read_only(Tool::new("count", count), "Counts to three"))
        .tool(read_only(Tool::new("talk", talk), "Logs at three levels"))
        .tool(read_only(Tool::new("wait", wait), "Takes a while"))
        .tool(read_only(
            Tool::new("stir", stir),
            "Sends change notifications",
        ))
}

async fn count(cx: Context) -> Result<&'static str, ToolError> {
    for step in 1..=3 {
        cx.progress_message(step, Some(3.0), format!("step {step}"))
            .await;
    }
    Ok("One, two, three.")
}

async fn talk(cx: Context) -> Result<&'static str, ToolError> {
    cx.log(LogLevel::Debug, "a detail").await;
    cx.log(LogLevel::Info, "a fact").await;
    cx.log(LogLevel::Error, "a fault").await;
    Ok("Logged.")
}

async fn wait(cx: Context) -> Result<&'static str, ToolError> {
    cx.progress(1, 2).await;
    sleep(Duration::from_millis(400)).await;
    Ok("Done.")
}

async fn stir(cx: Context) -> Result<&'static str, ToolError> {
    cx.tools_changed();
    cx.prompts_changed();
    cx.resources_changed();
    cx.resource_updated("good://greeting");
    Ok("Notified.")
}
