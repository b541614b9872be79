//! Schemas are listed, and only types are enforced, unless the server's settings say otherwise.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use turnbuckle_server::{Context, Server, Tool, ToolResult};

use crate::ndjson::test_client::Peer;

#[derive(Deserialize, JsonSchema)]
struct Leg {
    #[schemars(range(min = 1, max = 30))]
    days: u8,
}

#[tokio::test]
async fn schemas_are_listed_and_not_enforced_by_default() {
    let by_hand = json!({ "type": "object", "required": ["a"] });
    let promise = json!({ "type": "object", "required": ["b"] });
    let server = Server::new("unchecked", "1")
        .tool(Tool::new("leg", async |leg: Leg| Ok(leg.days.to_string())))
        .tool(
            Tool::raw(
                "raw",
                by_hand.clone(),
                async |_: Map<String, Value>, _: Context| Ok(ToolResult::structured(json!({}))),
            )
            .output_schema(promise),
        );
    let mut peer = Peer::initialized(server, "2025-11-25", json!({})).await;

    let listed = peer.call("tools/list", json!({})).await;
    let schema = &listed["result"]["tools"][0]["inputSchema"]["properties"]["days"];
    assert_eq!(schema["maximum"], 30);
    assert_eq!(listed["result"]["tools"][1]["inputSchema"], by_hand);

    let response = peer.call_tool("leg", json!({ "days": 31 })).await;
    assert_eq!(response["result"]["content"][0]["text"], "31");
    let response = peer.call_tool("raw", json!({})).await;
    assert_eq!(response["result"]["structuredContent"], json!({}));
    let response = peer.call_tool("leg", json!({ "days": 256 })).await;
    assert_eq!(response["result"]["isError"], true);
}
