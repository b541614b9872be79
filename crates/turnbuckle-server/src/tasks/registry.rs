//! The tasks whose handlers run in this process.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;
use turnbuckle_store::{Change, Store, Subscription, TaskId};

use super::running::RunningTask;
use crate::Server;

/// The tasks that run here, and one ear for all of them: what other processes do to them is told on the bus.
#[derive(Default)]
pub(crate) struct Registry {
    running: Mutex<Running>,
    left: Notify,
}

#[derive(Default)]
struct Running {
    tasks: HashMap<TaskId, Arc<RunningTask>>,
    /// Whether somebody listens to the bus.
    listening: bool,
}

impl Registry {
    /// Takes a task in until the guard is dropped.
    pub(super) fn enter(server: &Server, task: &Arc<RunningTask>) -> Registered {
        let registry = server.running_tasks().clone();
        let mut running = registry.lock();
        running.tasks.insert(task.id, task.clone());
        if !std::mem::replace(&mut running.listening, true) {
            let store = server.store_ref().clone();
            let changes = store.bus.subscribe();
            tokio::spawn(listen(registry.clone(), store, changes));
        }
        drop(running);
        Registered {
            registry,
            id: task.id,
        }
    }

    /// Finds a task that runs here.
    pub(super) fn find(&self, id: &TaskId) -> Option<Arc<RunningTask>> {
        self.lock().tasks.get(id).cloned()
    }

    /// The tasks of one owner that run here.
    pub(super) fn of(&self, owner: &str) -> Vec<TaskId> {
        let running = self.lock();
        let owned = running.tasks.values().filter(|task| task.owner() == owner);
        owned.map(|task| task.id).collect()
    }

    /// The owners of tasks that run here.
    pub(crate) fn owners(&self) -> HashSet<Arc<str>> {
        let running = self.lock();
        running
            .tasks
            .values()
            .map(|task| task.owner_key())
            .collect()
    }

    /// Says whether nothing runs; then nobody listens any more.
    fn is_idle(&self) -> bool {
        let mut running = self.lock();
        let idle = running.tasks.is_empty();
        running.listening = !idle;
        idle
    }

    fn all(&self) -> Vec<Arc<RunningTask>> {
        self.lock().tasks.values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Running> {
        // A panic while the table is locked leaves a valid table behind.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Passes on what happens to tasks by other hands, as long as any runs here.
async fn listen(registry: Arc<Registry>, store: Store, mut changes: Subscription) {
    loop {
        tokio::select! {
            () = registry.left.notified() => {
                if registry.is_idle() {
                    return;
                }
            }
            change = changes.next() => match change {
                Ok(Change::Task { task: record }) => {
                    if let Some(task) = registry.find(&record.id) {
                        task.note(&record);
                    }
                }
                Ok(_) => {}
                Err(_) => {
                    for task in registry.all() {
                        if let Ok(Some(record)) = store.tasks.load(&task.id).await {
                            task.note(&record);
                        }
                    }
                }
            },
        }
    }
}

/// Keeps a task among those that run here.
pub(super) struct Registered {
    registry: Arc<Registry>,
    id: TaskId,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.registry.lock().tasks.remove(&self.id);
        self.registry.left.notify_one();
    }
}
