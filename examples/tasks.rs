//! Tasks: calls with results that are fetched later, in both task models of the protocol.
//!
//! A tool declares whether its calls may or must become tasks; its function stays the same. Since 2026-07-28 the server
//! creates a task for every client that supports them; a client of 2025-11-25 requests one; all others wait.
//!
//! ```console
//! $ cargo example tasks                # on stdio
//! $ cargo example tasks -- --check     # calls itself and prints the responses
//! ```

#[path = "checks/tasks.rs"]
mod check;

use std::{error::Error, time::Duration};

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::sleep;
use turnbuckle::{Context, Elicitation, Server, TaskSupport, Tool, ToolError, stdio};

/// May become a task. Its progress messages are the status of the task.
async fn render(cx: Context) -> Result<String, ToolError> {
    for frame in 1..=3 {
        cx.progress_message(frame, Some(3.0), format!("frame {frame}"))
            .await;
        sleep(Duration::from_millis(5)).await;
    }
    Ok("three frames".to_owned())
}

/// Must be a task: it takes too long for an open connection.
async fn index() -> Result<String, ToolError> {
    sleep(Duration::from_millis(5)).await;
    Ok("a thousand pages".to_owned())
}

#[derive(Deserialize, JsonSchema)]
struct Budget {
    /// In euros.
    amount: u32,
}

/// Sends one client request before it becomes a task, and one as a task.
async fn travel(cx: Context) -> Result<String, ToolError> {
    let Some(budget) = cx
        .elicit(Elicitation::form::<Budget>("How much may it cost?"))
        .await?
        .accepted()
    else {
        return Ok("The user stays at home.".to_owned());
    };
    cx.into_task().await?;
    sleep(Duration::from_millis(5)).await; // the search takes a while
    let more = cx
        .elicit(
            Elicitation::form::<Budget>("Trains are expensive today. What is the maximum?")
                .key("maximum"),
        )
        .await?;
    let most = more.accepted().map_or(budget.amount, |more| more.amount);
    Ok(format!("A ticket for {most} euros."))
}

fn server() -> Server {
    Server::new("patience", "1.0.0")
        .task_poll_interval(Duration::from_millis(5))
        .tool(Tool::new("render", render).task(TaskSupport::Optional))
        .tool(Tool::new("index", index).task(TaskSupport::Required))
        .tool(
            Tool::new("travel", travel)
                .task(TaskSupport::Optional)
                .task_after_input(),
        )
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    if check::is_requested() {
        return check::run().await;
    }
    Ok(stdio::serve(server()).await?)
}
