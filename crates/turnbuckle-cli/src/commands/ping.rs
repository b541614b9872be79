//! `turnbuckle ping`.

use std::time::Instant;

use serde_json::json;

use crate::arguments::{Program, TargetWord};
use crate::context::Context;
use crate::failure::Result;
use crate::session;
use crate::target::Words;

/// See whether a server answers, and how fast
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "turnbuckle ping [OPTIONS] <TARGET>\n       turnbuckle ping [OPTIONS] -- <COMMAND>..."
)]
pub(crate) struct Ping {
    #[command(flatten)]
    target: TargetWord,
    #[command(flatten)]
    program: Program,
}

impl Ping {
    pub(crate) async fn run(self, context: &Context) -> Result {
        let (target, words) = Words::split("ping", self.target.target, &self.program.command)?;
        words.end()?;
        let took = session::with(&target, context, async |client| {
            let begun = Instant::now();
            client.ping().await?;
            Ok(begun.elapsed())
        });
        let took = took.await?;
        let milliseconds = took.as_secs_f64() * 1000.0;
        match context.options.json {
            true => context.json(&json!({ "milliseconds": milliseconds })),
            false => context.print(&format!("answered in {milliseconds:.1} ms\n")),
        }
    }
}
