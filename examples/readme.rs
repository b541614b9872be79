//! The program of the README: one tool on stdio.

use schemars::JsonSchema;
use serde::Deserialize;
use turnbuckle::{Server, Tool, ToolError, stdio};

#[derive(Deserialize, JsonSchema)]
struct Greet {
    /// The name of the person to greet.
    name: String,
}

async fn greet(args: Greet) -> Result<String, ToolError> {
    Ok(format!("Hello, {}!", args.name))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server =
        Server::new("hello", "1.0.0").tool(Tool::new("greet", greet).description("Greets someone"));
    stdio::serve(server).await?;
    Ok(())
}
