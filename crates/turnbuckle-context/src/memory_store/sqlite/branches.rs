//! Items by branch, and collections that were created by name.

use std::collections::BTreeMap;

use rusqlite::{Connection, Row, params};

use super::items::delete_where;
use crate::{ContextError, Database, memory_store::StoredBranches, storage::database::now};

/// Returns the branches of a partition.
pub(crate) fn read(db: &Connection) -> rusqlite::Result<StoredBranches> {
    let size = "SELECT coalesce(\
                (SELECT length(data) / 4 FROM vector WHERE of = 'item' LIMIT 1), 0)";
    let size: i64 = db.prepare_cached(size)?.query_row([], |row| row.get(0))?;
    Ok(StoredBranches {
        items: pairs(db, "SELECT branch, count(*) FROM item GROUP BY branch")?,
        collections: pairs(db, "SELECT branch, vector_size FROM collection")?,
        vector_size: size.unsigned_abs(),
    })
}

fn pairs(db: &Connection, select: &str) -> rusqlite::Result<BTreeMap<String, u64>> {
    let pair = |row: &Row<'_>| Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs()));
    db.prepare_cached(select)?.query_map([], pair)?.collect()
}

/// Creates a collection, or changes the size of its vectors.
pub(crate) fn create(db: &Connection, label: &str, vector_size: u64) -> rusqlite::Result<()> {
    let insert = "INSERT INTO collection VALUES (?1, ?2, ?3) \
                  ON CONFLICT DO UPDATE SET vector_size = excluded.vector_size";
    db.execute(insert, params![label, vector_size.cast_signed(), now()])?;
    Ok(())
}

/// Removes the items of a branch in small transactions, then the collection if no branch with its label is left.
///
/// A branch with an index counts as left.
pub(crate) fn remove(
    database: &Database,
    label: &str,
    branch: Option<&str>,
) -> Result<u64, ContextError> {
    let items = match branch {
        Some(branch) => delete_where(database, "branch = :branch", &[(":branch", &branch)])?,
        None => 0,
    };
    let delete = "DELETE FROM collection WHERE branch = ?1 AND NOT EXISTS \
                  (SELECT 1 FROM item WHERE replace(branch, '/', '_') = ?1) AND NOT EXISTS \
                  (SELECT 1 FROM tree WHERE replace(branch, '/', '_') = ?1)";
    database.write(|db| Ok(db.execute(delete, [label])?))?;
    Ok(items)
}
