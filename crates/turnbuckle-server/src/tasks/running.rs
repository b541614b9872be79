//! Runs the handler of a task.

use std::{
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::{Arc, Mutex},
    task::Poll,
    time::Duration,
};

use bytes::Bytes;
use tokio::{sync::watch, time::Instant};
use tracing::Instrument as _;
use turnbuckle_protocol::{
    RpcError,
    types::{TaskStatus, tasks::legacy::RelatedTask},
};
use turnbuckle_store::{StoreError, TaskId, TaskOutcome, TaskRecord, TaskUpdate};

use super::{
    create,
    methods::apply_update,
    registry::{RegistrationGuard, TaskRegistry},
    wire_format,
};
use crate::{
    lifecycle::TaskModel,
    request::{
        BoxFuture, RequestContext, ResponseResult,
        error::{report_incident, report_panic},
        response,
    },
    sync::lock,
};

/// A task that runs in this process.
pub(crate) struct RunningTask {
    pub(crate) id: TaskId,
    owner: Arc<str>,
    ttl: Duration,
    related: RelatedTask,
    /// Calls that wait for the result and receive its messages.
    waiters: Mutex<Vec<Arc<RequestContext>>>,
    /// Time of the last status notification.
    last_notified: Mutex<Option<Instant>>,
    /// The newest known record.
    state: watch::Sender<Arc<TaskRecord>>,
}

/// Time between two attempts to store the end of a task.
const STORE_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Minimum time between status notifications.
const MIN_NOTIFY_INTERVAL: Duration = Duration::from_secs(1);

impl RunningTask {
    pub(crate) fn new(record: &Arc<TaskRecord>) -> Arc<Self> {
        Arc::new(Self {
            id: record.id,
            owner: record.owner.clone(),
            ttl: record.ttl,
            related: wire_format::related(record),
            waiters: Mutex::default(),
            last_notified: Mutex::default(),
            state: watch::Sender::new(record.clone()),
        })
    }

    /// Applies a change. Older records are ignored.
    pub(super) fn apply(&self, record: &Arc<TaskRecord>) {
        self.state.send_if_modified(|current| {
            let is_newer = record.changes > current.changes;
            if is_newer {
                *current = record.clone();
            }
            is_newer
        });
    }

    /// Waits until the record satisfies the predicate, and returns it.
    pub(super) async fn wait_until(
        &self,
        predicate: impl FnMut(&Arc<TaskRecord>) -> bool,
    ) -> Arc<TaskRecord> {
        let mut state = self.state.subscribe();
        let found = state.wait_for(predicate).await.map(|record| record.clone());
        match found {
            Ok(record) => record,
            // Never happens: `self` owns the sender.
            Err(_) => std::future::pending().await,
        }
    }

    /// The key of its owner.
    pub(super) fn owner(&self) -> &str {
        &self.owner
    }

    /// The key of its owner, shared.
    pub(super) fn owner_key(&self) -> Arc<str> {
        self.owner.clone()
    }

    /// Returns whether a status notification is due.
    pub(super) fn should_notify(&self) -> bool {
        let mut last_notified = lock(&self.last_notified);
        let due = last_notified.is_none_or(|last| last.elapsed() >= MIN_NOTIFY_INTERVAL);
        if due {
            *last_notified = Some(Instant::now());
        }
        due
    }

    /// The lifetime, from its creation.
    pub(super) fn ttl(&self) -> Duration {
        self.ttl
    }

    /// The `related-task` metadata of its messages.
    pub(crate) fn related(&self) -> &RelatedTask {
        &self.related
    }

    /// Sends a message to all calls that wait for the result. It is not stored.
    pub(crate) fn notify_waiters(&self, message: &Bytes) {
        for call in lock(&self.waiters).iter() {
            call.outbox.push(message.clone());
        }
    }

    /// Waits while the receivers are slow to read.
    pub(crate) async fn wait_delivered(&self) {
        let waiters = lock(&self.waiters).clone();
        for call in waiters {
            call.outbox.wait_for_room().await;
        }
    }

    /// Adds a call that receives messages of the task, until the guard is dropped.
    pub(super) fn add_waiter(self: &Arc<Self>, call: &Arc<RequestContext>) -> WaiterGuard {
        lock(&self.waiters).push(call.clone());
        WaiterGuard {
            task: self.clone(),
            call: call.clone(),
        }
    }
}

/// Keeps a call among the receivers.
pub(super) struct WaiterGuard {
    task: Arc<RunningTask>,
    call: Arc<RequestContext>,
}

impl Drop for WaiterGuard {
    fn drop(&mut self) {
        lock(&self.task.waiters).retain(|call| !Arc::ptr_eq(call, &self.call));
    }
}

/// Creates a task, starts its handler, and returns the response to the call.
pub(crate) async fn create_and_run(
    call: Arc<RequestContext>,
    ttl: Option<Duration>,
    handler: BoxFuture<ResponseResult>,
) -> ResponseResult {
    let record = create(&call, ttl).await?;
    let task = RunningTask::new(&record);
    call.set_task(task.clone());
    resume(call.clone(), task, handler);
    wire_format::created(&call, &record)
}

/// Runs a handler as a task.
pub(crate) fn resume(
    call: Arc<RequestContext>,
    task: Arc<RunningTask>,
    handler: BoxFuture<ResponseResult>,
) {
    // Registered before the task is visible, so that no change is missed.
    let guard = TaskRegistry::register(&call.server, &task);
    tokio::spawn(run(call, task, handler, guard).in_current_span());
}

async fn run(
    call: Arc<RequestContext>,
    task: Arc<RunningTask>,
    handler: BoxFuture<ResponseResult>,
    _guard: RegistrationGuard,
) {
    let outcome = tokio::select! {
        biased;
        // Dropping the handler cancels it.
        _ = task.wait_until(|record| record.status.is_final()) => return,
        () = tokio::time::sleep(task.ttl) => return,
        outcome = catch_panic(handler) => outcome,
    };
    let mut stored = store_end(&call, &task, end(&call, outcome)).await;
    if let Err(
        error
        @ (StoreError::TooLarge { .. } | StoreError::TooMany { .. } | StoreError::Full { .. }),
    ) = stored
    {
        let error = RpcError::internal(format!("the result cannot be stored: {error}"));
        tracing::warn!(%error, "task ended without its result");
        // An error always fits.
        stored = store_end(&call, &task, failure(&error)).await;
    }
    if let Err(error) = stored {
        report_incident("storing the result of a task", &error);
    }
}

/// Stores the end of a task. A shared store that cannot be reached is tried again: while this instance lives, nothing else
/// ends the task.
async fn store_end(
    call: &RequestContext,
    task: &RunningTask,
    end: TaskUpdate,
) -> Result<Option<Arc<TaskRecord>>, StoreError> {
    let deadline = Instant::now() + task.ttl;
    loop {
        let stored = apply_update(&call.server, &task.id, end.clone()).await;
        match stored {
            Err(StoreError::Unavailable { .. })
                if call.server.store_ref().is_shared() && Instant::now() < deadline =>
            {
                tokio::time::sleep(STORE_RETRY_INTERVAL).await;
            }
            stored => return stored,
        }
    }
}

/// Runs a handler. A panic becomes an internal error.
async fn catch_panic(mut handler: BoxFuture<ResponseResult>) -> ResponseResult {
    std::future::poll_fn(move |cx| {
        let poll = AssertUnwindSafe(|| Pin::as_mut(&mut handler).poll(cx));
        match std::panic::catch_unwind(poll) {
            Ok(polled) => polled,
            Err(panic) => Poll::Ready(Err(report_panic(&*panic))),
        }
    })
    .await
}

/// Returns the update that ends a task.
fn end(call: &RequestContext, outcome: ResponseResult) -> TaskUpdate {
    let body = match outcome {
        Ok(body) => body.into_bytes(),
        Err(error) => return failure(&error),
    };
    let (status, message) = match call.origin.rules.tasks {
        TaskModel::ClientRequested if call.is_tool_error() => (
            TaskStatus::Failed,
            Some("the tool reports an error; its result has the details".to_owned()),
        ),
        _ => (TaskStatus::Completed, None),
    };
    TaskUpdate::End {
        status,
        message,
        outcome: TaskOutcome::Result(response::extract_result(call, &body)),
    }
}

fn failure(error: &RpcError) -> TaskUpdate {
    TaskUpdate::End {
        status: TaskStatus::Failed,
        message: Some(error.message.clone()),
        outcome: TaskOutcome::Error(wire_format::error(error)),
    }
}
