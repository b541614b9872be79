//! How much is kept.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::Connection;

use super::{Part, places};
use crate::memory::Kind;
use crate::{ContextError, Library, Owner};

/// How much is kept of an owner.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Stats {
    /// Each project by its root, and what they share.
    pub places: Vec<PlaceStats>,
    /// What is wrong with each file that could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<String>,
}

/// How much is kept of a project, or of what projects share.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct PlaceStats {
    /// The id of the project; nothing for what projects share.
    pub project: Option<String>,
    /// The folder of the project.
    pub root: Option<String>,
    /// How many things, by kind.
    pub items: BTreeMap<&'static str, u64>,
    /// Indexed files.
    pub files: u64,
    /// Chunks of those files.
    pub chunks: u64,
    /// On the disk.
    pub bytes: u64,
    /// When something was last saved; milliseconds since 1970.
    pub newest: Option<i64>,
}

/// Says how much is kept.
pub fn stats(library: &Library, owner: &Owner) -> Result<Stats, ContextError> {
    let mut all = Vec::new();
    let found = places(library, owner, &Part::Everything)?;
    let mut damaged = found.told();
    for place in found.places {
        let mut stats = match place.database.read(|db| Ok(count(db)?)) {
            Ok(stats) => stats,
            Err(error) => {
                damaged.push(error.to_string());
                continue;
            }
        };
        stats.bytes = size(place.database.path());
        stats.project = place.project;
        stats.root = place.root;
        all.push(stats);
    }
    all.sort_by(|one: &PlaceStats, other| one.root.cmp(&other.root));
    Ok(Stats {
        places: all,
        damaged,
    })
}

fn count(db: &Connection) -> rusqlite::Result<PlaceStats> {
    let number = |select: &str| -> rusqlite::Result<u64> {
        let number: i64 = db.query_row(select, [], |row| row.get(0))?;
        Ok(number.unsigned_abs())
    };
    let mut items = BTreeMap::new();
    for kind in Kind::ALL {
        let count = "SELECT count(*) FROM item WHERE kind = ?1";
        let count: i64 = db.query_row(count, [kind.as_str()], |row| row.get(0))?;
        items.insert(kind.as_str(), count.unsigned_abs());
    }
    Ok(PlaceStats {
        items,
        files: number("SELECT count(*) FROM file WHERE tree IS NOT NULL")?,
        chunks: number(
            "SELECT count(*) FROM chunk JOIN file ON file.id = chunk.file WHERE file.tree IS NOT NULL",
        )?,
        newest: db.query_row("SELECT max(updated) FROM item", [], |row| row.get(0))?,
        ..PlaceStats::default()
    })
}

/// What a database takes on the disk, with the files beside it.
fn size(path: &Path) -> u64 {
    let size = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        std::fs::metadata(name).map_or(0, |file| file.len())
    };
    ["", "-wal", "-shm"].into_iter().map(size).sum()
}
