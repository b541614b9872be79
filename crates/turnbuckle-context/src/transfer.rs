//! Export, import, statistics and deletion of an owner's data.

pub(crate) mod delete;
mod export;
mod import;
mod record;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

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
        MemoryStore, Partition, PartitionStats, SqliteMemoryStore, block_on,
        sqlite::{OpenPartition as _, partitions::root},
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

/// Where the data of all owners is: memory in a store or in the data directory, and indexes in the data directory.
#[derive(Clone, Copy)]
pub struct DataLocation<'d> {
    data_dir: &'d DataDir,
    memory: Option<&'d dyn MemoryStore>,
}

impl<'d> DataLocation<'d> {
    /// Returns the location of data with memory in a store.
    pub fn with_memory(data_dir: &'d DataDir, memory: &'d dyn MemoryStore) -> Self {
        Self {
            data_dir,
            memory: Some(memory),
        }
    }

    fn store(self) -> LocatedStore<'d> {
        match self.memory {
            Some(memory) => LocatedStore::External(memory),
            None => LocatedStore::DataDir(SqliteMemoryStore::new(self.data_dir)),
        }
    }
}

impl<'d> From<&'d DataDir> for DataLocation<'d> {
    /// Returns the location of data that is all in the data directory.
    fn from(data_dir: &'d DataDir) -> Self {
        Self {
            data_dir,
            memory: None,
        }
    }
}

impl std::fmt::Debug for DataLocation<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DataLocation")
            .field("data_dir", &self.data_dir)
            .field("has_memory", &self.memory.is_some())
            .finish()
    }
}

/// The store of memory of a location.
enum LocatedStore<'d> {
    DataDir(SqliteMemoryStore<&'d DataDir>),
    External(&'d dyn MemoryStore),
}

impl<'d> LocatedStore<'d> {
    fn as_dyn(&self) -> &(dyn MemoryStore + 'd) {
        match self {
            Self::DataDir(store) => store,
            Self::External(store) => *store,
        }
    }
}

/// A partition of an owner with data.
struct PartitionRef {
    partition: Partition,
    /// The folder of the project, unless it cannot be read.
    root: Option<String>,
    /// The file, if the memory is in the data directory.
    file: Option<PathBuf>,
}

/// Partitions that can be read, and errors for the others.
#[derive(Default)]
struct FoundPartitions {
    /// The shared partition comes last.
    partitions: Vec<PartitionRef>,
    damaged: Vec<ContextError>,
}

impl FoundPartitions {
    /// Returns the error messages of the partitions that cannot be read.
    fn messages(&self) -> Vec<String> {
        self.damaged.iter().map(ToString::to_string).collect()
    }
}

/// Returns the selected partitions. If everything is selected, damaged ones are skipped.
fn find_partitions(
    data: DataLocation<'_>,
    owner: &Owner,
    selection: &DataSelection,
) -> Result<FoundPartitions, ContextError> {
    let mut found = FoundPartitions::default();
    for id in selected(data, owner, selection)? {
        let opened = match data.memory {
            Some(memory) => find_in_store(memory, owner, id),
            None => find_database(data.data_dir, owner, id),
        };
        match opened {
            Ok(partition) => found.partitions.push(partition),
            Err(error) if *selection != DataSelection::Everything => return Err(error),
            // It was deleted after the listing.
            Err(ContextError::NotFound(_)) => {}
            Err(error) => found.damaged.push(error),
        }
    }
    Ok(found)
}

/// Returns the ids of the selected projects in their order, then `None` for the shared partition.
fn selected(
    data: DataLocation<'_>,
    owner: &Owner,
    selection: &DataSelection,
) -> Result<Vec<Option<String>>, ContextError> {
    let (mut projects, has_shared) = match data.memory {
        Some(memory) => {
            let stored = block_on(memory.versions(owner))?;
            let has_shared = stored.iter().any(|(one, _)| one.project_id().is_none());
            let ids = stored.iter().filter_map(|(one, _)| one.project_id());
            (ids.map(str::to_owned).collect(), has_shared)
        }
        None => (
            data.data_dir.project_ids(owner)?,
            data.data_dir.has_shared(owner),
        ),
    };
    match selection {
        DataSelection::Everything => projects.sort(),
        DataSelection::Project(id) => return Ok(vec![Some(id.clone())]),
        DataSelection::Shared => projects.clear(),
    }
    let projects = projects.into_iter().map(Some);
    Ok(projects.chain(has_shared.then_some(None)).collect())
}

fn find_in_store(
    memory: &dyn MemoryStore,
    owner: &Owner,
    project: Option<String>,
) -> Result<PartitionRef, ContextError> {
    let Some(id) = project else {
        return Ok(PartitionRef {
            partition: Partition::shared(owner),
            root: None,
            file: None,
        });
    };
    let partition = Partition::project(owner, &id);
    let root = block_on(memory.root(&partition))?;
    Ok(PartitionRef {
        partition,
        root: Some(root.ok_or_else(|| unknown_project(&id))?),
        file: None,
    })
}

/// Opens the database of a partition, to see that it can be read.
fn find_database(
    data_dir: &DataDir,
    owner: &Owner,
    project: Option<String>,
) -> Result<PartitionRef, ContextError> {
    let Some(id) = project else {
        return Ok(PartitionRef {
            partition: Partition::shared(owner),
            root: None,
            file: Some(data_dir.open_shared(owner)?.path().to_owned()),
        });
    };
    let database = data_dir.open_project_by_id(owner, &id)?;
    let database = database.ok_or_else(|| unknown_project(&id))?;
    Ok(PartitionRef {
        root: match project_root(&database) {
            // A damaged page does not hide the other data.
            Err(ContextError::Database {
                kind: DatabaseErrorKind::Corrupt,
                ..
            }) => None,
            root => Some(root?),
        },
        partition: Partition::project(owner, &id),
        file: Some(database.path().to_owned()),
    })
}

fn unknown_project(id: &str) -> ContextError {
    ContextError::not_found(format!("project `{id}`"))
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
///
/// Call it on a thread that may block.
pub fn stats<'d>(
    data: impl Into<DataLocation<'d>>,
    owner: &Owner,
) -> Result<DataStats, ContextError> {
    let data = data.into();
    let mut all = Vec::new();
    let found = find_partitions(data, owner, &DataSelection::Everything)?;
    let mut damaged = found.messages();
    let store = data.store();
    for source in found.partitions {
        let counted = index_stats(data.data_dir, &source.partition);
        let stored = block_on(store.as_dyn().stats(&source.partition)).map_err(ContextError::from);
        let mut stats = match counted.and_then(|stats| Ok((stats, stored?))) {
            Ok((stats, stored)) => stats.with_items(&stored),
            Err(error) => {
                damaged.push(error.to_string());
                continue;
            }
        };
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

/// Returns statistics about the index of a partition, and the size of its file.
fn index_stats(data_dir: &DataDir, partition: &Partition) -> Result<DatabaseStats, ContextError> {
    let Some(database) = data_dir.open(partition)? else {
        return Ok(DatabaseStats::default());
    };
    let mut stats = database.read(|db| Ok(count_index(db)?))?;
    stats.bytes = size(database.path());
    Ok(stats)
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
