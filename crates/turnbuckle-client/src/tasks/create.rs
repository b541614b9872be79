//! Creation of tasks from tool calls.

use turnbuckle_protocol::{
    jsonrpc::code,
    method,
    types::{
        ResultType, TaskSupport,
        tasks::{
            CreateTaskResult,
            legacy::{self, TaskMetadata},
        },
    },
};

use crate::{
    call::CallOptions,
    client::{Client, ReceivedResult, require_complete, timeout::within},
    error::CallError,
    lifecycle::TaskDesign,
    tasks::{CallOutcome, CancelTaskOnDrop, CreatedTask, Task},
    tools::ToolCall,
};

const CALL: &str = method::TOOLS_CALL.name;

/// Calls a tool as a task, if the server and the tool allow it.
pub(crate) async fn begin_task(
    client: &Client,
    mut call: ToolCall,
    options: CallOptions,
) -> Result<CallOutcome, CallError> {
    if requests_tasks(client) && task_support(client, call.tool()).await? != TaskSupport::Forbidden
    {
        call.request_task(task_params(&options));
    }
    start_call(client, call, options).await
}

/// Sends a call that may request a task.
async fn start_call(
    client: &Client,
    call: ToolCall,
    options: CallOptions,
) -> Result<CallOutcome, CallError> {
    let tool = call.tool().to_owned();
    let task_requested = call.wants_task();
    let mut received = client.send_tool_call(&call, &options).await?;
    match created(&mut received, task_requested)? {
        Some(task) => Ok(CallOutcome::Task(Task::created(
            client, task, tool, options,
        ))),
        None => {
            require_complete(CALL, &received)?;
            let output = client.validate_output(Some(&tool), received.read(CALL)?)?;
            Ok(CallOutcome::Finished(output))
        }
    }
}

/// Waits for the result of a task, and retries a call that requires a task. Any other result is returned.
pub(crate) async fn resolve_task(
    client: &Client,
    received: Result<ReceivedResult, CallError>,
    call: &ToolCall,
    options: &CallOptions,
) -> Result<ReceivedResult, CallError> {
    let mut received = match received {
        Ok(received) => received,
        Err(error) => return retry_as_task(client, error, call, options).await,
    };
    match created(&mut received, false)? {
        Some(task) => await_task(client, task, call.tool(), options).await,
        None => Ok(received),
    }
}

/// Retries a call as a task, if it was rejected because its tool requires one. Any other error is returned.
async fn retry_as_task(
    client: &Client,
    error: CallError,
    call: &ToolCall,
    options: &CallOptions,
) -> Result<ReceivedResult, CallError> {
    let method_not_found = error
        .rpc()
        .is_some_and(|error| error.code == code::METHOD_NOT_FOUND);
    if !method_not_found || task_support(client, call.tool()).await? != TaskSupport::Required {
        return Err(error);
    }
    call_as_task(client, call.clone(), options).await
}

/// Sends a call as a task, and waits for its result.
pub(crate) async fn call_as_task(
    client: &Client,
    mut call: ToolCall,
    options: &CallOptions,
) -> Result<ReceivedResult, CallError> {
    call.request_task(task_params(options));
    let tool = call.tool().to_owned();
    let mut received = client.send_tool_call(&call, options).await?;
    match created(&mut received, true)? {
        Some(task) => await_task(client, task, &tool, options).await,
        None => Ok(received),
    }
}

/// Waits for a task like for any other call: with its timeouts, and cancelled when dropped.
async fn await_task(
    client: &Client,
    task: CreatedTask,
    tool: &str,
    options: &CallOptions,
) -> Result<ReceivedResult, CallError> {
    let cancel_guard = CancelTaskOnDrop::new(client, &task.info.task_id, options);
    let task = Task::created(client, task, tool.to_owned(), options.clone());
    let limit = options.timeouts.total;
    match within(limit, options.auth_wait.as_deref(), task.outcome()).await {
        Ok(Err(error)) if !ended(&error) => Err(error),
        Ok(outcome) => {
            cancel_guard.release();
            outcome
        }
        Err(_) => Err(CallError::TimedOut {
            method: CALL,
            limit,
        }),
    }
}

/// Returns whether the client has to request tasks, and the server supports them for tool calls.
pub(crate) fn requests_tasks(client: &Client) -> bool {
    let negotiated = client.inner.negotiated_ref();
    if negotiated.rules.tasks != TaskDesign::ClientRequested {
        return false;
    }
    let tasks = negotiated.server.capabilities.tasks.as_ref();
    let requests = tasks.and_then(|tasks| tasks.requests.as_ref());
    let tools = requests.and_then(|requests| requests.tools.as_ref());
    tools.is_some_and(|tools| tools.contains_key("call"))
}

/// Returns whether a tool may be called as a task.
async fn task_support(client: &Client, name: &str) -> Result<TaskSupport, CallError> {
    let mut tools = client.tools();
    while let Some(tool) = tools.next().await {
        let tool = tool?;
        if tool.name == name {
            let execution = tool.execution.unwrap_or_default();
            return Ok(execution.task_support.unwrap_or_default());
        }
    }
    Ok(TaskSupport::Forbidden)
}

/// Returns the task that a result describes, if it is one.
fn created(
    received: &mut ReceivedResult,
    task_requested: bool,
) -> Result<Option<CreatedTask>, CallError> {
    let info = match received.rules.tasks {
        TaskDesign::ServerDirected if received.kind == ResultType::Task => {
            let created: CreateTaskResult = received.read(CALL)?;
            Some(created.task)
        }
        // A server that ignores the request returns the result.
        TaskDesign::ClientRequested if task_requested => {
            let created = received.read::<legacy::CreateTaskResult>(CALL);
            created.ok().map(|created| created.task.into())
        }
        _ => None,
    };
    Ok(info.map(|info| CreatedTask {
        info,
        progress_guard: received.progress_guard.take(),
    }))
}

/// Returns whether the task has ended, so that it does not have to be cancelled.
fn ended(error: &CallError) -> bool {
    matches!(
        error,
        CallError::Rejected { .. }
            | CallError::TaskCancelled { .. }
            | CallError::TaskExpired { .. }
    )
}

fn task_params(options: &CallOptions) -> TaskMetadata {
    let mut task_params = TaskMetadata::default();
    let lifetime = options.task_lifetime;
    task_params.ttl =
        lifetime.map(|lifetime| u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX));
    task_params
}
