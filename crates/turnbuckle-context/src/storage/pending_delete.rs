//! Deletions in progress: a marker file next to the database. It is on the disk before data is deleted, and is removed when no
//! trace of the data is left.
//!
//! A process that finds the marker of a dead process finishes the deletion. The marker names what to delete and contains none of
//! its text.

use std::{
    io,
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rusqlite::ToSql;
use serde::{Deserialize, Serialize};

use super::{database::sync_parent_dir, locked_file::LockedFile};
use crate::{
    ContextError, Database,
    memory::ItemKind,
    memory_store::{ItemFilter, RemovedItems, sqlite::items::delete_where},
};

/// Maximum time to wait for a deletion by another process in the same database.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(20);
const MARKER_EXTENSION: &str = "forget";

/// Data to delete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PendingDelete {
    /// One item.
    Item(String),
    /// Items of one kind or of all kinds, last saved before a time.
    Items { kind: Option<ItemKind>, before: i64 },
    /// The database itself.
    File,
}

/// The marker of a deletion by this process, with a line per [`PendingDelete`].
#[derive(Debug)]
pub(crate) struct DeleteMarker {
    file: LockedFile,
    pending: Vec<PendingDelete>,
}

impl From<ItemFilter> for PendingDelete {
    fn from(filter: ItemFilter) -> Self {
        match filter {
            ItemFilter::Id(id) => Self::Item(id),
            ItemFilter::Before { kind, time } => Self::Items { kind, before: time },
        }
    }
}

impl DeleteMarker {
    /// Adds an entry to the marker of a database and flushes it to the disk.
    ///
    /// `earlier` is the existing marker, if this process has taken it over.
    pub(crate) fn write(
        database: &Path,
        pending: PendingDelete,
        earlier: Option<Self>,
    ) -> Result<Self, ContextError> {
        let path = marker_path(database);
        let mut marker = match earlier {
            Some(earlier) => earlier,
            None => Self::create(&path)?,
        };
        // The previous line may be incomplete.
        let mut line = vec![b'\n'];
        serde_json::to_writer(&mut line, &pending).expect("a marker can be written as JSON");
        line.push(b'\n');
        let mut file = marker.file.file();
        let written = file.write_all(&line).and_then(|()| {
            file.sync_all()?;
            sync_parent_dir(&path)
        });
        written.map_err(|error| ContextError::file(&path, error))?;
        marker.pending.push(pending);
        Ok(marker)
    }

    fn create(path: &Path) -> Result<Self, ContextError> {
        let started = Instant::now();
        loop {
            match LockedFile::create(path).map_err(|error| ContextError::file(path, error))? {
                Some(file) => {
                    let pending = Vec::new();
                    return Ok(Self { file, pending });
                }
                None if started.elapsed() < LOCK_TIMEOUT => std::thread::sleep(LOCK_RETRY_INTERVAL),
                None => {
                    return Err(ContextError::invalid(
                        "another process is deleting data in the same file; try again in a moment",
                    ));
                }
            }
        }
    }

    /// Takes over the marker that a dead process left for a database.
    pub(crate) fn take_abandoned(database: &Path) -> Result<Option<Self>, ContextError> {
        let path = marker_path(database);
        let failed = |error| ContextError::file(&path, error);
        // Most databases lack a marker, and this check is cheaper than opening it.
        if !path.exists() {
            return Ok(None);
        }
        let file = match LockedFile::open(&path) {
            // A deletion cannot be finished in a read-only folder.
            Err(error) if is_read_only(&error) => None,
            opened => opened.map_err(failed)?,
        };
        let Some(file) = file else {
            return Ok(None);
        };
        let mut text = Vec::new();
        file.file().read_to_end(&mut text).map_err(failed)?;
        // Ignore an incomplete line: deletion starts only after the line is on the disk.
        let lines = text.split(|byte| *byte == b'\n');
        let pending = lines.filter_map(|line| serde_json::from_slice(line).ok());
        let pending = pending.collect();
        Ok(Some(Self { file, pending }))
    }

    /// Returns whether the database itself is to be deleted.
    pub(crate) fn deletes_file(&self) -> bool {
        self.pending.contains(&PendingDelete::File)
    }

    /// Removes the marker after all traces are deleted.
    pub(crate) fn finish(self) -> Result<(), ContextError> {
        match self.file.remove() {
            // Another process has removed the whole folder.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done.map_err(|error| ContextError::file("the marker of a deletion", error)),
        }
    }
}

/// Deletes items and their traces. The marker stays until no trace is left.
pub(crate) fn delete_database_items(
    database: &Database,
    pending: &PendingDelete,
) -> Result<RemovedItems, ContextError> {
    let earlier = finish_abandoned(database)?;
    if earlier.is_none() && !matches_any(database, pending)? {
        // A process that was killed while saving may have left text in the WAL.
        let traceless = database.truncate_wal()?;
        return Ok(RemovedItems {
            items: 0,
            traceless,
        });
    }
    let marker = DeleteMarker::write(database.path(), pending.clone(), earlier)?;
    let items = delete_pending(database, pending)?;
    let left = vacuum_and_finish(database, marker)?;
    Ok(RemovedItems {
        items,
        traceless: left.is_none(),
    })
}

/// Finishes a deletion that a dead process started. Returns the marker if traces are left.
pub(crate) fn finish_abandoned(database: &Database) -> Result<Option<DeleteMarker>, ContextError> {
    match DeleteMarker::take_abandoned(database.path())? {
        // A marker to delete the file is handled before the file is opened.
        Some(marker) if !marker.deletes_file() => {
            for pending in &marker.pending {
                delete_pending(database, pending)?;
            }
            vacuum_and_finish(database, marker)
        }
        _ => Ok(None),
    }
}

/// Removes the traces of deleted data, then the marker. Returns the marker if traces are left.
fn vacuum_and_finish(
    database: &Database,
    marker: DeleteMarker,
) -> Result<Option<DeleteMarker>, ContextError> {
    if database.secure_vacuum()? {
        marker.finish().map(|()| None)
    } else {
        Ok(Some(marker))
    }
}

/// Returns the databases in a folder that have a marker.
pub(crate) fn marked_databases(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let markers = paths.filter(|path| path.extension().is_some_and(|end| end == MARKER_EXTENSION));
    markers.map(|path| path.with_extension("db")).collect()
}

fn delete_pending(database: &Database, pending: &PendingDelete) -> Result<u64, ContextError> {
    with_condition(pending, |condition, parameters| {
        delete_where(database, condition, parameters)
    })
}

fn matches_any(database: &Database, pending: &PendingDelete) -> Result<bool, ContextError> {
    with_condition(pending, |condition, parameters| {
        database.read(|db| {
            let select = format!("SELECT 1 FROM item WHERE {condition}");
            Ok(db.prepare(&select)?.exists(parameters)?)
        })
    })
}

fn with_condition<T>(
    pending: &PendingDelete,
    run: impl FnOnce(&str, &[(&str, &dyn ToSql)]) -> Result<T, ContextError>,
) -> Result<T, ContextError> {
    match pending {
        PendingDelete::Item(id) => run("id = :item", &[(":item", id)]),
        PendingDelete::Items { kind, before } => {
            let kind = kind.map(ItemKind::as_str);
            let condition = "kind = coalesce(:kind, kind) AND updated < :before";
            run(condition, &[(":kind", &kind), (":before", before)])
        }
        PendingDelete::File => run("true", &[]),
    }
}

fn is_read_only(error: &io::Error) -> bool {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem)
}

fn marker_path(database: &Path) -> PathBuf {
    database.with_extension(MARKER_EXTENSION)
}
