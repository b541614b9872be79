//! Calls in both eras.

use serde_json::json;
use turnbuckle_client::{CallError, Client, Era, LifecycleMode};
use turnbuckle_server::{Context, Server, Tool, ToolError};

use crate::servers::turnbuckle::{both_eras, connect};

async fn greeting(args: serde_json::Value, _: Context) -> Result<String, ToolError> {
    match args["name"].as_str() {
        Some(name) => Ok(format!("Hello, {name}!")),
        None => Err(ToolError::new("`name` is missing")),
    }
}

fn greeter() -> Server {
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    Server::new("greeter", "1.0").tool(Tool::raw("greet", schema, greeting))
}

#[tokio::test]
async fn a_tool_is_called_in_both_eras() {
    for client in both_eras(greeter).await {
        let output = client.call_tool("greet", json!({ "name": "Ada" })).await;

        let output = output.expect("the tool responds");
        assert_eq!(output.text(), "Hello, Ada!");
        assert_eq!(client.server().info.as_ref().unwrap().name, "greeter");
    }
}

#[tokio::test]
async fn the_modern_era_is_detected() {
    let client = connect(Client::builder("test", "1.0"), greeter()).await;

    assert_eq!(client.server().era, Era::Modern);
    assert_eq!(client.server().revision.as_str(), "2026-07-28");
}

#[tokio::test]
async fn an_error_of_the_server_is_returned() {
    for client in both_eras(greeter).await {
        let error = client.call_tool("nothing", json!({})).await.unwrap_err();

        assert_eq!(error.rpc().map(|error| error.code), Some(-32602));
    }
}

#[tokio::test]
async fn a_method_without_its_capability_is_not_sent() {
    for client in both_eras(greeter).await {
        let error = client.list_prompts(None).await.unwrap_err();

        assert!(
            matches!(
                error,
                CallError::CapabilityNotAdvertised {
                    capability: "prompts",
                    ..
                }
            ),
            "{error}"
        );
    }
}

#[tokio::test]
async fn calls_after_close_fail() {
    let builder = Client::builder("test", "1.0").lifecycle_mode(LifecycleMode::Legacy);
    let client = connect(builder, greeter()).await;
    client.close().await;

    let error = client.ping().await.unwrap_err();

    assert!(matches!(error, CallError::Disconnected { .. }), "{error}");
}
