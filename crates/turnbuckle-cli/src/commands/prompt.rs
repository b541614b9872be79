//! `turnbuckle prompt`.

use turnbuckle_protocol::types::GetPromptResult;

use crate::arguments::{Program, TargetWord};
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::output::{content, plain, style};
use crate::pairs;
use crate::session;
use crate::target::Words;

/// Show a prompt with its arguments filled in
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "turnbuckle prompt [OPTIONS] <TARGET> <NAME> [KEY=VALUE]...\n       turnbuckle prompt [OPTIONS] <NAME> [KEY=VALUE]... -- <COMMAND>..."
)]
pub(crate) struct Prompt {
    #[command(flatten)]
    target: TargetWord,
    /// The prompt
    name: Option<String>,
    /// Its arguments
    #[arg(value_name = "KEY=VALUE")]
    pairs: Vec<String>,
    #[command(flatten)]
    program: Program,
}

impl Prompt {
    pub(crate) async fn run(self, context: &Context) -> Result {
        let words = self
            .target
            .target
            .into_iter()
            .chain(self.name)
            .chain(self.pairs);
        let (target, mut words) = Words::split("prompt", words, &self.program.command)?;
        let name = words.required("NAME")?;
        let hint = || {
            format!(
                "show its arguments with `{}`",
                target.command_line("prompts", "")
            )
        };
        let arguments = pairs::texts(&words.rest())
            .map_err(|error| Failure::not_asked(error.to_string()).hint(hint()))?;
        let result = session::with(&target, context, async |client| {
            let call = session::patiently(client.get_prompt(&name, arguments), context);
            call.await
                .map_err(|error| Failure::from(error).or_hint(hint))
        });
        let result = result.await?;
        match context.options.json {
            true => context.json(&result),
            false => context.print(&shown(&result)),
        }
    }
}

fn shown(result: &GetPromptResult) -> String {
    let mut text = String::new();
    if let Some(description) = &result.description {
        text += &style::paint(style::DIM, &plain::line(description));
        text += "\n\n";
    }
    let messages = result.messages.iter();
    let messages = messages.map(|message| content::of_message(message.role, &message.content));
    text + &messages.collect::<Vec<_>>().join("\n")
}
