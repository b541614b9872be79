//! Forgetting, so that nothing is left.

use std::{fs, fs::DirEntry, path::Path, time::Duration};

use super::{DataSelection, OpenedDatabases, open_databases};
use crate::{
    ContextError, DataDir, Owner,
    memory::ItemKind,
    storage::{
        database::{DRAFT_PREFIX, now},
        locked_file::LockedFile,
        pending_delete::{PendingDelete, delete_database_items},
    },
};

/// What shall be forgotten.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum DeleteRequest {
    /// One thing, by its id, wherever it is.
    Item(String),
    /// The things of one kind, or of all, that were last saved before a time, or whenever.
    Items {
        /// Where.
        selection: DataSelection,
        /// Only this kind.
        kind: Option<ItemKind>,
        /// Only what was last saved before; milliseconds since 1970.
        before: Option<i64>,
    },
    /// Whole files, with memory and index.
    All(DataSelection),
}

/// What was forgotten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct DeleteReport {
    /// Checkpoints, remediations and skills.
    pub items: u64,
    /// Database files that were removed altogether.
    pub files: u64,
    /// Whether no trace is left in the files. Another process that reads or imports at the same time can delay that.
    pub traceless: bool,
}

/// Forgets, so that nothing of it is left in the files.
///
/// First it removes what killed imports left, and finishes what a killed forget began. A server that runs meanwhile sees the
/// change; one that holds a file open that was removed goes on with a new one.
pub fn delete(
    data_dir: &DataDir,
    owner: &Owner,
    what: &DeleteRequest,
) -> Result<DeleteReport, ContextError> {
    let is_clean = remove_leftovers(&data_dir.path().join(owner.id()));
    data_dir.finish_pending_deletes(owner)?;
    let mut report = match what {
        DeleteRequest::Item(id) => {
            let found = open_databases(data_dir, owner, &DataSelection::Everything)?;
            let report = delete_items(&found, &PendingDelete::Item(id.clone()))?;
            if report.items == 0 {
                // It may be in what could not be read.
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
            let found = open_databases(data_dir, owner, selection)?;
            let pending = PendingDelete::Items {
                kind: *kind,
                // What is saved from now on is not meant, also if another process finishes this.
                before: before.unwrap_or_else(|| now().saturating_add(1)),
            };
            let report = delete_items(&found, &pending)?;
            // What can be forgotten is forgotten before anybody hears of what cannot.
            match found.damaged.into_iter().next() {
                Some(error) => return Err(error),
                None => report,
            }
        }
        DeleteRequest::All(selection) => remove(data_dir, owner, selection)?,
    };
    report.traceless &= is_clean;
    Ok(report)
}

/// Deletes items, and the traces of those that are gone.
fn delete_items(
    found: &OpenedDatabases,
    pending: &PendingDelete,
) -> Result<DeleteReport, ContextError> {
    let mut report = DeleteReport {
        traceless: true,
        ..DeleteReport::default()
    };
    for database in &found.databases {
        let deleted = delete_database_items(&database.database, pending)?;
        report.items += deleted.items;
        report.traceless &= deleted.traceless;
    }
    Ok(report)
}

fn remove(
    data_dir: &DataDir,
    owner: &Owner,
    selection: &DataSelection,
) -> Result<DeleteReport, ContextError> {
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
        DataSelection::Project(id) if files == 0 => {
            Err(ContextError::not_found(format!("project `{id}`")))
        }
        _ => Ok(DeleteReport {
            items: 0,
            files,
            traceless,
        }),
    }
}

/// How the staging files of imports are called: this, `_`, an id and `.tmp`.
pub(super) const STAGING_PREFIX: &str = "import";

/// A database that was not touched for so long is not being made any more.
const STALE_AFTER: Duration = Duration::from_secs(60 * 60);

/// Removes staging files whose import is dead, and logs without a database. Returns whether nothing with text is left: the
/// staging file of an import that runs stays.
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
            // There is no text in it.
            let _ = fs::remove_file(&path);
        } else if let Some(database) = database_of_log(name) {
            // SQLite makes the log after the database, so this one has lost it.
            if !folder.join(database).exists() {
                all_removed &= fs::remove_file(&path).is_ok();
            }
        }
    }
    all_removed
}

/// Whether a file is the staging file of an import.
pub(crate) fn is_staging(name: &str) -> bool {
    let id = name.strip_prefix(STAGING_PREFIX);
    id.is_some_and(|id| id.starts_with('_') && id.ends_with(".tmp"))
}

/// Removes a staging file, unless its import runs.
fn remove_staging_file(path: &Path) -> bool {
    match LockedFile::open(path) {
        Ok(Some(file)) => file.remove().is_ok(),
        // It is locked, or was removed just now.
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
