//! `echo-server` in a build that validates arguments and results against the schemas of the tools.
//!
//! Deserializing the arguments of `echo` already checks everything in their schema, so no validator runs for them. Here the
//! message has a length limit, which only a validator checks.

use schemars::JsonSchema;
use serde::Deserialize;
use turnbuckle::Tool;
use turnbuckle_bench::{Failure, options::Options};

use super::{Run, echo_server};

pub(super) const RUN: Result<Run, &str> = Ok(run);

#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// What to say back.
    #[schemars(length(min = 1, max = 4_194_304))]
    message: String,
}

fn run(options: Options) -> Result<bool, Failure> {
    echo_server::serve(options, |tools, more| {
        let echo = Tool::new("echo", async |args: Echo| Ok(args.message));
        echo_server::filled(echo, tools, more)
            .validate_input(true)
            .validate_output(true)
    })
}
