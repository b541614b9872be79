//! Tools without client requests: every kind of content, progress, log messages, changes.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::sleep;
use turnbuckle::{
    Context, Server, Tool, ToolError, ToolResult,
    types::{ContentBlock, LogLevel, ResourceContents, TextResourceContents},
};

use crate::samples::{PNG, WAV};

/// The time between two notifications of one call, so that they arrive one by one.
const MOMENT: Duration = Duration::from_millis(50);

/// Registers these tools. A scenario calls the first of the list without arguments.
pub(crate) fn offer(server: Server) -> Server {
    server
        .tool(Tool::new("test_simple_text", simple_text).description("Returns text"))
        .tool(Tool::new("test_image_content", image).description("Returns a picture"))
        .tool(Tool::new("test_audio_content", audio).description("Returns a recording"))
        .tool(
            Tool::new("test_embedded_resource", embedded_resource)
                .description("Returns a resource"),
        )
        .tool(
            Tool::new("test_multiple_content_types", mixed)
                .description("Returns text, a picture and a resource"),
        )
        .tool(
            Tool::new("test_error_handling", failing)
                .description("Fails in a way that the model can read"),
        )
        .tool(Tool::new("test_tool_with_progress", with_progress).description("Reports progress"))
        .tool(Tool::new("test_tool_with_logging", with_logging).description("Sends log messages"))
        .tool(Tool::new("test_logging_tool", logs_once).description("Sends one log message"))
        .tool(
            Tool::new("test_reconnection", reconnection)
                .description("Answers on a stream that was cut"),
        )
        .tool(
            Tool::new("test_trigger_tool_change", tool_change)
                .description("Tells that tools have changed"),
        )
        .tool(
            Tool::new("test_trigger_prompt_change", prompt_change)
                .description("Tells that prompts have changed"),
        )
        .tool(
            Tool::new("test_custom_header", custom_header)
                .description("Has an argument that is also a header"),
        )
        .tool(
            Tool::raw("json_schema_2020_12_tool", schema_2020_12(), echo)
                .description("Has a schema of many keywords"),
        )
}

async fn simple_text() -> Result<&'static str, ToolError> {
    Ok("This is a simple text response for testing.")
}

async fn image() -> Result<ToolResult, ToolError> {
    Ok(ToolResult::empty().image(PNG, "image/png"))
}

async fn audio() -> Result<ToolResult, ToolError> {
    Ok(ToolResult::empty().audio(WAV, "audio/wav"))
}

async fn embedded_resource() -> Result<ToolResult, ToolError> {
    let resource = embedded(
        "test://embedded-resource",
        "text/plain",
        "This is an embedded resource content.",
    );
    Ok(resource.into())
}

async fn mixed() -> Result<ToolResult, ToolError> {
    let resource = embedded(
        "test://mixed-content-resource",
        "application/json",
        r#"{"test":"data","value":123}"#,
    );
    Ok(ToolResult::text("Multiple content types test:")
        .image(PNG, "image/png")
        .block(resource))
}

fn embedded(uri: &str, mime_type: &str, text: &str) -> ContentBlock {
    let contents = TextResourceContents::new(uri, text).mime_type(mime_type);
    ContentBlock::resource(ResourceContents::from(contents))
}

async fn failing() -> Result<ToolResult, ToolError> {
    Err(ToolError::new(
        "This tool intentionally returns an error for testing",
    ))
}

async fn with_progress(cx: Context) -> Result<&'static str, ToolError> {
    cx.progress(0, 100).await;
    sleep(MOMENT).await;
    cx.progress(50, 100).await;
    sleep(MOMENT).await;
    cx.progress(100, 100).await;
    Ok("Progress was reported three times.")
}

async fn with_logging(cx: Context) -> Result<&'static str, ToolError> {
    cx.log(LogLevel::Info, "Tool execution started").await;
    sleep(MOMENT).await;
    cx.log(LogLevel::Info, "Tool processing data").await;
    sleep(MOMENT).await;
    cx.log(LogLevel::Info, "Tool execution completed").await;
    Ok("Three messages were logged.")
}

async fn logs_once(cx: Context) -> Result<&'static str, ToolError> {
    cx.log(LogLevel::Info, "Only who asked for messages sees this")
        .await;
    Ok("A message was logged, if you wanted it.")
}

async fn reconnection(cx: Context) -> Result<&'static str, ToolError> {
    cx.close_stream();
    sleep(2 * MOMENT).await;
    Ok("The answer came after the stream was cut.")
}

async fn tool_change(cx: Context) -> Result<&'static str, ToolError> {
    cx.tools_changed();
    Ok("Listeners were told that tools have changed.")
}

async fn prompt_change(cx: Context) -> Result<&'static str, ToolError> {
    cx.prompts_changed();
    Ok("Listeners were told that prompts have changed.")
}

#[derive(Deserialize, JsonSchema)]
struct CustomHeader {
    /// Repeated in the header `Mcp-Param-Value`.
    #[schemars(extend("x-mcp-header" = "Value"))]
    value: String,
}

async fn custom_header(args: CustomHeader) -> Result<String, ToolError> {
    Ok(format!("Received value: {}", args.value))
}

async fn echo(args: Map<String, Value>, _: Context) -> Result<String, ToolError> {
    Ok(Value::Object(args).to_string())
}

fn schema_2020_12() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } }
            }
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" }
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false
    })
}
