//! Tools with calls that become tasks.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use turnbuckle::{Context, Elicitation, Server, TaskSupport, Tool, ToolError, protocol::RpcError};

pub(crate) fn offer(server: Server) -> Server {
    server
        .tool(Tool::new("greet", greet).description("Greets at once"))
        .tool(
            Tool::new("slow_compute", slow_compute)
                .description("Takes the given number of seconds")
                .task(TaskSupport::Optional),
        )
        .tool(
            Tool::new("failing_job", failing_job)
                .description("Fails after a while, in words for the model")
                .task(TaskSupport::Required),
        )
        .tool(
            Tool::new("protocol_error_job", protocol_error_job)
                .description("Fails with an error of the protocol")
                .task(TaskSupport::Optional),
        )
        .tool(
            Tool::new("confirm_delete", confirm_delete)
                .description("Asks before it deletes")
                .task(TaskSupport::Optional),
        )
        .tool(
            Tool::new("multi_input", multi_input)
                .description("Asks two things at once")
                .task(TaskSupport::Optional),
        )
        .tool(
            Tool::new("test_tool_with_task", ask_then_work)
                .description("Asks first, then works as a task")
                .task(TaskSupport::Optional)
                .task_after_input(),
        )
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    /// A name.
    name: String,
}

async fn greet(person: Name) -> Result<String, ToolError> {
    Ok(format!("Hello, {}!", person.name))
}

#[derive(Deserialize, JsonSchema)]
struct Work {
    /// How long it takes.
    seconds: f64,
    /// What it is called.
    label: String,
}

async fn slow_compute(work: Work, cx: Context) -> Result<String, ToolError> {
    cx.progress_message(0.0, None, "computing").await;
    let time = Duration::try_from_secs_f64(work.seconds)
        .map_err(|_| ToolError::new("`seconds` must not be negative"))?;
    tokio::time::sleep(time).await;
    Ok(format!("{}: computed", work.label))
}

async fn failing_job() -> Result<String, ToolError> {
    tokio::time::sleep(Duration::from_secs(1)).await;
    Err(ToolError::new("The job failed, as it always does."))
}

async fn protocol_error_job() -> Result<String, ToolError> {
    Err(ToolError::protocol(RpcError::internal(
        "this job ends with an error of the protocol",
    )))
}

#[derive(Deserialize, JsonSchema)]
struct File {
    /// Which file.
    filename: String,
}

#[derive(Deserialize, JsonSchema)]
struct Confirmation {
    /// Whether to go on.
    confirm: bool,
}

async fn confirm_delete(file: File, cx: Context) -> Result<String, ToolError> {
    let question = Elicitation::form::<Confirmation>(format!("Delete {}?", file.filename));
    Ok(match cx.elicit(question.key("confirm")).await?.accepted() {
        Some(Confirmation { confirm: true }) => format!("Deleted {}", file.filename),
        _ => format!("Kept {}", file.filename),
    })
}

async fn multi_input(cx: Context) -> Result<String, ToolError> {
    let (first, second) = tokio::try_join!(
        cx.elicit(Elicitation::form::<Name>("The first name?").key("first")),
        cx.elicit(Elicitation::form::<Name>("The second name?").key("second")),
    )?;
    let name = |answer: Option<Name>| answer.map_or("user".to_owned(), |it| it.name);
    Ok(format!(
        "{} and {}",
        name(first.accepted()),
        name(second.accepted())
    ))
}

async fn ask_then_work(cx: Context) -> Result<String, ToolError> {
    let name = cx
        .elicit(Elicitation::form::<Name>("What is your name?").key("name"))
        .await?;
    cx.into_task().await?;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let name = name.accepted().map_or("user".to_owned(), |it| it.name);
    Ok(format!("Worked for {name}"))
}
