//! The self-check of the example `dynamic_tools`: a client that calls it and compares the results.

#[path = "../support/client.rs"]
mod client;

pub(super) use client::is_requested;
use client::{CheckResult, Client, text};
use serde_json::json;
use turnbuckle::Server;

pub(super) async fn run(server: Server) -> CheckResult {
    // Two clients of one server: clones share their catalog.
    let mut watcher = Client::connect(server.clone());
    let wanted = json!({ "notifications": { "toolsListChanged": true } });
    watcher.start("subscriptions/listen", wanted).await?;
    watcher
        .notification("notifications/subscriptions/acknowledged")
        .await?;

    let mut client = Client::connect(server);
    client.tool("load", json!({ "name": "spelling" })).await?;
    watcher
        .notification("notifications/tools/list_changed")
        .await?;
    let result = watcher.tool("spelling", json!({})).await?;
    assert_eq!(text(&result), "spelling is at work");

    client.tool("unload", json!({ "name": "spelling" })).await?;
    watcher
        .notification("notifications/tools/list_changed")
        .await?;
    let call = json!({ "name": "spelling" });
    let error = watcher.call_error("tools/call", call).await?;
    assert_eq!(error["code"], -32602);
    Ok(())
}
