//! Schemas are listed, and only types are enforced, unless the server's settings say otherwise.
//!
//! `fuzz/` runs this file too, because it builds the server without the feature `validation`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use turnbuckle_server::{Context, Server, Tool, ToolResult, testing::Peer};

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
    let mut peer = Peer::connect(server).legacy("2025-11-25").await;

    let listed = peer.request("tools/list", json!({})).await.json()["result"].clone();
    let schema = &listed["tools"][0]["inputSchema"]["properties"]["days"];
    assert_eq!(schema["maximum"], 30);
    assert_eq!(listed["tools"][1]["inputSchema"], by_hand);

    let mut call = async |name, arguments| {
        let params = json!({ "name": name, "arguments": arguments });
        peer.request("tools/call", params).await.json()["result"].clone()
    };
    let result = call("leg", json!({ "days": 31 })).await;
    assert_eq!(result["content"][0]["text"], "31");
    let result = call("raw", json!({})).await;
    assert_eq!(result["structuredContent"], json!({}));
    let result = call("leg", json!({ "days": 256 })).await;
    assert_eq!(result["isError"], true);
}
