//! Scenarios that connect, list and call.

use std::error::Error;

use serde_json::json;
use turnbuckle_client::Roots;
use turnbuckle_protocol::types::CreateMessageResult;

use crate::Task;

/// The handshake is all there is to see.
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

/// The answer comes on a second stream, after the first has ended without it.
pub(crate) async fn wait_for_a_stream_that_breaks(task: &Task) -> Result<(), Box<dyn Error>> {
    let client = task.connect().await?;
    client.tools().all().await?;
    client.call_tool("test_reconnection", json!({})).await?;
    client.close().await;
    Ok(())
}

/// Every request says who asks and what the client can do, also the one that is asked again.
pub(crate) async fn say_who_asks(task: &Task) -> Result<(), Box<dyn Error>> {
    let client = task
        .client()
        .roots(Roots::new(["file:///tmp"])?)
        .on_form_elicitation(|form| async move { form.decline() })
        .on_sampling(|_| async { Ok(CreateMessageResult::new("none", "")) });
    let client = task.connect_as(client).await?;
    client.tools().all().await?;
    client.call_tool("any", json!({})).await?;
    client.close().await;
    Ok(())
}

/// A schema that refers to the network is passed on, and nothing is fetched.
pub(crate) async fn list_without_looking_things_up(task: &Task) -> Result<(), Box<dyn Error>> {
    let client = task.connect().await?;
    client.tools().all().await?;
    client.close().await;
    Ok(())
}

/// The schema of one tool is the argument of another, as it came.
pub(crate) async fn hand_back_a_schema(task: &Task) -> Result<(), Box<dyn Error>> {
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
