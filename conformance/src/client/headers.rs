//! Scenarios about the headers that repeat parts of a request.

use std::error::Error;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::Task;

/// Lists, calls, reads and gets everything of the server.
pub(crate) async fn use_every_feature(task: &Task) -> Result<(), Box<dyn Error>> {
    let client = task.connect().await?;
    for tool in client.tools().all().await? {
        client.call_tool(tool.name, json!({})).await?;
    }
    for resource in client.resources().all().await? {
        client.read_resource(resource.uri).await?;
    }
    for prompt in client.prompts().all().await? {
        client.get_prompt(prompt.name, [("", ""); 0]).await?;
    }
    client.close().await;
    Ok(())
}

#[derive(Deserialize)]
struct CallPlan {
    #[serde(rename = "toolCalls")]
    calls: Vec<PlannedCall>,
}

#[derive(Deserialize)]
struct PlannedCall {
    name: String,
    arguments: Value,
}

/// Makes the calls that the context lists; the schemas of the tools name the param headers.
pub(crate) async fn send_param_headers(task: &Task) -> Result<(), Box<dyn Error>> {
    let plan = CallPlan::deserialize(&task.context)?;
    let client = task.connect().await?;
    client.tools().all().await?;
    for call in plan.calls {
        client.call_tool(call.name, call.arguments).await?;
    }
    client.close().await;
    Ok(())
}

/// Calls every tool that the client lists.
pub(crate) async fn skip_invalid_tools(task: &Task) -> Result<(), Box<dyn Error>> {
    let client = task.connect().await?;
    for tool in client.tools().all().await? {
        client
            .call_tool(tool.name, json!({ "region": "us-east1" }))
            .await?;
    }
    client.close().await;
    Ok(())
}
