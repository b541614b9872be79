//! Without the feature `validation`, tool output is not validated.

use serde_json::json;

use crate::servers::mock_ndjson::{EVERY, MockServer};

#[tokio::test(start_paused = true)]
async fn without_validation_output_schemas_are_ignored() {
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
