//! How many bytes an owner may keep.

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

/// The bytes in use in the databases of an owner.
fn size_of_data(library: &Library, owner: &Owner) -> Result<u64, ContextError> {
    let mut sum = 0;
    for id in library.projects(owner)? {
        let file = library.folder().join(owner.id()).join(format!("{id}.db"));
        // One that is damaged counts as it lies there.
        let in_use = library
            .open_id(owner, &id)
            .and_then(|known| known.as_deref().map(in_use).transpose());
        sum += in_use.ok().flatten().unwrap_or_else(|| length(&file));
    }
    if let Some(shared) = library.known_shared(owner)? {
        sum += in_use(&shared)?;
    }
    Ok(sum)
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
