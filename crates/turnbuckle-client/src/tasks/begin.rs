//! How a call becomes a task, and how it is told from one that does not.

use turnbuckle_protocol::jsonrpc::code;
use turnbuckle_protocol::method::{self, Method};
use turnbuckle_protocol::types::{
    CallToolParams, ResultType, TaskSupport,
    tasks::{
        CreateTaskResult,
        legacy::{self, TaskMetadata},
    },
};

use super::{Started, Task, cancel::Leash};
use crate::call::Options;
use crate::client::{Beside, Client, Reply, complete};
use crate::error::CallError;
use crate::lifecycle::TaskDesign;

const CALL: &Method = &method::TOOLS_CALL;

impl Client {
    /// Calls a tool as a task, as far as server and tool allow it.
    pub(super) async fn begin_task(
        &self,
        mut params: CallToolParams,
        options: Options,
    ) -> Result<Started, CallError> {
        if self.asks_for_tasks() && self.task_support(&params.name).await? != TaskSupport::Forbidden
        {
            params.task = Some(wish(&options));
        }
        self.started(params, options).await
    }

    /// Makes a call whose parameters say whether a task is wanted.
    async fn started(
        &self,
        params: CallToolParams,
        options: Options,
    ) -> Result<Started, CallError> {
        let name = params.name.clone();
        let wanted = params.task.is_some();
        let beside = Beside::named(&name);
        let reply = self.ask_in_rounds(CALL, params, beside, &options).await?;
        match created(&reply, wanted)? {
            Some(task) => Ok(Started::Task(Task::described(self, task, options))),
            None => {
                complete(CALL.name, &reply)?;
                reply.read(CALL.name).map(Started::Done)
            }
        }
    }

    /// Waits for the outcome of a reply that is a task; any other is the outcome itself.
    pub(crate) async fn settled(
        &self,
        method: &'static Method,
        reply: Reply,
        options: &Options,
    ) -> Result<Reply, CallError> {
        // Only calls of tools become tasks: for anything else it is no answer.
        if reply.kind != ResultType::Task || method.name != CALL.name {
            return Ok(reply);
        }
        let created: CreateTaskResult = reply.read(CALL.name)?;
        let task = Task::described(self, created.task, options.clone());
        self.awaited(&task).await
    }

    /// Makes a call again, as a task, that was refused because its tool is only called so. Any other error is returned.
    pub(crate) async fn called_as_task_after(
        &self,
        error: CallError,
        mut params: CallToolParams,
        options: &Options,
    ) -> Result<Reply, CallError> {
        let refused = error
            .rpc()
            .is_some_and(|error| error.code == code::METHOD_NOT_FOUND);
        if !refused || self.task_support(&params.name).await? != TaskSupport::Required {
            return Err(error);
        }
        params.task = Some(wish(options));
        let name = params.name.clone();
        let reply = self.ask_in_rounds(CALL, params, Beside::named(&name), options);
        let reply = reply.await?;
        match created(&reply, true)? {
            Some(task) => {
                let task = Task::described(self, task, options.clone());
                self.awaited(&task).await
            }
            None => Ok(reply),
        }
    }

    /// Waits for a task that nobody asked for as for any other call: within its patience, and cancelled when dropped.
    async fn awaited(&self, task: &Task) -> Result<Reply, CallError> {
        let leash = Leash::new(self, &task.0.id, &task.0.options);
        let limit = task.0.options.patience.total;
        let outcome = tokio::time::timeout(limit, task.outcome()).await;
        match outcome {
            Ok(Err(error)) if !ended(&error) => Err(error),
            Ok(outcome) => {
                leash.release();
                outcome
            }
            Err(_) => Err(CallError::TimedOut {
                method: CALL.name,
                limit,
            }),
        }
    }

    /// Says whether calls of tools become tasks by being asked to, and the server takes them so.
    pub(crate) fn asks_for_tasks(&self) -> bool {
        if self.inner.rules().tasks != TaskDesign::Asked {
            return false;
        }
        let server = self.server();
        let tasks = server.capabilities.tasks.as_ref();
        let requests = tasks.and_then(|tasks| tasks.requests.as_ref());
        let tools = requests.and_then(|requests| requests.tools.as_ref());
        tools.is_some_and(|tools| tools.contains_key("call"))
    }

    /// Looks up whether a tool may be called as a task.
    async fn task_support(&self, name: &str) -> Result<TaskSupport, CallError> {
        let mut tools = self.tools();
        while let Some(tool) = tools.next().await {
            let tool = tool?;
            if tool.name == name {
                let execution = tool.execution.unwrap_or_default();
                return Ok(execution.task_support.unwrap_or_default());
            }
        }
        Ok(TaskSupport::Forbidden)
    }
}

/// The task that a reply is, if it is one.
fn created(
    reply: &Reply,
    wanted: bool,
) -> Result<Option<turnbuckle_protocol::types::tasks::Task>, CallError> {
    match reply.rules.tasks {
        TaskDesign::Offered if reply.kind == ResultType::Task => {
            let created: CreateTaskResult = reply.read(CALL.name)?;
            Ok(Some(created.task))
        }
        // A server that passes over the wish answers at once.
        TaskDesign::Asked if wanted => {
            let created = reply.read::<legacy::CreateTaskResult>(CALL.name);
            Ok(created.ok().map(|created| created.task.into()))
        }
        _ => Ok(None),
    }
}

/// Says whether there is nothing left to cancel.
fn ended(error: &CallError) -> bool {
    matches!(
        error,
        CallError::Refused { .. } | CallError::TaskCancelled { .. } | CallError::TaskExpired { .. }
    )
}

fn wish(options: &Options) -> TaskMetadata {
    let mut wish = TaskMetadata::default();
    let lifetime = options.task_lifetime;
    wish.ttl = lifetime.map(|lifetime| u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX));
    wish
}
