//! The handler of a task at work.

use std::{
    collections::HashMap,
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
    time::Duration,
};

use bytes::Bytes;
use tokio::time::Instant;
use tracing::Instrument as _;
use turnbuckle_protocol::{
    RpcError,
    types::{TaskStatus, tasks::legacy::RelatedTask},
};
use turnbuckle_store::{
    Change, StoreError, Subscription, TaskChange, TaskId, TaskOutcome, TaskRecord,
};

use super::{create, methods::changed, shape};
use crate::{
    Server,
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
}

/// The least time between two of these.
const QUIET: Duration = Duration::from_millis(100);

impl RunningTask {
    pub(crate) fn new(record: &TaskRecord) -> Arc<Self> {
        Arc::new(Self {
            id: record.id,
            owner: record.owner.clone(),
            ttl: record.ttl,
            related: shape::related(record),
            watchers: Mutex::default(),
            announced: Mutex::default(),
        })
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

/// The tasks whose handlers run in this process.
#[derive(Default)]
pub(crate) struct Registry(Mutex<HashMap<TaskId, Arc<RunningTask>>>);

impl Registry {
    /// Finds a task that runs here.
    pub(super) fn find(&self, id: &TaskId) -> Option<Arc<RunningTask>> {
        lock(&self.0).get(id).cloned()
    }

    /// The tasks of one owner that run here.
    pub(super) fn of(&self, owner: &str) -> Vec<TaskId> {
        let tasks = lock(&self.0);
        let owned = tasks.values().filter(|task| &*task.owner == owner);
        owned.map(|task| task.id).collect()
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
    let changes = call.server.store_ref().bus.subscribe();
    lock(&call.server.running_tasks().0).insert(task.id, task.clone());
    tokio::spawn(run(call, task, handler, changes).in_current_span());
}

async fn run(
    call: Arc<Call>,
    task: Arc<RunningTask>,
    handler: BoxFuture<Outcome>,
    mut changes: Subscription,
) {
    let server = call.server.clone();
    let _registered = Registered {
        server: &server,
        id: task.id,
    };
    let outcome = tokio::select! {
        biased;
        // Dropping the handler is how anything is cancelled.
        () = ended(&server, &task.id, &mut changes) => return,
        () = tokio::time::sleep(task.ttl) => return,
        outcome = caught(handler) => outcome,
    };
    let mut change = end(&call, outcome);
    loop {
        match changed(&server, &task.id, change).await {
            Ok(_) => return,
            Err(error @ (StoreError::TooLarge { .. } | StoreError::Full { .. })) => {
                let error = RpcError::internal(format!("the result cannot be kept: {error}"));
                change = failure(&error);
                tracing::warn!(%error, "a task ends without its result");
                // There is room for so little, or for nothing.
                if changed(&server, &task.id, change.clone()).await.is_ok() {
                    return;
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            Err(error) => {
                incident::report("keeping the result of a task", &error);
                return;
            }
        }
    }
}

/// Resolves when the task has ended by other hands.
async fn ended(server: &Server, id: &TaskId, changes: &mut Subscription) {
    loop {
        let record = match changes.next().await {
            Ok(Change::Task { task }) if task.id == *id => Some(task),
            Ok(_) => continue,
            Err(_) => match server.store_ref().tasks.load(id).await {
                Ok(Some(task)) => Some(task),
                Ok(None) => return,
                Err(_) => None,
            },
        };
        if record.is_some_and(|record| record.status.is_final()) {
            return;
        }
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
        Ok(body) => Bytes::from(body),
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

/// Keeps a task among those that run here.
struct Registered<'a> {
    server: &'a Server,
    id: TaskId,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        lock(&self.server.running_tasks().0).remove(&self.id);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic while a table is locked leaves a valid table behind.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
