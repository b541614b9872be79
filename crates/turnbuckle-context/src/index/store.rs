//! What the database keeps of an index, and how it changes: in short transactions, and for readers all at once.
//!
//! Files are written under a run, where nobody sees them. The last transaction gives them to their tree. What they replace
//! goes to a run as well, a dead one, and is cleaned away bit by bit.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rusqlite::{Transaction, params};

use super::LeftOut;
use super::read::Prepared;
use super::tree::{Counts, Tree, by_root};
use super::walk::Tally;
use crate::database::{Fault, now};
use crate::{ContextError, Database};

/// A run that was silent for so long, in milliseconds, is dead.
const DEAD_AFTER: i64 = 60_000;
/// How long one transaction may take for cleaning.
const CLEANING: Duration = Duration::from_millis(40);
/// How long somebody who gave up waits for what is thrown away.
const ABANDONING: Duration = Duration::from_secs(1);
/// Up to so many files are removed at once with what replaces them.
const FEW: usize = 64;

/// A file as it was when it was last read.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) row: i64,
    pub(super) size: u64,
    pub(super) modified: i64,
    pub(super) hash: Vec<u8>,
    pub(super) indexed: i64,
}

/// Another process declared our run dead and removed what was written.
#[derive(Debug)]
pub(super) struct Lost;

/// A change to a tree, ready to be shown.
#[derive(Debug)]
pub(super) struct Change<'a> {
    pub(super) root: &'a str,
    pub(super) branch: &'a str,
    /// Which files are wanted, as it is stored.
    pub(super) settings: &'a str,
    /// The version that the change was made from; 0 for a new tree.
    pub(super) version: i64,
    pub(super) run: Option<i64>,
    /// Files that were not written under the run any more.
    pub(super) last: &'a [Prepared],
    /// Rows of files that are not wanted any more.
    pub(super) vanished: &'a [i64],
    /// What was left out, but for the files that have a row.
    pub(super) left_out: &'a Tally,
    /// Whether the whole folder was looked at.
    pub(super) is_complete: bool,
}

/// What was shown.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) tree: Tree,
    /// Somebody else changed the tree meanwhile.
    pub(super) met_another: bool,
}

/// All files of a tree, by their paths.
pub(super) fn known(db: &Database, tree: i64) -> Result<HashMap<String, Known>, ContextError> {
    db.read(|db| {
        let select = "SELECT path, id, size, modified, hash, indexed FROM file WHERE tree = ?1";
        let mut statement = db.prepare_cached(select)?;
        let rows = statement.query_map([tree], |row| {
            let known = Known {
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

/// Writes files under a run, where nobody sees them, and begins the run if need be.
pub(super) fn stage(
    db: &Database,
    root: &str,
    run: &mut Option<i64>,
    files: &[Prepared],
) -> Result<Result<(), Lost>, ContextError> {
    let known = *run;
    let done = db.write(|db| {
        let run = match known {
            Some(run) if !is_alive(db, root, run)? => return Ok(None),
            Some(run) => run,
            None => begin_run(db, root, now())?,
        };
        for file in files {
            insert(db, Owner::Run(run), file)?;
        }
        Ok(Some(run))
    })?;
    *run = done;
    Ok(done.map(|_| ()).ok_or(Lost))
}

/// Says that a run goes on although nothing is written.
pub(super) fn beat(db: &Database, root: &str, run: i64) -> Result<(), ContextError> {
    db.write(|db| Ok(is_alive(db, root, run)?)).map(|_| ())
}

/// Notes new times of files that have not changed.
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

/// Shows a change: readers see all of it from now on, and saw nothing of it before.
pub(super) fn show(
    db: &Database,
    change: &Change<'_>,
) -> Result<Result<Shown, Lost>, ContextError> {
    db.write(|db| {
        if let Some(run) = change.run
            && !is_alive(db, change.root, run)?
        {
            return Ok(Err(Lost));
        }
        let before = by_root(db, change.root)?;
        let tree = match &before {
            Some(tree) => tree.id,
            None => begin_tree(db, change)?,
        };
        let mut grave = Grave::new(
            change.root,
            change.vanished.len() + change.last.len() <= FEW,
        );
        for row in change.vanished {
            grave.take(db, tree, *row)?;
        }
        if let Some(run) = change.run {
            if before.is_some() {
                bury_replaced(db, tree, run, grave.run(db)?)?;
            }
            db.execute(
                "UPDATE file SET tree = ?1, run = NULL WHERE run = ?2",
                [tree, run],
            )?;
            db.execute("DELETE FROM run WHERE id = ?1", [run])?;
        }
        for file in change.last {
            match shown_at(db, tree, &file.path)? {
                Some((_, indexed)) if is_later(indexed, file.indexed) => continue,
                Some((row, _)) => grave.take(db, tree, row)?,
                None => {}
            }
            insert(db, Owner::Tree(tree), file)?;
        }
        update_tree(db, tree, change)?;
        let met_another = before.map_or(0, |tree| tree.version) != change.version;
        let tree = by_root(db, change.root)?;
        let tree = tree.ok_or(Fault::Sqlite(rusqlite::Error::QueryReturnedNoRows))?;
        Ok(Ok(Shown { tree, met_another }))
    })
}

/// Notes that the whole folder was looked at, and is as it was.
pub(super) fn note_unchanged(db: &Database, tree: i64) -> Result<(), ContextError> {
    let update = "UPDATE tree SET refreshed = ?2 WHERE id = ?1";
    db.write(|db| Ok(db.execute(update, [tree, now()])?))
        .map(|_| ())
}

/// Removes what a run has written and nobody will see. What takes longer than a moment is left to those who come next.
pub(super) fn abandon(db: &Database, run: i64) -> Result<(), ContextError> {
    db.write(|db| Ok(db.execute("UPDATE run SET heartbeat = 0 WHERE id = ?1", [run])?))?;
    let begun = Instant::now();
    clean(db, &mut || begun.elapsed() < ABANDONING)
}

/// Removes what dead runs left, a little at a time, as long as the caller wants to go on.
pub(super) fn clean(db: &Database, go_on: &mut dyn FnMut() -> bool) -> Result<(), ContextError> {
    while go_on() {
        let dead = db.read(|db| {
            let select = "SELECT id FROM run WHERE heartbeat < ?1 ORDER BY id LIMIT 1";
            let mut statement = db.prepare_cached(select)?;
            let mut rows = statement.query([now() - DEAD_AFTER])?;
            Ok(rows.next()?.map(|row| row.get(0)).transpose()?)
        })?;
        let Some(dead) = dead else {
            return Ok(());
        };
        db.write(|db| clean_some(db, dead))?;
        db.rest();
    }
    Ok(())
}

fn clean_some(db: &Transaction<'_>, run: i64) -> Result<(), Fault> {
    let begun = Instant::now();
    // Death is final: a run that lost a file must never show the others. It may have beaten since we looked, though.
    let kill = "UPDATE run SET heartbeat = 0 WHERE id = ?1 AND heartbeat < ?2";
    db.execute(kill, [run, now() - DEAD_AFTER])?;
    let select = "SELECT file.id FROM file JOIN run ON run.id = file.run WHERE run.id = ?1 AND run.heartbeat = 0";
    let mut statement = db.prepare_cached(select)?;
    let mut rows = statement.query([run])?;
    let mut remove = db.prepare_cached("DELETE FROM file WHERE id = ?1")?;
    while let Some(row) = rows.next()? {
        if begun.elapsed() > CLEANING {
            return Ok(());
        }
        remove.execute([row.get::<_, i64>(0)?])?;
    }
    let end = "DELETE FROM run WHERE id = ?1 AND heartbeat = 0 AND id NOT IN (SELECT run FROM file WHERE run = ?1)";
    db.execute(end, [run])?;
    Ok(())
}

/// Where files go that are not shown any more.
struct Grave<'a> {
    root: &'a str,
    run: Option<i64>,
    /// There are so few that they are removed at once.
    at_once: bool,
}

impl<'a> Grave<'a> {
    fn new(root: &'a str, at_once: bool) -> Self {
        Self {
            root,
            run: None,
            at_once,
        }
    }

    fn run(&mut self, db: &Transaction<'_>) -> rusqlite::Result<i64> {
        match self.run {
            Some(run) => Ok(run),
            None => Ok(*self.run.insert(begin_run(db, self.root, 0)?)),
        }
    }

    fn take(&mut self, db: &Transaction<'_>, tree: i64, row: i64) -> rusqlite::Result<()> {
        if self.at_once {
            let mut remove = db.prepare_cached("DELETE FROM file WHERE id = ?1 AND tree = ?2")?;
            return remove.execute([row, tree]).map(|_| ());
        }
        let run = self.run(db)?;
        let bury = "UPDATE file SET tree = NULL, run = ?3 WHERE id = ?1 AND tree = ?2";
        db.prepare_cached(bury)?
            .execute([row, tree, run])
            .map(|_| ())
    }
}

/// Of two readings of a file the later one is shown. One that is yet to come was made when a clock was wrong.
fn is_later(shown: i64, read: i64) -> bool {
    shown > read && shown <= now()
}

/// Buries what is replaced, or was read earlier than what [is shown](is_later).
fn bury_replaced(db: &Transaction<'_>, tree: i64, run: i64, grave: i64) -> rusqlite::Result<()> {
    db.execute(
        "UPDATE file SET run = ?3 WHERE run = ?2 AND EXISTS (SELECT 1 FROM file AS shown
         WHERE shown.tree = ?1 AND shown.path = file.path AND shown.indexed > file.indexed
         AND shown.indexed <= ?4)",
        [tree, run, grave, now()],
    )?;
    db.execute(
        "UPDATE file SET tree = NULL, run = ?3
         WHERE tree = ?1 AND path IN (SELECT path FROM file WHERE run = ?2)",
        [tree, run, grave],
    )?;
    Ok(())
}

#[derive(Clone, Copy)]
enum Owner {
    Run(i64),
    Tree(i64),
}

fn insert(db: &Transaction<'_>, owner: Owner, file: &Prepared) -> rusqlite::Result<()> {
    let (tree, run) = match owner {
        Owner::Run(run) => (None, Some(run)),
        Owner::Tree(tree) => (Some(tree), None),
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
        file.left_out.map_or("", LeftOut::as_str),
        i64::try_from(file.chunks.len()).unwrap_or(i64::MAX),
        file.indexed,
    ])?;
    let mut insert = db.prepare_cached(
        "INSERT INTO chunk (file, first_line, last_line, symbol, kind, defs, body)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    let mut make_findable = db.prepare_cached(
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
        make_findable.execute(params![
            id,
            chunk.body,
            words.idents,
            words.path,
            words.defs
        ])?;
    }
    Ok(())
}

pub(super) fn begin_run(db: &Transaction<'_>, root: &str, heartbeat: i64) -> rusqlite::Result<i64> {
    let mut insert = db.prepare_cached("INSERT INTO run (root, heartbeat) VALUES (?1, ?2)")?;
    insert.insert(params![root, heartbeat])
}

/// Says that a run lives, unless somebody has declared it dead.
fn is_alive(db: &Transaction<'_>, root: &str, run: i64) -> rusqlite::Result<bool> {
    let update = "UPDATE run SET heartbeat = ?2 WHERE id = ?1 AND root = ?3 AND heartbeat > 0";
    Ok(db
        .prepare_cached(update)?
        .execute(params![run, now(), root])?
        == 1)
}

fn begin_tree(db: &Transaction<'_>, change: &Change<'_>) -> rusqlite::Result<i64> {
    let insert = "INSERT INTO tree (root, branch, settings, counts, refreshed) VALUES (?1, ?2, '{}', '{}', 0)";
    db.prepare_cached(insert)?
        .insert([change.root, change.branch])
}

fn shown_at(db: &Transaction<'_>, tree: i64, path: &str) -> rusqlite::Result<Option<(i64, i64)>> {
    let mut statement =
        db.prepare_cached("SELECT id, indexed FROM file WHERE tree = ?1 AND path = ?2")?;
    let mut rows = statement.query(params![tree, path])?;
    rows.next()?
        .map(|row| Ok((row.get(0)?, row.get(1)?)))
        .transpose()
}

fn update_tree(db: &Transaction<'_>, tree: i64, change: &Change<'_>) -> rusqlite::Result<()> {
    let counts = counts(db, tree, change.left_out)?;
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

fn counts(db: &Transaction<'_>, tree: i64, left_out: &Tally) -> rusqlite::Result<Counts> {
    let mut counts = Counts {
        left_out: left_out.clone(),
        ..Counts::default()
    };
    let select =
        "SELECT left_out, count(*), sum(chunks) FROM file WHERE tree = ?1 GROUP BY left_out";
    let mut statement = db.prepare_cached(select)?;
    let mut rows = statement.query([tree])?;
    while let Some(row) = rows.next()? {
        let reason: String = row.get(0)?;
        let files = row.get::<_, i64>(1)?.cast_unsigned();
        match LeftOut::named(&reason) {
            Some(reason) => *counts.left_out.entry(reason).or_default() += files,
            None => {
                counts.files = files;
                counts.chunks = row.get::<_, i64>(2)?.cast_unsigned();
            }
        }
    }
    Ok(counts)
}

#[cfg(test)]
mod tests;
