//! Without the feature `validation`, what tools return is taken as it comes.

use serde_json::json;

use crate::fake_lines::{EVERY, FakeServer};

#[tokio::test(start_paused = true)]
async fn what_tools_promised_is_nobodys_business() {
    for revision in EVERY {
        let server = FakeServer::speaking(revision);
        let tool = json!({
            "name": "forecast",
            "inputSchema": { "type": "object" },
            "outputSchema": { "type": "object", "required": ["high"] },
        });
        server.answer("tools/list", json!({ "tools": [tool] }));
        server.answer(
            "tools/call",
            json!({ "content": [], "structuredContent": {} }),
        );
        let client = server.connect().await;
        client.tools().all().await.unwrap();

        client.call_tool("forecast", json!({})).await.unwrap();
    }
}
