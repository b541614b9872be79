//! Tasks: calls with a result that is fetched later.
//!
//! On 2025-11-25 the client requests a task and fetches its result; since 2026-07-28 the server decides, and polling
//! the task returns its result. [`Task`] covers both. A call that becomes a task without a request is awaited like any
//! other call.

pub(crate) mod create;
mod poll;

use std::{
    collections::HashSet,
    fmt,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use tokio::time::Instant;
use turnbuckle_protocol::{
    json, method,
    types::{
        EmptyResult, InputResponses, ResultType,
        tasks::{CancelTaskParams, CreateTaskResult, GetTaskResult, Task as TaskInfo, legacy},
    },
};

use crate::{
    call::{Call, CallOptions},
    client::{Client, require_complete},
    error::CallError,
    inbound::progress::ProgressGuard,
    lifecycle::TaskDesign,
    sync::lock,
    tools::ToolOutput,
};

/// A handle to a task: a call with a result that is fetched later.
///
/// Dropping the handle does not cancel the task; [`cancel`](Self::cancel) does. A task outlives the connection: store
/// its [`id`](Self::id), and use [`Client::task`] to get a handle again. Clones are cheap, and share their state.
#[derive(Clone)]
pub struct Task(Arc<TaskInner>);

struct TaskInner {
    client: Client,
    id: String,
    /// The called tool, if known.
    tool: Option<String>,
    options: CallOptions,
    created_at: Instant,
    state: Mutex<TaskState>,
    /// The task reports progress under the token of its call.
    _progress_guard: Option<ProgressGuard>,
}

/// A task that was just created.
struct CreatedTask {
    info: TaskInfo,
    progress_guard: Option<ProgressGuard>,
}

/// The state of a task that clones share.
#[derive(Debug, Default)]
struct TaskState {
    info: Option<TaskInfo>,
    /// The keys of the open input requests, as of the last poll.
    open: HashSet<String>,
    /// The keys of the input requests that were claimed: each is resolved once.
    claimed_inputs: HashSet<String>,
    round_trips: usize,
}

impl Task {
    /// Creates a handle from the id of a task.
    pub(crate) fn with_id(client: &Client, id: String) -> Self {
        Self(Arc::new(TaskInner {
            client: client.clone(),
            id,
            tool: None,
            options: CallOptions::for_client(client),
            created_at: Instant::now(),
            state: Mutex::default(),
            _progress_guard: None,
        }))
    }

    /// Creates a handle for the task that a tool call became.
    fn created(client: &Client, created: CreatedTask, tool: String, options: CallOptions) -> Self {
        let info = created.info;
        let id = info.task_id.clone();
        let state = TaskState {
            info: Some(info),
            ..TaskState::default()
        };
        Self(Arc::new(TaskInner {
            client: client.clone(),
            id,
            tool: Some(tool),
            options,
            created_at: Instant::now(),
            state: Mutex::new(state),
            _progress_guard: created.progress_guard,
        }))
    }

    /// Returns the id of the task. It grants access to the result: keep it secret.
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// Returns the last received state of the task.
    pub fn last_seen(&self) -> Option<TaskInfo> {
        self.state().info.clone()
    }

    /// Polls the task once.
    pub async fn poll(&self) -> Result<GetTaskResult, CallError> {
        let snapshot = self.fetch_snapshot().await?;
        snapshot.into_typed()
    }

    /// Waits until the task has ended; returns its final state.
    ///
    /// Input requests are resolved by the callbacks of the client. Waiting is limited only by the lifetime of the task.
    pub async fn wait(&self) -> Result<TaskInfo, CallError> {
        self.poll_until_final().await.map(|snapshot| snapshot.task)
    }

    /// Waits until the task has ended; returns the result of the call.
    pub async fn result(&self) -> Result<ToolOutput, CallError> {
        let result = self.outcome().await?.read(poll::CALL)?;
        self.0
            .client
            .validate_output(self.0.tool.as_deref(), result)
    }

    /// Sends input responses, for clients without callbacks. Responses without an open input request are dropped.
    ///
    /// For 2026-07-28; legacy servers send requests, which only callbacks handle.
    pub async fn send_input(&self, responses: InputResponses) -> Result<(), CallError> {
        self.update(responses).await
    }

    /// Requests the cancellation of the task.
    ///
    /// The server decides whether and when the task ends; [`wait`](Self::wait) returns its final state.
    pub async fn cancel(&self) -> Result<(), CallError> {
        cancel(&self.0.client, &self.0.id, &self.0.options).await
    }

    fn state(&self) -> MutexGuard<'_, TaskState> {
        lock(&self.0.state)
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = self.state().info.as_ref().map(|task| task.status);
        f.debug_struct("Task")
            .field("status", &status)
            .finish_non_exhaustive()
    }
}

/// The outcome of a call that may become a task.
#[derive(Debug)]
#[non_exhaustive]
pub enum CallOutcome {
    /// The call has finished.
    Finished(ToolOutput),
    /// The call became a task.
    Task(Task),
}

impl CallOutcome {
    /// Returns the result; waits for it if the call became a task.
    pub async fn result(self) -> Result<ToolOutput, CallError> {
        match self {
            Self::Finished(result) => Ok(result),
            Self::Task(task) => task.result().await,
        }
    }
}

const CANCEL: &str = method::TASKS_CANCEL.name;

/// Sends `tasks/cancel`.
pub(super) async fn cancel(
    client: &Client,
    id: &str,
    options: &CallOptions,
) -> Result<(), CallError> {
    let params = CancelTaskParams::new(id);
    let mut request = client.new_request(&method::TASKS_CANCEL, options).named(id);
    let received = client.send(&mut request, &params, options).await?;
    require_complete(CANCEL, &received)?;
    // The result is an acknowledgement, or the current state, which is not used.
    match json::from_str::<EmptyResult>(received.result.as_str()) {
        Ok(_) => Ok(()),
        Err(error) => Err(CallError::InvalidResponse {
            method: CANCEL,
            reason: error.to_string(),
        }),
    }
}

/// Cancels a task when it is dropped, unless it is [released](Self::release).
///
/// For calls that became tasks without a request: dropping them cancels them, like any other call.
pub(super) struct CancelTaskOnDrop {
    pending_cancel: Option<(Client, String, CallOptions)>,
}

impl CancelTaskOnDrop {
    pub(super) fn new(client: &Client, id: &str, options: &CallOptions) -> Self {
        Self {
            pending_cancel: Some((client.clone(), id.to_owned(), options.clone())),
        }
    }

    /// Disarms the guard.
    pub(super) fn release(mut self) {
        self.pending_cancel = None;
    }
}

impl Drop for CancelTaskOnDrop {
    fn drop(&mut self) {
        let Some((client, id, options)) = self.pending_cancel.take() else {
            return;
        };
        let router = Arc::clone(&client.inner.router);
        router.task_cancellations.spawn(async move {
            if let Err(error) = cancel(&client, &id, &options).await {
                tracing::debug!(%error, "an abandoned task was not cancelled");
            }
        });
    }
}

/// Cancels the task that the late result of a dropped call created, if it is one.
pub(crate) fn cancel_abandoned(client: &Client, result: &str) {
    let id = match client.inner.rules().tasks {
        TaskDesign::None => None,
        TaskDesign::ServerDirected => match ResultType::from_result_json(result) {
            Ok(ResultType::Task) => json::from_str(result)
                .ok()
                .map(|created: CreateTaskResult| created.task.task_id),
            _ => None,
        },
        TaskDesign::ClientRequested => json::from_str(result)
            .ok()
            .map(|created: legacy::CreateTaskResult| created.task.task_id),
    };
    if let Some(id) = id {
        drop(CancelTaskOnDrop::new(
            client,
            &id,
            &CallOptions::for_client(client),
        ));
    }
}

impl Call<CallOutcome> {
    /// Sets the lifetime to request for the task and its result. Only on 2025-11-25.
    pub fn lifetime(mut self, lifetime: Duration) -> Self {
        self.options.task_lifetime = Some(lifetime);
        self
    }
}
