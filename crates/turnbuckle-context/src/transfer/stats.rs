//! Statistics about stored data.

use std::{collections::BTreeMap, path::Path};

use rusqlite::Connection;

use super::{DataSelection, open_databases};
use crate::{ContextError, DataDir, Owner, memory::ItemKind};

/// Statistics about the data of an owner.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct DataStats {
    /// The databases, ordered by root.
    #[serde(rename = "places")]
    pub databases: Vec<DatabaseStats>,
    /// Returns the error messages of the databases that could not be opened.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<String>,
}

/// Statistics about one database.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct DatabaseStats {
    /// The id of the project; `None` for the shared database.
    pub project: Option<String>,
    /// The folder of the project.
    pub root: Option<String>,
    /// Number of items, by kind.
    pub items: BTreeMap<&'static str, u64>,
    /// Indexed files.
    pub files: u64,
    /// Chunks of those files.
    pub chunks: u64,
    /// Size on the disk.
    pub bytes: u64,
    /// The time of the last save, in milliseconds since 1970.
    pub newest: Option<i64>,
}

/// Returns statistics about all data of an owner.
pub fn stats(data_dir: &DataDir, owner: &Owner) -> Result<DataStats, ContextError> {
    let mut all = Vec::new();
    let found = open_databases(data_dir, owner, &DataSelection::Everything)?;
    let mut damaged = found.messages();
    for source in found.databases {
        let mut stats = match source.database.read(|db| Ok(count(db)?)) {
            Ok(stats) => stats,
            Err(error) => {
                damaged.push(error.to_string());
                continue;
            }
        };
        stats.bytes = size(source.database.path());
        stats.project = source.project;
        stats.root = source.root;
        all.push(stats);
    }
    all.sort_by(|one: &DatabaseStats, other| one.root.cmp(&other.root));
    Ok(DataStats {
        databases: all,
        damaged,
    })
}

fn count(db: &Connection) -> rusqlite::Result<DatabaseStats> {
    let number = |select: &str| -> rusqlite::Result<u64> {
        let number: i64 = db.query_row(select, [], |row| row.get(0))?;
        Ok(number.unsigned_abs())
    };
    let mut items = BTreeMap::new();
    for kind in ItemKind::ALL {
        let count = "SELECT count(*) FROM item WHERE kind = ?1";
        let count: i64 = db.query_row(count, [kind.as_str()], |row| row.get(0))?;
        items.insert(kind.as_str(), count.unsigned_abs());
    }
    Ok(DatabaseStats {
        items,
        files: number("SELECT count(*) FROM file WHERE tree IS NOT NULL")?,
        chunks: number(
            "SELECT count(*) FROM chunk JOIN file ON file.id = chunk.file WHERE file.tree IS NOT NULL",
        )?,
        newest: db.query_row("SELECT max(updated) FROM item", [], |row| row.get(0))?,
        ..DatabaseStats::default()
    })
}

/// Returns the size of a database on the disk, with its side files.
fn size(path: &Path) -> u64 {
    let size = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        std::fs::metadata(name).map_or(0, |file| file.len())
    };
    ["", "-wal", "-shm"].into_iter().map(size).sum()
}
