//! Removing the index of a branch.

use rusqlite::Transaction;

use super::store::{delete_dead_runs, start_run};
use crate::{ContextError, Database};

/// What is not shown any more.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DeletedCounts {
    pub(crate) files: u64,
    pub(crate) chunks: u64,
}

/// Takes the trees of a branch from the readers at once; [`purge_detached`] removes what was in them.
pub(crate) fn detach_branch(db: &Transaction<'_>, branch: &str) -> rusqlite::Result<DeletedCounts> {
    let mut select = db.prepare("SELECT id, root FROM tree WHERE branch = ?1")?;
    let trees = select.query_map([branch], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let trees: Vec<(i64, String)> = trees.collect::<rusqlite::Result<_>>()?;
    let mut detached = DeletedCounts::default();
    for (tree, root) in trees {
        let chunks = "SELECT coalesce(sum(chunks), 0) FROM file WHERE tree = ?1";
        let chunks: i64 = db.query_row(chunks, [tree], |row| row.get(0))?;
        let tombstone = start_run(db, &root, 0)?;
        let detach = "UPDATE file SET tree = NULL, run = ?2 WHERE tree = ?1";
        detached.files += db.execute(detach, [tree, tombstone])? as u64;
        detached.chunks += chunks.unsigned_abs();
        db.execute("DELETE FROM tree WHERE id = ?1", [tree])?;
    }
    Ok(detached)
}

/// Removes what was buried, and its words from the search index; others can write meanwhile.
pub(crate) fn purge_detached(db: &Database) -> Result<(), ContextError> {
    delete_dead_runs(db, &mut || true)?;
    db.rebuild_fts("chunk_fts")
}
