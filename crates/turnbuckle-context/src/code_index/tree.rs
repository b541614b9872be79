//! Indexed folders.

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

/// An indexed folder.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IndexTree {
    /// The row id.
    pub id: i64,
    /// The canonical path of the folder.
    pub root: PathBuf,
    /// The branch that was checked out during indexing.
    pub branch: String,
    /// The options of the index.
    pub options: IndexOptions,
    /// The size of the index.
    pub counts: TreeCounts,
    /// Incremented by each change.
    pub version: i64,
    /// The time of the last complete comparison with the folder, in milliseconds since 1970.
    pub refreshed: i64,
    /// True if all chunks were created with the current chunking version.
    pub(super) is_current: bool,
    /// The options, as stored.
    pub(super) settings: String,
}

/// Counts of indexed and skipped files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TreeCounts {
    /// Indexed files.
    pub files: u64,
    /// Chunks of these files.
    pub chunks: u64,
    /// Skipped files by reason. Files excluded by ignore rules are not counted.
    #[serde(rename = "left_out")]
    pub skipped: SkipCounts,
}

impl TreeCounts {
    /// Returns the number of files skipped for a reason.
    pub fn skipped(&self, reason: SkipReason) -> u64 {
        self.skipped.get(&reason).copied().unwrap_or(0)
    }
}

/// Returns all indexed folders, ordered by path.
pub fn trees(db: &Database) -> Result<Vec<IndexTree>, ContextError> {
    db.read(|db| {
        let mut statement = db.prepare_cached(&format!("{COLUMNS} ORDER BY root"))?;
        let trees: rusqlite::Result<_> = statement.query_map([], from_row)?.collect();
        Ok(trees?)
    })
}

/// Returns the index of a folder, or of its nearest indexed parent.
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

/// Returns the stored form of the options.
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

/// The settings if the stored ones cannot be parsed. Version 0 does not exist, so all files are read again.
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

/// The size of a detached index.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DeletedCounts {
    pub(crate) files: u64,
    pub(crate) chunks: u64,
}

/// Makes the trees of a branch invisible to readers; [`purge_detached`] deletes their files.
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

/// Deletes detached files and rewrites the search index without them, in small transactions.
pub(crate) fn purge_detached(db: &Database) -> Result<(), ContextError> {
    delete_dead_runs(db, &mut || true)?;
    db.rebuild_fts("chunk_fts")
}
