//! Deleting many items, a few at a time.
//!
//! To take one text out of the search index for good takes milliseconds. Of many texts it is only noted that they are gone,
//! and the index is written anew in the end.

use std::time::{Duration, Instant};

use rusqlite::ToSql;

use crate::{ContextError, Database};

/// How long one transaction may take for deleting: others wait for it.
const MAX_TRANSACTION_TIME: Duration = Duration::from_millis(50);

/// Up to so many are taken out one by one.
const MAX_SECURE_DELETES: usize = 8;
const SECURE_DELETE_OFF: &str = "INSERT INTO item_fts (item_fts, rank) VALUES ('secure-delete', 0)";
/// What was noted is written before the setting changes: it holds for the writing.
const SECURE_DELETE_ON: &str = "INSERT INTO item_fts (item_fts) VALUES ('flush');
                         INSERT INTO item_fts (item_fts, rank) VALUES ('secure-delete', 1);";

/// Deletes the items that a condition holds for, and says how many. What others save meanwhile stays.
pub(crate) fn delete_where(
    database: &Database,
    condition: &str,
    parameters: &[(&str, &dyn ToSql)],
) -> Result<u64, ContextError> {
    let mut ids: Vec<String> = database.read(|db| {
        let mut select = db.prepare(&format!("SELECT id FROM item WHERE {condition}"))?;
        let ids = select.query_map(parameters, |row| row.get(0))?;
        Ok(ids.collect::<rusqlite::Result<_>>()?)
    })?;
    // One that was saved again since may not be meant any more.
    let delete = format!("DELETE FROM item WHERE id = :id AND ({condition})");
    let mut erased = 0;
    let are_few = ids.len() <= MAX_SECURE_DELETES;
    while !ids.is_empty() {
        erased += database.write(|db| {
            let begun = Instant::now();
            if !are_few {
                db.execute_batch(SECURE_DELETE_OFF)?;
            }
            let mut delete = db.prepare_cached(&delete)?;
            let mut gone = 0;
            while let Some(id) = ids.pop() {
                let mut parameters = parameters.to_vec();
                parameters.push((":id", &id));
                gone += delete.execute(parameters.as_slice())?;
                if begun.elapsed() > MAX_TRANSACTION_TIME {
                    break;
                }
            }
            if !are_few {
                db.execute_batch(SECURE_DELETE_ON)?;
            }
            Ok(gone as u64)
        })?;
        database.yield_lock();
    }
    if !are_few {
        database.rebuild_fts("item_fts")?;
    }
    Ok(erased)
}
