//! Tasks: calls that are answered later, in both designs of the protocol.
//!
//! A tool says whether its calls may or must become tasks; its function stays what it was. Since 2026-07-28 the server
//! makes a task for every client that knows them; a client of 2025-11-25 asks for one; all others wait.
//!
//! ```console
//! $ cargo run -q --example tasks                # on stdio
//! $ cargo run -q --example tasks -- --check     # asks itself and prints the answers
//! ```

mod check;

use std::time::Duration;

use check::{Checked, Client, text};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::sleep;
use turnbuckle::{Context, Elicitation, Server, TaskSupport, Tool, ToolError, stdio};

/// May become a task. What it says of its progress is the status of the task.
async fn render(cx: Context) -> Result<String, ToolError> {
    for frame in 1..=3 {
        cx.progress_message(frame, Some(3.0), format!("frame {frame}"))
            .await;
        sleep(Duration::from_millis(5)).await;
    }
    Ok("three frames".to_owned())
}

/// Must be a task: nobody should wait for it with an open connection.
async fn index() -> Result<String, ToolError> {
    sleep(Duration::from_millis(5)).await;
    Ok("a thousand pages".to_owned())
}

#[derive(Deserialize, JsonSchema)]
struct Budget {
    /// In euros.
    amount: u32,
}

/// Asks before the long part begins, and once more from within the task.
async fn travel(cx: Context) -> Result<String, ToolError> {
    let Some(budget) = cx
        .elicit(Elicitation::form::<Budget>("How much may it cost?").key("budget"))
        .await?
        .accepted()
    else {
        return Ok("The user stays at home.".to_owned());
    };
    cx.into_task().await?;
    sleep(Duration::from_millis(5)).await; // looking for trains takes a while
    let more = cx
        .elicit(Elicitation::form::<Budget>("Trains are dear today. What is the most?").key("more"))
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
async fn main() -> Checked {
    if check::is_wanted() {
        with_the_extension().await?;
        without_it().await?;
        return as_in_2025().await;
    }
    Ok(stdio::serve(server()).await?)
}

/// What the user says: 100 at first, 150 when asked for more.
fn user(_: &str, params: &Value) -> Value {
    let first = params["message"] == "How much may it cost?";
    json!({ "action": "accept", "content": { "amount": if first { 100 } else { 150 } } })
}

async fn with_the_extension() -> Checked {
    let extension = json!({ "io.modelcontextprotocol/tasks": {} });
    let mut client = Client::join(server())
        .offering(json!({ "elicitation": {}, "extensions": extension }))
        .answering(user);
    for (tool, expected) in [
        ("render", "three frames"),
        ("index", "a thousand pages"),
        ("travel", "A ticket for 150 euros."),
    ] {
        let task = client.tool(tool, json!({})).await?;
        assert_eq!(task["resultType"], "task");
        let result = wait_for(&mut client, &task).await?;
        assert_eq!(text(&result), expected);
    }
    Ok(())
}

/// Looks in on a task until it is done, and answers what it asks.
async fn wait_for(client: &mut Client, task: &Value) -> Checked<Value> {
    let id = &task["taskId"];
    loop {
        let mut now = client.call("tasks/get", json!({ "taskId": id })).await?;
        match now["status"].as_str() {
            Some("completed") => return Ok(now["result"].take()),
            Some("input_required") => {
                let questions = now["inputRequests"].as_object().into_iter().flatten();
                let answers: Map<String, Value> = questions
                    .map(|(key, question)| (key.clone(), client.answer_question(question)))
                    .collect();
                let params = json!({ "taskId": id, "inputResponses": answers });
                client.call("tasks/update", params).await?;
            }
            Some("working") => {
                let pause = now["pollIntervalMs"].as_u64().unwrap_or(1_000);
                sleep(Duration::from_millis(pause)).await;
            }
            _ => return Err(format!("the task failed: {now}").into()),
        }
    }
}

/// Who does not know tasks waits for the result, where the tool allows that.
async fn without_it() -> Checked {
    let mut client = Client::join(server());
    let result = client.tool("render", json!({})).await?;
    assert_eq!(text(&result), "three frames");
    let error = client
        .refused("tools/call", json!({ "name": "index" }))
        .await?;
    assert_eq!(error["code"], -32021);
    Ok(())
}

/// The client asks for a task with the call, and for its result apart; questions come while it waits for that.
async fn as_in_2025() -> Checked {
    let can_ask = json!({ "elicitation": {} });
    let client = Client::shake_hands(server(), "2025-11-25", can_ask).await?;
    let mut client = client.answering(user);
    let call = json!({ "name": "travel", "task": { "ttl": 60_000 } });
    let created = client.call("tools/call", call).await?;
    let id = &created["task"]["taskId"];
    let result = client.call("tasks/result", json!({ "taskId": id })).await?;
    assert_eq!(text(&result), "A ticket for 150 euros.");
    Ok(())
}
