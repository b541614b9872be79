//! Quotas: the number of bytes that an owner may store.

use std::{
    fs::File,
    io::Read as _,
    path::Path,
    time::{Duration, Instant},
};

use super::AppState;
use crate::{ContextError, DataDir, Database, Owner, memory_store::block_on};

/// Interval between quota checks during long work.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

impl AppState {
    /// Fails if an owner has reached the quota. Call it before adding data.
    pub(crate) async fn check_quota(&self, owner: &Owner) -> Result<(), ContextError> {
        let Some(quota) = self.quota() else {
            return Ok(());
        };
        let mut used = self.memory().used_bytes(owner, quota).await?;
        if self.has_external_memory() {
            // The indexes.
            used = used.saturating_add(used_bytes(self.data_dir(), owner, quota)?);
        }
        if used < quota {
            Ok(())
        } else {
            Err(ContextError::invalid(format!(
                "your quota on this server is exhausted ({} of {} used); nothing was saved. \
                Call collection_list to see your data and collection_delete to free space",
                format_bytes(used),
                format_bytes(quota)
            )))
        }
    }

    /// Returns whether an owner has reached the quota. Call it on a thread that may block.
    pub(crate) fn is_over_quota(&self, owner: &Owner) -> bool {
        block_on(self.check_quota(owner)).is_err()
    }
}

impl AppState {
    /// Returns a function that checks the quota during long work, at most twice a second.
    pub(crate) fn quota_watch(&self, owner: &Owner) -> impl FnMut() -> bool + use<> {
        let (state, owner) = (self.clone(), owner.clone());
        let mut checked = Instant::now();
        let mut has_room = true;
        move || {
            if checked.elapsed() >= CHECK_INTERVAL {
                has_room = !state.is_over_quota(&owner);
                checked = Instant::now();
            }
            has_room
        }
    }
}

/// Returns the number of bytes that an owner stores. Below the quota it may be too large.
pub(crate) fn used_bytes(
    data_dir: &DataDir,
    owner: &Owner,
    quota: u64,
) -> Result<u64, ContextError> {
    // Check the file sizes first, which is cheap. Free pages inside of the files do not count.
    let in_files = file_bytes(data_dir, owner);
    if in_files < quota {
        return Ok(in_files);
    }
    data_bytes(data_dir, owner)
}

/// Returns the size of all files of an owner, including WAL files.
fn file_bytes(data_dir: &DataDir, owner: &Owner) -> u64 {
    let files = std::fs::read_dir(data_dir.path().join(owner.id()));
    let files = files.into_iter().flatten().flatten();
    files
        .filter_map(|file| Some(file.metadata().ok()?.len()))
        .sum()
}

/// Returns the number of used bytes in the databases of an owner. Does not open databases, because an owner may have thousands.
fn data_bytes(data_dir: &DataDir, owner: &Owner) -> Result<u64, ContextError> {
    // A deletion that a dead process started would count until the file is opened.
    if let Err(error) = data_dir.finish_pending_deletes(owner) {
        tracing::warn!(%error, "data of a pending deletion still counts");
    }
    let mut sum = 0;
    for file in data_dir.database_paths(owner)? {
        let opened = data_dir.already_open(&file);
        let in_use = opened.and_then(|database| bytes_in_use(&database).ok());
        sum += in_use.unwrap_or_else(|| closed_database_bytes(&file));
    }
    Ok(sum)
}

/// Returns the number of used bytes in a closed database, including its WAL.
fn closed_database_bytes(file: &Path) -> u64 {
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    // A damaged database counts with its file size.
    let in_use = header_bytes_in_use(file).unwrap_or_else(|| file_len(file));
    in_use + file_len(Path::new(&log))
}

/// Reads the bytes in use from the header of a database file: <https://sqlite.org/fileformat2.html#the_database_header>.
fn header_bytes_in_use(file: &Path) -> Option<u64> {
    let mut header = [0; 100];
    File::open(file).ok()?.read_exact(&mut header).ok()?;
    if !header.starts_with(b"SQLite format 3\0") {
        return None;
    }
    let number = |at: usize| {
        let bytes = header[at..at + 4].try_into().ok()?;
        Some(u64::from(u32::from_be_bytes(bytes)))
    };
    let page_size = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 65_536,
        size => u64::from(size),
    };
    let (pages, free) = (number(28)?, number(36)?);
    // The page count is valid only if it was written with the last change.
    let is_valid = number(24)? == number(92)? && free < pages;
    is_valid.then(|| (pages - free) * page_size)
}

fn bytes_in_use(database: &Database) -> Result<u64, ContextError> {
    let pages = "SELECT (page_count - freelist_count) * page_size \
                 FROM pragma_page_count, pragma_freelist_count, pragma_page_size";
    let bytes = database.read(|db| Ok(db.query_row(pages, [], |row| row.get::<_, i64>(0))?))?;
    Ok(bytes.unsigned_abs())
}

fn file_len(file: &Path) -> u64 {
    file.metadata().map_or(0, |metadata| metadata.len())
}

/// Formats a number of bytes for display.
fn format_bytes(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a database with free pages.
    fn with_free_pages(data_dir: &DataDir, owner: &Owner, project: &tempfile::TempDir) -> String {
        let project = data_dir.project(owner, project.path().to_str().unwrap());
        let project = project.unwrap();
        let database = data_dir.open_project(owner, &project).unwrap();
        let fill = "INSERT INTO about VALUES ('large', hex(zeroblob(100000)))";
        for statement in [fill, "DELETE FROM about WHERE key = 'large'"] {
            database.write(|db| Ok(db.execute(statement, [])?)).unwrap();
        }
        project.id().to_owned()
    }

    #[test]
    fn used_bytes_are_counted_without_opening_databases() {
        let data = tempfile::tempdir().unwrap();
        let (data_dir, ada) = (DataDir::new(data.path()), Owner::for_user("ada"));
        let projects: Vec<_> = (0..3).map(|_| tempfile::tempdir().unwrap()).collect();
        let mut expected = 0;
        for project in &projects {
            let id = with_free_pages(&data_dir, &ada, project);
            expected +=
                bytes_in_use(&data_dir.open_project_by_id(&ada, &id).unwrap().unwrap()).unwrap();
        }
        expected += bytes_in_use(&data_dir.open_shared(&ada).unwrap()).unwrap();
        assert_eq!(data_bytes(&data_dir, &ada).unwrap(), expected, "open");
        // The first call notes the last use, the second closes what was not used since.
        while data_dir.close_unused() {}
        assert_eq!(data_dir.open_files(), 0);
        assert_eq!(data_bytes(&data_dir, &ada).unwrap(), expected, "closed");
        assert_eq!(data_dir.open_files(), 0);
        assert!(expected < file_bytes(&data_dir, &ada));
    }

    #[test]
    fn a_damaged_file_and_a_wal_count_with_their_size() {
        let data = tempfile::tempdir().unwrap();
        let file = data.path().join("a.db");
        assert_eq!(closed_database_bytes(&file), 0);
        std::fs::write(&file, [1; 500]).unwrap();
        assert_eq!(closed_database_bytes(&file), 500);
        std::fs::write(data.path().join("a.db-wal"), [1; 70]).unwrap();
        assert_eq!(closed_database_bytes(&file), 570);
    }
}
