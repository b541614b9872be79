//! Making a new database, so that a file of its name is never empty or half made: an empty one has lost what was in it.

use std::fs;
use std::io;
use std::path::Path;

use super::{
    SCHEMA, VERSION, beside, connect, make_private_file, make_private_folder, sync_folder,
};
use crate::ContextError;
use crate::memory::new_id;

/// How the file is called while it is made: this, `_`, an id and `.tmp`.
pub(crate) const DRAFT_PREFIX: &str = "create";

/// Makes a database, unless another process is faster.
pub(super) fn create(path: &Path) -> Result<(), ContextError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    make_private_folder(folder)?;
    let draft = folder.join(format!("{}.tmp", new_id(DRAFT_PREFIX)));
    let made = fill(&draft).and_then(|()| {
        let published = publish(&draft, path);
        published.map_err(|error| ContextError::file(path, error))
    });
    for suffix in ["-wal", "-shm", ""] {
        let _ = fs::remove_file(beside(&draft, suffix));
    }
    made
}

fn fill(draft: &Path) -> Result<(), ContextError> {
    make_private_file(draft)?;
    let mut connection = connect(draft)?;
    let mut make = || {
        let transaction = connection.transaction()?;
        transaction.execute_batch(SCHEMA)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
        transaction.commit()
    };
    make().map_err(|error| ContextError::storage(draft, error))?;
    // Closing moves everything from the log into the file.
    let closed = connection.close();
    closed.map_err(|(_, error)| ContextError::storage(draft, error))
}

/// Gives the file its name, if nothing has it.
fn publish(draft: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(draft, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        // Not every file system has links.
        Err(_) if !path.exists() => fs::rename(draft, path)?,
        _ => {}
    }
    sync_folder(path)
}
