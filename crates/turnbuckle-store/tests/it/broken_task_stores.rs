//! The suite of tasks notices stores that break its rules about runners and joined updates.

use std::{
    panic::resume_unwind,
    sync::{Arc, Mutex},
    thread,
};

use turnbuckle_store::{
    BoxFuture, InstanceId, NewTask, Store, StoreError, StoreLimits, TaskId, TaskRecord, TaskStore,
    TaskUpdate, conformance,
};

/// What a store of tasks does wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Defect {
    None,
    ForgetsRunners,
    FindsNoTasksOfRunners,
    FindsEndedTasks,
    FindsTasksOfTheSlot,
    AppliesOnlyTheFirstOfSeveral,
    AppliesSeveralOneByOne,
}

const DEFECTS: [Defect; 6] = [
    Defect::ForgetsRunners,
    Defect::FindsNoTasksOfRunners,
    Defect::FindsEndedTasks,
    Defect::FindsTasksOfTheSlot,
    Defect::AppliesOnlyTheFirstOfSeveral,
    Defect::AppliesSeveralOneByOne,
];

struct BrokenTasks {
    inner: Arc<dyn TaskStore>,
    defect: Defect,
    created: Mutex<Vec<(InstanceId, TaskId)>>,
}

impl TaskStore for BrokenTasks {
    fn create(&self, mut task: NewTask) -> BoxFuture<'_, Result<Arc<TaskRecord>, StoreError>> {
        let runner = task.runner;
        if self.defect == Defect::ForgetsRunners {
            task.runner = None;
        }
        Box::pin(async move {
            let record = self.inner.create(task).await?;
            if let Some(runner) = runner {
                self.created.lock().unwrap().push((runner, record.id));
            }
            Ok(record)
        })
    }

    fn load<'a>(
        &'a self,
        id: &'a TaskId,
    ) -> BoxFuture<'a, Result<Option<Arc<TaskRecord>>, StoreError>> {
        self.inner.load(id)
    }

    fn update<'a>(
        &'a self,
        id: &'a TaskId,
        update: TaskUpdate,
    ) -> BoxFuture<'a, Result<Option<Arc<TaskRecord>>, StoreError>> {
        Box::pin(async move {
            let TaskUpdate::Several(updates) = update else {
                return self.inner.update(id, update).await;
            };
            match self.defect {
                Defect::AppliesOnlyTheFirstOfSeveral => {
                    let first = updates.into_iter().take(1).collect();
                    self.inner.update(id, TaskUpdate::Several(first)).await
                }
                Defect::AppliesSeveralOneByOne => {
                    let mut last = None;
                    for update in updates {
                        last = self.inner.update(id, update).await?.or(last);
                    }
                    Ok(last)
                }
                _ => self.inner.update(id, TaskUpdate::Several(updates)).await,
            }
        })
    }

    fn list<'a>(
        &'a self,
        owner: &'a str,
        after: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Arc<TaskRecord>>, StoreError>> {
        self.inner.list(owner, after, limit)
    }

    fn of_runner<'a>(
        &'a self,
        runner: &'a InstanceId,
    ) -> BoxFuture<'a, Result<Vec<TaskId>, StoreError>> {
        let created = self.created.lock().unwrap().clone().into_iter();
        Box::pin(async move {
            Ok(match self.defect {
                Defect::FindsNoTasksOfRunners => Vec::new(),
                Defect::FindsEndedTasks => {
                    let of_runner = created.filter(|(it, _)| it == runner);
                    of_runner.map(|(_, id)| id).collect()
                }
                Defect::FindsTasksOfTheSlot => {
                    let of_slot = created.filter(|(it, _)| it.slot == runner.slot);
                    of_slot.map(|(_, id)| id).collect()
                }
                _ => self.inner.of_runner(runner).await?,
            })
        })
    }

    fn sweep(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.sweep()
    }
}

/// Runs the suite on a store with a defect, in a thread of its own because it panics.
fn passes(defect: Defect) -> thread::Result<()> {
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without drivers starts");
        runtime.block_on(conformance::tasks(async |limits: StoreLimits| {
            let mut store = Store::memory_with(limits);
            store.tasks = Arc::new(BrokenTasks {
                inner: store.tasks,
                defect,
                created: Mutex::default(),
            });
            store
        }));
    };
    thread::spawn(run).join()
}

#[test]
fn a_store_without_defects_passes() {
    if let Err(panic) = passes(Defect::None) {
        resume_unwind(panic);
    }
}

#[test]
fn each_defect_is_noticed() {
    for defect in DEFECTS {
        assert!(passes(defect).is_err(), "{defect:?}");
    }
}
