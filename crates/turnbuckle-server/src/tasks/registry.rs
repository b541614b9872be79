//! The tasks that run in this process.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard},
};

use tokio::sync::Notify;
use turnbuckle_store::{BusSubscription, ServerChange, Store, TaskId};

use super::{runner::RereadTimer, running::RunningTask};
use crate::{Server, sync::lock};

/// The tasks that run in this process, and one bus subscription for changes by other processes.
#[derive(Default)]
pub(crate) struct TaskRegistry {
    running: Mutex<RegistryState>,
    remaining: Notify,
}

#[derive(Default)]
struct RegistryState {
    tasks: HashMap<TaskId, Arc<RunningTask>>,
    /// True while a task listens to the bus.
    listening: bool,
}

impl TaskRegistry {
    /// Registers a task until the guard is dropped.
    pub(super) fn register(server: &Server, task: &Arc<RunningTask>) -> RegistrationGuard {
        let registry = server.running_tasks().clone();
        let mut running = registry.lock();
        running.tasks.insert(task.id, task.clone());
        if !std::mem::replace(&mut running.listening, true) {
            let store = server.store_ref().clone();
            let changes = store.bus.subscribe();
            tokio::spawn(listen(registry.clone(), store, changes));
        }
        drop(running);
        RegistrationGuard {
            registry,
            id: task.id,
        }
    }

    /// Finds a task that runs in this process.
    pub(super) fn find(&self, id: &TaskId) -> Option<Arc<RunningTask>> {
        self.lock().tasks.get(id).cloned()
    }

    /// Returns the running tasks of an owner.
    pub(super) fn owned_by(&self, owner: &str) -> Vec<TaskId> {
        let running = self.lock();
        let owned = running.tasks.values().filter(|task| task.owner() == owner);
        owned.map(|task| task.id).collect()
    }

    /// Returns the owners of running tasks.
    pub(crate) fn owners(&self) -> HashSet<Arc<str>> {
        let running = self.lock();
        running
            .tasks
            .values()
            .map(|task| task.owner_key())
            .collect()
    }

    /// Returns whether no task runs. Then the bus listener stops.
    fn is_idle(&self) -> bool {
        let mut running = self.lock();
        let idle = running.tasks.is_empty();
        running.listening = !idle;
        idle
    }

    fn all(&self) -> Vec<Arc<RunningTask>> {
        self.lock().tasks.values().cloned().collect()
    }

    /// Reads the records of all running tasks, because changes may have been lost.
    async fn read_again(&self, store: &Store) {
        for task in self.all() {
            if let Ok(Some(record)) = store.tasks.load(&task.id).await {
                task.apply(&record);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, RegistryState> {
        // A panic cannot leave the table in an invalid state.
        lock(&self.running)
    }
}

/// Applies changes by other processes, while any task runs here.
async fn listen(registry: Arc<TaskRegistry>, store: Store, mut changes: BusSubscription) {
    let mut reread = RereadTimer::new(&store);
    loop {
        tokio::select! {
            () = registry.remaining.notified() => {
                if registry.is_idle() {
                    return;
                }
            }
            () = reread.due() => registry.read_again(&store).await,
            change = changes.next() => match change {
                Ok((_, ServerChange::Task { task: record })) => {
                    if let Some(task) = registry.find(&record.id) {
                        task.apply(&record);
                    }
                }
                Ok(_) => {}
                Err(_) => registry.read_again(&store).await,
            },
        }
    }
}

/// Keeps a task registered.
pub(super) struct RegistrationGuard {
    registry: Arc<TaskRegistry>,
    id: TaskId,
}

impl Drop for RegistrationGuard {
    fn drop(&mut self) {
        self.registry.lock().tasks.remove(&self.id);
        self.registry.remaining.notify_one();
    }
}
