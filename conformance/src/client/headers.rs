//! Scenarios about the headers that repeat what a request says.

use std::error::Error;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::Task;

/// Lists, calls, reads and gets all that the server offers.
pub(crate) async fn ask_for_everything(task: &Task) -> Result<(), Box<dyn Error>> {
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
struct Wanted {
    #[serde(rename = "toolCalls")]
    calls: Vec<WantedCall>,
}

#[derive(Deserialize)]
struct WantedCall {
    name: String,
    arguments: Value,
}

/// Makes the calls that the context lists; the schemas of the tools say what to mirror.
pub(crate) async fn mirror_arguments(task: &Task) -> Result<(), Box<dyn Error>> {
    let wanted = Wanted::deserialize(&task.context)?;
    let client = task.connect().await?;
    client.tools().all().await?;
    for call in wanted.calls {
        client.call_tool(call.name, call.arguments).await?;
    }
    client.close().await;
    Ok(())
}

/// Calls whatever is left of the list.
pub(crate) async fn leave_bad_tools_alone(task: &Task) -> Result<(), Box<dyn Error>> {
    let client = task.connect().await?;
    for tool in client.tools().all().await? {
        client
            .call_tool(tool.name, json!({ "region": "us-east1" }))
            .await?;
    }
    client.close().await;
    Ok(())
}
