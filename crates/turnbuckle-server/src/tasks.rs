//! Tasks: calls with a result that is delivered later.
//!
//! A tool declares whether its calls may or must run as tasks. The handler is the same. It runs in a separate task; its
//! input requests, and finally its result, are kept in the store. The task's runner and its clients communicate only
//! through the stored record and the bus.
//!
//! There are two models, [`TaskModel`]; this module handles their differences.

mod client_requests;
mod methods;
mod owner;
mod registry;
mod result;
mod runner;
mod running;
mod wire_format;

use std::{sync::Arc, time::Duration};

pub(crate) use client_requests::request_input;
pub(crate) use methods::{call_method, load_tasks, set_status_message, visible_tasks};
pub(crate) use owner::{TaskOwner, session_ended};
pub(crate) use registry::TaskRegistry;
pub(crate) use runner::{WatchedTasks, end_tasks_of};
pub(crate) use running::{RunningTask, create_and_run, resume};
use turnbuckle_protocol::{
    RpcError, json,
    jsonrpc::Params,
    types::{
        ClientCapabilities, TaskSupport,
        tasks::{EXTENSION, legacy::TaskMetadata},
    },
};
use turnbuckle_store::{NewTask, StoreError, TaskRecord};
pub(crate) use wire_format::{created, notification, status_notification};

use crate::{
    Tool,
    context::Context,
    input::missing_capability,
    lifecycle::{RequestOrigin, TaskModel},
    request::{
        RequestContext,
        error::{incident_error, report_incident},
    },
    tools::ToolError,
};

/// Default settings of tasks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaskSettings {
    /// Lifetime if the client does not request one.
    pub(crate) lifetime: Duration,
    /// Maximum lifetime.
    pub(crate) max_lifetime: Duration,
    /// Recommended poll interval.
    pub(crate) poll_interval: Duration,
}

impl Default for TaskSettings {
    fn default() -> Self {
        Self {
            lifetime: Duration::from_secs(60 * 60),
            max_lifetime: Duration::from_secs(24 * 60 * 60),
            poll_interval: Duration::from_secs(1),
        }
    }
}

/// With a shorter lifetime a client might never find its task.
const MIN_TTL: Duration = Duration::from_secs(1);

/// The mode in which a tool call runs.
pub(crate) enum CallMode {
    /// As a plain call.
    Direct,
    /// As a call that may become a task.
    CallThenTask,
    /// Rejected: the tool requires a task, and the revision has none.
    TasksUnsupported,
    /// As a task, with the lifetime that the client requested.
    Task(Option<Duration>),
}

/// Decides whether a call runs as a task.
pub(crate) fn call_mode(
    supports_tasks: bool,
    origin: &RequestOrigin,
    tool: &Tool,
    params: &Params<'_>,
) -> Result<CallMode, RpcError> {
    let support = tool.task;
    match origin.rules.tasks {
        TaskModel::None if support == TaskSupport::Required => Ok(CallMode::TasksUnsupported),
        TaskModel::None => Ok(CallMode::Direct),
        // Without task support, the parameter is not looked up.
        TaskModel::ClientRequested if !supports_tasks => Ok(CallMode::Direct),
        TaskModel::ClientRequested => match (params.get("task"), support) {
            (None, TaskSupport::Required) => Err(RpcError::new(
                turnbuckle_protocol::jsonrpc::code::METHOD_NOT_FOUND,
                format!(
                    "`{}` runs only as a task: add `task` to the parameters",
                    tool.name()
                ),
            )),
            (None, _) => Ok(CallMode::Direct),
            (Some(_), TaskSupport::Forbidden) => Err(RpcError::new(
                turnbuckle_protocol::jsonrpc::code::METHOD_NOT_FOUND,
                format!("`{}` cannot run as a task: leave `task` out", tool.name()),
            )),
            (Some(task), _) => {
                let requested: TaskMetadata =
                    json::from_str(task).map_err(|error| error.within("task"))?;
                Ok(CallMode::Task(requested.ttl.map(Duration::from_millis)))
            }
        },
        TaskModel::ServerDirected if support == TaskSupport::Forbidden => Ok(CallMode::Direct),
        TaskModel::ServerDirected => match (client_supports_tasks(origin), support) {
            (true, _) if tool.task_after_input => Ok(CallMode::CallThenTask),
            (true, _) => Ok(CallMode::Task(None)),
            (false, TaskSupport::Required) => Err(missing_extension(
                origin,
                &format!("`{}` runs only as a task", tool.name()),
            )),
            (false, _) => Ok(CallMode::Direct),
        },
    }
}

/// Returns whether the client declared the tasks extension in this request.
fn client_supports_tasks(origin: &RequestOrigin) -> bool {
    origin.client.capabilities.has_extension(EXTENSION)
}

/// The error for a client without the tasks extension.
pub(crate) fn missing_extension(origin: &RequestOrigin, why: &str) -> RpcError {
    let mut extensions = serde_json::Map::new();
    extensions.insert(EXTENSION.to_owned(), serde_json::json!({}));
    let needed = ClientCapabilities::new().extensions(extensions);
    let message = format!("{why}, and the client does not declare the extension `{EXTENSION}`");
    missing_capability(origin.rules, &needed, &message)
}

/// Fails if the task model requires the extension and the client did not declare it.
pub(crate) fn require_extension(origin: &RequestOrigin) -> Result<(), RpcError> {
    if origin.rules.tasks == TaskModel::ServerDirected && !client_supports_tasks(origin) {
        return Err(missing_extension(origin, "this is about tasks"));
    }
    Ok(())
}

/// Creates a task record.
async fn create(call: &RequestContext, ttl: Option<Duration>) -> Result<Arc<TaskRecord>, RpcError> {
    let settings = call.server.task_settings();
    let runner = runner::runner(&call.server).await;
    let runner =
        runner.map_err(|error| incident_error(&report_incident("creating a task", &error)))?;
    let owner = TaskOwner::for_origin(&call.origin);
    let task = NewTask {
        shared: owner.is_shared(),
        owner: owner.into_key(),
        ttl: ttl
            .unwrap_or(settings.lifetime)
            .max(MIN_TTL)
            .min(settings.max_lifetime),
        poll_interval: settings.poll_interval,
        runner,
    };
    let created = call.server.store_ref().tasks.create(task).await;
    created.map_err(|error| match error {
        StoreError::Full { .. } | StoreError::TooMany { .. } => {
            RpcError::internal(format!("the task cannot be created now: {error}"))
        }
        error => incident_error(&report_incident("creating a task", &error)),
    })
}

impl Context {
    /// Continues the call as a task, if it may become one: the client gets the task now and the result later.
    ///
    /// For tools with [`task_after_input`](crate::Tool::task_after_input): client requests before this are part of the
    /// call, later ones are part of the task. Does nothing if tasks are unavailable or the call is already a task.
    ///
    /// ```
    /// use turnbuckle_server::{Context, TaskSupport, Tool, ToolError};
    ///
    /// async fn archive(cx: Context) -> Result<String, ToolError> {
    ///     // Send client requests that must precede the long part here.
    ///     cx.into_task().await?;
    ///     Ok("archived".to_owned())
    /// }
    ///
    /// let tool = Tool::new("archive", archive).task(TaskSupport::Optional).task_after_input();
    /// ```
    ///
    /// # Errors
    ///
    /// If the store is full.
    pub async fn into_task(&self) -> Result<(), ToolError> {
        let call = &self.call;
        if !call.may_become_task() {
            return Ok(());
        }
        let record = create(call, None).await.map_err(ToolError::protocol)?;
        call.promote_to_task(record);
        // The driver sees the promotion when the handler yields, and moves it to a task. Woken explicitly, because this
        // may run in a task that the handler spawned.
        call.outbox.wake();
        tokio::task::yield_now().await;
        Ok(())
    }

    /// Returns whether the call runs as a task.
    pub fn is_task(&self) -> bool {
        self.call.task().is_some()
    }
}
