//! Scenarios that connect, list and call.

use std::error::Error;

use serde_json::json;
use turnbuckle_client::Roots;
use turnbuckle_protocol::types::CreateMessageResult;

use crate::Task;

/// Connects and closes: the scenario checks the handshake.
pub(crate) async fn connect(task: &Task) -> Result<(), Box<dyn Error>> {
    let client = task.connect().await?;
    client.tools().all().await?;
    client.close().await;
    Ok(())
}

pub(crate) async fn add_numbers(task: &Task) -> Result<(), Box<dyn Error>> {
    let client = task.connect().await?;
    client.tools().all().await?;
    client
        .call_tool("add_numbers", json!({ "a": 5, "b": 3 }))
        .await?;
    client.close().await;
    Ok(())
}

/// The response arrives on a second stream, after the first has ended without it.
pub(crate) async fn resume_broken_stream(task: &Task) -> Result<(), Box<dyn Error>> {
    let client = task.connect().await?;
    client.tools().all().await?;
    client.call_tool("test_reconnection", json!({})).await?;
    client.close().await;
    Ok(())
}

/// Every request carries the client's identity and capabilities, also a repeated one.
pub(crate) async fn send_client_identity(task: &Task) -> Result<(), Box<dyn Error>> {
    let client = task
        .client()
        .roots(Roots::new(["file:///tmp"])?)
        .on_form_elicitation(|form| async move { form.decline() })
        .on_sampling(|_| async { Ok(CreateMessageResult::new("none", "")) });
    let client = task.connect_with(client).await?;
    client.tools().all().await?;
    client.call_tool("any", json!({})).await?;
    client.close().await;
    Ok(())
}

/// A schema with a reference to the network is returned, and nothing is fetched.
pub(crate) async fn list_without_fetching(task: &Task) -> Result<(), Box<dyn Error>> {
    let client = task.connect().await?;
    client.tools().all().await?;
    client.close().await;
    Ok(())
}

/// Sends the schema of one tool as the argument of another, unchanged.
pub(crate) async fn return_schema(task: &Task) -> Result<(), Box<dyn Error>> {
    let client = task.connect().await?;
    let tools = client.tools().all().await?;
    let tool = tools
        .iter()
        .find(|tool| tool.name == "json_schema_2020_12_tool")
        .ok_or("the tool with the schema is missing")?;
    client
        .call_tool("json_schema_echo", json!({ "schema": tool.input_schema }))
        .await?;
    client.close().await;
    Ok(())
}
