//! Tools for repositories: index and search.

mod index;
mod search;
mod state;

use std::sync::Arc;

use serde_json::Value;
use turnbuckle_server::{TaskSupport, Tool};

pub(super) use self::state::{CurrentIndex, IndexDetails};
use super::tool;
use crate::{ContextError, Database, app_state::AppState, storage::operations};

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
    database: Arc<Database>,
    id: String,
    is_over: bool,
}

impl OperationGuard {
    pub(super) fn new(database: &Arc<Database>, kind: &str) -> Result<Self, ContextError> {
        Ok(Self {
            id: operations::start(database, kind)?,
            database: database.clone(),
            is_over: false,
        })
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn finish(mut self, result: &Value) -> Result<(), ContextError> {
        operations::finish(&self.database, &self.id, result)?;
        self.is_over = true;
        Ok(())
    }

    pub(super) fn fail(mut self, why: &str) {
        // The original error matters more than a failure to store it.
        let _ = operations::fail(&self.database, &self.id, why);
        self.is_over = true;
    }
}

impl Drop for OperationGuard {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let (database, id) = (self.database.clone(), self.id.clone());
        let note = move || {
            let _ = operations::fail(&database, &id, "cancelled");
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
    use crate::storage::operations::OperationStatus;

    #[test]
    fn a_dropped_operation_is_recorded_as_cancelled() {
        let folder = tempfile::tempdir().unwrap();
        let database = Arc::new(Database::open(folder.path().join("a.db")).unwrap());
        let guard = OperationGuard::new(&database, "index_repository").unwrap();
        let id = guard.id().to_owned();
        let find = || operations::find(&database, &id).unwrap().unwrap();
        assert_eq!(find().status, OperationStatus::Running);
        drop(guard);
        assert_eq!(find().status, OperationStatus::Failed);
        assert_eq!(find().error.as_deref(), Some("cancelled"));
    }

    #[test]
    fn a_finished_operation_stays_completed() {
        let folder = tempfile::tempdir().unwrap();
        let database = Arc::new(Database::open(folder.path().join("a.db")).unwrap());
        let guard = OperationGuard::new(&database, "index_repository").unwrap();
        let id = guard.id().to_owned();
        guard.finish(&Value::Null).unwrap();
        let found = operations::find(&database, &id).unwrap().unwrap();
        assert_eq!(found.status, OperationStatus::Completed);
    }
}
