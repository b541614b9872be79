//! Scenarios with client requests.

use std::error::Error;

use serde_json::json;

use crate::Task;

/// Accepts a form with its defaults.
pub(crate) async fn accept_defaults(task: &Task) -> Result<(), Box<dyn Error>> {
    let client = task
        .client()
        .on_form_elicitation(|form| async move { form.accept_defaults() });
    let client = task.connect_with(client).await?;
    client.tools().all().await?;
    client
        .call_tool("test_client_elicitation_defaults", json!({}))
        .await?;
    client.close().await;
    Ok(())
}

/// Calls four tools; two of them require input, and the state of one is not sent to another.
pub(crate) async fn complete_round_trips(task: &Task) -> Result<(), Box<dyn Error>> {
    let client = task
        .client()
        .on_form_elicitation(|form| async move { form.accept(json!({ "confirmed": true })) });
    let client = task.connect_with(client).await?;
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
