//! Records of operations, so that callers can query their status later.

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde_json::Value;

use super::database::now;
use crate::{ContextError, Database, memory::new_id};

/// Maximum number of stored operations; the oldest are deleted.
const MAX_STORED: i64 = 1_000;
/// An operation without an update for this many milliseconds is considered failed.
const STALE_AFTER_MS: i64 = 60 * 60 * 1_000;

/// A stored operation.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationRecord {
    /// `op_` and 16 hexadecimal digits.
    pub id: String,
    /// The tool that was called.
    pub kind: String,
    /// The status.
    pub status: OperationStatus,
    /// The result, if completed.
    pub result: Option<Value>,
    /// The error message, if failed.
    pub error: Option<String>,
    /// Milliseconds since 1970.
    pub created: i64,
    /// Milliseconds since 1970.
    pub updated: i64,
}

/// The status of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OperationStatus {
    /// Not started.
    Pending,
    /// In progress.
    Running,
    /// Done.
    Completed,
    /// Failed or cancelled.
    Failed,
}

impl OperationStatus {
    fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

/// Stores a running operation and returns its id.
pub fn start(database: &Database, kind: &str) -> Result<String, ContextError> {
    database.write(|db| Ok(insert(db, kind, OperationStatus::Running, None)?))
}

/// Stores that the operation is still running. Without updates it is considered failed after an hour.
pub fn touch(database: &Database, id: &str) -> Result<(), ContextError> {
    update(database, id, OperationStatus::Running, None, None)
}

/// Stores the result of a completed operation.
pub fn finish(database: &Database, id: &str, result: &Value) -> Result<(), ContextError> {
    update(database, id, OperationStatus::Completed, Some(result), None)
}

/// Stores the error of a failed operation.
pub fn fail(database: &Database, id: &str, error: &str) -> Result<(), ContextError> {
    update(database, id, OperationStatus::Failed, None, Some(error))
}

/// Stores a completed operation and returns its id.
pub fn record_completed(
    database: &Database,
    kind: &str,
    result: &Value,
) -> Result<String, ContextError> {
    database.write(|db| Ok(record(db, kind, result)?))
}

/// Stores a completed operation in the current transaction.
pub(crate) fn record(db: &Connection, kind: &str, result: &Value) -> rusqlite::Result<String> {
    insert(db, kind, OperationStatus::Completed, Some(result))
}

/// Returns the operation with this id.
pub fn find(database: &Database, id: &str) -> Result<Option<OperationRecord>, ContextError> {
    let select = "SELECT id, kind, status, result, error, created, updated \
                  FROM operation WHERE id = ?1";
    let found = database.read(|db| {
        let mut select = db.prepare_cached(select)?;
        Ok(select.query_row([id], operation_from_row).optional()?)
    })?;
    Ok(found.map(|operation| operation.with_stale_as_failed(now())))
}

/// Returns the ids of running operations, newest first.
pub(crate) fn running(database: &Database) -> Result<Vec<String>, ContextError> {
    let select = "SELECT id FROM operation WHERE status IN ('pending', 'running') AND updated >= ?1 \
                  ORDER BY created DESC LIMIT 20";
    database.read(|db| {
        let mut select = db.prepare_cached(select)?;
        let ids = select.query_map([now() - STALE_AFTER_MS], |row| row.get(0))?;
        Ok(ids.collect::<Result<_, _>>()?)
    })
}

impl OperationRecord {
    /// Marks a stale operation as failed: a killed process cannot store the failure itself.
    fn with_stale_as_failed(mut self, now: i64) -> Self {
        let is_open = matches!(
            self.status,
            OperationStatus::Pending | OperationStatus::Running
        );
        if is_open && now.saturating_sub(self.updated) > STALE_AFTER_MS {
            self.status = OperationStatus::Failed;
            self.error = Some("no progress for an hour; start it again".to_owned());
        }
        self
    }
}

fn insert(
    db: &Connection,
    kind: &str,
    status: OperationStatus,
    result: Option<&Value>,
) -> rusqlite::Result<String> {
    let id = new_id("op");
    let insert = "INSERT INTO operation (id, kind, status, result, created, updated) \
                  VALUES (?1, ?2, ?3, ?4, ?5, ?5)";
    let result = result.map(Value::to_string);
    db.prepare_cached(insert)?
        .execute(params![id, kind, status.as_str(), result, now()])?;
    let prune = "DELETE FROM operation WHERE id IN \
                 (SELECT id FROM operation ORDER BY updated DESC, id LIMIT -1 OFFSET ?1)";
    db.prepare_cached(prune)?.execute([MAX_STORED])?;
    Ok(id)
}

/// Updates an operation unless it has ended.
fn update(
    database: &Database,
    id: &str,
    status: OperationStatus,
    result: Option<&Value>,
    error: Option<&str>,
) -> Result<(), ContextError> {
    let update = "UPDATE operation SET status = ?2, result = ?3, error = ?4, updated = ?5 \
                  WHERE id = ?1 AND status IN ('pending', 'running')";
    let result = result.map(Value::to_string);
    database.write(|db| {
        let mut update = db.prepare_cached(update)?;
        update.execute(params![id, status.as_str(), result, error, now()])?;
        Ok(())
    })
}

fn operation_from_row(row: &Row<'_>) -> rusqlite::Result<OperationRecord> {
    let status: String = row.get(2)?;
    let result: Option<String> = row.get(3)?;
    Ok(OperationRecord {
        id: row.get(0)?,
        kind: row.get(1)?,
        status: match &*status {
            "pending" => OperationStatus::Pending,
            "running" => OperationStatus::Running,
            "completed" => OperationStatus::Completed,
            _ => OperationStatus::Failed,
        },
        result: result.and_then(|text| serde_json::from_str(&text).ok()),
        error: row.get(4)?,
        created: row.get(5)?,
        updated: row.get(6)?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn database() -> (tempfile::TempDir, Database) {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(folder.path().join("a.db")).unwrap();
        (folder, database)
    }

    #[test]
    fn an_operation_is_found_with_its_status() {
        let (_folder, database) = database();
        let id = start(&database, "index_repository").unwrap();
        assert_eq!(
            find(&database, &id).unwrap().unwrap().status,
            OperationStatus::Running
        );
        finish(&database, &id, &json!({ "files_indexed": 3 })).unwrap();
        fail(&database, &id, "too late").unwrap();
        let found = find(&database, &id).unwrap().unwrap();
        assert_eq!(found.status, OperationStatus::Completed);
        assert_eq!(found.result, Some(json!({ "files_indexed": 3 })));
        assert_eq!((found.error, &*found.kind), (None, "index_repository"));
        assert!(find(&database, "op_0000000000000000").unwrap().is_none());
    }

    #[test]
    fn a_stale_operation_is_reported_as_failed() {
        let (_folder, database) = database();
        let id = start(&database, "index_repository").unwrap();
        let operation = find(&database, &id).unwrap().unwrap();
        let later = operation.updated + STALE_AFTER_MS + 1;
        assert_eq!(
            operation.with_stale_as_failed(later).status,
            OperationStatus::Failed
        );
        assert_eq!(running(&database).unwrap(), [&*id]);
        let age = "UPDATE operation SET updated = updated - ?1";
        let age = |db: &rusqlite::Transaction<'_>| Ok(db.execute(age, [STALE_AFTER_MS + 1])?);
        database.write(age).unwrap();
        assert_eq!(running(&database).unwrap(), [""; 0]);
    }

    #[test]
    fn the_newest_thousand_operations_are_kept() {
        let (_folder, database) = database();
        let record_many = |db: &Connection| {
            let ids = (0..1_010).map(|_| record(db, "x", &json!(null)));
            ids.collect::<Result<Vec<_>, _>>()
        };
        database.write(|db| Ok(record_many(db)?)).unwrap();
        let count =
            |db: &Connection| db.query_row("SELECT count(*) FROM operation", [], |row| row.get(0));
        let count: i64 = database.read(|db| Ok(count(db)?)).unwrap();
        assert_eq!(count, MAX_STORED);
        // Of operations stored in the same millisecond any may be deleted, but never a later one.
        std::thread::sleep(std::time::Duration::from_millis(2));
        let newest = record_completed(&database, "x", &json!(null)).unwrap();
        assert!(find(&database, &newest).unwrap().is_some());
    }
}
