use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use turnbuckle::{Context, Messages, Prompt, RequestError, Server, prompt, types::PromptMessage};

use crate::macros::peer::{request, request_both, server};

/// Reviews a file.
#[prompt(title = "Review")]
async fn review(
    /// The file to look at.
    file: String,
    tone: Option<String>,
    _cx: Context,
) -> Result<Messages, RequestError> {
    if file.is_empty() {
        return Err(RequestError::invalid("`file` must not be empty"));
    }
    let text = format!("Review {file} {tone:?}");
    Ok(Messages::new([PromptMessage::user(text)]))
}

#[derive(Deserialize, JsonSchema)]
struct Review {
    /// The file to look at.
    file: String,
    tone: Option<String>,
}

#[prompt(name = "good-morning")]
async fn morning() -> Result<&'static str, RequestError> {
    Ok("Good morning!")
}

fn servers() -> [Server; 2] {
    let tones = ["friendly", "frank"];
    let attributes = server()
        .prompt(review::prompt().complete("tone", tones))
        .prompt(morning::prompt());
    let by_hand = Prompt::new("review", |args: Review, cx| {
        review(args.file, args.tone, cx)
    })
    .description("Reviews a file.")
    .title("Review")
    .complete("tone", tones);
    let builders = server()
        .prompt(by_hand)
        .prompt(Prompt::new("good-morning", morning));
    [attributes, builders]
}

#[tokio::test]
async fn prompts_are_listed_as_if_built_by_hand() {
    let answer = request_both(&servers(), "prompts/list", json!({})).await;

    let review = &answer["result"]["prompts"][0];
    assert_eq!(
        review["arguments"],
        json!([
            { "name": "file", "description": "The file to look at.", "required": true },
            { "name": "tone", "required": false }
        ])
    );
}

#[tokio::test]
async fn prompts_answer_as_if_built_by_hand() {
    for params in [
        json!({ "name": "review", "arguments": { "file": "lib.rs", "tone": "frank" } }),
        json!({ "name": "review", "arguments": { "file": "lib.rs" } }),
        json!({ "name": "review", "arguments": { "file": "" } }),
        json!({ "name": "review" }),
        json!({ "name": "good-morning" }),
    ] {
        request_both(&servers(), "prompts/get", params).await;
    }
}

#[tokio::test]
async fn completion_is_added_to_the_value() {
    let params = json!({
        "ref": { "type": "ref/prompt", "name": "review" },
        "argument": { "name": "tone", "value": "fra" }
    });

    let answer = request(&servers()[0], "completion/complete", params).await;

    assert_eq!(answer["result"]["completion"]["values"], json!(["frank"]));
}
