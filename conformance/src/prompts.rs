//! Prompts: plain, with arguments, with a resource, with an image, with a client request.

use schemars::JsonSchema;
use serde::Deserialize;
use turnbuckle::{
    Context, Elicitation, ElicitationOutcome, Messages, Prompt, RequestError, Server,
    types::{ContentBlock, PromptMessage, ResourceContents, TextResourceContents},
};

use crate::samples::PNG;

pub(crate) fn offer(server: Server) -> Server {
    server
        .prompt(Prompt::new("test_simple_prompt", simple).description("A prompt without arguments"))
        .prompt(
            Prompt::new("test_prompt_with_arguments", with_arguments)
                .description("A prompt with two arguments")
                .complete("arg1", ["test-value-1", "test-value-2"])
                .complete("arg2", ["other-value"]),
        )
        .prompt(
            Prompt::new("test_prompt_with_embedded_resource", with_resource)
                .description("A prompt that holds a resource"),
        )
        .prompt(
            Prompt::new("test_prompt_with_image", with_image)
                .description("A prompt that holds a picture"),
        )
        .prompt(
            Prompt::new("test_input_required_result_prompt", with_question)
                .description("A prompt that asks the user first"),
        )
}

async fn simple() -> Result<&'static str, RequestError> {
    Ok("This is a simple prompt for testing.")
}

#[derive(Deserialize, JsonSchema)]
struct TwoArguments {
    /// The first argument.
    arg1: String,
    /// The second argument.
    arg2: String,
}

async fn with_arguments(TwoArguments { arg1, arg2 }: TwoArguments) -> Result<String, RequestError> {
    Ok(format!(
        "Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"
    ))
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OneResource {
    /// The URI of the resource to embed.
    resource_uri: String,
}

async fn with_resource(args: OneResource) -> Result<Messages, RequestError> {
    let contents =
        TextResourceContents::new(args.resource_uri, "Embedded resource content for testing.")
            .mime_type("text/plain");
    let resource = ContentBlock::resource(ResourceContents::from(contents));
    Ok(Messages::new([
        PromptMessage::user(resource),
        PromptMessage::user("Please process the embedded resource above."),
    ]))
}

async fn with_image() -> Result<Messages, RequestError> {
    Ok(Messages::new([
        PromptMessage::user(ContentBlock::image(PNG, "image/png")),
        PromptMessage::user("Please analyze the image above."),
    ]))
}

#[derive(Deserialize, JsonSchema)]
struct UserContext {
    /// What the prompt should be about.
    context: String,
}

async fn with_question(cx: Context) -> Result<String, RequestError> {
    let question = Elicitation::form::<UserContext>("What context should the prompt use?");
    Ok(match cx.elicit(question.key("user_context")).await? {
        ElicitationOutcome::Accepted(answer) => format!("Use this context: {}", answer.context),
        ElicitationOutcome::Declined | ElicitationOutcome::Cancelled => {
            "Go on without context.".to_owned()
        }
    })
}
