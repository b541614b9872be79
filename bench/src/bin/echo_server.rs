//! The server that is measured: two small tools, everything else as it comes.
//!
//! Uses only the public API, with every default check on.
#![expect(clippy::print_stderr, reason = "a command says where it listens")]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use turnbuckle::{Server, Tool, ToolError};
use turnbuckle_bench::{Failure, options::Options};

#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// What to say back.
    message: String,
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The first number.
    a: f64,
    /// The second number.
    b: f64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    /// Both numbers together.
    sum: f64,
}

async fn add(args: Add) -> Result<Sum, ToolError> {
    Ok(Sum {
        sum: args.a + args.b,
    })
}

fn server() -> Server {
    let echo = Tool::new("echo", async |args: Echo| Ok::<_, ToolError>(args.message));
    let add = Tool::new("add", add);
    Server::new("echo", "0.1.0")
        .tool(echo.description("Says the message back").read_only())
        .tool(add.description("Adds two numbers"))
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut options = Options::from_process();
    let stdio = options.switch("--stdio");
    let listen = options.value::<String>("--listen")?;
    options.finish()?;
    match listen {
        Some(address) if !stdio => {
            let listener = TcpListener::bind(address).await?;
            eprintln!("listening on http://{}/mcp", listener.local_addr()?);
            turnbuckle::http::serve(listener, server()).await?;
        }
        None if stdio => turnbuckle::stdio::serve(server()).await?,
        _ => return Err("usage: echo-server --listen ADDR | --stdio".into()),
    }
    Ok(())
}
