//! The instance that runs a task, and the end of the tasks of instances that have stopped.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep, sleep_until};
use turnbuckle_protocol::{RpcError, types::TaskStatus};
use turnbuckle_store::{
    InstanceId, ServerChange, Store, StoreError, TaskId, TaskOutcome, TaskRecord, TaskUpdate,
};

use super::{TaskRegistry, wire_format};
use crate::{Server, server::instance::in_time};

/// Time after which a record of a shared store is read again by those that wait for it, in case a change was lost.
const REREAD_INTERVAL: Duration = Duration::from_secs(10);

/// Returns the instance that runs the new tasks of a server, or `None` if the store is not shared.
pub(super) async fn runner(server: &Server) -> Result<Option<InstanceId>, StoreError> {
    match server.instance() {
        Some(instance) => Box::pin(instance.join()).await.map(Some),
        None => Ok(None),
    }
}

/// Tells when records are to be read again. Never if the store is not shared: nothing is lost there.
pub(super) struct RereadTimer {
    next: Option<Instant>,
}

impl RereadTimer {
    pub(super) fn new(store: &Store) -> Self {
        Self {
            next: store.is_shared().then(|| Instant::now() + REREAD_INTERVAL),
        }
    }

    /// Waits until records are due. Cancel-safe.
    pub(super) async fn due(&mut self) {
        let Some(next) = &mut self.next else {
            return std::future::pending().await;
        };
        sleep_until(*next).await;
        *next = Instant::now() + REREAD_INTERVAL;
    }
}

/// The tasks that a subscriber of a shared store watches, which are read again in case a change was lost.
pub(crate) struct WatchedTasks {
    due: Pin<Box<Sleep>>,
    /// The tasks that have not ended, with the number of updates of the newest record that the subscriber knows.
    notified: HashMap<TaskId, u64>,
}

impl WatchedTasks {
    /// Returns `None` if the store is not shared. The subscriber is only notified of later changes of these records.
    pub(crate) fn new(store: &Store, records: &[Arc<TaskRecord>]) -> Option<Self> {
        store.is_shared().then(|| {
            let running = records.iter().filter(|task| !task.status.is_final());
            Self {
                due: Box::pin(sleep(REREAD_INTERVAL)),
                notified: running.map(|task| (task.id, task.changes)).collect(),
            }
        })
    }

    /// Returns the ids of the tasks that have not ended.
    pub(crate) fn ids(&self) -> Vec<String> {
        self.notified.keys().map(TaskId::to_string).collect()
    }

    /// Polls until the tasks are due to be read again.
    pub(crate) fn poll_due(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.notified.is_empty() {
            return Poll::Pending;
        }
        ready!(self.due.as_mut().poll(cx));
        self.due.as_mut().reset(Instant::now() + REREAD_INTERVAL);
        Poll::Ready(())
    }

    /// Records that the subscriber is notified of a record from the bus, which may not be of a watched task.
    pub(crate) fn notified(&mut self, task: &TaskRecord) {
        self.is_news(task);
    }

    /// Returns whether the subscriber has not been notified of this record of a watched task or a newer one, and records it.
    pub(crate) fn is_news(&mut self, task: &TaskRecord) -> bool {
        let Some(changes) = self.notified.get_mut(&task.id) else {
            return false;
        };
        let is_news = *changes < task.changes;
        *changes = task.changes.max(*changes);
        if task.status.is_final() {
            self.notified.remove(&task.id);
        }
        is_news
    }
}

/// Ends the tasks of an instance that has stopped.
pub(crate) async fn end_tasks_of(
    store: &Store,
    running: &TaskRegistry,
    runner: &InstanceId,
) -> Result<(), StoreError> {
    for id in store.tasks.of_runner(runner).await? {
        end_orphan(store, running, &id).await?;
    }
    Ok(())
}

/// Ends a task if its instance has stopped. Returns the record of a task that this call has ended.
pub(super) async fn check_runner(
    server: &Server,
    record: &TaskRecord,
) -> Result<Option<Arc<TaskRecord>>, StoreError> {
    let store = server.store_ref();
    let Some(runner) = record.runner.filter(|_| !record.status.is_final()) else {
        return Ok(None);
    };
    if in_time(store.instances.is_alive(&runner)).await? {
        return Ok(None);
    }
    end_orphan(store, server.running_tasks(), &record.id).await
}

async fn end_orphan(
    store: &Store,
    running: &TaskRegistry,
    id: &TaskId,
) -> Result<Option<Arc<TaskRecord>>, StoreError> {
    let error = RpcError::internal("the instance that ran this task has stopped");
    let end = TaskUpdate::End {
        status: TaskStatus::Failed,
        message: Some(error.message.clone()),
        outcome: TaskOutcome::Error(wire_format::error(&error)),
    };
    let record = store.tasks.update(id, end).await?;
    if let Some(task) = &record {
        if let Some(running) = running.find(id) {
            running.apply(task);
        }
        let task = task.clone();
        store.bus.publish(ServerChange::Task { task });
    }
    Ok(record)
}
