//! Output is not validated unless the client's setting enables it.

use serde_json::json;

use crate::servers::mock_ndjson::{EVERY, MockServer};

#[tokio::test(start_paused = true)]
async fn output_is_not_validated_by_default() {
    for revision in EVERY {
        let server = MockServer::for_revision(revision);
        let tool = json!({
            "name": "forecast",
            "inputSchema": { "type": "object" },
            "outputSchema": { "type": "object", "required": ["high"] },
        });
        server.respond("tools/list", json!({ "tools": [tool] }));
        server.respond(
            "tools/call",
            json!({ "content": [], "structuredContent": {} }),
        );
        let client = server.connect().await;
        client.tools().all().await.unwrap();

        client.call_tool("forecast", json!({})).await.unwrap();
    }
}
