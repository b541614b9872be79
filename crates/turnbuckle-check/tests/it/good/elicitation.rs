//! Tools with client requests: elicitation, sampling and roots.

use schemars::JsonSchema;
use serde::Deserialize;
use turnbuckle_server::{Context, Elicitation, SamplingBuilder, Server, Tool, ToolError};

pub(crate) fn register(server: Server) -> Server {
    let read_only = |tool: Tool, description: &str| tool.description(description).read_only();
    server
        .tool(read_only(
            Tool::new("ask_user", ask_user),
            "Requests a name",
        ))
        .tool(read_only(
            Tool::new("ask_page", ask_page),
            "Requests a URL elicitation",
        ))
        .tool(read_only(
            Tool::new("ask_model", ask_model),
            "Requests sampling",
        ))
        .tool(read_only(
            Tool::new("ask_roots", ask_roots),
            "Requests roots",
        ))
        .tool(read_only(
            Tool::new("ask_twice", ask_twice),
            "Requests roots, then sampling",
        ))
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    /// Your name.
    name: String,
}

async fn ask_user(cx: Context) -> Result<String, ToolError> {
    let response = cx
        .elicit(Elicitation::form::<Name>("What is your name?").key("name"))
        .await?;
    Ok(match response.accepted() {
        Some(Name { name }) => format!("Hello, {name}!"),
        None => "Hello!".to_owned(),
    })
}

async fn ask_page(cx: Context) -> Result<&'static str, ToolError> {
    let page = Elicitation::url("Please open this page.", "https://example.com/page");
    cx.elicit(page.key("page")).await?;
    Ok("The user responded.")
}

async fn ask_model(cx: Context) -> Result<String, ToolError> {
    let response = cx
        .sample("greeting", SamplingBuilder::text("Say hello."))
        .await?;
    Ok(response.text())
}

async fn ask_roots(cx: Context) -> Result<String, ToolError> {
    let roots = cx.roots("roots").await?;
    Ok(format!("There are {} roots.", roots.len()))
}

async fn ask_twice(cx: Context) -> Result<String, ToolError> {
    let roots = cx.roots("roots").await?;
    let input_request = format!("What would you do with {} roots?", roots.len());
    let response = cx
        .sample("plan", SamplingBuilder::text(input_request))
        .await?;
    Ok(response.text())
}
