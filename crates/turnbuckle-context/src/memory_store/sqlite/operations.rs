//! Records of operations as table rows.

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::{
    memory::new_id,
    memory_store::{OperationRecord, OperationState, OperationStatus},
    storage::database::now,
};

/// Maximum number of stored operations; the oldest are deleted.
const MAX_STORED: i64 = 1_000;

/// Stores an operation and returns its id.
pub(crate) fn record(
    db: &Connection,
    kind: &str,
    state: OperationState<'_>,
) -> rusqlite::Result<String> {
    let id = new_id("op");
    let insert = "INSERT INTO operation (id, kind, status, result, error, created, updated) \
                  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)";
    let (status, result, error) = columns(state);
    db.prepare_cached(insert)?
        .execute(params![id, kind, status, result, error, now()])?;
    let prune = "DELETE FROM operation WHERE id IN \
                 (SELECT id FROM operation ORDER BY updated DESC, id LIMIT -1 OFFSET ?1)";
    db.prepare_cached(prune)?.execute([MAX_STORED])?;
    Ok(id)
}

/// Updates an operation unless it has ended.
pub(crate) fn update(db: &Connection, id: &str, state: OperationState<'_>) -> rusqlite::Result<()> {
    let update = "UPDATE operation SET status = ?2, result = ?3, error = ?4, updated = ?5 \
                  WHERE id = ?1 AND status IN ('pending', 'running')";
    let (status, result, error) = columns(state);
    let mut update = db.prepare_cached(update)?;
    update.execute(params![id, status, result, error, now()])?;
    Ok(())
}

/// Returns the operation with this id.
pub(crate) fn find(db: &Connection, id: &str) -> rusqlite::Result<Option<OperationRecord>> {
    let select = "SELECT id, kind, status, result, error, created, updated \
                  FROM operation WHERE id = ?1";
    let mut select = db.prepare_cached(select)?;
    let found = select.query_row([id], operation_from_row).optional()?;
    Ok(found.map(|operation| operation.with_stale_as_failed(now())))
}

/// Returns the ids of running operations, newest first.
pub(crate) fn running(db: &Connection) -> rusqlite::Result<Vec<String>> {
    let select = "SELECT id FROM operation WHERE status IN ('pending', 'running') AND updated >= ?1 \
                  ORDER BY created DESC LIMIT 20";
    let mut select = db.prepare_cached(select)?;
    let since = now() - OperationRecord::STALE_AFTER_MS;
    let ids = select.query_map([since], |row| row.get(0))?;
    ids.collect()
}

/// Returns the status, the result as JSON and the error of a state.
fn columns(state: OperationState<'_>) -> (&'static str, Option<String>, Option<&str>) {
    match state {
        OperationState::Running => ("running", None, None),
        OperationState::Completed(result) => ("completed", Some(result.to_string()), None),
        OperationState::Failed(error) => ("failed", None, Some(error)),
    }
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
    use crate::Database;

    fn database() -> (tempfile::TempDir, Database) {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(folder.path().join("a.db")).unwrap();
        (folder, database)
    }

    #[test]
    fn an_old_running_operation_is_not_listed() {
        let (_folder, database) = database();
        let start = |db: &Connection| record(db, "index_repository", OperationState::Running);
        let id = database.write(|db| Ok(start(db)?)).unwrap();
        assert_eq!(database.read(|db| Ok(running(db)?)).unwrap(), [&*id]);
        let age = "UPDATE operation SET updated = updated - ?1";
        let age = |db: &Connection| db.execute(age, [OperationRecord::STALE_AFTER_MS + 1]);
        database.write(|db| Ok(age(db)?)).unwrap();
        assert_eq!(database.read(|db| Ok(running(db)?)).unwrap(), [""; 0]);
        let found = database.read(|db| Ok(find(db, &id)?)).unwrap().unwrap();
        assert_eq!(found.status, OperationStatus::Failed);
    }

    #[test]
    fn the_newest_thousand_operations_are_kept() {
        let (_folder, database) = database();
        let none = json!(null);
        let state = OperationState::Completed(&none);
        let record_many = |db: &Connection| {
            let ids = (0..1_010).map(|_| record(db, "x", state));
            ids.collect::<Result<Vec<_>, _>>()
        };
        database.write(|db| Ok(record_many(db)?)).unwrap();
        let count =
            |db: &Connection| db.query_row("SELECT count(*) FROM operation", [], |row| row.get(0));
        let count: i64 = database.read(|db| Ok(count(db)?)).unwrap();
        assert_eq!(count, MAX_STORED);
        // Of operations stored in the same millisecond any may be deleted, but never a later one.
        std::thread::sleep(std::time::Duration::from_millis(2));
        let newest = database.write(|db| Ok(record(db, "x", state)?)).unwrap();
        let found = database.read(|db| Ok(find(db, &newest)?)).unwrap();
        assert!(found.is_some());
    }
}
