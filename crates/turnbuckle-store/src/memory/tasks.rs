//! Tasks in the memory of this process.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex},
};

use tokio::time::Instant;

use super::{deadline, lock, ready};
use crate::{
    BoxFuture, InstanceId, NewTask, StoreError, TaskId, TaskLimits, TaskOutcome, TaskRecord,
    TaskStore, TaskUpdate,
};

/// A [`TaskStore`] in the memory of this process.
pub struct MemoryTaskStore {
    limits: TaskLimits,
    // One lock for all: a task runs for seconds, and this is held for less than a microsecond.
    table: Mutex<TaskTable>,
}

#[derive(Default)]
struct TaskTable {
    tasks: HashMap<TaskId, TaskEntry>,
    owners: HashMap<Arc<str>, OwnerTasks>,
    deadlines: BTreeSet<(Instant, TaskId)>,
    /// The tasks that have not ended, by their runner.
    runners: BTreeSet<(InstanceId, TaskId)>,
    next_number: u64,
    bytes: usize,
}

struct TaskEntry {
    record: Arc<TaskRecord>,
    expires: Instant,
}

/// The tasks of one owner.
#[derive(Default)]
struct OwnerTasks {
    /// In order of creation.
    tasks: BTreeMap<u64, TaskId>,
    bytes: usize,
    /// Set if callers that cannot be distinguished share this owner.
    shared: bool,
}

impl MemoryTaskStore {
    /// Creates an empty store with the given limits.
    pub fn new(limits: TaskLimits) -> Self {
        Self {
            limits,
            table: Mutex::default(),
        }
    }

    fn create_now(&self, task: NewTask) -> Result<Arc<TaskRecord>, StoreError> {
        let id = TaskId::generate()?;
        let now = Instant::now();
        let table = &mut *lock(&self.table);
        table.remove_expired(now);
        let limit = self.limits.max_tasks_per_owner;
        let owner_tasks =
            |table: &TaskTable| table.owners.get(&task.owner).map_or(0, |it| it.tasks.len());
        if !task.shared && owner_tasks(table) >= limit && !table.make_room(&task.owner) {
            let what = "tasks";
            return Err(StoreError::TooMany { what, limit });
        }
        let is_full = table.tasks.len() >= self.limits.max_tasks;
        if is_full && !table.make_room(&task.owner) && !table.make_room_from_shared() {
            return Err(StoreError::Full { what: "task" });
        }
        let expires = deadline(now, task.ttl);
        let number = table.next_number;
        table.next_number += 1;
        table.deadlines.insert((expires, id));
        let owner_tasks = table.owners.entry(task.owner.clone()).or_default();
        owner_tasks.shared = task.shared;
        owner_tasks.tasks.insert(number, id);
        let runner = task.runner.map(|runner| (runner, id));
        table.runners.extend(runner);
        let record = Arc::new(TaskRecord::new(id, number, task));
        let entry = TaskEntry {
            record: record.clone(),
            expires,
        };
        table.tasks.insert(id, entry);
        Ok(record)
    }

    fn update_now(
        &self,
        id: &TaskId,
        update: TaskUpdate,
    ) -> Result<Option<Arc<TaskRecord>>, StoreError> {
        let table = &mut *lock(&self.table);
        table.remove_expired(Instant::now());
        let Some(entry) = table.tasks.get_mut(id) else {
            return Ok(None);
        };
        let is_error = matches!(
            &update,
            TaskUpdate::End {
                outcome: TaskOutcome::Error(_),
                ..
            }
        );
        let mut record = TaskRecord::clone(&entry.record);
        if !record.apply(update) {
            return Ok(None);
        }
        let (before, after) = (entry.record.content_bytes(), record.content_bytes());
        let owner_tasks = table.owners.entry(record.owner.clone()).or_default();
        let (bytes, owner_bytes) = (
            table.bytes - before + after,
            owner_tasks.bytes - before + after,
        );
        let grows = after > before && !is_error;
        let limit = self.limits.max_task_bytes;
        if grows && after > limit {
            let what = "task";
            return Err(StoreError::TooLarge { what, limit });
        }
        let limit = self.limits.max_owner_bytes;
        if grows && !owner_tasks.shared && owner_bytes > limit {
            let what = "bytes in tasks";
            return Err(StoreError::TooMany { what, limit });
        }
        if grows && bytes > self.limits.max_total_bytes {
            let what = "task of this size";
            return Err(StoreError::Full { what });
        }
        (table.bytes, owner_tasks.bytes) = (bytes, owner_bytes);
        if let Some(runner) = record.runner.filter(|_| record.status.is_final()) {
            table.runners.remove(&(runner, *id));
        }
        entry.record = Arc::new(record);
        Ok(Some(entry.record.clone()))
    }

    fn page(&self, owner: &str, after: Option<u64>, limit: usize) -> Vec<Arc<TaskRecord>> {
        let table = &mut *lock(&self.table);
        table.remove_expired(Instant::now());
        let Some(owner_tasks) = table.owners.get(owner) else {
            return Vec::new();
        };
        let first = after.map_or(0, |after| after.saturating_add(1));
        let tasks = owner_tasks.tasks.range(first..).take(limit);
        tasks
            .filter_map(|(_, id)| Some(table.tasks.get(id)?.record.clone()))
            .collect()
    }
}

impl TaskTable {
    fn remove_expired(&mut self, now: Instant) {
        while let Some(&(expires, id)) = self.deadlines.first()
            && expires <= now
        {
            self.remove(&id);
        }
    }

    /// Removes the oldest finished task of an owner. Returns false if there is none.
    fn make_room(&mut self, owner: &str) -> bool {
        let Some(owner_tasks) = self.owners.get(owner) else {
            return false;
        };
        let is_final = |id: &&TaskId| {
            let entry = self.tasks.get(*id);
            entry.is_some_and(|entry| entry.record.status.is_final())
        };
        let finished = owner_tasks.tasks.values().find(is_final).copied();
        finished.is_some_and(|id| {
            self.remove(&id);
            true
        })
    }

    /// Removes the oldest finished task of a shared owner. Returns false if there is none.
    fn make_room_from_shared(&mut self) -> bool {
        let shared = self
            .owners
            .iter()
            .filter(|(_, owner_tasks)| owner_tasks.shared);
        let owners: Vec<_> = shared.map(|(owner, _)| owner.clone()).collect();
        owners.iter().any(|owner| self.make_room(owner))
    }

    fn remove(&mut self, id: &TaskId) {
        let Some(entry) = self.tasks.remove(id) else {
            return;
        };
        let bytes = entry.record.content_bytes();
        self.bytes -= bytes;
        self.deadlines.remove(&(entry.expires, *id));
        if let Some(runner) = entry.record.runner {
            self.runners.remove(&(runner, *id));
        }
        if let Some(owner_tasks) = self.owners.get_mut(&entry.record.owner) {
            owner_tasks.tasks.remove(&entry.record.number);
            owner_tasks.bytes -= bytes;
            if owner_tasks.tasks.is_empty() {
                self.owners.remove(&entry.record.owner);
            }
        }
    }
}

impl TaskStore for MemoryTaskStore {
    fn create(&self, task: NewTask) -> BoxFuture<'_, Result<Arc<TaskRecord>, StoreError>> {
        ready(move || self.create_now(task))
    }

    fn load<'a>(
        &'a self,
        id: &'a TaskId,
    ) -> BoxFuture<'a, Result<Option<Arc<TaskRecord>>, StoreError>> {
        ready(move || {
            let table = &mut *lock(&self.table);
            table.remove_expired(Instant::now());
            Ok(table.tasks.get(id).map(|entry| entry.record.clone()))
        })
    }

    fn update<'a>(
        &'a self,
        id: &'a TaskId,
        update: TaskUpdate,
    ) -> BoxFuture<'a, Result<Option<Arc<TaskRecord>>, StoreError>> {
        ready(move || self.update_now(id, update))
    }

    fn list<'a>(
        &'a self,
        owner: &'a str,
        after: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Arc<TaskRecord>>, StoreError>> {
        ready(move || Ok(self.page(owner, after, limit)))
    }

    fn of_runner<'a>(
        &'a self,
        runner: &'a InstanceId,
    ) -> BoxFuture<'a, Result<Vec<TaskId>, StoreError>> {
        ready(move || {
            let table = &mut *lock(&self.table);
            table.remove_expired(Instant::now());
            let of_runner = table.runners.iter().filter(|(it, _)| it == runner);
            Ok(of_runner.map(|(_, id)| *id).collect())
        })
    }

    fn sweep(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        ready(|| {
            lock(&self.table).remove_expired(Instant::now());
            Ok(())
        })
    }
}

impl std::fmt::Debug for MemoryTaskStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryTaskStore")
            .field("limits", &self.limits)
            .field("tasks", &lock(&self.table).tasks.len())
            .finish_non_exhaustive()
    }
}
