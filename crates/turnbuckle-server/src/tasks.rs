//! Calls that are answered later.
//!
//! A tool says whether its calls may or must become tasks. The handler is the same: it runs in a task of its own,
//! its questions wait in the store until somebody brings the answers, and so does what comes of it. Who runs a task
//! and who answers for it know each other only by the record in the store and the changes on the bus.
//!
//! There are two designs, [`TaskDesign`](crate::lifecycle::TaskDesign); what differs between them is decided here by
//! that value.

mod asking;
mod methods;
mod owner;
mod registry;
mod result;
mod running;
mod shape;
mod watching;

use std::{sync::Arc, time::Duration};

use turnbuckle_protocol::{
    RpcError, json,
    jsonrpc::Params,
    types::{ClientCapabilities, TaskSupport, tasks::EXTENSION, tasks::legacy::TaskMetadata},
};
use turnbuckle_store::{NewTask, StoreError, TaskRecord};

pub(crate) use asking::ask;
pub(crate) use methods::{begin, say};
pub(crate) use owner::{Owner, session_ended};
pub(crate) use registry::Registry;
pub(crate) use running::{RunningTask, go_on, start};
pub(crate) use shape::{created, notification, status_notification};
pub(crate) use watching::{all, watched};

use crate::{
    Tool,
    context::{Call, Context},
    incident,
    input::undeclared,
    lifecycle::{Caller, TaskDesign},
    tools::ToolError,
};

/// How tasks are kept, unless their tools or clients say otherwise.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaskSettings {
    /// How long a task is kept if the client does not say.
    pub(crate) lifetime: Duration,
    /// How long it is kept at most.
    pub(crate) longest: Duration,
    /// How often a client should look.
    pub(crate) poll_interval: Duration,
}

impl Default for TaskSettings {
    fn default() -> Self {
        Self {
            lifetime: Duration::from_secs(60 * 60),
            longest: Duration::from_secs(24 * 60 * 60),
            poll_interval: Duration::from_secs(1),
        }
    }
}

/// A client that asks for less would never find its task.
const SHORTEST: Duration = Duration::from_secs(1);

/// How a call of a tool is run.
pub(crate) enum Way {
    /// As a call that is answered with its result.
    Call,
    /// As a call that may become a task on its way.
    CallFirst,
    /// Not at all: it would have to be a task, and the client's revision has none.
    None,
    /// As a task that is kept this long, if the client said.
    Task(Option<Duration>),
}

/// Decides whether a call becomes a task.
pub(crate) fn way(
    offers_tasks: bool,
    caller: &Caller,
    tool: &Tool,
    params: &Params<'_>,
) -> Result<Way, RpcError> {
    let support = tool.task;
    match caller.rules.tasks {
        TaskDesign::None if support == TaskSupport::Required => Ok(Way::None),
        TaskDesign::None => Ok(Way::Call),
        // Where nobody ever spoke of tasks, there is no such parameter to look for.
        TaskDesign::Asked if !offers_tasks => Ok(Way::Call),
        TaskDesign::Asked => match (params.get("task"), support) {
            (None, TaskSupport::Required) => Err(RpcError::new(
                turnbuckle_protocol::jsonrpc::code::METHOD_NOT_FOUND,
                format!(
                    "`{}` runs only as a task: add `task` to the parameters",
                    tool.name()
                ),
            )),
            (None, _) => Ok(Way::Call),
            (Some(_), TaskSupport::Forbidden) => Err(RpcError::new(
                turnbuckle_protocol::jsonrpc::code::METHOD_NOT_FOUND,
                format!("`{}` cannot run as a task: leave `task` out", tool.name()),
            )),
            (Some(task), _) => {
                let asked: TaskMetadata =
                    json::from_str(task).map_err(|error| error.within("task"))?;
                Ok(Way::Task(asked.ttl.map(Duration::from_millis)))
            }
        },
        TaskDesign::Offered if support == TaskSupport::Forbidden => Ok(Way::Call),
        TaskDesign::Offered => match (knows_tasks(caller), support) {
            (true, _) if tool.asks_first => Ok(Way::CallFirst),
            (true, _) => Ok(Way::Task(None)),
            (false, TaskSupport::Required) => Err(extension_needed(
                caller,
                &format!("`{}` runs only as a task", tool.name()),
            )),
            (false, _) => Ok(Way::Call),
        },
    }
}

/// Says whether the client declared the extension with this very request.
fn knows_tasks(caller: &Caller) -> bool {
    caller.client.capabilities.has_extension(EXTENSION)
}

/// The error for a client that did not say that it knows tasks.
pub(crate) fn extension_needed(caller: &Caller, why: &str) -> RpcError {
    let mut extensions = serde_json::Map::new();
    extensions.insert(EXTENSION.to_owned(), serde_json::json!({}));
    let needed = ClientCapabilities::new().extensions(extensions);
    let message = format!("{why}, and the client does not declare the extension `{EXTENSION}`");
    undeclared(caller.rules, &needed, &message)
}

/// Refuses whoever did not declare what the design wants declared.
pub(crate) fn require_extension(caller: &Caller) -> Result<(), RpcError> {
    if caller.rules.tasks == TaskDesign::Offered && !knows_tasks(caller) {
        return Err(extension_needed(caller, "this is about tasks"));
    }
    Ok(())
}

/// Puts a new task on record.
async fn create(call: &Call, ttl: Option<Duration>) -> Result<Arc<TaskRecord>, RpcError> {
    let settings = call.server.task_settings();
    let owner = Owner::of(&call.caller);
    let task = NewTask {
        shared: owner.is_anyone(),
        owner: owner.into_key(),
        ttl: ttl
            .unwrap_or(settings.lifetime)
            .max(SHORTEST)
            .min(settings.longest),
        poll_interval: settings.poll_interval,
    };
    let created = call.server.store_ref().tasks.create(task).await;
    created.map_err(|error| match error {
        StoreError::Full { .. } | StoreError::TooMany { .. } => {
            RpcError::internal(format!("the task cannot begin now: {error}"))
        }
        error => incident::internal(&incident::report("creating a task", &error)),
    })
}

impl Context {
    /// Lets the call go on as a task, if it may become one: the client gets a handle at once, and the result later.
    ///
    /// For tools that [ask first](crate::Tool::asks_first): what they ask before this is asked in the ordinary way, what
    /// they ask after it is asked by the task. Where there are no tasks, or the call is one already, nothing happens.
    ///
    /// ```
    /// use turnbuckle_server::{Context, TaskSupport, Tool, ToolError};
    ///
    /// async fn archive(cx: Context) -> Result<String, ToolError> {
    ///     // Whatever has to be asked before the long part begins is asked here.
    ///     cx.into_task().await?;
    ///     Ok("archived".to_owned())
    /// }
    ///
    /// let tool = Tool::new("archive", archive).task(TaskSupport::Optional).asks_first();
    /// ```
    ///
    /// # Errors
    ///
    /// If there is no room for another task.
    pub async fn into_task(&self) -> Result<(), ToolError> {
        let call = &self.call;
        if !call.may_become_task() {
            return Ok(());
        }
        let record = create(call, None).await.map_err(ToolError::protocol)?;
        call.turn_into(record);
        // Whoever drives the call sees this when the handler pauses, and moves it to where it goes on. If this is not the
        // handler but something that it has begun, nobody else would look.
        call.outbox.wake();
        tokio::task::yield_now().await;
        Ok(())
    }

    /// Says whether the call runs as a task.
    pub fn is_task(&self) -> bool {
        self.call.task().is_some()
    }
}
