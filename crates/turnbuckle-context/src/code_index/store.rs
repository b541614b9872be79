//! Storage of an index. Changes are written in short transactions and become visible to readers all at once.
//!
//! Files are written under a run, where readers do not see them. The last transaction moves them to their tree. The files that
//! they replace are moved to a dead run, the tombstone, and deleted in small steps.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use rusqlite::{Transaction, params};

use super::{
    SkipReason,
    read::PreparedFile,
    tree::{IndexTree, TreeCounts, by_root},
    walk::SkipCounts,
};
use crate::{
    ContextError, Database,
    storage::database::{TransactionError, now},
};

/// A run without a heartbeat for this many milliseconds is dead.
const RUN_DEAD_AFTER_MS: i64 = 60_000;
/// Maximum duration of one cleanup transaction.
const MAX_CLEANUP_TIME: Duration = Duration::from_millis(40);
/// Maximum time that a stopped run spends on its own cleanup.
const MAX_ABANDON_TIME: Duration = Duration::from_secs(1);
/// Up to this many files are deleted in the transaction that replaces them.
const MAX_IMMEDIATE_DELETES: usize = 64;

/// The stored state of a file.
#[derive(Debug)]
pub(super) struct IndexedFile {
    pub(super) row: i64,
    pub(super) size: u64,
    pub(super) modified: i64,
    pub(super) hash: Vec<u8>,
    pub(super) indexed: i64,
}

/// The error if another process declared this run dead and deleted its files.
#[derive(Debug)]
pub(super) struct RunLost;

/// A change to a tree, ready to be published.
#[derive(Debug)]
pub(super) struct TreeChange<'a> {
    pub(super) root: &'a str,
    pub(super) branch: &'a str,
    /// The options, as stored.
    pub(super) settings: &'a str,
    /// The version that the change is based on; 0 for a new tree.
    pub(super) version: i64,
    pub(super) run: Option<i64>,
    /// Files that are not written under the run yet.
    pub(super) last: &'a [PreparedFile],
    /// Rows of files to remove.
    pub(super) removed_rows: &'a [i64],
    /// Counts of skipped files without a row.
    pub(super) skipped: &'a SkipCounts,
    /// True if the whole folder was walked and read.
    pub(super) is_complete: bool,
}

/// The result of publishing.
#[derive(Debug)]
pub(super) struct PublishedTree {
    pub(super) tree: IndexTree,
    /// True if another process changed the tree during the run.
    pub(super) conflicted: bool,
}

/// Returns all files of a tree, by path.
pub(super) fn indexed_files(
    db: &Database,
    tree: i64,
) -> Result<HashMap<String, IndexedFile>, ContextError> {
    db.read(|db| {
        let select = "SELECT path, id, size, modified, hash, indexed FROM file WHERE tree = ?1";
        let mut statement = db.prepare_cached(select)?;
        let rows = statement.query_map([tree], |row| {
            let known = IndexedFile {
                row: row.get(1)?,
                size: row.get::<_, i64>(2)?.cast_unsigned(),
                modified: row.get(3)?,
                hash: row.get(4)?,
                indexed: row.get(5)?,
            };
            Ok((row.get(0)?, known))
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    })
}

/// Writes files under a run, where readers do not see them. Starts the run if needed.
pub(super) fn stage(
    db: &Database,
    root: &str,
    run: &mut Option<i64>,
    files: &[PreparedFile],
) -> Result<Result<(), RunLost>, ContextError> {
    let known = *run;
    let done = db.write(|db| {
        let run = match known {
            Some(run) if !renew_heartbeat(db, root, run)? => return Ok(None),
            Some(run) => run,
            None => start_run(db, root, now())?,
        };
        for file in files {
            insert(db, FileOwner::Run(run), file)?;
        }
        Ok(Some(run))
    })?;
    *run = done;
    Ok(done.map(|_| ()).ok_or(RunLost))
}

/// Renews the heartbeat of a run that writes nothing.
pub(super) fn heartbeat(db: &Database, root: &str, run: i64) -> Result<(), ContextError> {
    db.write(|db| Ok(renew_heartbeat(db, root, run)?))
        .map(|_| ())
}

/// Stores new times of unchanged files.
pub(super) fn touch(db: &Database, same: &[(i64, u64, i64)]) -> Result<(), ContextError> {
    db.write(|db| {
        let mut statement =
            db.prepare_cached("UPDATE file SET size = ?2, modified = ?3 WHERE id = ?1")?;
        for (row, size, modified) in same {
            statement.execute(params![row, size.cast_signed(), modified])?;
        }
        Ok(())
    })
}

/// Publishes a change: readers see all of it from now on.
pub(super) fn publish(
    db: &Database,
    change: &TreeChange<'_>,
) -> Result<Result<PublishedTree, RunLost>, ContextError> {
    db.write(|db| {
        if let Some(run) = change.run
            && !renew_heartbeat(db, change.root, run)?
        {
            return Ok(Err(RunLost));
        }
        let before = by_root(db, change.root)?;
        let tree = match &before {
            Some(tree) => tree.id,
            None => create_tree(db, change)?,
        };
        let mut tombstone = Tombstone::new(
            change.root,
            change.removed_rows.len() + change.last.len() <= MAX_IMMEDIATE_DELETES,
        );
        for row in change.removed_rows {
            tombstone.delete(db, tree, *row)?;
        }
        if let Some(run) = change.run {
            if before.is_some() {
                tombstone_replaced(db, tree, run, tombstone.run(db)?)?;
            }
            db.execute(
                "UPDATE file SET tree = ?1, run = NULL WHERE run = ?2",
                [tree, run],
            )?;
            db.execute("DELETE FROM run WHERE id = ?1", [run])?;
        }
        for file in change.last {
            match published_row(db, tree, &file.path)? {
                Some((_, indexed)) if is_later(indexed, file.indexed) => continue,
                Some((row, _)) => tombstone.delete(db, tree, row)?,
                None => {}
            }
            insert(db, FileOwner::Tree(tree), file)?;
        }
        update_tree(db, tree, change)?;
        let conflicted = before.map_or(0, |tree| tree.version) != change.version;
        let tree = by_root(db, change.root)?;
        let tree = tree.ok_or(TransactionError::Sqlite(
            rusqlite::Error::QueryReturnedNoRows,
        ))?;
        Ok(Ok(PublishedTree { tree, conflicted }))
    })
}

/// Stores that the folder was compared and is unchanged.
pub(super) fn note_unchanged(db: &Database, tree: i64) -> Result<(), ContextError> {
    let update = "UPDATE tree SET refreshed = ?2 WHERE id = ?1";
    db.write(|db| Ok(db.execute(update, [tree, now()])?))
        .map(|_| ())
}

/// Discards the files of a run. If that takes long, later runs delete the rest.
pub(super) fn abandon(db: &Database, run: i64) -> Result<(), ContextError> {
    db.write(|db| Ok(db.execute("UPDATE run SET heartbeat = 0 WHERE id = ?1", [run])?))?;
    let started = Instant::now();
    delete_dead_runs(db, &mut || started.elapsed() < MAX_ABANDON_TIME)
}

/// Deletes the files of dead runs in small transactions, as long as `should_continue` returns `true`.
pub(super) fn delete_dead_runs(
    db: &Database,
    should_continue: &mut dyn FnMut() -> bool,
) -> Result<(), ContextError> {
    while should_continue() {
        let dead = db.read(|db| {
            let select = "SELECT id FROM run WHERE heartbeat < ?1 ORDER BY id LIMIT 1";
            let mut statement = db.prepare_cached(select)?;
            let mut rows = statement.query([now() - RUN_DEAD_AFTER_MS])?;
            Ok(rows.next()?.map(|row| row.get(0)).transpose()?)
        })?;
        let Some(dead) = dead else {
            return Ok(());
        };
        db.write(|db| delete_dead_run(db, dead))?;
        db.yield_lock();
    }
    Ok(())
}

fn delete_dead_run(db: &Transaction<'_>, run: i64) -> Result<(), TransactionError> {
    let started = Instant::now();
    // A dead run never recovers: after losing one file it must not publish the others. Check the heartbeat again, because it
    // may have been renewed since the query.
    let kill = "UPDATE run SET heartbeat = 0 WHERE id = ?1 AND heartbeat < ?2";
    db.execute(kill, [run, now() - RUN_DEAD_AFTER_MS])?;
    let select = "SELECT file.id FROM file JOIN run ON run.id = file.run WHERE run.id = ?1 AND run.heartbeat = 0";
    let mut statement = db.prepare_cached(select)?;
    let mut rows = statement.query([run])?;
    let mut remove = db.prepare_cached("DELETE FROM file WHERE id = ?1")?;
    while let Some(row) = rows.next()? {
        if started.elapsed() > MAX_CLEANUP_TIME {
            return Ok(());
        }
        remove.execute([row.get::<_, i64>(0)?])?;
    }
    let end = "DELETE FROM run WHERE id = ?1 AND heartbeat = 0 AND id NOT IN (SELECT run FROM file WHERE run = ?1)";
    db.execute(end, [run])?;
    Ok(())
}

/// The dead run that receives files that are no longer visible.
struct Tombstone<'a> {
    root: &'a str,
    run: Option<i64>,
    /// True if files are deleted at once because there are few.
    immediate: bool,
}

impl<'a> Tombstone<'a> {
    fn new(root: &'a str, immediate: bool) -> Self {
        Self {
            root,
            run: None,
            immediate,
        }
    }

    fn run(&mut self, db: &Transaction<'_>) -> rusqlite::Result<i64> {
        match self.run {
            Some(run) => Ok(run),
            None => Ok(*self.run.insert(start_run(db, self.root, 0)?)),
        }
    }

    fn delete(&mut self, db: &Transaction<'_>, tree: i64, row: i64) -> rusqlite::Result<()> {
        if self.immediate {
            let mut remove = db.prepare_cached("DELETE FROM file WHERE id = ?1 AND tree = ?2")?;
            return remove.execute([row, tree]).map(|_| ());
        }
        let run = self.run(db)?;
        let detach = "UPDATE file SET tree = NULL, run = ?3 WHERE id = ?1 AND tree = ?2";
        db.prepare_cached(detach)?
            .execute([row, tree, run])
            .map(|_| ())
    }
}

/// Returns whether the published version of a file is newer. A time in the future means that the clock was wrong.
fn is_later(shown: i64, read: i64) -> bool {
    shown > read && shown <= now()
}

/// Moves replaced files to the tombstone, and files of the run that are [older](is_later) than the published ones.
fn tombstone_replaced(
    db: &Transaction<'_>,
    tree: i64,
    run: i64,
    tombstone: i64,
) -> rusqlite::Result<()> {
    db.execute(
        "UPDATE file SET run = ?3 WHERE run = ?2 AND EXISTS (SELECT 1 FROM file AS shown
         WHERE shown.tree = ?1 AND shown.path = file.path AND shown.indexed > file.indexed
         AND shown.indexed <= ?4)",
        [tree, run, tombstone, now()],
    )?;
    db.execute(
        "UPDATE file SET tree = NULL, run = ?3
         WHERE tree = ?1 AND path IN (SELECT path FROM file WHERE run = ?2)",
        [tree, run, tombstone],
    )?;
    Ok(())
}

#[derive(Clone, Copy)]
enum FileOwner {
    Run(i64),
    Tree(i64),
}

fn insert(db: &Transaction<'_>, owner: FileOwner, file: &PreparedFile) -> rusqlite::Result<()> {
    let (tree, run) = match owner {
        FileOwner::Run(run) => (None, Some(run)),
        FileOwner::Tree(tree) => (Some(tree), None),
    };
    let mut insert = db.prepare_cached(
        "INSERT INTO file (tree, run, path, size, modified, hash, language, left_out, chunks, indexed)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?;
    let row = insert.insert(params![
        tree,
        run,
        file.path,
        file.size.cast_signed(),
        file.modified,
        file.hash,
        file.language,
        file.skipped.map_or("", SkipReason::as_str),
        i64::try_from(file.chunks.len()).unwrap_or(i64::MAX),
        file.indexed,
    ])?;
    let mut insert = db.prepare_cached(
        "INSERT INTO chunk (file, first_line, last_line, symbol, kind, defs, body)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    let mut insert_fts = db.prepare_cached(
        "INSERT INTO chunk_fts (rowid, body, idents, path, defs) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for chunk in &file.chunks {
        let id = insert.insert(params![
            row,
            chunk.first_line,
            chunk.last_line,
            chunk.symbol,
            chunk.kind,
            chunk.defs,
            chunk.body,
        ])?;
        let words = &chunk.words;
        insert_fts.execute(params![
            id,
            chunk.body,
            words.idents,
            words.path,
            words.defs
        ])?;
    }
    Ok(())
}

pub(super) fn start_run(db: &Transaction<'_>, root: &str, heartbeat: i64) -> rusqlite::Result<i64> {
    let mut insert = db.prepare_cached("INSERT INTO run (root, heartbeat) VALUES (?1, ?2)")?;
    insert.insert(params![root, heartbeat])
}

/// Renews the heartbeat of a run. Returns `false` if the run was declared dead.
fn renew_heartbeat(db: &Transaction<'_>, root: &str, run: i64) -> rusqlite::Result<bool> {
    let update = "UPDATE run SET heartbeat = ?2 WHERE id = ?1 AND root = ?3 AND heartbeat > 0";
    Ok(db
        .prepare_cached(update)?
        .execute(params![run, now(), root])?
        == 1)
}

fn create_tree(db: &Transaction<'_>, change: &TreeChange<'_>) -> rusqlite::Result<i64> {
    let insert = "INSERT INTO tree (root, branch, settings, counts, refreshed) VALUES (?1, ?2, '{}', '{}', 0)";
    db.prepare_cached(insert)?
        .insert([change.root, change.branch])
}

fn published_row(
    db: &Transaction<'_>,
    tree: i64,
    path: &str,
) -> rusqlite::Result<Option<(i64, i64)>> {
    let mut statement =
        db.prepare_cached("SELECT id, indexed FROM file WHERE tree = ?1 AND path = ?2")?;
    let mut rows = statement.query(params![tree, path])?;
    rows.next()?
        .map(|row| Ok((row.get(0)?, row.get(1)?)))
        .transpose()
}

fn update_tree(db: &Transaction<'_>, tree: i64, change: &TreeChange<'_>) -> rusqlite::Result<()> {
    let counts = counts(db, tree, change.skipped)?;
    let counts = serde_json::to_string(&counts).expect("numbers are JSON");
    let update = "UPDATE tree SET branch = ?2, settings = ?3, counts = ?4, version = version + 1,
                  refreshed = iif(?5, ?6, refreshed) WHERE id = ?1";
    db.prepare_cached(update)?.execute(params![
        tree,
        change.branch,
        change.settings,
        counts,
        change.is_complete,
        now(),
    ])?;
    Ok(())
}

fn counts(db: &Transaction<'_>, tree: i64, skipped: &SkipCounts) -> rusqlite::Result<TreeCounts> {
    let mut counts = TreeCounts {
        skipped: skipped.clone(),
        ..TreeCounts::default()
    };
    let select =
        "SELECT left_out, count(*), sum(chunks) FROM file WHERE tree = ?1 GROUP BY left_out";
    let mut statement = db.prepare_cached(select)?;
    let mut rows = statement.query([tree])?;
    while let Some(row) = rows.next()? {
        let reason: String = row.get(0)?;
        let files = row.get::<_, i64>(1)?.cast_unsigned();
        match SkipReason::from_name(&reason) {
            Some(reason) => *counts.skipped.entry(reason).or_default() += files,
            None => {
                counts.files = files;
                counts.chunks = row.get::<_, i64>(2)?.cast_unsigned();
            }
        }
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(db: &Database, select: &str) -> i64 {
        db.read(|db| Ok(db.query_row(select, [], |row| row.get(0))?))
            .unwrap()
    }

    fn file(path: &str, indexed: i64) -> PreparedFile {
        PreparedFile {
            path: path.to_owned(),
            size: 1,
            modified: 1,
            hash: vec![1],
            language: "rust",
            skipped: None,
            indexed,
            chunks: Vec::new(),
            redacted: std::collections::BTreeMap::new(),
        }
    }

    #[test]
    fn a_run_that_was_declared_dead_stays_dead() {
        let folder = tempfile::tempdir().unwrap();
        let db = Database::open(folder.path().join("project.db")).unwrap();
        let mut run = None;
        stage(&db, "/a", &mut run, &[file("one.rs", 1)])
            .unwrap()
            .unwrap();
        let id = run.unwrap();
        // Another process has started to delete the run.
        db.write(|db| Ok(db.execute("UPDATE run SET heartbeat = 0", [])?))
            .unwrap();
        heartbeat(&db, "/a", id).unwrap();
        assert!(stage(&db, "/a", &mut run, &[]).unwrap().is_err());
        assert_eq!(number(&db, "SELECT heartbeat FROM run"), 0);

        delete_dead_runs(&db, &mut || true).unwrap();
        assert_eq!(number(&db, "SELECT count(*) FROM file"), 0);
        let mut next = None;
        stage(&db, "/b", &mut next, &[]).unwrap().unwrap();
        assert!(next.unwrap() > id, "the number of a run was used twice");
    }

    #[test]
    fn cleanup_declares_a_silent_run_dead_first() {
        let folder = tempfile::tempdir().unwrap();
        let db = Database::open(folder.path().join("project.db")).unwrap();
        let mut run = None;
        stage(&db, "/a", &mut run, &[file("one.rs", 1)])
            .unwrap()
            .unwrap();
        let id = run.unwrap();
        db.write(|db| Ok(db.execute("UPDATE run SET heartbeat = 1", [])?))
            .unwrap();
        let killed = db.write(|db| {
            delete_dead_run(db, id)?;
            Ok(renew_heartbeat(db, "/a", id)?)
        });
        assert!(!killed.unwrap());
    }
}
