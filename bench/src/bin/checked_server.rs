//! `echo-server` in a build that validates arguments and results against the schemas of the tools.
//!
//! Deserializing the arguments of `echo` already checks everything in their schema, so no validator runs for them. Here the
//! message has a length limit, which only a validator checks.

#[expect(
    dead_code,
    reason = "only its tool `echo` and its `main` are others here"
)]
#[path = "echo_server.rs"]
mod echo_server;

use schemars::JsonSchema;
use serde::Deserialize;
use turnbuckle::Tool;
use turnbuckle_bench::Failure;

#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// What to say back.
    #[schemars(length(min = 1, max = 4_194_304))]
    message: String,
}

fn main() -> Result<(), Failure> {
    echo_server::serve(|tools, more| {
        let echo = Tool::new("echo", async |args: Echo| Ok(args.message));
        echo_server::filled(echo, tools, more)
            .validate_input(true)
            .validate_output(true)
    })
}
