//! What killed processes left in the folder of an owner.

use std::{
    fs::{self, DirEntry},
    path::Path,
    time::Duration,
};

use crate::{database::DRAFT_PREFIX, locked_file::LockedFile};

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
