//! Tools that send client requests: elicitation, sampling, roots.
//!
//! None of them depends on how the request is sent. The suite runs the first group with clients that accept
//! requests, the second with clients that retry with the responses.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use turnbuckle::{
    Context, Elicitation, ElicitationOutcome, SamplingBuilder, Server, Tool, ToolError,
    types::elicitation::{
        BooleanSchema, ElicitSchema, EnumOption, MultiSelectSchema, NumberSchema,
        SingleSelectSchema, StringSchema,
    },
};

pub(crate) fn offer(server: Server) -> Server {
    let server = server
        .tool(Tool::new("test_sampling", sampling).description("Asks the client's model"))
        .tool(
            Tool::new("test_elicitation", elicitation)
                .description("Asks the user for a name and an address"),
        )
        .tool(
            Tool::new("test_elicitation_sep1034_defaults", defaults)
                .description("Asks with defaults"),
        )
        .tool(
            Tool::new("test_elicitation_sep1330_enums", choices)
                .description("Asks with every kind of choice"),
        );
    let server = server
        .tool(
            Tool::new("test_missing_capability", needs_sampling)
                .description("Needs a client with a model"),
        )
        .tool(
            Tool::new("test_streaming_elicitation", ask_name)
                .description("Asks while the answer is awaited"),
        );
    server
        .tool(
            Tool::new("test_input_required_result_elicitation", ask_name)
                .description("Asks the user"),
        )
        .tool(
            Tool::new("test_input_required_result_sampling", ask_model)
                .description("Asks the model"),
        )
        .tool(
            Tool::new("test_input_required_result_list_roots", ask_roots)
                .description("Asks for the roots"),
        )
        .tool(
            Tool::new("test_input_required_result_request_state", confirm)
                .description("Asks and keeps state"),
        )
        .tool(
            Tool::new("test_input_required_result_tampered_state", confirm)
                .description("Notices changed state"),
        )
        .tool(
            Tool::new("test_input_required_result_multiple_inputs", ask_all)
                .description("Asks three at once"),
        )
        .tool(
            Tool::new("test_input_required_result_multi_round", two_rounds)
                .description("Asks twice"),
        )
        .tool(
            Tool::new("test_input_required_result_capabilities", what_it_offers)
                .description("Asks only for what the client offers"),
        )
}

#[derive(Deserialize, JsonSchema)]
struct SamplingArgs {
    /// What to ask the model.
    prompt: String,
}

async fn sampling(args: SamplingArgs, cx: Context) -> Result<String, ToolError> {
    let answer = cx
        .sample("prompt", SamplingBuilder::text(args.prompt).max_tokens(100))
        .await?;
    Ok(format!("LLM response: {}", answer.text()))
}

#[derive(Deserialize, JsonSchema)]
struct ElicitationArgs {
    /// What to ask the user.
    message: String,
}

#[derive(Deserialize, JsonSchema)]
struct Account {
    /// Your name on this service.
    username: String,
    /// Where mail reaches you.
    email: String,
}

async fn elicitation(args: ElicitationArgs, cx: Context) -> Result<String, ToolError> {
    Ok(
        match cx
            .elicit(Elicitation::form::<Account>(args.message).key("account"))
            .await?
        {
            ElicitationOutcome::Accepted(Account { username, email }) => {
                format!("User response: {username}, {email}")
            }
            ElicitationOutcome::Declined => "The user declined.".to_owned(),
            ElicitationOutcome::Cancelled => "The user closed the form.".to_owned(),
        },
    )
}

async fn defaults(cx: Context) -> Result<String, ToolError> {
    let states = ["active", "inactive", "pending"];
    let form = ElicitSchema::new()
        .optional("name", StringSchema::new().default("John Doe"))
        .optional("age", NumberSchema::integer().default(30))
        .optional("score", NumberSchema::new().default(95.5))
        .optional("status", SingleSelectSchema::new(states).default("active"))
        .optional("verified", BooleanSchema::new().default(true));
    fill_in(&cx, "Please check the defaults.", form).await
}

async fn choices(cx: Context) -> Result<String, ToolError> {
    let plain = ["option1", "option2", "option3"];
    let titled =
        ["1", "2", "3"].map(|n| EnumOption::titled(format!("value{n}"), format!("Option {n}")));
    // Titles in `enumNames` are the form of an earlier revision; new code would not use it.
    let names: SingleSelectSchema = serde_json::from_value(json!({
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"]
    }))?;
    let form = ElicitSchema::new()
        .optional("untitledSingle", SingleSelectSchema::new(plain))
        .optional("titledSingle", SingleSelectSchema::new(titled.clone()))
        .optional("legacyEnum", names)
        .optional("untitledMulti", MultiSelectSchema::new(plain))
        .optional("titledMulti", MultiSelectSchema::new(titled));
    fill_in(&cx, "Please choose.", form).await
}

async fn fill_in(cx: &Context, message: &str, form: ElicitSchema) -> Result<String, ToolError> {
    let answer: Option<Map<String, Value>> = cx
        .elicit(Elicitation::raw_form(message, form).key("form"))
        .await?
        .accepted();
    Ok(match answer {
        Some(content) => format!("Elicitation completed: {}", Value::Object(content)),
        None => "The form was not filled in.".to_owned(),
    })
}

async fn needs_sampling(cx: Context) -> Result<String, ToolError> {
    let answer = cx
        .sample("anything", SamplingBuilder::text("Say anything."))
        .await?;
    Ok(answer.text())
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

async fn ask_name(cx: Context) -> Result<String, ToolError> {
    let answer = cx
        .elicit(Elicitation::form::<Name>("What is your name?").key("user_name"))
        .await?;
    Ok(match answer.accepted() {
        Some(Name { name }) => format!("Hello, {name}!"),
        None => "Hello!".to_owned(),
    })
}

async fn ask_model(cx: Context) -> Result<String, ToolError> {
    let question = SamplingBuilder::text("What is the capital of France?").max_tokens(100);
    let answer = cx.sample("capital_question", question).await?;
    Ok(format!("The model says: {}", answer.text()))
}

async fn ask_roots(cx: Context) -> Result<String, ToolError> {
    let roots = cx.roots("client_roots").await?;
    Ok(format!("The client has {} roots.", roots.len()))
}

#[derive(Deserialize, JsonSchema)]
struct Confirmation {
    /// Whether to go on.
    ok: bool,
}

async fn confirm(cx: Context) -> Result<String, ToolError> {
    let answer = cx
        .elicit(Elicitation::form::<Confirmation>("Please confirm.").key("confirm"))
        .await?;
    let confirmed = answer.accepted().is_some_and(|answer| answer.ok);
    Ok(format!("state-ok, confirmed: {confirmed}"))
}

async fn ask_all(cx: Context) -> Result<String, ToolError> {
    let (name, greeting, roots) = tokio::try_join!(
        cx.elicit(Elicitation::form::<Name>("What is your name?").key("user_name")),
        cx.sample(
            "greeting",
            SamplingBuilder::text("Write a greeting.").max_tokens(50)
        ),
        cx.roots("client_roots"),
    )?;
    let name = name.accepted().map_or("user".to_owned(), |form| form.name);
    Ok(format!(
        "{}, {name}! You have {} roots.",
        greeting.text(),
        roots.len()
    ))
}

#[derive(Deserialize, JsonSchema)]
struct Color {
    color: String,
}

async fn two_rounds(cx: Context) -> Result<String, ToolError> {
    let Some(Name { name }) = cx
        .elicit(Elicitation::form::<Name>("What is your name?").key("step1"))
        .await?
        .accepted()
    else {
        return Ok("No name, no color.".to_owned());
    };
    let question = Elicitation::form::<Color>(format!("Which color do you like, {name}?"));
    Ok(match cx.elicit(question.key("step2")).await?.accepted() {
        Some(Color { color }) => format!("{name} likes {color}."),
        None => format!("{name} likes no color."),
    })
}

async fn what_it_offers(cx: Context) -> Result<String, ToolError> {
    let client = cx.client_capabilities();
    if client.sampling.is_some() {
        ask_model(cx).await
    } else if client.can_elicit_form() {
        ask_name(cx).await
    } else {
        ask_roots(cx).await
    }
}
