//! The folders whose files are indexed.

use std::path::{Path, PathBuf};

use rusqlite::{OptionalExtension as _, Row, Transaction};
use serde::{Deserialize, Serialize};

use super::walk::Tally;
use super::{IndexOptions, LeftOut};
use crate::{ContextError, Database};

/// Counts the ways in which files were cut into chunks: what was indexed another way is read again.
const SCHEME: u32 = 1;

const COLUMNS: &str = "SELECT id, root, branch, settings, counts, version, refreshed FROM tree";

/// A folder whose files are indexed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Tree {
    /// Its row.
    pub id: i64,
    /// The folder; its path is canonical.
    pub root: PathBuf,
    /// The branch that was checked out when it was indexed.
    pub branch: String,
    /// Which files were asked for.
    pub options: IndexOptions,
    /// What is indexed.
    pub counts: Counts,
    /// Counts the changes.
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
pub struct Counts {
    /// Files that can be found.
    pub files: u64,
    /// The chunks they are made of.
    pub chunks: u64,
    /// Files that were left out, by the reason. What the ignore rules name is not counted.
    pub left_out: Tally,
}

impl Counts {
    /// How many files were left out, for whatever reason.
    pub fn all_left_out(&self) -> u64 {
        self.left_out.values().sum()
    }

    /// How many files were left out for one reason.
    pub fn left_out(&self, reason: LeftOut) -> u64 {
        self.left_out.get(&reason).copied().unwrap_or(0)
    }
}

/// Lists the folders that are indexed, in the order of their paths.
pub fn trees(db: &Database) -> Result<Vec<Tree>, ContextError> {
    db.read(|db| {
        let mut statement = db.prepare_cached(&format!("{COLUMNS} ORDER BY root"))?;
        let trees: rusqlite::Result<_> = statement.query_map([], from_row)?.collect();
        Ok(trees?)
    })
}

/// Finds the indexed folder that this one is, or is in: the nearest one.
pub fn tree_for(db: &Database, folder: &Path) -> Result<Option<Tree>, ContextError> {
    db.read(|db| {
        for folder in folder.ancestors().filter_map(Path::to_str) {
            if let Some(tree) = by_root(db, folder)? {
                return Ok(Some(tree));
            }
        }
        Ok(None)
    })
}

pub(super) fn find(db: &Database, root: &str) -> Result<Option<Tree>, ContextError> {
    db.read(|db| Ok(by_root(db, root)?))
}

pub(super) fn by_root(db: &Transaction<'_>, root: &str) -> rusqlite::Result<Option<Tree>> {
    let mut statement = db.prepare_cached(&format!("{COLUMNS} WHERE root = ?1"))?;
    statement.query_row([root], from_row).optional()
}

/// The options as they are kept.
pub(super) fn settings(options: &IndexOptions) -> String {
    let settings = Settings {
        scheme: SCHEME,
        include: options.include.clone(),
        exclude: options.exclude.clone(),
        max_file_size: options.max_file_size,
    };
    serde_json::to_string(&settings).expect("strings and numbers are JSON")
}

#[derive(Serialize, Deserialize)]
#[serde(default)]
struct Settings {
    scheme: u32,
    include: Vec<String>,
    exclude: Vec<String>,
    max_file_size: u64,
}

/// What is taken for settings that cannot be read; no scheme has the number 0, so all is read again.
impl Default for Settings {
    fn default() -> Self {
        Self {
            scheme: 0,
            include: Vec::new(),
            exclude: Vec::new(),
            max_file_size: IndexOptions::default().max_file_size,
        }
    }
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<Tree> {
    let stored: String = row.get("settings")?;
    let settings: Settings = serde_json::from_str(&stored).unwrap_or_default();
    let counts: String = row.get("counts")?;
    let root: String = row.get("root")?;
    Ok(Tree {
        id: row.get("id")?,
        root: root.into(),
        branch: row.get("branch")?,
        is_current: settings.scheme == SCHEME,
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
