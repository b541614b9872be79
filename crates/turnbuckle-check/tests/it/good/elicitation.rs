//! Tools that ask the client: its user, its model, its roots.

use schemars::JsonSchema;
use serde::Deserialize;
use turnbuckle_server::{Context, Elicitation, Form, SamplingBuilder, Server, Tool, ToolError};

pub(crate) fn register(server: Server) -> Server {
    let asking = |tool: Tool, description: &str| tool.description(description).read_only();
    server
        .tool(asking(Tool::new("ask_user", ask_user), "Asks for a name"))
        .tool(asking(
            Tool::new("ask_page", ask_page),
            "Asks to visit a page",
        ))
        .tool(asking(Tool::new("ask_model", ask_model), "Asks the model"))
        .tool(asking(Tool::new("ask_roots", ask_roots), "Asks for roots"))
        .tool(asking(
            Tool::new("ask_twice", ask_twice),
            "Asks for roots, and then the model",
        ))
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    /// What people call you.
    name: String,
}

async fn ask_user(cx: Context) -> Result<String, ToolError> {
    let answer = cx
        .elicit("name", Name::elicit("What is your name?"))
        .await?;
    Ok(match answer.accepted() {
        Some(Name { name }) => format!("Hello, {name}!"),
        None => "Hello, whoever you are!".to_owned(),
    })
}

async fn ask_page(cx: Context) -> Result<&'static str, ToolError> {
    let page = Elicitation::url("Please look at this page.", "https://example.com/page");
    cx.elicit("page", page).await?;
    Ok("The user was asked.")
}

async fn ask_model(cx: Context) -> Result<String, ToolError> {
    let answer = cx
        .sample("greeting", SamplingBuilder::text("Say hello."))
        .await?;
    Ok(answer.text())
}

async fn ask_roots(cx: Context) -> Result<String, ToolError> {
    let roots = cx.roots("roots").await?;
    Ok(format!("There are {} roots.", roots.len()))
}

async fn ask_twice(cx: Context) -> Result<String, ToolError> {
    let roots = cx.roots("roots").await?;
    let question = format!("What would you do with {} roots?", roots.len());
    let answer = cx.sample("plan", SamplingBuilder::text(question)).await?;
    Ok(answer.text())
}
