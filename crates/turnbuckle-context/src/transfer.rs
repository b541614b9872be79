//! Export, import, statistics and deletion of an owner's data.

pub(crate) mod delete;
mod export;
mod import;
mod record;

use std::{collections::BTreeMap, path::Path, sync::Arc};

use rusqlite::Connection;

pub use self::{
    delete::{DeleteReport, DeleteRequest, delete},
    export::{ExportReport, export},
    import::{BadLine, ImportOptions, ImportReport, import},
};
use crate::{
    ContextError, DataDir, Database, DatabaseErrorKind, Owner,
    memory::ItemKind,
    memory_store::{
        MemoryStore as _, Partition, PartitionStats, SqliteMemoryStore, block_on,
        sqlite::partitions::root,
    },
};

/// A part of an owner's data.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum DataSelection {
    /// All projects and the data that they share.
    #[default]
    Everything,
    /// One project, by id.
    Project(String),
    /// The data that projects share.
    Shared,
}

/// A database of an owner.
struct DatabaseRef {
    partition: Partition,
    /// The folder of the project, unless it cannot be read.
    root: Option<String>,
    database: Arc<Database>,
}

/// Opened databases, and errors for the others.
struct OpenedDatabases {
    /// The shared database comes last.
    databases: Vec<DatabaseRef>,
    damaged: Vec<ContextError>,
}

impl OpenedDatabases {
    /// Returns the error messages of the databases that could not be opened.
    fn messages(&self) -> Vec<String> {
        self.damaged.iter().map(ToString::to_string).collect()
    }
}

/// Opens the selected databases. If everything is selected, damaged databases are skipped.
fn open_databases(
    data_dir: &DataDir,
    owner: &Owner,
    selection: &DataSelection,
) -> Result<OpenedDatabases, ContextError> {
    let mut ids = match selection {
        DataSelection::Everything => data_dir.project_ids(owner)?,
        DataSelection::Project(id) => vec![id.clone()],
        DataSelection::Shared => Vec::new(),
    };
    ids.sort();
    let mut ids: Vec<Option<String>> = ids.into_iter().map(Some).collect();
    if !matches!(selection, DataSelection::Project(_)) && data_dir.has_shared(owner) {
        ids.push(None);
    }
    let mut found = OpenedDatabases {
        databases: Vec::new(),
        damaged: Vec::new(),
    };
    for id in ids {
        match open_database(data_dir, owner, id) {
            Ok(database) => found.databases.push(database),
            Err(error) if *selection != DataSelection::Everything => return Err(error),
            // It was deleted after the listing.
            Err(ContextError::NotFound(_)) => {}
            Err(error) => found.damaged.push(error),
        }
    }
    Ok(found)
}

fn open_database(
    data_dir: &DataDir,
    owner: &Owner,
    project: Option<String>,
) -> Result<DatabaseRef, ContextError> {
    let Some(id) = project else {
        return Ok(DatabaseRef {
            partition: Partition::shared(owner),
            root: None,
            database: data_dir.open_shared(owner)?,
        });
    };
    let database = data_dir.open_project_by_id(owner, &id)?;
    let database = database.ok_or_else(|| ContextError::not_found(format!("project `{id}`")))?;
    Ok(DatabaseRef {
        root: match project_root(&database) {
            // A damaged page does not hide the other data.
            Err(ContextError::Database {
                kind: DatabaseErrorKind::Corrupt,
                ..
            }) => None,
            root => Some(root?),
        },
        partition: Partition::project(owner, &id),
        database,
    })
}

fn project_root(database: &Database) -> Result<String, ContextError> {
    let root = database.read(|db| Ok(root(db)?))?;
    Ok(root.unwrap_or_default())
}

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
    let store = SqliteMemoryStore::new(data_dir);
    for source in found.databases {
        let counted = source.database.read(|db| Ok(count_index(db)?));
        let stored = block_on(store.stats(&source.partition)).map_err(ContextError::from);
        let mut stats = match counted.and_then(|stats| Ok((stats, stored?))) {
            Ok((stats, stored)) => stats.with_items(&stored),
            Err(error) => {
                damaged.push(error.to_string());
                continue;
            }
        };
        stats.bytes = size(source.database.path());
        stats.project = source.partition.project_id().map(str::to_owned);
        stats.root = source.root;
        all.push(stats);
    }
    all.sort_by(|one: &DatabaseStats, other| one.root.cmp(&other.root));
    Ok(DataStats {
        databases: all,
        damaged,
    })
}

impl DatabaseStats {
    fn with_items(self, stored: &PartitionStats) -> Self {
        let count = |kind: ItemKind| stored.items.get(&kind).copied().unwrap_or_default();
        let items = ItemKind::ALL.map(|kind| (kind.as_str(), count(kind)));
        Self {
            items: items.into(),
            newest: stored.newest,
            ..self
        }
    }
}

/// Counts the indexed files and their chunks.
fn count_index(db: &Connection) -> rusqlite::Result<DatabaseStats> {
    let number = |select: &str| -> rusqlite::Result<u64> {
        let number: i64 = db.query_row(select, [], |row| row.get(0))?;
        Ok(number.unsigned_abs())
    };
    Ok(DatabaseStats {
        files: number("SELECT count(*) FROM file WHERE tree IS NOT NULL")?,
        chunks: number(
            "SELECT count(*) FROM chunk JOIN file ON file.id = chunk.file WHERE file.tree IS NOT NULL",
        )?,
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
