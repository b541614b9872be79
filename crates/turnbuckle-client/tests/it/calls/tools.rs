//! Listed tools, and their output.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use turnbuckle_client::CallError;
use turnbuckle_server::{Context, Server, Tool, ToolError};
use turnbuckle_spec_coverage::req;

use crate::servers::{
    mock_ndjson::{EVERY, MockServer},
    turnbuckle::both_eras,
};

/// The client does not interpret the order of members, unknown keywords and external references.
#[tokio::test(start_paused = true)]
async fn schemas_are_returned_unchanged() {
    let schema = r##"{"type":"object","zebra":1.50,"properties":{"b":{"$ref":"https://example.com/b"},"a":{"x-mcp-header":"A","type":"string"}},"required":["b","a"],"additionalProperties":false,"examples":[1e3,-0.0,18446744073709551615],"$defs":{"c":{"$ref":"#/$defs/c"}}}"##;
    for revision in EVERY {
        let server = MockServer::for_revision(revision);
        let result: Value = serde_json::from_str(&format!(
            r#"{{"tools":[{{"name":"t","inputSchema":{schema}}}]}}"#
        ))
        .unwrap();
        server.respond("tools/list", result);
        let client = server.connect().await;

        let tools = client.tools().all().await.unwrap();

        let came: Value = serde_json::from_str(schema).unwrap();
        let passed_on = serde_json::to_string(&tools[0].input_schema).unwrap();
        assert_eq!(passed_on, came.to_string(), "{revision}");
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Weather {
    summary: String,
    high: i32,
}

async fn weather(_: Context) -> Result<Weather, ToolError> {
    Ok(Weather {
        summary: "mild".to_owned(),
        high: 7,
    })
}

#[tokio::test]
async fn structured_output_is_parsed_into_a_type_in_both_eras() {
    let server = || Server::new("weather", "1").tool(Tool::new("weather", weather));
    for client in both_eras(server).await {
        client.tools().all().await.unwrap();

        let output = client.call_tool("weather", json!({})).await.unwrap();

        let weather: Weather = output.structured().unwrap();
        assert_eq!(weather.high, 7);
        assert_eq!(output.text(), r#"{"summary":"mild","high":7}"#);
        assert!(output.meta().is_empty() || !output.is_error());
        let inner = output.into_inner();
        assert_eq!(inner.structured_content.unwrap()["summary"], "mild");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_never_responds_times_out() {
    req!("tools.client.timeouts");
    for revision in EVERY {
        let server = MockServer::for_revision(revision);
        server.withhold("tools/call");
        let client = server.connect().await;

        let error = client.call_tool("forecast", json!({})).await.unwrap_err();

        assert!(matches!(error, CallError::TimedOut { .. }), "{error:?}");
        server.next("notifications/cancelled").await;
    }
}
