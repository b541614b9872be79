//! The self-check of the example `resources`: a client that calls it and compares the results.

#[path = "../support/client.rs"]
mod client;

pub(super) use client::is_requested;
use client::{CheckResult, Client};
use serde_json::json;

use super::server;

pub(super) async fn run() -> CheckResult {
    let mut client = Client::connect(server());
    let kitchen = json!({ "uri": "house://room/kitchen" });
    let watched = json!({ "resourceSubscriptions": ["house://room/kitchen"] });
    client
        .start("subscriptions/listen", json!({ "notifications": watched }))
        .await?;
    client
        .notification("notifications/subscriptions/acknowledged")
        .await?;

    let list = client.call("resources/list", json!({})).await?;
    assert_eq!(list["resources"][0]["uri"], "house://about");
    let list = client.call("resources/templates/list", json!({})).await?;
    let template = &list["resourceTemplates"][0]["uriTemplate"];
    assert_eq!(template, "house://room/{room}");

    let plan = client
        .call("resources/read", json!({ "uri": "house://plan" }))
        .await?;
    assert_eq!(plan["contents"][0]["blob"], "iVBORw==");
    let read = client.call("resources/read", kitchen.clone()).await?;
    assert_eq!(read["contents"][0]["text"], "19 °C");

    let arguments = json!({ "room": "kitchen", "celsius": 21 });
    client.tool("heat", arguments).await?;
    let updated = client
        .notification("notifications/resources/updated")
        .await?;
    assert_eq!(updated["uri"], "house://room/kitchen");
    let read = client.call("resources/read", kitchen).await?;
    assert_eq!(read["contents"][0]["text"], "21 °C");

    let attic = json!({ "uri": "house://room/attic" });
    let error = client.call_error("resources/read", attic).await?;
    assert_eq!(error["data"]["uri"], "house://room/attic");
    Ok(())
}
