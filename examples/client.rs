//! A client that lists the tools of a server and calls one, on any transport.
//!
//! ```console
//! $ cargo example client --features client -- http://127.0.0.1:8080/mcp greet '{"name":"Ada"}'
//! $ cargo example client --features client -- --check       # with a server of its own
//! ```
#![expect(clippy::print_stdout, reason = "the example shows what it does")]

use std::error::Error;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use turnbuckle::{
    Server, Tool, ToolError,
    client::{Client, http},
};

async fn show(client: &Client, tool: &str, arguments: &Value) -> Result<String, Box<dyn Error>> {
    let server = client.server();
    println!("{}, revision {}", name(&server), server.revision);
    // Pages are fetched as they are needed.
    let mut tools = client.tools();
    while let Some(tool) = tools.next().await {
        println!("- {}", tool?.name);
    }
    let output = client.call_tool(tool, arguments).await?;
    // A tool error is a result for the model, not an error of the call.
    let text = output.text();
    println!("{}{text}", if output.is_error() { "failed: " } else { "" });
    Ok(text)
}

fn name(server: &turnbuckle::client::ServerInfo) -> &str {
    server.info.as_ref().map_or("a server", |info| &info.name)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(url), tool) = (words.next(), words.next()) else {
        return Err("usage: client URL TOOL [ARGUMENTS]".into());
    };
    if url == "--check" {
        return check().await;
    }
    let arguments = words
        .next()
        .map_or(Ok(json!({})), |json| serde_json::from_str(&json))?;
    let client = http::connect(&url).await?;
    show(&client, &tool.unwrap_or_default(), &arguments).await?;
    client.close().await;
    Ok(())
}

async fn greet(args: Value) -> Result<String, ToolError> {
    let name = args["name"].as_str();
    Ok(format!(
        "Hello, {}!",
        name.ok_or_else(|| ToolError::new("no `name`"))?
    ))
}

/// Calls a server of its own, on a free port.
async fn check() -> Result<(), Box<dyn Error>> {
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let server = Server::new("hello", "1.0.0").tool(Tool::raw("greet", schema, greet));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    tokio::spawn(turnbuckle::http::serve(listener, server));

    let client = http::connect(&url).await?;
    let text = show(&client, "greet", &json!({ "name": "Ada" })).await?;
    assert_eq!(text, "Hello, Ada!");
    let text = show(&client, "greet", &json!({})).await?;
    assert_eq!(text, "no `name`");
    client.close().await;
    Ok(())
}
