//! Prompts: message templates that a user selects, with arguments.
//!
//! ```console
//! $ cargo example prompts                # on stdio
//! $ cargo example prompts -- --check     # calls itself and prints the responses
//! ```

#[path = "checks/prompts.rs"]
mod check;

use std::error::Error;

use schemars::JsonSchema;
use serde::Deserialize;
use turnbuckle::{Messages, Prompt, RequestError, Server, stdio, types};

/// Arguments are text. An `Option` is an optional argument.
#[derive(Deserialize, JsonSchema)]
struct Review {
    /// The language of the code.
    language: String,
    /// The focus of the review.
    focus: Option<String>,
}

/// Text becomes one user message.
async fn review(args: Review) -> Result<String, RequestError> {
    let focus = args.focus.as_deref().unwrap_or("clarity");
    let language = args.language;
    Ok(format!(
        "Review this {language} code, with an eye on {focus}."
    ))
}

/// Messages may contain resources, and may be those of the model.
async fn onboarding() -> Result<Messages, RequestError> {
    let rules = types::ResourceContents::text("team://rules", "Be kind. Be brief.");
    Ok(Messages::new([
        types::PromptMessage::user("I am new here. What are the rules?"),
        types::PromptMessage::assistant(types::ContentBlock::resource(rules)),
        types::PromptMessage::user("What do they mean for my first day?"),
    ])
    .description("The first day in the team"))
}

fn server() -> Server {
    Server::new("team", "1.0.0")
        .prompt(
            Prompt::new("review", review)
                .title("Review code")
                .description("Asks for a review"),
        )
        .prompt(Prompt::new("onboarding", onboarding))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    if check::is_requested() {
        return check::run().await;
    }
    Ok(stdio::serve(server()).await?)
}
