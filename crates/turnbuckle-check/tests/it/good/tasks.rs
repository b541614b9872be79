//! Tools with task support.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::sleep;
use turnbuckle_protocol::RpcError;
use turnbuckle_server::{Context, Elicitation, Server, TaskSupport, Tool, ToolError};

pub(crate) fn register(server: Server) -> Server {
    let task = |tool: Tool, support, description: &str| {
        tool.description(description).read_only().task(support)
    };
    let optional = TaskSupport::Optional;
    server
        .tool(task(Tool::new("work", work), optional, "Works for a while"))
        .tool(task(
            Tool::new("work_hard", work),
            TaskSupport::Required,
            "Runs as a task only",
        ))
        .tool(task(
            Tool::new("work_in_vain", fail),
            optional,
            "Fails with a tool error",
        ))
        .tool(task(
            Tool::new("work_badly", reject),
            optional,
            "Fails with a JSON-RPC error, if it is a task",
        ))
        .tool(task(
            Tool::new("work_together", confirm),
            optional,
            "Requests input from the user while it runs",
        ))
}

async fn work(cx: Context) -> Result<&'static str, ToolError> {
    cx.progress_message(1, Some(2.0), "begun").await;
    sleep(Duration::from_millis(300)).await;
    cx.progress_message(2, Some(2.0), "done").await;
    Ok("Done.")
}

async fn fail() -> Result<&'static str, ToolError> {
    sleep(Duration::from_millis(50)).await;
    Err(ToolError::new("It always fails."))
}

async fn reject(cx: Context) -> Result<&'static str, ToolError> {
    if cx.is_task() {
        Err(ToolError::protocol(RpcError::internal("this always fails")))
    } else {
        Ok("Done.")
    }
}

#[derive(Deserialize, JsonSchema)]
struct Confirmation {
    /// Set to continue.
    confirmed: bool,
}

async fn confirm(cx: Context) -> Result<String, ToolError> {
    let response = cx.elicit(Elicitation::form::<Confirmation>("Continue?").key("confirmed"));
    let confirmed = response
        .await?
        .accepted()
        .is_some_and(|response| response.confirmed);
    Ok(format!("Confirmed: {confirmed}"))
}
