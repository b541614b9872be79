//! Tasks in Redis.

use std::sync::Arc;

use turnbuckle_store::{
    BoxFuture, InstanceId, NewTask, StoreError, TaskId, TaskOutcome, TaskRecord, TaskStore,
    TaskUpdate,
};

use crate::{
    encoding::{decode_task, encode_task},
    index::millis,
    join::join_all,
    keys,
    script::Script,
    sealing::UnsealError,
    shared::Shared,
};

static RESERVE: Script = Script::new(include_str!("scripts/task_reserve.lua"));
static COUNT: Script = Script::new(include_str!("scripts/task_count.lua"));
static UPDATE: Script = Script::new(include_str!("scripts/task_update.lua"));

/// A string for each task, and an index in one hash slot for limits, owners and runners.
///
/// The string begins with `1|number of changes|`, which a script reads, and has the sealed record behind it.
pub(crate) struct RedisTaskStore {
    shared: Arc<Shared>,
    /// Expiry times, entries, totals, and finished tasks of shared owners.
    index: [String; 4],
    /// The prefixes of the tasks of an owner, of its finished tasks, and of the tasks of a runner.
    prefixes: [String; 3],
}

impl RedisTaskStore {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            index: shared.keys.task_index(),
            prefixes: shared.keys.task_lists(),
            shared,
        }
    }

    async fn create_now(&self, task: NewTask) -> Result<Arc<TaskRecord>, StoreError> {
        let limits = &self.shared.limits.tasks;
        let id = TaskId::generate()?;
        let ttl = millis(task.ttl);
        let text = id.to_string();
        let number = match &*self.reserve(&text, &task).await? {
            "many" => {
                let limit = limits.max_tasks_per_owner;
                return Err(StoreError::TooMany {
                    what: "tasks",
                    limit,
                });
            }
            number => number
                .parse()
                .map_err(|_| StoreError::Full { what: "task" })?,
        };
        let record = TaskRecord::new(id, number, task);
        let key = self.shared.keys.task(&text);
        let mut set = redis::cmd("SET");
        set.arg(&key).arg(self.encode(&record, &key));
        set.arg("PX").arg(ttl);
        self.shared.connection.run::<()>(&set).await?;
        Ok(Arc::new(record))
    }

    /// Counts a new task, and returns its number or the name of a limit.
    async fn reserve(&self, id: &str, task: &NewTask) -> Result<String, StoreError> {
        let limits = &self.shared.limits.tasks;
        let owner = keys::hash(&*task.owner);
        let runner = task.runner.map(|runner| runner.to_string());
        let runner = runner.unwrap_or_default();
        let [tasks, finished, runners] = &self.prefixes;
        let arguments = [
            id.into(),
            (&owner).into(),
            usize::from(task.shared).into(),
            millis(task.ttl).into(),
            (&runner).into(),
            limits.max_tasks.into(),
            limits.max_tasks_per_owner.into(),
            tasks.into(),
            finished.into(),
            runners.into(),
        ];
        let keys = self.index.each_ref().map(String::as_str);
        let connection = &self.shared.connection;
        let mut result: Vec<String> = connection.script(&RESERVE, &keys, &arguments).await?;
        let removed = result.split_off(1.min(result.len()));
        for id in removed {
            let mut delete = redis::cmd("DEL");
            delete.arg(self.shared.keys.task(&id));
            connection.run::<()>(&delete).await?;
        }
        Ok(result.pop().unwrap_or_default())
    }

    async fn load_now(&self, id: &TaskId) -> Result<Option<TaskRecord>, StoreError> {
        let key = self.shared.keys.task(id);
        let mut get = redis::cmd("GET");
        get.arg(&key);
        let value: Option<Vec<u8>> = self.shared.connection.run(&get).await?;
        value.map(|value| self.decode(&value, &key)).transpose()
    }

    async fn update_now(
        &self,
        id: &TaskId,
        update: TaskUpdate,
    ) -> Result<Option<Arc<TaskRecord>>, StoreError> {
        let key = self.shared.keys.task(id);
        let is_error = matches!(
            &update,
            TaskUpdate::End {
                outcome: TaskOutcome::Error(_),
                ..
            }
        );
        loop {
            let Some(before) = self.load_now(id).await? else {
                return Ok(None);
            };
            let mut record = before.clone();
            if !record.apply(update.clone()) {
                return Ok(None);
            }
            self.count(&before, &record, is_error).await?;
            let (changes, value) = (before.changes.to_string(), self.encode(&record, &key));
            let arguments = [(&changes).into(), (&value).into()];
            let connection = &self.shared.connection;
            let updated: i64 = connection.script(&UPDATE, &[&key], &arguments).await?;
            match updated {
                1 => return Ok(Some(Arc::new(record))),
                // Another caller was faster.
                0 => {}
                _ => return Ok(None),
            }
        }
    }

    /// Counts the change of a task, if its size or whether it has ended has changed.
    async fn count(
        &self,
        before: &TaskRecord,
        after: &TaskRecord,
        is_error: bool,
    ) -> Result<(), StoreError> {
        let limits = &self.shared.limits.tasks;
        let (bytes, has_ended) = (after.content_bytes(), after.status.is_final());
        let grows = bytes > before.content_bytes() && !is_error;
        let limit = limits.max_task_bytes;
        if grows && bytes > limit {
            let what = "task";
            return Err(StoreError::TooLarge { what, limit });
        }
        if bytes == before.content_bytes() && !has_ended {
            return Ok(());
        }
        let limit = |limit: usize| if is_error { usize::MAX } else { limit };
        let [_, finished, runners] = &self.prefixes;
        let id = after.id.to_string();
        let arguments = [
            (&id).into(),
            bytes.into(),
            usize::from(has_ended).into(),
            limit(limits.max_owner_bytes).into(),
            limit(limits.max_total_bytes).into(),
            finished.into(),
            runners.into(),
        ];
        let keys = [&*self.index[1], &*self.index[2], &*self.index[3]];
        let connection = &self.shared.connection;
        let exceeded: i64 = connection.script(&COUNT, &keys, &arguments).await?;
        match exceeded {
            1 => Err(StoreError::TooMany {
                what: "bytes in tasks",
                limit: limits.max_owner_bytes,
            }),
            2 => Err(StoreError::Full {
                what: "task of this size",
            }),
            _ => Ok(()),
        }
    }

    async fn page(
        &self,
        owner: &str,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Arc<TaskRecord>>, StoreError> {
        let key = format!("{}{}", self.prefixes[0], keys::hash(owner));
        let first = after.map_or_else(|| "-inf".to_owned(), |after| format!("({after}"));
        let mut range = redis::cmd("ZRANGE");
        range.arg(key).arg(first).arg("+inf");
        range.arg("BYSCORE").arg("LIMIT").arg(0).arg(limit);
        let ids: Vec<String> = self.shared.connection.run(&range).await?;
        let ids: Vec<TaskId> = ids.iter().filter_map(|id| id.parse().ok()).collect();
        let records = join_all(ids.iter().map(|id| self.load_now(id))).await;
        let records: Result<Vec<_>, _> = records.into_iter().collect();
        Ok(records?.into_iter().flatten().map(Arc::new).collect())
    }

    async fn unfinished_of(&self, runner: &InstanceId) -> Result<Vec<TaskId>, StoreError> {
        let mut members = redis::cmd("SMEMBERS");
        members.arg(format!("{}{runner}", self.prefixes[2]));
        let ids: Vec<String> = self.shared.connection.run(&members).await?;
        let ids: Vec<TaskId> = ids.iter().filter_map(|id| id.parse().ok()).collect();
        let records = join_all(ids.iter().map(|id| self.load_now(id))).await;
        let mut unfinished = Vec::new();
        for record in records {
            unfinished.extend(record?.filter(|record| !record.status.is_final()));
        }
        Ok(unfinished.into_iter().map(|record| record.id).collect())
    }

    fn encode(&self, record: &TaskRecord, key: &str) -> Vec<u8> {
        let head = format!("1|{}|", record.changes);
        let sealed = self.shared.sealer.seal(&encode_task(record), key);
        [head.as_bytes(), &sealed].concat()
    }

    fn decode(&self, value: &[u8], key: &str) -> Result<TaskRecord, StoreError> {
        let sealed = value.splitn(3, |byte| *byte == b'|').nth(2);
        let sealed = sealed.ok_or_else(|| StoreError::unavailable(UnsealError))?;
        let plain = self.shared.open(sealed, key)?;
        decode_task(&plain).map_err(StoreError::unavailable)
    }
}

impl TaskStore for RedisTaskStore {
    fn create(&self, task: NewTask) -> BoxFuture<'_, Result<Arc<TaskRecord>, StoreError>> {
        Box::pin(self.create_now(task))
    }

    fn load<'a>(
        &'a self,
        id: &'a TaskId,
    ) -> BoxFuture<'a, Result<Option<Arc<TaskRecord>>, StoreError>> {
        Box::pin(async move { Ok(self.load_now(id).await?.map(Arc::new)) })
    }

    fn update<'a>(
        &'a self,
        id: &'a TaskId,
        update: TaskUpdate,
    ) -> BoxFuture<'a, Result<Option<Arc<TaskRecord>>, StoreError>> {
        Box::pin(self.update_now(id, update))
    }

    fn list<'a>(
        &'a self,
        owner: &'a str,
        after: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Arc<TaskRecord>>, StoreError>> {
        Box::pin(self.page(owner, after, limit))
    }

    fn of_runner<'a>(
        &'a self,
        runner: &'a InstanceId,
    ) -> BoxFuture<'a, Result<Vec<TaskId>, StoreError>> {
        Box::pin(self.unfinished_of(runner))
    }

    fn sweep(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        // The next new task removes expired ones from the index; the tasks themselves expire.
        Box::pin(async { Ok(()) })
    }
}
