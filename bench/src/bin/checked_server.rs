//! `echo-server` once more, in a build that checks arguments and results against the schemas of the tools.
//!
//! Reading the arguments of `echo` already checks all that their schema says, so no validator runs for them. Here the message
//! has a length, which only a validator looks at.

#[expect(
    dead_code,
    reason = "only its tool `echo` and its `main` are others here"
)]
#[path = "echo_server.rs"]
mod echo_server;

use schemars::JsonSchema;
use serde::Deserialize;
use turnbuckle::{Tool, ToolError};
use turnbuckle_bench::Failure;

#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// What to say back.
    #[schemars(length(min = 1, max = 4_194_304))]
    message: String,
}

fn main() -> Result<(), Failure> {
    echo_server::serve(|tools, more| {
        let echo = Tool::new("echo", async |args: Echo| Ok::<_, ToolError>(args.message));
        echo_server::filled(echo, tools, more)
    })
}
