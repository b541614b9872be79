//! Repositories: their index, and the search in it.

mod index;
mod search;
mod state;

use std::sync::Arc;

use serde_json::Value;
use turnbuckle_server::{TaskSupport, Tool};

pub(super) use self::state::IndexDetails;
use super::tool;
use crate::{ContextError, Database, app_state::AppState, storage::operations};

pub(super) fn tools(state: &AppState) -> Vec<Tool> {
    vec![
        tool(state, "index_repository", "Index repository", index::index)
            .description("Index a folder for repository_search. Only changed files are read again.")
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
        .read_only()
        .destructive(false)
        .idempotent(),
    ]
}

/// An operation that is being done. Dropped before it is over, it has failed.
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
        // The error that ended it matters more than one while writing it down.
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
        // A call that is cancelled is dropped where nobody may wait for the disk.
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
    fn an_operation_that_nobody_ends_was_cancelled() {
        let folder = tempfile::tempdir().unwrap();
        let database = Arc::new(Database::open(folder.path().join("a.db")).unwrap());
        let begun = OperationGuard::new(&database, "index_repository").unwrap();
        let id = begun.id().to_owned();
        let find = || operations::find(&database, &id).unwrap().unwrap();
        assert_eq!(find().status, OperationStatus::Running);
        drop(begun);
        assert_eq!(find().status, OperationStatus::Failed);
        assert_eq!(find().error.as_deref(), Some("cancelled"));
    }

    #[test]
    fn one_that_is_over_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let database = Arc::new(Database::open(folder.path().join("a.db")).unwrap());
        let begun = OperationGuard::new(&database, "index_repository").unwrap();
        let id = begun.id().to_owned();
        begun.finish(&Value::Null).unwrap();
        let found = operations::find(&database, &id).unwrap().unwrap();
        assert_eq!(found.status, OperationStatus::Completed);
    }
}
