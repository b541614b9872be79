//! Removing the index of a branch.

use rusqlite::Transaction;

use super::store::{begin_run, clean};
use crate::{ContextError, Database};

/// What is not shown any more.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Buried {
    pub(crate) files: u64,
    pub(crate) chunks: u64,
}

/// Takes the trees of a branch from the readers at once; [`clear_away`] removes what was in them.
pub(crate) fn bury(db: &Transaction<'_>, branch: &str) -> rusqlite::Result<Buried> {
    let mut select = db.prepare("SELECT id, root FROM tree WHERE branch = ?1")?;
    let trees = select.query_map([branch], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let trees: Vec<(i64, String)> = trees.collect::<rusqlite::Result<_>>()?;
    let mut buried = Buried::default();
    for (tree, root) in trees {
        let chunks = "SELECT coalesce(sum(chunks), 0) FROM file WHERE tree = ?1";
        let chunks: i64 = db.query_row(chunks, [tree], |row| row.get(0))?;
        let grave = begin_run(db, &root, 0)?;
        let bury = "UPDATE file SET tree = NULL, run = ?2 WHERE tree = ?1";
        buried.files += db.execute(bury, [tree, grave])? as u64;
        buried.chunks += chunks.unsigned_abs();
        db.execute("DELETE FROM tree WHERE id = ?1", [tree])?;
    }
    Ok(buried)
}

/// Removes what was buried, and its words from the search index; others can write meanwhile.
pub(crate) fn clear_away(db: &Database) -> Result<(), ContextError> {
    clean(db, &mut || true)?;
    db.rewrite_index("chunk_fts")
}
