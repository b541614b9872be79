//! One tool, on stdio or on HTTP.
//!
//! As a client would start it, with one request typed by hand:
//!
//! ```console
//! $ echo '{"jsonrpc":"2.0","id":1,"method":"ping"}' | cargo run -q --example hello
//! {"jsonrpc":"2.0","id":1,"result":{}}
//! ```
//!
//! On HTTP: `cargo run -q --example hello -- --listen 127.0.0.1:8080`

use std::error::Error;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::net::TcpListener;
use turnbuckle::{Server, Tool, ToolError, http, stdio};

#[derive(Deserialize, JsonSchema)]
struct Greet {
    /// Whom to greet.
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
    match std::env::args()
        .skip_while(|argument| argument != "--listen")
        .nth(1)
    {
        Some(address) => http::serve(TcpListener::bind(address).await?, server).await?,
        None => stdio::serve(server).await?,
    }
    Ok(())
}
