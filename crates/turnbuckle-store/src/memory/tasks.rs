//! Tasks in this process.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use tokio::time::Instant;

use super::{at_once, deadline, lock};
use crate::{BoxFuture, NewTask, StoreError, TaskChange, TaskId, TaskLimits, TaskRecord, Tasks};

/// Tasks kept in this process.
pub struct MemoryTasks {
    limits: TaskLimits,
    // One lock for all: a task is work for seconds, and this is held for less than a microsecond.
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    tasks: HashMap<TaskId, Entry>,
    /// The tasks of each owner, in the order they began.
    owners: HashMap<Arc<str>, BTreeMap<u64, TaskId>>,
    deadlines: BTreeSet<(Instant, TaskId)>,
    begun: u64,
    bytes: usize,
}

struct Entry {
    record: Arc<TaskRecord>,
    expires: Instant,
}

impl MemoryTasks {
    /// Keeps tasks within `limits`.
    pub fn new(limits: TaskLimits) -> Self {
        Self {
            limits,
            kept: Mutex::default(),
        }
    }

    fn begin(&self, task: NewTask) -> Result<Arc<TaskRecord>, StoreError> {
        let id = TaskId::generate()?;
        let now = Instant::now();
        let kept = &mut *lock(&self.kept);
        kept.forget_expired(now);
        if kept.tasks.len() >= self.limits.max_tasks {
            return Err(StoreError::Full { what: "task" });
        }
        let limit = self.limits.max_tasks_per_owner;
        let owned = kept.owners.get(&task.owner).map_or(0, BTreeMap::len);
        if !task.shared && owned >= limit {
            let what = "tasks";
            return Err(StoreError::TooMany { what, limit });
        }
        let expires = deadline(now, task.ttl);
        let number = kept.begun;
        kept.begun += 1;
        kept.deadlines.insert((expires, id));
        let owned = kept.owners.entry(task.owner.clone()).or_default();
        owned.insert(number, id);
        let record = Arc::new(TaskRecord::new(id, number, task));
        let entry = Entry {
            record: record.clone(),
            expires,
        };
        kept.tasks.insert(id, entry);
        Ok(record)
    }

    fn change(
        &self,
        id: &TaskId,
        change: TaskChange,
    ) -> Result<Option<Arc<TaskRecord>>, StoreError> {
        let kept = &mut *lock(&self.kept);
        kept.forget_expired(Instant::now());
        let Some(entry) = kept.tasks.get_mut(id) else {
            return Ok(None);
        };
        let mut record = TaskRecord::clone(&entry.record);
        if !record.apply(change) {
            return Ok(None);
        }
        let (before, after) = (entry.record.weight(), record.weight());
        let limit = self.limits.max_task_bytes;
        if after > limit {
            let what = "task";
            return Err(StoreError::TooLarge { what, limit });
        }
        let bytes = kept.bytes - before + after;
        if bytes > self.limits.max_total_bytes && after > before {
            let what = "task of this size";
            return Err(StoreError::Full { what });
        }
        kept.bytes = bytes;
        entry.record = Arc::new(record);
        Ok(Some(entry.record.clone()))
    }

    fn page(&self, owner: &str, after: Option<u64>, limit: usize) -> Vec<Arc<TaskRecord>> {
        let kept = &mut *lock(&self.kept);
        kept.forget_expired(Instant::now());
        let Some(owned) = kept.owners.get(owner) else {
            return Vec::new();
        };
        let first = after.map_or(0, |after| after.saturating_add(1));
        let tasks = owned.range(first..).take(limit);
        tasks
            .filter_map(|(_, id)| Some(kept.tasks.get(id)?.record.clone()))
            .collect()
    }
}

impl Kept {
    fn forget_expired(&mut self, now: Instant) {
        while let Some(&(expires, id)) = self.deadlines.first()
            && expires <= now
        {
            self.forget(&id);
        }
    }

    fn forget(&mut self, id: &TaskId) {
        let Some(entry) = self.tasks.remove(id) else {
            return;
        };
        self.bytes -= entry.record.weight();
        self.deadlines.remove(&(entry.expires, *id));
        if let Some(owned) = self.owners.get_mut(&entry.record.owner) {
            owned.remove(&entry.record.number);
            if owned.is_empty() {
                self.owners.remove(&entry.record.owner);
            }
        }
    }
}

impl Tasks for MemoryTasks {
    fn create(&self, task: NewTask) -> BoxFuture<'_, Result<Arc<TaskRecord>, StoreError>> {
        at_once(move || self.begin(task))
    }

    fn load<'a>(
        &'a self,
        id: &'a TaskId,
    ) -> BoxFuture<'a, Result<Option<Arc<TaskRecord>>, StoreError>> {
        at_once(move || {
            let kept = &mut *lock(&self.kept);
            kept.forget_expired(Instant::now());
            Ok(kept.tasks.get(id).map(|entry| entry.record.clone()))
        })
    }

    fn update<'a>(
        &'a self,
        id: &'a TaskId,
        change: TaskChange,
    ) -> BoxFuture<'a, Result<Option<Arc<TaskRecord>>, StoreError>> {
        at_once(move || self.change(id, change))
    }

    fn list<'a>(
        &'a self,
        owner: &'a str,
        after: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Arc<TaskRecord>>, StoreError>> {
        at_once(move || Ok(self.page(owner, after, limit)))
    }

    fn sweep(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        at_once(|| {
            lock(&self.kept).forget_expired(Instant::now());
            Ok(())
        })
    }
}

impl std::fmt::Debug for MemoryTasks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryTasks")
            .field("limits", &self.limits)
            .field("tasks", &lock(&self.kept).tasks.len())
            .finish_non_exhaustive()
    }
}
