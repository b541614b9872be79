//! One tool, on stdio or on HTTP.
//!
//! On stdio, with one request:
//!
//! ```console
//! $ echo '{"jsonrpc":"2.0","id":1,"method":"ping"}' | cargo run --example hello
//! {"jsonrpc":"2.0","id":1,"result":{}}
//! ```
//!
//! On HTTP, for all programs of this machine:
//!
//! ```console
//! $ cargo run --example hello -- --listen 127.0.0.1:8080
//! listening on http://127.0.0.1:8080/mcp
//! ```
#![expect(clippy::print_stdout, reason = "the example says where it listens")]

use std::error::Error;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::net::TcpListener;
use turnbuckle::{Server, Tool, ToolError, http, stdio};

#[derive(Deserialize, JsonSchema)]
struct Greet {
    /// The name to greet.
    name: String,
}

async fn greet(args: Greet) -> Result<String, ToolError> {
    Ok(format!("Hello, {}!", args.name))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::new("hello", "1.0.0").tool(
        Tool::new("greet", greet)
            .description("Greets someone")
            .read_only(),
    );
    let mut arguments = std::env::args().skip_while(|argument| argument != "--listen");
    match arguments.nth(1) {
        Some(address) => {
            let listener = TcpListener::bind(address).await?;
            println!("listening on http://{}/mcp", listener.local_addr()?);
            http::serve(listener, server).await?;
        }
        None => stdio::serve(server).await?,
    }
    Ok(())
}
