//! The folders whose files are indexed.

use std::path::{Path, PathBuf};

use rusqlite::{OptionalExtension as _, Row, Transaction};
use serde::{Deserialize, Serialize};

use super::{
    IndexOptions, SkipReason,
    store::{delete_dead_runs, start_run},
    walk::SkipCounts,
};
use crate::{ContextError, Database};

/// Version of the chunking; trees indexed with another version are read again.
const CHUNKING_VERSION: u32 = 1;

const COLUMNS: &str = "SELECT id, root, branch, settings, counts, version, refreshed FROM tree";

/// A folder whose files are indexed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IndexTree {
    /// Its row.
    pub id: i64,
    /// The folder; its path is canonical.
    pub root: PathBuf,
    /// The branch that was checked out when it was indexed.
    pub branch: String,
    /// Which files were asked for.
    pub options: IndexOptions,
    /// What is indexed.
    pub counts: TreeCounts,
    /// Incremented by each change.
    pub version: i64,
    /// When the whole folder was last looked at, in milliseconds since 1970.
    pub refreshed: i64,
    /// Whether all was cut into chunks as this version of the program does it.
    pub(super) is_current: bool,
    /// Which files were asked for, as it is stored.
    pub(super) settings: String,
}

/// How much of a folder is indexed, and what is not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TreeCounts {
    /// Files that can be found.
    pub files: u64,
    /// The chunks they are made of.
    pub chunks: u64,
    /// Files that were left out, by the reason. What the ignore rules name is not counted.
    #[serde(rename = "left_out")]
    pub skipped: SkipCounts,
}

impl TreeCounts {
    /// How many files were left out for one reason.
    pub fn skipped(&self, reason: SkipReason) -> u64 {
        self.skipped.get(&reason).copied().unwrap_or(0)
    }
}

/// Lists the folders that are indexed, in the order of their paths.
pub fn trees(db: &Database) -> Result<Vec<IndexTree>, ContextError> {
    db.read(|db| {
        let mut statement = db.prepare_cached(&format!("{COLUMNS} ORDER BY root"))?;
        let trees: rusqlite::Result<_> = statement.query_map([], from_row)?.collect();
        Ok(trees?)
    })
}

/// Finds the indexed folder that this one is, or is in: the nearest one.
pub fn tree_for(db: &Database, folder: &Path) -> Result<Option<IndexTree>, ContextError> {
    db.read(|db| {
        for folder in folder.ancestors().filter_map(Path::to_str) {
            if let Some(tree) = by_root(db, folder)? {
                return Ok(Some(tree));
            }
        }
        Ok(None)
    })
}

pub(super) fn find(db: &Database, root: &str) -> Result<Option<IndexTree>, ContextError> {
    db.read(|db| Ok(by_root(db, root)?))
}

pub(super) fn by_root(db: &Transaction<'_>, root: &str) -> rusqlite::Result<Option<IndexTree>> {
    let mut statement = db.prepare_cached(&format!("{COLUMNS} WHERE root = ?1"))?;
    statement.query_row([root], from_row).optional()
}

/// The options as they are kept.
pub(super) fn settings(options: &IndexOptions) -> String {
    let settings = StoredSettings {
        scheme: CHUNKING_VERSION,
        include: options.include.clone(),
        exclude: options.exclude.clone(),
        max_file_size: options.max_file_size,
    };
    serde_json::to_string(&settings).expect("strings and numbers are JSON")
}

#[derive(Serialize, Deserialize)]
#[serde(default)]
struct StoredSettings {
    scheme: u32,
    include: Vec<String>,
    exclude: Vec<String>,
    max_file_size: u64,
}

/// What is taken for settings that cannot be read; no scheme has the number 0, so all is read again.
impl Default for StoredSettings {
    fn default() -> Self {
        Self {
            scheme: 0,
            include: Vec::new(),
            exclude: Vec::new(),
            max_file_size: IndexOptions::default().max_file_size,
        }
    }
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<IndexTree> {
    let stored: String = row.get("settings")?;
    let settings: StoredSettings = serde_json::from_str(&stored).unwrap_or_default();
    let counts: String = row.get("counts")?;
    let root: String = row.get("root")?;
    Ok(IndexTree {
        id: row.get("id")?,
        root: root.into(),
        branch: row.get("branch")?,
        is_current: settings.scheme == CHUNKING_VERSION,
        settings: stored,
        options: IndexOptions {
            include: settings.include,
            exclude: settings.exclude,
            max_file_size: settings.max_file_size,
            force: false,
        },
        counts: serde_json::from_str(&counts).unwrap_or_default(),
        version: row.get("version")?,
        refreshed: row.get("refreshed")?,
    })
}

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
