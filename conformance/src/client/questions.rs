//! Scenarios in which the server asks before it answers.

use std::error::Error;

use serde_json::json;

use crate::Task;

/// Accepts a form without having typed anything.
pub(crate) async fn accept_defaults(task: &Task) -> Result<(), Box<dyn Error>> {
    let client = task
        .client()
        .on_form_elicitation(|form| async move { form.accept_defaults() });
    let client = task.connect_as(client).await?;
    client.tools().all().await?;
    client
        .call_tool("test_client_elicitation_defaults", json!({}))
        .await?;
    client.close().await;
    Ok(())
}

/// Calls four tools, of which two ask first; what one wanted to know is not told to another.
pub(crate) async fn go_several_rounds(task: &Task) -> Result<(), Box<dyn Error>> {
    let client = task
        .client()
        .on_form_elicitation(|form| async move { form.accept(json!({ "confirmed": true })) });
    let client = task.connect_as(client).await?;
    client.tools().all().await?;
    for tool in [
        "test_mrtr_echo_state",
        "test_mrtr_unrelated",
        "test_mrtr_no_state",
        "test_mrtr_no_result_type",
    ] {
        client.call_tool(tool, json!({})).await?;
    }
    client.close().await;
    Ok(())
}
