//! The databases of partitions.

use std::{
    fs::Metadata,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    ops::Deref,
    path::Path,
    time::SystemTime,
};

use rusqlite::Connection;

use crate::{
    ContextError, DataDir, Database, Owner,
    app_state::used_bytes,
    memory::ItemKind,
    memory_store::{Partition, PartitionStats, PartitionVersion, ProjectEntry},
};

/// Opens the databases of partitions.
pub trait OpenPartition: Send + Sync {
    /// An open database.
    type Open: Deref<Target = Database> + Send + Sync;

    /// Opens the database of a partition, if it exists.
    fn open(&self, partition: &Partition) -> Result<Option<Self::Open>, ContextError>;

    /// Opens the shared database of an owner, creating it if needed.
    fn create_shared(&self, owner: &Owner) -> Result<Self::Open, ContextError>;

    /// Creates the database of a project, if needed.
    fn create_project(&self, partition: &Partition, root: &str) -> Result<(), ContextError>;

    /// Closes and deletes the database of a partition. Returns whether it existed.
    fn remove(&self, partition: &Partition) -> Result<bool, ContextError>;

    /// Returns the partitions of an owner, the shared one first.
    fn of_owner(&self, owner: &Owner) -> Result<Vec<Partition>, ContextError>;

    /// Returns the versions of the partitions of an owner.
    fn versions(&self, owner: &Owner) -> Result<Vec<(Partition, PartitionVersion)>, ContextError>;

    /// Returns the number of bytes of an owner, or an estimate below a quota.
    fn used_bytes(&self, owner: &Owner, quota: u64) -> Result<u64, ContextError>;
}

impl<D: Deref<Target = DataDir> + Send + Sync> OpenPartition for D {
    type Open = std::sync::Arc<Database>;

    fn open(&self, partition: &Partition) -> Result<Option<Self::Open>, ContextError> {
        match partition.project_id() {
            Some(id) => self.open_project_by_id(partition.owner(), id),
            None => self.open_shared_if_exists(partition.owner()),
        }
    }

    fn create_shared(&self, owner: &Owner) -> Result<Self::Open, ContextError> {
        self.open_shared(owner)
    }

    fn create_project(&self, partition: &Partition, root: &str) -> Result<(), ContextError> {
        match partition.project_id() {
            Some(id) => self.open_project_at(partition.owner(), id, root).map(drop),
            None => self.open_shared(partition.owner()).map(drop),
        }
    }

    fn remove(&self, partition: &Partition) -> Result<bool, ContextError> {
        match partition.project_id() {
            Some(id) => self.delete_project(partition.owner(), id),
            None => self.delete_shared(partition.owner()),
        }
    }

    fn of_owner(&self, owner: &Owner) -> Result<Vec<Partition>, ContextError> {
        let shared = self.has_shared(owner).then(|| Partition::shared(owner));
        let projects = self.project_ids(owner)?;
        let projects = projects.iter().map(|id| Partition::project(owner, id));
        Ok(shared.into_iter().chain(projects).collect())
    }

    fn versions(&self, owner: &Owner) -> Result<Vec<(Partition, PartitionVersion)>, ContextError> {
        let version = |partition: Partition| {
            let version = file_version(&self.partition_path(&partition));
            (partition, version)
        };
        Ok(self.of_owner(owner)?.into_iter().map(version).collect())
    }

    fn used_bytes(&self, owner: &Owner, quota: u64) -> Result<u64, ContextError> {
        used_bytes(self, owner, quota)
    }
}

/// Databases that are opened already, each as a partition of its own. They belong to any owner.
#[derive(Debug)]
pub struct OpenDatabases<'d>(pub &'d [&'d Database]);

impl OpenDatabases<'_> {
    /// Returns the partitions of a number of databases.
    pub fn partitions(count: usize) -> Vec<Partition> {
        let owner = Owner::for_user("evaluation");
        let partition = |index: usize| Partition::project(&owner, &index.to_string());
        (0..count).map(partition).collect()
    }
}

impl<'d> OpenPartition for OpenDatabases<'d> {
    type Open = &'d Database;

    fn open(&self, partition: &Partition) -> Result<Option<Self::Open>, ContextError> {
        let index = partition
            .project_id()
            .and_then(|id| id.parse::<usize>().ok());
        Ok(index.and_then(|index| self.0.get(index).copied()))
    }

    fn remove(&self, _: &Partition) -> Result<bool, ContextError> {
        Err(ContextError::invalid("a database cannot be deleted here"))
    }

    fn create_shared(&self, _: &Owner) -> Result<Self::Open, ContextError> {
        Err(ContextError::invalid(
            "a shared database cannot be created here",
        ))
    }

    fn create_project(&self, _: &Partition, _: &str) -> Result<(), ContextError> {
        Ok(())
    }

    fn of_owner(&self, _: &Owner) -> Result<Vec<Partition>, ContextError> {
        Ok(Self::partitions(self.0.len()))
    }

    fn versions(&self, _: &Owner) -> Result<Vec<(Partition, PartitionVersion)>, ContextError> {
        Ok(Vec::new())
    }

    fn used_bytes(&self, _: &Owner, _: u64) -> Result<u64, ContextError> {
        Ok(0)
    }
}

/// Returns the projects of an owner, ordered by folder.
pub(super) fn projects(
    partitions: &impl OpenPartition,
    owner: &Owner,
) -> Result<Vec<ProjectEntry>, ContextError> {
    let mut known = Vec::new();
    for partition in partitions.of_owner(owner)? {
        // A damaged or just deleted database does not hide the others.
        if let Some(id) = partition.project_id()
            && let Ok(Some(database)) = partitions.open(&partition)
            && let Ok(Some(root)) = database.read(|db| Ok(root(db)?))
        {
            let id = id.to_owned();
            known.push(ProjectEntry { id, root });
        }
    }
    known.sort_by(|one, other| one.root.cmp(&other.root));
    Ok(known)
}

/// Returns the folder of a project.
pub(crate) fn root(db: &Connection) -> rusqlite::Result<Option<String>> {
    let mut select = db.prepare_cached("SELECT value FROM about WHERE key = 'root'")?;
    let mut rows = select.query([])?;
    rows.next()?.map(|row| row.get(0)).transpose()
}

/// Returns statistics about the items of a partition.
pub(crate) fn stats(db: &Connection) -> rusqlite::Result<PartitionStats> {
    let mut stats = PartitionStats::default();
    for kind in ItemKind::ALL {
        let count = "SELECT count(*) FROM item WHERE kind = ?1";
        let mut count = db.prepare_cached(count)?;
        let count: i64 = count.query_row([kind.as_str()], |row| row.get(0))?;
        if count > 0 {
            stats.items.insert(kind, count.unsigned_abs());
        }
    }
    stats.newest = db.query_row("SELECT max(updated) FROM item", [], |row| row.get(0))?;
    Ok(stats)
}

/// Returns the version of a file: a hash of the modification times and sizes of the database and of its WAL.
fn file_version(file: &Path) -> PartitionVersion {
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    let of = |metadata: Metadata| Some((metadata.modified().ok()?, metadata.len()));
    let stamp = |path: &Path| path.metadata().ok().and_then(of);
    let stamps: [Option<(SystemTime, u64)>; 2] = [stamp(file), stamp(Path::new(&log))];
    let mut hasher = DefaultHasher::new();
    stamps.hash(&mut hasher);
    PartitionVersion::new(hasher.finish())
}
