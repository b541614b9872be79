//! `turnbuckle complete`.

use std::collections::BTreeMap;

use serde_json::json;
use turnbuckle_protocol::types::{CompleteParams, CompletionContext, CompletionReference};

use crate::arguments::{Program, TargetWord};
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::output::plain;
use crate::pairs;
use crate::session;
use crate::target::Words;

/// Ask how an argument of a prompt or a variable of a template could go on
#[derive(Debug, clap::Args)]
#[command(
    group(clap::ArgGroup::new("reference").required(true).args(["prompt", "resource"])),
    override_usage = "turnbuckle complete [OPTIONS] <--prompt NAME|--resource TEMPLATE> <TARGET> <ARGUMENT> [VALUE]\n       turnbuckle complete [OPTIONS] <--prompt NAME|--resource TEMPLATE> <ARGUMENT> [VALUE] -- <COMMAND>..."
)]
pub(crate) struct Complete {
    /// The argument belongs to this prompt
    #[arg(long, value_name = "NAME")]
    prompt: Option<String>,
    /// The variable belongs to this template
    #[arg(long, value_name = "TEMPLATE")]
    resource: Option<String>,
    /// What another argument is already; can be given again
    #[arg(long, value_name = "KEY=VALUE")]
    given: Vec<String>,
    #[command(flatten)]
    target: TargetWord,
    /// The argument or variable
    argument: Option<String>,
    /// What is typed so far
    value: Option<String>,
    #[command(flatten)]
    program: Program,
}

impl Complete {
    pub(crate) async fn run(self, context: &Context) -> Result {
        let reference = match (self.prompt, self.resource) {
            (Some(name), _) => CompletionReference::prompt(name),
            (None, Some(template)) => CompletionReference::resource(template),
            (None, None) => {
                return Err(Failure::not_asked("`--prompt` or `--resource` is missing"));
            }
        };
        let words = self
            .target
            .target
            .into_iter()
            .chain(self.argument)
            .chain(self.value);
        let (target, mut words) = Words::split("complete", words, &self.program.command)?;
        let argument = words.required("ARGUMENT")?;
        let value = words.optional().unwrap_or_default();
        words.end()?;
        let given =
            pairs::texts(&self.given).map_err(|error| Failure::not_asked(error.to_string()))?;
        let given: BTreeMap<_, _> = given.into_iter().collect();
        let mut params = CompleteParams::new(reference, argument, value);
        if !given.is_empty() {
            params = params.context(CompletionContext::new().arguments(given));
        }
        let completion = session::with(&target, context, async |client| {
            Ok(session::patiently(client.complete(params), context).await?)
        });
        let completion = completion.await?;
        if context.options.json {
            return context.json(&json!({ "completion": completion }));
        }
        let lines = completion
            .values
            .iter()
            .map(|value| plain::line(value) + "\n");
        context.print(&lines.collect::<String>())?;
        if completion.has_more == Some(true) {
            context.voice.say("there are more\n");
        }
        Ok(())
    }
}
