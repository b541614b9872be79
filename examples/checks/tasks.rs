//! The self-check of the example `tasks`: a client that calls it and compares the results.

#[path = "../support/client.rs"]
mod client;

use std::time::Duration;

pub(super) use client::is_requested;
use client::{CheckResult, Client, text};
use serde_json::{Map, Value, json};
use tokio::time::sleep;

use super::server;

pub(super) async fn run() -> CheckResult {
    with_the_extension().await?;
    without_it().await?;
    as_in_2025().await
}

/// The responses of the user: 100 to the first request, 150 to the second.
fn user(_: &str, params: &Value) -> Value {
    let first = params["message"] == "How much may it cost?";
    json!({ "action": "accept", "content": { "amount": if first { 100 } else { 150 } } })
}

async fn with_the_extension() -> CheckResult {
    let extension = json!({ "io.modelcontextprotocol/tasks": {} });
    let mut client = Client::connect(server())
        .with_capabilities(json!({ "elicitation": {}, "extensions": extension }))
        .respond_with(user);
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

/// Polls a task until it is done, and responds to its input requests.
async fn wait_for(client: &mut Client, task: &Value) -> CheckResult<Value> {
    let id = &task["taskId"];
    loop {
        let mut now = client.call("tasks/get", json!({ "taskId": id })).await?;
        match now["status"].as_str() {
            Some("completed") => return Ok(now["result"].take()),
            Some("input_required") => {
                let questions = now["inputRequests"].as_object().into_iter().flatten();
                let answers: Map<String, Value> = questions
                    .map(|(key, question)| (key.clone(), client.respond(question)))
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

/// A client without tasks waits for the result, if the tool allows that.
async fn without_it() -> CheckResult {
    let mut client = Client::connect(server());
    let result = client.tool("render", json!({})).await?;
    assert_eq!(text(&result), "three frames");
    let error = client
        .call_error("tools/call", json!({ "name": "index" }))
        .await?;
    assert_eq!(error["code"], -32021);
    Ok(())
}

/// The client requests a task with the call and fetches its result; client requests arrive while it waits.
async fn as_in_2025() -> CheckResult {
    let can_ask = json!({ "elicitation": {} });
    let client = Client::connect_legacy(server(), "2025-11-25", can_ask).await?;
    let mut client = client.respond_with(user);
    let call = json!({ "name": "travel", "task": { "ttl": 60_000 } });
    let created = client.call("tools/call", call).await?;
    let id = &created["task"]["taskId"];
    let result = client.call("tasks/result", json!({ "taskId": id })).await?;
    assert_eq!(text(&result), "A ticket for 150 euros.");
    Ok(())
}
