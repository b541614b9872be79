//! Opens databases that are not writable: a read-only file system or a folder of another user.
//!
//! In WAL mode SQLite creates files next to the database. There is a fallback for each case where it cannot.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::{has_wal, version, wait_for_lock};

/// With an exclusive lock SQLite keeps the WAL index in memory. Nothing can be locked where nothing can be written, and
/// locks are not needed there.
const WITHOUT_LOCKS: &str = match cfg!(windows) {
    true => "mode=ro&vfs=win32-none",
    false => "mode=ro&vfs=unix-none",
};

/// Opens a read-only connection.
pub(super) fn connect_read_only(path: &Path) -> rusqlite::Result<Connection> {
    // While another process has the database open, its WAL files exist and are shared.
    match open_read_only(path, "mode=ro") {
        Err(error) if super::is_read_only_error(&error) => {}
        done => return done,
    }
    match has_wal(path) {
        // Without a WAL all data is in the file and no process has it open.
        false => open_read_only(path, "immutable=1"),
        true => open_read_only(path, WITHOUT_LOCKS),
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
    connection.pragma_update(None, "cache_size", -4_000)?;
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
    use super::{super::sibling_path, *};

    #[cfg(unix)]
    #[test]
    fn signs_in_a_path_are_encoded() {
        let uri = uri(Path::new("/a b/ü?#%.db"), "mode=ro");
        assert_eq!(uri, "file:/a%20b/%C3%BC%3F%23%25.db?mode=ro");
    }

    /// Uses a copy of a database with its WAL, but without the WAL index.
    #[test]
    fn a_log_is_read_without_files_being_made() {
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
