//! The handler of a task at work.

use std::{
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
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
use turnbuckle_store::{StoreError, TaskChange, TaskId, TaskOutcome, TaskRecord};

use super::{
    create,
    methods::changed,
    registry::{Registered, Registry},
    shape,
};
use crate::{
    context::Call,
    exchange::{BoxFuture, Outcome},
    incident,
    lifecycle::TaskDesign,
    reply,
};

/// A task whose handler runs in this process.
pub(crate) struct RunningTask {
    pub(crate) id: TaskId,
    owner: Arc<str>,
    ttl: Duration,
    related: RelatedTask,
    /// Calls that wait for the result, and hear of progress meanwhile.
    watchers: Mutex<Vec<Arc<Call>>>,
    /// When everyone was last told what the task said of itself.
    announced: Mutex<Option<Instant>>,
    /// The newest record that this process knows.
    state: watch::Sender<Arc<TaskRecord>>,
}

/// The least time between two of these.
const QUIET: Duration = Duration::from_secs(1);

impl RunningTask {
    pub(crate) fn new(record: &Arc<TaskRecord>) -> Arc<Self> {
        Arc::new(Self {
            id: record.id,
            owner: record.owner.clone(),
            ttl: record.ttl,
            related: shape::related(record),
            watchers: Mutex::default(),
            announced: Mutex::default(),
            state: watch::Sender::new(record.clone()),
        })
    }

    /// Takes note of a change. One that comes late is no news.
    pub(super) fn note(&self, record: &Arc<TaskRecord>) {
        self.state.send_if_modified(|known| {
            let is_news = record.changes > known.changes;
            if is_news {
                *known = record.clone();
            }
            is_news
        });
    }

    /// Waits until the record is as wanted, and returns it.
    pub(super) async fn when(
        &self,
        wanted: impl FnMut(&Arc<TaskRecord>) -> bool,
    ) -> Arc<TaskRecord> {
        let mut state = self.state.subscribe();
        let found = state.wait_for(wanted).await.map(|record| record.clone());
        match found {
            Ok(record) => record,
            // The sender is ours, and stays.
            Err(_) => std::future::pending().await,
        }
    }

    /// Whose it is.
    pub(super) fn owner(&self) -> &str {
        &self.owner
    }

    /// The name of its owner in the store.
    pub(super) fn owner_key(&self) -> Arc<str> {
        self.owner.clone()
    }

    /// Says whether everyone may be told again what the task says of itself.
    pub(super) fn may_announce(&self) -> bool {
        let mut announced = lock(&self.announced);
        let due = announced.is_none_or(|last| last.elapsed() >= QUIET);
        if due {
            *announced = Some(Instant::now());
        }
        due
    }

    /// How long it is kept, from its beginning.
    pub(super) fn ttl(&self) -> Duration {
        self.ttl
    }

    /// How messages of the task name it, where the design wants that.
    pub(crate) fn related(&self) -> &RelatedTask {
        &self.related
    }

    /// Sends a message to everyone who waits for the result. Nobody else wants it, and nothing is kept.
    pub(crate) fn tell(&self, message: &Bytes) {
        for call in lock(&self.watchers).iter() {
            call.outbox.push(message.clone());
        }
    }

    /// Waits while those who listen are slow to read.
    pub(crate) async fn told(&self) {
        let watchers = lock(&self.watchers).clone();
        for call in watchers {
            call.outbox.flushed().await;
        }
    }

    /// Lets a call hear what the task sends, until the guard is dropped.
    pub(super) fn watch(self: &Arc<Self>, call: &Arc<Call>) -> Watching {
        lock(&self.watchers).push(call.clone());
        Watching {
            task: self.clone(),
            call: call.clone(),
        }
    }
}

/// Keeps a call among those that hear what a task sends.
pub(super) struct Watching {
    task: Arc<RunningTask>,
    call: Arc<Call>,
}

impl Drop for Watching {
    fn drop(&mut self) {
        lock(&self.task.watchers).retain(|call| !Arc::ptr_eq(call, &self.call));
    }
}

/// Begins a task and lets its handler run; returns the answer to the call.
pub(crate) async fn start(
    call: Arc<Call>,
    ttl: Option<Duration>,
    handler: BoxFuture<Outcome>,
) -> Outcome {
    let record = create(&call, ttl).await?;
    let task = RunningTask::new(&record);
    call.set_task(task.clone());
    go_on(call.clone(), task, handler);
    shape::created(&call, &record)
}

/// Lets a handler run as a task from here on.
pub(crate) fn go_on(call: Arc<Call>, task: Arc<RunningTask>, handler: BoxFuture<Outcome>) {
    // Before anyone can know of the task: what others do to it must not be missed.
    let registered = Registry::enter(&call.server, &task);
    tokio::spawn(run(call, task, handler, registered).in_current_span());
}

async fn run(
    call: Arc<Call>,
    task: Arc<RunningTask>,
    handler: BoxFuture<Outcome>,
    _registered: Registered,
) {
    let outcome = tokio::select! {
        biased;
        // Dropping the handler is how anything is cancelled.
        _ = task.when(|record| record.status.is_final()) => return,
        () = tokio::time::sleep(task.ttl) => return,
        outcome = caught(handler) => outcome,
    };
    let mut kept = changed(&call.server, &task.id, end(&call, outcome)).await;
    if let Err(
        error
        @ (StoreError::TooLarge { .. } | StoreError::TooMany { .. } | StoreError::Full { .. }),
    ) = kept
    {
        let error = RpcError::internal(format!("the result cannot be kept: {error}"));
        tracing::warn!(%error, "a task ends without its result");
        // There is always room for that.
        kept = changed(&call.server, &task.id, failure(&error)).await;
    }
    if let Err(error) = kept {
        incident::report("keeping the result of a task", &error);
    }
}

/// Runs a handler; a panic is an internal error like any other.
async fn caught(mut handler: BoxFuture<Outcome>) -> Outcome {
    std::future::poll_fn(move |cx| {
        let poll = AssertUnwindSafe(|| Pin::as_mut(&mut handler).poll(cx));
        match std::panic::catch_unwind(poll) {
            Ok(polled) => polled,
            Err(panic) => Poll::Ready(Err(incident::panicked(&*panic))),
        }
    })
    .await
}

/// How a task ends with an outcome.
fn end(call: &Call, outcome: Outcome) -> TaskChange {
    let body = match outcome {
        Ok(body) => body.into_bytes(),
        Err(error) => return failure(&error),
    };
    let (status, message) = match call.caller.rules.tasks {
        TaskDesign::Asked if call.is_tool_error() => (
            TaskStatus::Failed,
            Some("the tool reports an error; its result has the details".to_owned()),
        ),
        _ => (TaskStatus::Completed, None),
    };
    TaskChange::End {
        status,
        message,
        outcome: TaskOutcome::Result(reply::result_of(call, &body)),
    }
}

fn failure(error: &RpcError) -> TaskChange {
    TaskChange::End {
        status: TaskStatus::Failed,
        message: Some(error.message.clone()),
        outcome: TaskOutcome::Error(shape::error(error)),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic while a table is locked leaves a valid table behind.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
