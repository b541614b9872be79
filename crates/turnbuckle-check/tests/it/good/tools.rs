//! Tools of every kind.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use turnbuckle_server::{Server, Tool, ToolError};

pub(crate) fn offer(server: Server) -> Server {
    server.tool(
        Tool::new("add", add)
            .description("Adds two numbers")
            .read_only(),
    )
}

#[derive(Deserialize, JsonSchema)]
struct Two {
    /// The first number.
    a: f64,
    /// The second number.
    b: f64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    /// Both together.
    sum: f64,
}

async fn add(Two { a, b }: Two) -> Result<Sum, ToolError> {
    Ok(Sum { sum: a + b })
}
