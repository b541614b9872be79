//! A first server: one tool, on stdio or on HTTP.
//!
//! Built on its own, as a user builds it: its figures are those of a program with only the necessary dependencies.

use std::{env, error::Error};

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::net::TcpListener;
use turnbuckle::{Server, Tool, ToolError, http, stdio};

#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// What to say back.
    message: String,
}

async fn echo(args: Echo) -> Result<String, ToolError> {
    Ok(args.message)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let echo = Tool::new("echo", echo).description("Says the message back");
    let server = Server::new("hello", env!("CARGO_PKG_VERSION")).tool(echo.read_only());
    let arguments: Vec<String> = env::args().skip(1).collect();
    match &arguments[..] {
        [only] if only == "--stdio" => stdio::serve(server).await?,
        [listen, address] if listen == "--listen" => {
            let listener = TcpListener::bind(address).await?;
            eprintln!("listening on http://{}/mcp", listener.local_addr()?);
            http::serve(listener, server).await?;
        }
        _ => return Err("usage: hello --stdio | --listen ADDR".into()),
    }
    Ok(())
}
