//! How a call becomes a task, and how it is told from one that does not.

use turnbuckle_protocol::jsonrpc::code;
use turnbuckle_protocol::method;
use turnbuckle_protocol::types::{
    ResultType, TaskSupport,
    tasks::{
        CreateTaskResult,
        legacy::{self, TaskMetadata},
    },
};

use super::{Created, Started, Task, cancel::Leash};
use crate::call::Options;
use crate::client::{Client, Reply, complete};
use crate::error::CallError;
use crate::held::within;
use crate::lifecycle::TaskDesign;
use crate::tools::ToolCall;

const CALL: &str = method::TOOLS_CALL.name;

impl Client {
    /// Calls a tool as a task, as far as server and tool allow it.
    pub(super) async fn begin_task(
        &self,
        mut call: ToolCall,
        options: Options,
    ) -> Result<Started, CallError> {
        if self.asks_for_tasks() && self.task_support(call.tool()).await? != TaskSupport::Forbidden
        {
            call.ask_for_task(wish(&options));
        }
        self.started(call, options).await
    }

    /// Makes a call whose parameters say whether a task is wanted.
    async fn started(&self, call: ToolCall, options: Options) -> Result<Started, CallError> {
        let tool = call.tool().to_owned();
        let wanted = call.wants_task();
        let mut reply = self.send_call(&call, &options).await?;
        match created(&mut reply, wanted)? {
            Some(task) => Ok(Started::Task(Task::created(self, task, tool, options))),
            None => {
                complete(CALL, &reply)?;
                let output = self.output(Some(&tool), reply.read(CALL)?)?;
                Ok(Started::Done(output))
            }
        }
    }

    /// Waits for the outcome of a reply that is a task, and makes a call again that has to be one. Any other reply is the
    /// outcome itself.
    pub(crate) async fn settled(
        &self,
        reply: Result<Reply, CallError>,
        call: &ToolCall,
        options: &Options,
    ) -> Result<Reply, CallError> {
        let mut reply = match reply {
            Ok(reply) => reply,
            Err(error) => return self.called_as_task_after(error, call, options).await,
        };
        match created(&mut reply, false)? {
            Some(task) => self.awaited(task, call.tool(), options).await,
            None => Ok(reply),
        }
    }

    /// Makes a call again, as a task, that was refused because its tool is only called so. Any other error is returned.
    async fn called_as_task_after(
        &self,
        error: CallError,
        call: &ToolCall,
        options: &Options,
    ) -> Result<Reply, CallError> {
        let refused = error
            .rpc()
            .is_some_and(|error| error.code == code::METHOD_NOT_FOUND);
        if !refused || self.task_support(call.tool()).await? != TaskSupport::Required {
            return Err(error);
        }
        self.called_as_task(call.clone(), options).await
    }

    /// Makes a call as a task, and waits for its outcome.
    pub(crate) async fn called_as_task(
        &self,
        mut call: ToolCall,
        options: &Options,
    ) -> Result<Reply, CallError> {
        call.ask_for_task(wish(options));
        let tool = call.tool().to_owned();
        let mut reply = self.send_call(&call, options).await?;
        match created(&mut reply, true)? {
            Some(task) => self.awaited(task, &tool, options).await,
            None => Ok(reply),
        }
    }

    /// Waits for a task that nobody asked for as for any other call: within its patience, and cancelled when dropped.
    async fn awaited(
        &self,
        task: Created,
        tool: &str,
        options: &Options,
    ) -> Result<Reply, CallError> {
        let leash = Leash::new(self, &task.described.task_id, options);
        let task = Task::created(self, task, tool.to_owned(), options.clone());
        let limit = options.patience.total;
        match within(limit, options.held.as_deref(), task.outcome()).await {
            Ok(Err(error)) if !ended(&error) => Err(error),
            Ok(outcome) => {
                leash.release();
                outcome
            }
            Err(_) => Err(CallError::TimedOut {
                method: CALL,
                limit,
            }),
        }
    }

    /// Says whether calls of tools become tasks by being asked to, and the server takes them so.
    pub(crate) fn asks_for_tasks(&self) -> bool {
        let agreed = self.inner.agreed_now();
        if agreed.rules.tasks != TaskDesign::Asked {
            return false;
        }
        let tasks = agreed.server.capabilities.tasks.as_ref();
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
fn created(reply: &mut Reply, wanted: bool) -> Result<Option<Created>, CallError> {
    let described = match reply.rules.tasks {
        TaskDesign::Offered if reply.kind == ResultType::Task => {
            let created: CreateTaskResult = reply.read(CALL)?;
            Some(created.task)
        }
        // A server that passes over the wish answers at once.
        TaskDesign::Asked if wanted => {
            let created = reply.read::<legacy::CreateTaskResult>(CALL);
            created.ok().map(|created| created.task.into())
        }
        _ => None,
    };
    Ok(described.map(|described| Created {
        described,
        watching: reply.watching.take(),
    }))
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
