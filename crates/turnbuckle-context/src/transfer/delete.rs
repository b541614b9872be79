//! Deletion without traces.

use std::{fs, fs::DirEntry, path::Path, time::Duration};

use super::{
    DataLocation, DataSelection, FoundPartitions, find_partitions, selected, unknown_project,
};
use crate::{
    ContextError, Owner,
    memory::ItemKind,
    memory_store::{ItemFilter, MemoryStore, Partition, block_on},
    storage::{
        database::{DRAFT_PREFIX, now},
        locked_file::LockedFile,
    },
};

/// Data to delete.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum DeleteRequest {
    /// One item by id, in any database.
    Item(String),
    /// Items, optionally of one kind and last saved before a time.
    Items {
        /// The databases to search.
        selection: DataSelection,
        /// Only items of this kind.
        kind: Option<ItemKind>,
        /// Only items last saved before this time, in milliseconds since 1970.
        before: Option<i64>,
    },
    /// Whole databases, with memory and index. If memory is in a store, only its partitions are deleted, and local files stay.
    All(DataSelection),
}

/// Result of a deletion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct DeleteReport {
    /// Checkpoints, remediations and skills.
    pub items: u64,
    /// Deleted database files.
    pub files: u64,
    /// True if no trace is left in the files. Another process that reads or imports at the same time can delay this.
    pub traceless: bool,
}

/// Deletes data and its traces in the files.
///
/// First it removes leftovers of killed imports and finishes deletions of killed processes. A running server sees the change; if
/// a database that it has open was deleted, it creates a new one. Call it on a thread that may block.
pub fn delete<'d>(
    data: impl Into<DataLocation<'d>>,
    owner: &Owner,
    what: &DeleteRequest,
) -> Result<DeleteReport, ContextError> {
    let data = data.into();
    let data_dir = data.data_dir;
    let is_clean = remove_leftovers(&data_dir.path().join(owner.id()));
    data_dir.finish_pending_deletes(owner)?;
    let mut report = match what {
        DeleteRequest::Item(id) => {
            let found = find_partitions(data, owner, &DataSelection::Everything)?;
            let report = delete_items(data, &found, &ItemFilter::Id(id.clone()))?;
            if report.items == 0 {
                // It may be in a database that could not be read.
                let missing = || ContextError::not_found(format!("item `{id}`"));
                return Err(found.damaged.into_iter().next().unwrap_or_else(missing));
            }
            report
        }
        DeleteRequest::Items {
            selection,
            kind,
            before,
        } => {
            let found = find_partitions(data, owner, selection)?;
            let filter = ItemFilter::Before {
                kind: *kind,
                // Items saved from now on are kept, even if another process finishes the deletion.
                time: before.unwrap_or_else(|| now().saturating_add(1)),
            };
            let report = delete_items(data, &found, &filter)?;
            // Delete from all readable databases before reporting a damaged one.
            match found.damaged.into_iter().next() {
                Some(error) => return Err(error),
                None => report,
            }
        }
        DeleteRequest::All(selection) => remove(data, owner, selection)?,
    };
    report.traceless &= is_clean;
    Ok(report)
}

/// Deletes items and the traces of earlier deletions.
fn delete_items(
    data: DataLocation<'_>,
    found: &FoundPartitions,
    filter: &ItemFilter,
) -> Result<DeleteReport, ContextError> {
    let store = data.store();
    let mut report = DeleteReport {
        traceless: true,
        ..DeleteReport::default()
    };
    for source in &found.partitions {
        let deleted = block_on(store.as_dyn().remove(&source.partition, filter))?;
        report.items += deleted.items;
        report.traceless &= deleted.traceless;
    }
    Ok(report)
}

/// Deletes whole databases, or partitions of a store.
fn remove(
    data: DataLocation<'_>,
    owner: &Owner,
    selection: &DataSelection,
) -> Result<DeleteReport, ContextError> {
    let data_dir = data.data_dir;
    if let Some(memory) = data.memory {
        return remove_partitions(data, memory, owner, selection);
    }
    let (projects, shared) = match selection {
        DataSelection::Everything => (data_dir.project_ids(owner)?, true),
        DataSelection::Project(id) => (vec![id.clone()], false),
        DataSelection::Shared => (Vec::new(), true),
    };
    let files = data_dir.delete_databases(owner, &projects, shared)?;
    let traceless = match selection {
        DataSelection::Everything => data_dir.delete_owner(owner)?,
        _ => true,
    };
    match selection {
        DataSelection::Project(id) if files == 0 => Err(unknown_project(id)),
        _ => Ok(DeleteReport {
            items: 0,
            files,
            traceless,
        }),
    }
}

fn remove_partitions(
    data: DataLocation<'_>,
    memory: &dyn MemoryStore,
    owner: &Owner,
    selection: &DataSelection,
) -> Result<DeleteReport, ContextError> {
    let mut report = DeleteReport {
        traceless: true,
        ..DeleteReport::default()
    };
    for id in selected(data, owner, selection)? {
        let partition = match &id {
            Some(id) => Partition::project(owner, id),
            None => Partition::shared(owner),
        };
        let stats = block_on(memory.stats(&partition))?;
        if block_on(memory.remove_partition(&partition))? {
            report.items += stats.items.values().sum::<u64>();
            report.traceless = false;
        } else if let Some(id) = id {
            return Err(unknown_project(&id));
        }
    }
    Ok(report)
}

/// Prefix of staging files of imports: prefix, `_`, id, `.tmp`.
pub(super) const STAGING_PREFIX: &str = "import";

/// A temporary database that was not modified for this long is a leftover.
const STALE_AFTER: Duration = Duration::from_secs(60 * 60);

/// Removes staging files of dead imports, and WAL files without a database. Returns `false` if a file with text is left, such as
/// the staging file of a running import.
pub(crate) fn remove_leftovers(folder: &Path) -> bool {
    let mut all_removed = true;
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        if is_staging(name) {
            all_removed &= remove_staging_file(&path);
        } else if name.starts_with(DRAFT_PREFIX) && is_stale(&entry) {
            // It does not contain text.
            let _ = fs::remove_file(&path);
        } else if let Some(database) = database_of_log(name) {
            // SQLite creates the WAL after the database, so the database was deleted.
            if !folder.join(database).exists() {
                all_removed &= fs::remove_file(&path).is_ok();
            }
        }
    }
    all_removed
}

/// Returns whether a file is the staging file of an import.
pub(crate) fn is_staging(name: &str) -> bool {
    let id = name.strip_prefix(STAGING_PREFIX);
    id.is_some_and(|id| id.starts_with('_') && id.ends_with(".tmp"))
}

/// Removes a staging file, unless its import is running. Returns whether the file is gone.
fn remove_staging_file(path: &Path) -> bool {
    match LockedFile::open(path) {
        Ok(Some(file)) => file.remove().is_ok(),
        // It is locked, or another process removed it.
        _ => !path.exists(),
    }
}

fn is_stale(entry: &DirEntry) -> bool {
    let modified = entry.metadata().and_then(|metadata| metadata.modified());
    let age = modified.ok().and_then(|time| time.elapsed().ok());
    age.is_some_and(|age| age > STALE_AFTER)
}

fn database_of_log(name: &str) -> Option<&str> {
    let database = name.strip_suffix("-wal").or(name.strip_suffix("-shm"))?;
    database.ends_with(".db").then_some(database)
}
