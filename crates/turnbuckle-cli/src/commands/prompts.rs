//! `turnbuckle prompts`.

use serde_json::json;
use turnbuckle_protocol::types::Prompt;

use crate::arguments::{Program, TargetWord};
use crate::context::Context;
use crate::failure::Result;
use crate::output::{plain, signature, wrap};
use crate::session;
use crate::target::Words;

/// List the prompts of a server
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "turnbuckle prompts [OPTIONS] <TARGET>\n       turnbuckle prompts [OPTIONS] -- <COMMAND>..."
)]
pub(crate) struct Prompts {
    #[command(flatten)]
    target: TargetWord,
    #[command(flatten)]
    program: Program,
}

impl Prompts {
    pub(crate) async fn run(self, context: &Context) -> Result {
        let (target, words) = Words::split("prompts", self.target.target, &self.program.command)?;
        words.end()?;
        let prompts = session::with(&target, context, async |client| {
            Ok(client.prompts().all().await?)
        });
        let prompts = prompts.await?;
        match context.options.json {
            true => context.json(&json!({ "prompts": prompts })),
            false => context.print_list("prompts", &list(&prompts, context.width())),
        }
    }
}

/// Returns prompts as signatures, each with what it is for.
fn list(prompts: &[Prompt], width: usize) -> String {
    let mut text = String::new();
    for prompt in prompts {
        text += &format!("{}\n", signature::of_prompt(prompt, width));
        let description = prompt.description.as_deref().or(prompt.title.as_deref());
        if let Some(description) = description {
            text += &wrap::indented(&plain::first_line(description), 4, width);
        }
        for argument in prompt.arguments.iter().flatten() {
            if let Some(description) = &argument.description {
                let line = format!(
                    "{}: {}",
                    plain::line(&argument.name),
                    plain::first_line(description)
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

        insta::assert_snapshot!(style::without(&list(&[review, Prompt::new("greet")], 80)), @r"
        review(code, tone?)
            Reviews code
            code: What to look at
        greet()
        ");
    }
}
