//! Messages that older peers do not get.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use turnbuckle_server::{Context, Elicitation, Server, Tool, ToolError};

use crate::ndjson::test_client::Peer;

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

async fn elicit_name(cx: Context) -> Result<String, ToolError> {
    let name = cx
        .elicit(Elicitation::form::<Name>("Who are you?").key("name"))
        .await?;
    Ok(name.accepted().map_or("missing".to_owned(), |it| it.name))
}

#[tokio::test(start_paused = true)]
async fn a_client_request_unknown_to_the_revision_is_not_sent_even_if_declared() {
    let server = Server::new("asks", "1.0.0").tool(Tool::new("ask", elicit_name));
    let mut peer = Peer::initialized(server, "2025-03-26", json!({ "elicitation": {} })).await;

    let response = peer.call_tool("ask", json!({})).await;

    assert_eq!(response["result"]["isError"], true);
    assert_eq!(
        response["result"]["content"][0]["text"],
        "the client does not support `elicitation`"
    );
}

#[tokio::test(start_paused = true)]
async fn a_form_schema_contains_only_supported_keywords() {
    let server = Server::new("asks", "1.0.0").tool(Tool::new("ask", elicit_name));
    let mut peer = Peer::initialized(server, "2025-11-25", json!({ "elicitation": {} })).await;

    peer.request("tools/call", json!({ "name": "ask" })).await;
    let client_request = peer.next().await;

    assert_eq!(
        client_request["params"]["requestedSchema"],
        json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] })
    );
}
