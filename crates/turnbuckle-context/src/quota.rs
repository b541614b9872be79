//! How many bytes an owner may keep.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::desk::Desk;
use crate::{ContextError, Database, Library, Owner};

/// How often it is looked whether there is room, while something is added.
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);

impl Desk {
    /// Refuses if an owner keeps as much as it may. To be asked before something is added.
    pub(crate) fn check_quota(&self, owner: &Owner) -> Result<(), ContextError> {
        let Some(quota) = self.quota() else {
            return Ok(());
        };
        // Files are looked at first, which is cheap. Room in them that was freed is free again.
        if size_of_files(self.library(), owner) < quota {
            return Ok(());
        }
        let used = size_of_data(self.library(), owner)?;
        match used < quota {
            true => Ok(()),
            false => Err(ContextError::refused(format!(
                "your data on this server has reached its limit ({} of {} are used), so nothing was added; \
                 collection_list shows what is kept, and collection_delete removes what is not needed",
                size(used),
                size(quota)
            ))),
        }
    }

    /// Says whether an owner keeps as much as it may.
    pub(crate) fn is_full(&self, owner: &Owner) -> bool {
        self.check_quota(owner).is_err()
    }
}

impl Desk {
    /// Watches whether there is room for more, as work goes on that adds something. Looks twice a second.
    pub(crate) fn room_watch(&self, owner: &Owner) -> impl FnMut() -> bool + use<> {
        let (desk, owner) = (self.clone(), owner.clone());
        let mut looked = Instant::now();
        let mut has_room = true;
        move || {
            if looked.elapsed() >= BETWEEN_LOOKS {
                has_room = !desk.is_full(&owner);
                looked = Instant::now();
            }
            has_room
        }
    }
}

/// The bytes of all files of an owner, with what waits to be written into them.
fn size_of_files(library: &Library, owner: &Owner) -> u64 {
    let files = std::fs::read_dir(library.folder().join(owner.id()));
    let files = files.into_iter().flatten().flatten();
    files
        .filter_map(|file| Some(file.metadata().ok()?.len()))
        .sum()
}

/// The bytes in use in the databases of an owner. Opens no database: an owner may have thousands, and a `Library` keeps few open.
fn size_of_data(library: &Library, owner: &Owner) -> Result<u64, ContextError> {
    // A removal that a dead process began would count until the file is opened.
    if let Err(error) = library.finish_forgetting(owner) {
        tracing::warn!(%error, "what was to be forgotten still counts");
    }
    let mut sum = 0;
    for file in library.files(owner)? {
        let opened = library.already_open(&file);
        let in_use = opened.and_then(|database| in_use(&database).ok());
        sum += in_use.unwrap_or_else(|| in_use_of_closed(&file));
    }
    Ok(sum)
}

/// The bytes in use in a database that is not open here, with what waits to be written into it.
fn in_use_of_closed(file: &Path) -> u64 {
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    // A database that is damaged counts as the length of its file.
    let in_use = in_use_of_header(file).unwrap_or_else(|| length(file));
    in_use + length(Path::new(&log))
}

/// Reads the bytes in use from the header of a database file: <https://sqlite.org/fileformat2.html#the_database_header>.
fn in_use_of_header(file: &Path) -> Option<u64> {
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
    // The count of pages holds only if it was written with the last change.
    let is_valid = number(24)? == number(92)? && free < pages;
    is_valid.then(|| (pages - free) * page_size)
}

fn in_use(database: &Database) -> Result<u64, ContextError> {
    let pages = "SELECT (page_count - freelist_count) * page_size \
                 FROM pragma_page_count, pragma_freelist_count, pragma_page_size";
    let bytes = database.read(|db| Ok(db.query_row(pages, [], |row| row.get::<_, i64>(0))?))?;
    Ok(bytes.unsigned_abs())
}

fn length(file: &Path) -> u64 {
    file.metadata().map_or(0, |metadata| metadata.len())
}

/// A number of bytes for people.
fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a database in which some pages are free.
    fn with_free_pages(library: &Library, owner: &Owner, project: &tempfile::TempDir) -> String {
        let project = library.project(owner, project.path().to_str().unwrap());
        let project = project.unwrap();
        let database = library.open(owner, &project).unwrap();
        let fill = "INSERT INTO about VALUES ('large', hex(zeroblob(100000)))";
        for statement in [fill, "DELETE FROM about WHERE key = 'large'"] {
            database.write(|db| Ok(db.execute(statement, [])?)).unwrap();
        }
        project.id().to_owned()
    }

    #[test]
    fn the_size_of_the_data_is_found_without_opening_databases() {
        let data = tempfile::tempdir().unwrap();
        let (library, ada) = (Library::new(data.path()), Owner::user("ada"));
        let projects: Vec<_> = (0..3).map(|_| tempfile::tempdir().unwrap()).collect();
        let mut wanted = 0;
        for project in &projects {
            let id = with_free_pages(&library, &ada, project);
            wanted += in_use(&library.open_id(&ada, &id).unwrap().unwrap()).unwrap();
        }
        wanted += in_use(&library.shared(&ada).unwrap()).unwrap();
        assert_eq!(size_of_data(&library, &ada).unwrap(), wanted, "open");
        library.close_idle();
        assert_eq!(library.open_files(), 0);
        assert_eq!(size_of_data(&library, &ada).unwrap(), wanted, "closed");
        assert_eq!(library.open_files(), 0);
        assert!(wanted < size_of_files(&library, &ada));
    }

    #[test]
    fn a_damaged_file_and_a_log_count_by_their_length() {
        let data = tempfile::tempdir().unwrap();
        let file = data.path().join("a.db");
        assert_eq!(in_use_of_closed(&file), 0);
        std::fs::write(&file, [1; 500]).unwrap();
        assert_eq!(in_use_of_closed(&file), 500);
        std::fs::write(data.path().join("a.db-wal"), [1; 70]).unwrap();
        assert_eq!(in_use_of_closed(&file), 570);
    }
}
