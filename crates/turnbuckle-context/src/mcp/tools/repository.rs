//! Tools for repositories: index and search.

mod index;
mod search;
mod state;

use std::sync::Arc;

use serde_json::Value;
use turnbuckle_server::{TaskSupport, Tool};

pub(super) use self::state::{CurrentIndex, IndexDetails};
use super::tool;
use crate::{
    ContextError,
    app_state::AppState,
    memory_store::{MemoryStore, OperationState, Partition, block_on},
};

pub(super) fn tools(state: &AppState) -> Vec<Tool> {
    vec![
        tool(state, "index_repository", "Index repository", index::index)
            .description("Index a folder for repository_search. Unchanged files are skipped.")
            .destructive(false)
            .idempotent()
            .task(TaskSupport::Optional),
        tool(
            state,
            "repository_search",
            "Search repository",
            search::search,
        )
        .description("Find code and text in a repository by words, names or a question.")
        .read_only(),
    ]
}

/// A running operation. If dropped before `finish`, it is recorded as cancelled.
pub(super) struct OperationGuard {
    memory: Arc<dyn MemoryStore>,
    partition: Partition,
    id: String,
    is_over: bool,
}

impl OperationGuard {
    pub(super) async fn new(
        memory: &Arc<dyn MemoryStore>,
        partition: Partition,
        kind: &str,
    ) -> Result<Self, ContextError> {
        let id = memory.record_operation(&partition, kind, OperationState::Running);
        Ok(Self {
            id: id.await?,
            memory: memory.clone(),
            partition,
            is_over: false,
        })
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) async fn finish(mut self, result: &Value) -> Result<(), ContextError> {
        self.update(OperationState::Completed(result)).await?;
        self.is_over = true;
        Ok(())
    }

    pub(super) async fn fail(mut self, why: &str) {
        // The original error matters more than a failure to store it.
        let _ = self.update(OperationState::Failed(why)).await;
        self.is_over = true;
    }

    async fn update(&self, state: OperationState<'_>) -> Result<(), ContextError> {
        let updated = self
            .memory
            .update_operation(&self.partition, &self.id, state);
        Ok(updated.await?)
    }
}

impl Drop for OperationGuard {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let (memory, partition, id) =
            (self.memory.clone(), self.partition.clone(), self.id.clone());
        let note = move || {
            let cancelled = OperationState::Failed("cancelled");
            let _ = block_on(memory.update_operation(&partition, &id, cancelled));
        };
        // A cancelled call is dropped on an async thread, which must not wait for the disk.
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(note)),
            Err(_) => note(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        DataDir, Owner,
        memory_store::{OperationRecord, OperationStatus, SqliteMemoryStore},
    };

    /// An operation in a data directory.
    struct TestOperation {
        memory: Arc<dyn MemoryStore>,
        owner: Owner,
        guard: OperationGuard,
        _folder: tempfile::TempDir,
    }

    fn operation() -> TestOperation {
        let folder = tempfile::tempdir().unwrap();
        let data_dir = Arc::new(DataDir::new(folder.path()));
        let memory: Arc<dyn MemoryStore> = Arc::new(SqliteMemoryStore::new(data_dir));
        let owner = Owner::for_user("ada");
        let guard = OperationGuard::new(&memory, Partition::shared(&owner), "index_repository");
        TestOperation {
            guard: block_on(guard).unwrap(),
            memory,
            owner,
            _folder: folder,
        }
    }

    fn find(memory: &Arc<dyn MemoryStore>, owner: &Owner, id: &str) -> OperationRecord {
        block_on(memory.find_operation(owner, id)).unwrap().unwrap()
    }

    #[test]
    fn a_dropped_operation_is_recorded_as_cancelled() {
        let TestOperation {
            memory,
            owner,
            guard,
            _folder,
        } = operation();
        let id = guard.id().to_owned();
        assert_eq!(find(&memory, &owner, &id).status, OperationStatus::Running);
        drop(guard);
        let found = find(&memory, &owner, &id);
        assert_eq!(found.status, OperationStatus::Failed);
        assert_eq!(found.error.as_deref(), Some("cancelled"));
    }

    #[test]
    fn a_finished_operation_stays_completed() {
        let TestOperation {
            memory,
            owner,
            guard,
            _folder,
        } = operation();
        let id = guard.id().to_owned();
        block_on(guard.finish(&Value::Null)).unwrap();
        let found = find(&memory, &owner, &id);
        assert_eq!(found.status, OperationStatus::Completed);
    }
}
