//! `turnbuckle ping`.

use std::time::Instant;

use serde_json::json;

use crate::{
    cli::{CommandArg, TargetArg},
    connection,
    context::CommandContext,
    error::Result,
    target::PositionalArgs,
};

/// Measure the response time of a server
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "turnbuckle ping [OPTIONS] <TARGET>\n       turnbuckle ping [OPTIONS] -- <COMMAND>..."
)]
pub(crate) struct PingCommand {
    #[command(flatten)]
    target: TargetArg,
    #[command(flatten)]
    program: CommandArg,
}

impl PingCommand {
    pub(crate) async fn run(self, context: &CommandContext) -> Result {
        let (target, args) =
            PositionalArgs::split("ping", self.target.target, &self.program.command)?;
        args.finish()?;
        let took = connection::with_client(&target, context, async |client| {
            let started_at = Instant::now();
            client.ping().await?;
            Ok(started_at.elapsed())
        });
        let took = took.await?;
        let milliseconds = took.as_secs_f64() * 1000.0;
        if context.options.json {
            context.print_json(&json!({ "milliseconds": milliseconds }))
        } else {
            context.print(&format!("response in {milliseconds:.1} ms\n"))
        }
    }
}
