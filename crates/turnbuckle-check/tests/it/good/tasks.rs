//! Tools whose calls become tasks.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::sleep;
use turnbuckle_protocol::RpcError;
use turnbuckle_server::{Context, Form, Server, TaskSupport, Tool, ToolError};

pub(crate) fn register(server: Server) -> Server {
    let task = |tool: Tool, support, description: &str| {
        tool.description(description).read_only().task(support)
    };
    let may = TaskSupport::Optional;
    server
        .tool(task(Tool::new("work", work), may, "Works for a while"))
        .tool(task(
            Tool::new("work_hard", work),
            TaskSupport::Required,
            "Works, as a task or not at all",
        ))
        .tool(task(
            Tool::new("work_in_vain", fail),
            may,
            "Works, and comes to nothing",
        ))
        .tool(task(
            Tool::new("work_badly", refuse),
            may,
            "Ends with an error of the protocol, if it is a task",
        ))
        .tool(task(
            Tool::new("work_together", confirm),
            may,
            "Asks the user in the middle of its work",
        ))
}

async fn work(cx: Context) -> Result<&'static str, ToolError> {
    cx.progress_message(1, Some(2.0), "begun").await;
    sleep(Duration::from_millis(300)).await;
    cx.progress_message(2, Some(2.0), "done").await;
    Ok("The work is done.")
}

async fn fail() -> Result<&'static str, ToolError> {
    sleep(Duration::from_millis(50)).await;
    Err(ToolError::new("It comes to nothing, as always."))
}

async fn refuse(cx: Context) -> Result<&'static str, ToolError> {
    if cx.is_task() {
        Err(ToolError::protocol(RpcError::internal(
            "this always ends badly",
        )))
    } else {
        Ok("This ends well.")
    }
}

#[derive(Deserialize, JsonSchema)]
struct Confirmation {
    /// Whether to go on.
    go_on: bool,
}

async fn confirm(cx: Context) -> Result<String, ToolError> {
    let answer = cx.elicit("go_on", Confirmation::elicit("Shall I go on?"));
    let go_on = answer.await?.accepted().is_some_and(|answer| answer.go_on);
    Ok(format!("The user wants it: {go_on}"))
}
