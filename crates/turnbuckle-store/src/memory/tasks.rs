//! Tasks in this process.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use tokio::time::Instant;

use super::{at_once, deadline, lock};
use crate::{
    BoxFuture, NewTask, StoreError, TaskChange, TaskId, TaskLimits, TaskOutcome, TaskRecord, Tasks,
};

/// Tasks kept in this process.
pub struct MemoryTasks {
    limits: TaskLimits,
    // One lock for all: a task is work for seconds, and this is held for less than a microsecond.
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    tasks: HashMap<TaskId, Entry>,
    owners: HashMap<Arc<str>, Owned>,
    deadlines: BTreeSet<(Instant, TaskId)>,
    begun: u64,
    bytes: usize,
}

struct Entry {
    record: Arc<TaskRecord>,
    expires: Instant,
}

/// What one owner has.
#[derive(Default)]
struct Owned {
    /// In the order they began.
    tasks: BTreeMap<u64, TaskId>,
    bytes: usize,
    /// Whether callers that cannot be told apart share it.
    shared: bool,
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
        let limit = self.limits.max_tasks_per_owner;
        let owned = |kept: &Kept| kept.owners.get(&task.owner).map_or(0, |it| it.tasks.len());
        if !task.shared && owned(kept) >= limit && !kept.make_room(&task.owner) {
            let what = "tasks";
            return Err(StoreError::TooMany { what, limit });
        }
        let is_full = kept.tasks.len() >= self.limits.max_tasks;
        if is_full && !kept.make_room(&task.owner) && !kept.make_room_of_shared() {
            return Err(StoreError::Full { what: "task" });
        }
        let expires = deadline(now, task.ttl);
        let number = kept.begun;
        kept.begun += 1;
        kept.deadlines.insert((expires, id));
        let owned = kept.owners.entry(task.owner.clone()).or_default();
        owned.shared = task.shared;
        owned.tasks.insert(number, id);
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
        let is_error = matches!(
            &change,
            TaskChange::End {
                outcome: TaskOutcome::Error(_),
                ..
            }
        );
        let mut record = TaskRecord::clone(&entry.record);
        if !record.apply(change) {
            return Ok(None);
        }
        let (before, after) = (entry.record.weight(), record.weight());
        let owned = kept.owners.entry(record.owner.clone()).or_default();
        let (bytes, theirs) = (kept.bytes - before + after, owned.bytes - before + after);
        let grows = after > before && !is_error;
        let limit = self.limits.max_task_bytes;
        if grows && after > limit {
            let what = "task";
            return Err(StoreError::TooLarge { what, limit });
        }
        let limit = self.limits.max_owner_bytes;
        if grows && !owned.shared && theirs > limit {
            let what = "bytes in tasks";
            return Err(StoreError::TooMany { what, limit });
        }
        if grows && bytes > self.limits.max_total_bytes {
            let what = "task of this size";
            return Err(StoreError::Full { what });
        }
        (kept.bytes, owned.bytes) = (bytes, theirs);
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
        let tasks = owned.tasks.range(first..).take(limit);
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

    /// Forgets the oldest finished task of an owner; says whether there was one.
    fn make_room(&mut self, owner: &str) -> bool {
        let Some(owned) = self.owners.get(owner) else {
            return false;
        };
        let is_final = |id: &&TaskId| {
            let entry = self.tasks.get(*id);
            entry.is_some_and(|entry| entry.record.status.is_final())
        };
        let finished = owned.tasks.values().find(is_final).copied();
        finished.is_some_and(|id| {
            self.forget(&id);
            true
        })
    }

    /// Forgets the oldest finished task of callers that nobody can tell apart; says whether there was one.
    fn make_room_of_shared(&mut self) -> bool {
        let shared = self.owners.iter().filter(|(_, owned)| owned.shared);
        let owners: Vec<_> = shared.map(|(owner, _)| owner.clone()).collect();
        owners.iter().any(|owner| self.make_room(owner))
    }

    fn forget(&mut self, id: &TaskId) {
        let Some(entry) = self.tasks.remove(id) else {
            return;
        };
        let bytes = entry.record.weight();
        self.bytes -= bytes;
        self.deadlines.remove(&(entry.expires, *id));
        if let Some(owned) = self.owners.get_mut(&entry.record.owner) {
            owned.tasks.remove(&entry.record.number);
            owned.bytes -= bytes;
            if owned.tasks.is_empty() {
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
