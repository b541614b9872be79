//! The server for tests of the test kit.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use turnbuckle_protocol::types::LogLevel;
use turnbuckle_server::{
    Context, Elicitation, Resource, SamplingBuilder, Server, TaskSupport, Tool, ToolError,
};

#[derive(Deserialize, JsonSchema)]
struct Greet {
    #[schemars(extend("x-mcp-header" = "Name"))]
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct NoParams {}

#[derive(Deserialize, JsonSchema)]
struct Name {
    /// Your name.
    name: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Sum {
    pub(crate) sum: u32,
}

async fn greet_by_name(args: Greet, cx: Context) -> Result<String, ToolError> {
    cx.progress(1, 2).await;
    cx.log(LogLevel::Info, "greeting").await;
    if args.name.is_empty() {
        return Err(ToolError::new("the name is empty"));
    }
    Ok(format!("Hello, {}!", args.name))
}

async fn sign(cx: Context) -> Result<String, ToolError> {
    let name = cx
        .elicit(Elicitation::form::<Name>("Who signs?").key("name"))
        .await?;
    let name = name.accepted().map_or("missing".to_owned(), |it| it.name);
    let text = cx.sample("text", SamplingBuilder::text("Dear all")).await?;
    Ok(format!("{}, {name}", text.text()))
}

async fn sum() -> Result<Sum, ToolError> {
    Ok(Sum { sum: 3 })
}

async fn sleep() -> Result<String, ToolError> {
    tokio::time::sleep(Duration::from_secs(60)).await;
    Ok("awake".to_owned())
}

async fn rename(_: NoParams, cx: Context) -> Result<String, ToolError> {
    cx.tools_changed();
    cx.resource_updated("desk://note");
    Ok("renamed".to_owned())
}

/// A server with a tool for each feature of the test kit.
pub(crate) fn test_server() -> Server {
    Server::new("desk", "1.0.0")
        .tool(Tool::new("greet", greet_by_name).task(TaskSupport::Optional))
        .tool(Tool::new("sign", sign).task(TaskSupport::Optional))
        .tool(Tool::new("sum", sum))
        .tool(Tool::new("sleep", sleep))
        .tool(Tool::new("rename", rename))
        .resource(Resource::text("desk://note", "note", "buy milk"))
}

/// A client that responds to every request.
pub(crate) fn client(method: &str, _params: &Value) -> Value {
    match method {
        "elicitation/create" => json!({ "action": "accept", "content": { "name": "Ada" } }),
        "sampling/createMessage" => json!({
            "role": "assistant", "model": "m", "content": { "type": "text", "text": "Yours" },
        }),
        other => panic!("asked {other}"),
    }
}
