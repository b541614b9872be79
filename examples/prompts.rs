//! Prompts: messages that a user picks, with arguments to fill in.
//!
//! ```console
//! $ cargo run -q --example prompts                # on stdio
//! $ cargo run -q --example prompts -- --check     # asks itself and prints the answers
//! ```

mod check;

use check::{Checked, Client};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use turnbuckle::{
    Messages, Prompt, RequestError, Server, stdio,
    types::{ContentBlock, PromptMessage, ResourceContents},
};

/// Arguments are text. What is an `Option` may be left out.
#[derive(Deserialize, JsonSchema)]
struct Review {
    /// The language of the code.
    language: String,
    /// What to look at above all.
    focus: Option<String>,
}

/// Text is one message of the user.
async fn review(args: Review) -> Result<String, RequestError> {
    let focus = args.focus.as_deref().unwrap_or("clarity");
    let language = args.language;
    Ok(format!(
        "Review this {language} code, with an eye on {focus}."
    ))
}

/// A conversation may bring files along and put words into the model's mouth.
async fn onboarding() -> Result<Messages, RequestError> {
    let rules = ResourceContents::text("team://rules", "Be kind. Be brief.");
    Ok(Messages::new([
        PromptMessage::user("I am new here. What are the rules?"),
        PromptMessage::assistant(ContentBlock::resource(rules)),
        PromptMessage::user("What do they mean for my first day?"),
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
async fn main() -> Checked {
    if check::is_wanted() {
        return ask(Client::join(server())).await;
    }
    Ok(stdio::serve(server()).await?)
}

async fn ask(mut client: Client) -> Checked {
    let list = client.call("prompts/list", json!({})).await?;
    let arguments = &list["prompts"][0]["arguments"];
    assert_eq!(arguments[0]["name"], "language");
    assert_eq!(arguments[0]["description"], "The language of the code.");
    assert_eq!(arguments[0]["required"], true);
    assert_eq!(arguments[1]["required"], false);

    let review = json!({ "name": "review", "arguments": { "language": "Rust" } });
    let got = client.call("prompts/get", review).await?;
    assert_eq!(
        got["messages"][0]["content"]["text"],
        "Review this Rust code, with an eye on clarity."
    );

    let onboarding = json!({ "name": "onboarding" });
    let got = client.call("prompts/get", onboarding).await?;
    assert_eq!(got["description"], "The first day in the team");
    assert_eq!(got["messages"][1]["role"], "assistant");
    assert_eq!(
        got["messages"][1]["content"]["resource"]["uri"],
        "team://rules"
    );

    let incomplete = json!({ "name": "review", "arguments": {} });
    let error = client.refused("prompts/get", incomplete).await?;
    assert_eq!(error["code"], -32602);
    Ok(())
}
