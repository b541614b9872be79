//! Creates databases atomically: a file with the final name is never empty or incomplete, so an empty file always means
//! lost data.

use std::{fs, io, path::Path};

use super::{
    SCHEMA, SCHEMA_VERSION, connect, create_private_dir, create_private_file, sibling_path,
    sync_parent_dir,
};
use crate::{ContextError, memory::new_id};

/// Prefix of the temporary file: prefix, `_`, id, `.tmp`.
pub(crate) const DRAFT_PREFIX: &str = "create";

/// Creates a database, unless another process created it first.
pub(super) fn create_database(path: &Path) -> Result<(), ContextError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    create_private_dir(folder)?;
    let draft = folder.join(format!("{}.tmp", new_id(DRAFT_PREFIX)));
    let made = write_schema(&draft).and_then(|()| {
        let published = link_into_place(&draft, path);
        published.map_err(|error| ContextError::file(path, error))
    });
    for suffix in ["-wal", "-shm", ""] {
        let _ = fs::remove_file(sibling_path(&draft, suffix));
    }
    made
}

fn write_schema(draft: &Path) -> Result<(), ContextError> {
    create_private_file(draft)?;
    let mut connection = connect(draft)?;
    let mut make = || {
        let transaction = connection.transaction()?;
        transaction.execute_batch(SCHEMA)?;
        transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
        transaction.commit()
    };
    make().map_err(|error| ContextError::database(draft, error))?;
    // Closing the connection moves the contents of the WAL to the file.
    let closed = connection.close();
    closed.map_err(|(_, error)| ContextError::database(draft, error))
}

/// Gives the file its final name, unless the name exists.
fn link_into_place(draft: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(draft, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        // Not every file system supports hard links.
        Err(_) if !path.exists() => fs::rename(draft, path)?,
        _ => {}
    }
    sync_parent_dir(path)
}
