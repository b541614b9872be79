//! Database files: creation, identity, and opening without write permission.
//!
//! Databases are created atomically: a file with the final name is never empty or incomplete, so an empty file always means
//! lost data.

use std::{fs, io, path::Path};

use rusqlite::{Connection, OpenFlags};

use super::{
    READER_CACHE_KIB, SCHEMA, SCHEMA_VERSION, WRITER_CACHE_KIB, connect, create_private_dir,
    create_private_file, has_wal, sibling_path, sync_parent_dir, version, wait_for_lock,
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
    let mut connection = connect(draft, WRITER_CACHE_KIB)?;
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

/// Identifies a file as long as it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileIdentity {
    #[cfg(unix)]
    device: u64,
    #[cfg(unix)]
    inode: u64,
}

impl FileIdentity {
    /// Returns the identity of the file at the path, if it exists. Does not open the file: closing it would release
    /// SQLite's locks.
    #[cfg(unix)]
    pub(super) fn read(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        let metadata = std::fs::metadata(path).ok()?;
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    /// Returns the identity of the file at the path, if it exists. An open file cannot be removed on this platform.
    #[cfg(not(unix))]
    pub(super) fn read(path: &Path) -> Option<Self> {
        path.exists().then_some(Self {})
    }
}

/// With an exclusive lock SQLite keeps the WAL index in memory. Nothing can be locked where nothing can be written, and
/// locks are not needed there.
const WITHOUT_LOCKS: &str = if cfg!(windows) {
    "mode=ro&vfs=win32-none"
} else {
    "mode=ro&vfs=unix-none"
};

/// Opens a connection to a database that is not writable: on a read-only file system or in a folder of another user.
///
/// In WAL mode SQLite creates files next to the database. There is a fallback for each case where it cannot.
pub(super) fn connect_read_only(path: &Path) -> rusqlite::Result<Connection> {
    // While another process has the database open, its WAL files exist and are shared.
    match open_read_only(path, "mode=ro") {
        Err(error) if super::is_read_only_error(&error) => {}
        done => return done,
    }
    if has_wal(path) {
        open_read_only(path, WITHOUT_LOCKS)
    } else {
        // All data is in the file and no process has it open.
        open_read_only(path, "immutable=1")
    }
}

fn open_read_only(path: &Path, parameters: &str) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(uri(path, parameters), flags)?;
    connection.busy_handler(Some(wait_for_lock))?;
    if parameters == WITHOUT_LOCKS {
        connection.pragma_update(None, "locking_mode", "exclusive")?;
    }
    connection.pragma_update(None, "cache_size", -READER_CACHE_KIB)?;
    // Opening does not read the file; this does.
    version(&connection)?;
    Ok(connection)
}

/// Returns the path as an SQLite URI.
fn uri(path: &Path, parameters: &str) -> String {
    use std::fmt::Write as _;
    let mut uri = "file:".to_owned();
    let path = path.as_os_str().as_encoded_bytes();
    if cfg!(windows) && path.get(1) == Some(&b':') {
        uri.push('/');
    }
    for &byte in path {
        match byte {
            b'\\' if cfg!(windows) => uri.push('/'),
            b'/' | b'.' | b'_' | b'-' | b':' => uri.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(byte)),
            byte => write!(uri, "%{byte:02X}").expect("a string can be written to"),
        }
    }
    uri.push('?');
    uri + parameters
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::database::sibling_path;

    #[cfg(unix)]
    #[test]
    fn special_characters_in_a_path_are_encoded() {
        let uri = uri(Path::new("/a b/ü?#%.db"), "mode=ro");
        assert_eq!(uri, "file:/a%20b/%C3%BC%3F%23%25.db?mode=ro");
    }

    /// Uses a copy of a database with its WAL, but without the WAL index.
    #[test]
    fn a_wal_is_read_without_creating_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let database = crate::Database::open(&path).unwrap();
        let insert = "INSERT INTO about VALUES ('root', '/a')";
        database.write(|db| Ok(db.execute(insert, [])?)).unwrap();
        let copy = folder.path().join("b.db");
        for suffix in ["", "-wal"] {
            std::fs::copy(sibling_path(&path, suffix), sibling_path(&copy, suffix)).unwrap();
        }
        let select = "SELECT value FROM about WHERE key = 'root'";
        let read = |connection: Connection| -> rusqlite::Result<String> {
            connection.query_row(select, [], |row| row.get(0))
        };
        let connection = open_read_only(&copy, WITHOUT_LOCKS).unwrap();
        assert_eq!(read(connection).unwrap(), "/a");
        assert!(!sibling_path(&copy, "-shm").exists());
        // Without its WAL the file does not have the row.
        assert!(read(open_read_only(&copy, "immutable=1").unwrap()).is_err());
    }
}
