//! Prompts of every kind.

use schemars::JsonSchema;
use serde::Deserialize;
use turnbuckle_protocol::types::{
    ContentBlock, Icon, PromptMessage, Resource as Link, TextResourceContents,
};
use turnbuckle_server::{Messages, Prompt, RequestError, Server};

use super::tools::BASE64;

pub(crate) fn register(server: Server) -> Server {
    server
        .prompt(
            Prompt::new("greet", greeting)
                .title("Greet")
                .description("Greets")
                .icon(Icon::new("https://example.com/greet.png").mime_type("image/png")),
        )
        .prompt(
            Prompt::new("review", review)
                .description("Reviews a text in a language")
                .complete("language", languages()),
        )
        .prompt(Prompt::new("show", show).description("Shows content of every kind"))
        .prompt(Prompt::new("part", part).description("Says goodbye"))
}

async fn greeting() -> Result<&'static str, RequestError> {
    Ok("Say hello.")
}

#[derive(Deserialize, JsonSchema)]
struct Review {
    /// The language of the text.
    language: String,
    /// The focus of the review.
    focus: Option<String>,
}

async fn review(Review { language, focus }: Review) -> Result<String, RequestError> {
    let focus = focus.unwrap_or_else(|| "everything".to_owned());
    Ok(format!("Review {focus} in this {language} text."))
}

/// Returns more values than fit into one result.
fn languages() -> Vec<String> {
    (1..=120)
        .map(|number| format!("dialect {number}"))
        .collect()
}

async fn show() -> Result<Messages, RequestError> {
    let inside = TextResourceContents::new("good://inside", "Inside.").mime_type("text/plain");
    Ok(Messages::new([
        PromptMessage::user("Look."),
        PromptMessage::user(ContentBlock::image(BASE64, "image/png")),
        PromptMessage::user(ContentBlock::audio(BASE64, "audio/wav")),
        PromptMessage::user(ContentBlock::resource(inside)),
        PromptMessage::user(ContentBlock::ResourceLink(Link::new(
            "good://greeting",
            "greeting",
        ))),
        PromptMessage::assistant("I see."),
    ]))
}

async fn part() -> Result<&'static str, RequestError> {
    Ok("Say goodbye.")
}
