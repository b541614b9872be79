//! `turnbuckle prompt`.

use turnbuckle_protocol::types::GetPromptResult;

use crate::{
    cli::{CommandArg, TargetArg},
    connection,
    context::CommandContext,
    error::{CliError, Result},
    output::{content, sanitize, style},
    target::PositionalArgs,
    tool_args,
};

/// Get a prompt with arguments
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "turnbuckle prompt [OPTIONS] <TARGET> <NAME> [KEY=VALUE]...\n       turnbuckle prompt [OPTIONS] <NAME> [KEY=VALUE]... -- <COMMAND>..."
)]
pub(crate) struct PromptCommand {
    #[command(flatten)]
    target: TargetArg,
    /// Name of the prompt
    name: Option<String>,
    /// Arguments of the prompt
    #[arg(value_name = "KEY=VALUE")]
    pairs: Vec<String>,
    #[command(flatten)]
    program: CommandArg,
}

impl PromptCommand {
    pub(crate) async fn run(self, context: &CommandContext) -> Result {
        let args = self
            .target
            .target
            .into_iter()
            .chain(self.name)
            .chain(self.pairs);
        let (target, mut args) = PositionalArgs::split("prompt", args, &self.program.command)?;
        let name = args.required("NAME")?;
        let hint = || {
            format!(
                "show its arguments with `{}`",
                target.command_line("prompts", "")
            )
        };
        let arguments = tool_args::text_arguments(&args.rest())
            .map_err(|error| CliError::could_not_run(error.to_string()).hint(hint()))?;
        let result = connection::with_client(&target, context, async |client| {
            let call =
                connection::with_progress_and_timeout(client.get_prompt(&name, arguments), context);
            call.await
                .map_err(|error| CliError::from(error).or_hint(hint))
        });
        let result = result.await?;
        if context.options.json {
            context.print_json(&result)
        } else {
            context.print(&render(&result))
        }
    }
}

fn render(result: &GetPromptResult) -> String {
    let mut text = String::new();
    if let Some(description) = &result.description {
        text += &style::styled(style::DIM, &sanitize::line(description));
        text += "\n\n";
    }
    let messages = result.messages.iter();
    let messages = messages.map(|message| content::prompt_message(message.role, &message.content));
    text + &messages.collect::<Vec<_>>().join("\n")
}
