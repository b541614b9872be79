//! `turnbuckle prompts`.

use serde_json::json;
use turnbuckle_protocol::types::Prompt;

use crate::{
    cli::{CommandArg, TargetArg},
    connection,
    context::CommandContext,
    error::Result,
    output::{sanitize, signature, wrap},
    target::PositionalArgs,
};

/// List the prompts of a server
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "turnbuckle prompts [OPTIONS] <TARGET>\n       turnbuckle prompts [OPTIONS] -- <COMMAND>..."
)]
pub(crate) struct PromptsCommand {
    #[command(flatten)]
    target: TargetArg,
    #[command(flatten)]
    program: CommandArg,
}

impl PromptsCommand {
    pub(crate) async fn run(self, context: &CommandContext) -> Result {
        let (target, args) =
            PositionalArgs::split("prompts", self.target.target, &self.program.command)?;
        args.finish()?;
        let prompts = connection::with_client(&target, context, async |client| {
            Ok(client.prompts().all().await?)
        });
        let prompts = prompts.await?;
        if context.options.json {
            context.print_json(&json!({ "prompts": prompts }))
        } else {
            context.print_list("prompts", &list(&prompts, context.width()))
        }
    }
}

/// Returns prompts as signatures, each with its description.
fn list(prompts: &[Prompt], width: usize) -> String {
    let mut text = String::new();
    for prompt in prompts {
        text += &format!("{}\n", signature::for_prompt(prompt, width));
        let description = prompt.description.as_deref().or(prompt.title.as_deref());
        if let Some(description) = description {
            text += &wrap::indented(&sanitize::first_line(description), 4, width);
        }
        for argument in prompt.arguments.iter().flatten() {
            if let Some(description) = &argument.description {
                let line = format!(
                    "{}: {}",
                    sanitize::line(&argument.name),
                    sanitize::first_line(description)
                );
                text += &wrap::indented(&line, 4, width);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use turnbuckle_protocol::types::PromptArgument;

    use super::*;
    use crate::output::style;

    #[test]
    fn a_list_shows_signatures() {
        let code = PromptArgument::new("code")
            .required(true)
            .description("What to look at");
        let review = Prompt::new("review")
            .description("Reviews code")
            .arguments(vec![code, PromptArgument::new("tone")]);

        insta::assert_snapshot!(style::strip(&list(&[review, Prompt::new("greet")], 80)), @r"
        review(code, tone?)
            Reviews code
            code: What to look at
        greet()
        ");
    }
}
