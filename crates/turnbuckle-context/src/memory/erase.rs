//! Deleting many items, a few at a time.
//!
//! To take one text out of the search index for good takes milliseconds. Of many texts it is only noted that they are gone,
//! and the index is written anew in the end.

use std::time::{Duration, Instant};

use rusqlite::ToSql;

use crate::{ContextError, Database};

/// How long one transaction may take for deleting: others wait for it.
const SLICE: Duration = Duration::from_millis(50);

/// Up to so many are taken out one by one.
const FEW: usize = 8;
const NOTE_ONLY: &str = "INSERT INTO item_fts (item_fts, rank) VALUES ('secure-delete', 0)";
/// What was noted is written before the setting changes: it holds for the writing.
const AS_BEFORE: &str = "INSERT INTO item_fts (item_fts) VALUES ('flush');
                         INSERT INTO item_fts (item_fts, rank) VALUES ('secure-delete', 1);";

/// Deletes the items that a condition holds for, and says how many. What others save meanwhile stays.
pub(crate) fn erase(
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
    let are_few = ids.len() <= FEW;
    while !ids.is_empty() {
        erased += database.write(|db| {
            let begun = Instant::now();
            if !are_few {
                db.execute_batch(NOTE_ONLY)?;
            }
            let mut delete = db.prepare_cached(&delete)?;
            let mut gone = 0;
            while let Some(id) = ids.pop() {
                let mut parameters = parameters.to_vec();
                parameters.push((":id", &id));
                gone += delete.execute(parameters.as_slice())?;
                if begun.elapsed() > SLICE {
                    break;
                }
            }
            if !are_few {
                db.execute_batch(AS_BEFORE)?;
            }
            Ok(gone as u64)
        })?;
        database.rest();
    }
    if !are_few {
        database.rewrite_index("item_fts")?;
    }
    Ok(erased)
}
