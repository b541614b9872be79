//! The self-check of the example `progress`: a client that calls it and compares the results.

#[path = "../support/client.rs"]
mod client;

pub(super) use client::is_requested;
use client::{CheckResult, Client, text};
use serde_json::json;
use tokio::sync::mpsc::UnboundedReceiver;
use turnbuckle::Server;

pub(super) async fn run(server: Server, mut seen: UnboundedReceiver<&'static str>) -> CheckResult {
    let mut client = Client::connect(server);
    let id = client
        .start("tools/call", json!({ "name": "copy" }))
        .await?;
    let progress = client.notification("notifications/progress").await?;
    assert_eq!(progress["progressToken"], id);
    assert_eq!(progress["total"], 3.0);
    let progress = client.notification("notifications/progress").await?;
    assert_eq!(progress["message"], "copying the pictures");
    cancel(&mut client, id).await?;
    assert_eq!(seen.recv().await, Some("removed the half copy"));

    let id = client
        .start("tools/call", json!({ "name": "transfer" }))
        .await?;
    client.notification("notifications/progress").await?;
    cancel(&mut client, id).await?;
    assert_eq!(seen.recv().await, Some("booked"));

    let result = client.tool("transfer", json!({})).await?;
    assert_eq!(text(&result), "booked");
    Ok(())
}

async fn cancel(client: &mut Client, id: u64) -> CheckResult {
    let params = json!({ "requestId": id, "reason": "the user does not want to wait" });
    client.notify("notifications/cancelled", params).await
}
