//! `turnbuckle complete`.

use std::collections::BTreeMap;

use serde_json::json;
use turnbuckle_protocol::types::{CompleteParams, CompletionContext, CompletionReference};

use crate::{
    cli::{CommandArg, TargetArg},
    connection,
    context::CommandContext,
    error::{CliError, Result},
    output::sanitize,
    target::PositionalArgs,
    tool_args,
};

/// Complete a prompt argument or resource template variable
#[derive(Debug, clap::Args)]
#[command(
    group(clap::ArgGroup::new("reference").required(true).args(["prompt", "resource"])),
    override_usage = "turnbuckle complete [OPTIONS] <--prompt NAME|--resource TEMPLATE> <TARGET> <ARGUMENT> [VALUE]\n       turnbuckle complete [OPTIONS] <--prompt NAME|--resource TEMPLATE> <ARGUMENT> [VALUE] -- <COMMAND>..."
)]
pub(crate) struct CompleteCommand {
    /// Complete an argument of this prompt
    #[arg(long, value_name = "NAME")]
    prompt: Option<String>,
    /// Complete a variable of this resource template
    #[arg(long, value_name = "TEMPLATE")]
    resource: Option<String>,
    /// Set another argument; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    given: Vec<String>,
    #[command(flatten)]
    target: TargetArg,
    /// Name of the argument or variable
    argument: Option<String>,
    /// Text typed so far
    value: Option<String>,
    #[command(flatten)]
    program: CommandArg,
}

impl CompleteCommand {
    pub(crate) async fn run(self, context: &CommandContext) -> Result {
        let reference = match (self.prompt, self.resource) {
            (Some(name), _) => CompletionReference::prompt(name),
            (None, Some(template)) => CompletionReference::resource(template),
            (None, None) => {
                return Err(CliError::could_not_run(
                    "missing `--prompt` or `--resource`",
                ));
            }
        };
        let args = self
            .target
            .target
            .into_iter()
            .chain(self.argument)
            .chain(self.value);
        let (target, mut args) = PositionalArgs::split("complete", args, &self.program.command)?;
        let argument = args.required("ARGUMENT")?;
        let value = args.optional().unwrap_or_default();
        args.finish()?;
        let given = tool_args::text_arguments(&self.given)
            .map_err(|error| CliError::could_not_run(error.to_string()))?;
        let given: BTreeMap<_, _> = given.into_iter().collect();
        let mut params = CompleteParams::new(reference, argument, value);
        if !given.is_empty() {
            params = params.context(CompletionContext::new().arguments(given));
        }
        let completion = connection::with_client(&target, context, async |client| {
            Ok(connection::with_progress_and_timeout(client.complete(params), context).await?)
        });
        let completion = completion.await?;
        if context.options.json {
            return context.print_json(&json!({ "completion": completion }));
        }
        let lines = completion
            .values
            .iter()
            .map(|value| sanitize::line(value) + "\n");
        context.print(&lines.collect::<String>())?;
        if completion.has_more == Some(true) {
            context.ui.print("more values are available\n");
        }
        Ok(())
    }
}
