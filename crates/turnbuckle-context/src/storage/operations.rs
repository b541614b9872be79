//! What was asked for and may be asked about later.

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde_json::Value;

use super::database::now;
use crate::{ContextError, Database, memory::new_id};

/// Operations that are kept, newest first.
const MAX_STORED: i64 = 1_000;
/// Milliseconds after which one that says nothing is taken for dead.
const STALE_AFTER_MS: i64 = 60 * 60 * 1_000;

/// Something that was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationRecord {
    /// `op_` and 16 hexadecimal digits.
    pub id: String,
    /// The tool that was called.
    pub kind: String,
    /// How far it is.
    pub status: OperationStatus,
    /// What came of it.
    pub result: Option<Value>,
    /// Why nothing came of it.
    pub error: Option<String>,
    /// Milliseconds since 1970.
    pub created: i64,
    /// Milliseconds since 1970.
    pub updated: i64,
}

/// How far an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OperationStatus {
    /// Not begun.
    Pending,
    /// Being done.
    Running,
    /// Done.
    Completed,
    /// Given up.
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

/// Notes that something is being done; returns the id of the operation.
pub fn start(database: &Database, kind: &str) -> Result<String, ContextError> {
    database.write(|db| Ok(insert(db, kind, OperationStatus::Running, None)?))
}

/// Notes that it is still being done. One that is silent for long is taken for dead.
pub fn touch(database: &Database, id: &str) -> Result<(), ContextError> {
    update(database, id, OperationStatus::Running, None, None)
}

/// Notes what came of it.
pub fn finish(database: &Database, id: &str, result: &Value) -> Result<(), ContextError> {
    update(database, id, OperationStatus::Completed, Some(result), None)
}

/// Notes why nothing came of it.
pub fn fail(database: &Database, id: &str, error: &str) -> Result<(), ContextError> {
    update(database, id, OperationStatus::Failed, None, Some(error))
}

/// Notes something that is done already, in one step; returns the id of the operation.
pub fn record_completed(
    database: &Database,
    kind: &str,
    result: &Value,
) -> Result<String, ContextError> {
    database.write(|db| Ok(record(db, kind, result)?))
}

/// Notes something that is done in the same transaction.
pub(crate) fn record(db: &Connection, kind: &str, result: &Value) -> rusqlite::Result<String> {
    insert(db, kind, OperationStatus::Completed, Some(result))
}

/// Finds an operation by its id.
pub fn find(database: &Database, id: &str) -> Result<Option<OperationRecord>, ContextError> {
    let select = "SELECT id, kind, status, result, error, created, updated \
                  FROM operation WHERE id = ?1";
    let found = database.read(|db| {
        let mut select = db.prepare_cached(select)?;
        Ok(select.query_row([id], operation_from_row).optional()?)
    })?;
    Ok(found.map(|operation| operation.with_stale_as_failed(now())))
}

/// The operations that are not over and not taken for dead, newest first.
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
    /// Nobody can say that an operation failed whose process was ended; its silence does.
    fn with_stale_as_failed(mut self, now: i64) -> Self {
        let is_open = matches!(
            self.status,
            OperationStatus::Pending | OperationStatus::Running
        );
        if is_open && now.saturating_sub(self.updated) > STALE_AFTER_MS {
            self.status = OperationStatus::Failed;
            self.error = Some("nothing was heard of it for an hour; start it again".to_owned());
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

/// An operation that is over stays as it is.
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
    fn an_operation_is_found_as_far_as_it_is() {
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
    fn one_whose_process_was_ended_has_failed() {
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
    fn the_newest_thousand_are_kept() {
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
        // Of those noted in the same millisecond, any may go; never one noted later.
        std::thread::sleep(std::time::Duration::from_millis(2));
        let newest = record_completed(&database, "x", &json!(null)).unwrap();
        assert!(find(&database, &newest).unwrap().is_some());
    }
}
