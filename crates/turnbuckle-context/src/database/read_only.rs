//! Reading a database that cannot be written: a disk that is mounted read-only, or a folder of another user.
//!
//! In WAL mode SQLite wants to make files beside the database. Where it cannot, there is another way for each case.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::{has_log, try_again, version};

/// The index of the log is made in memory if one connection has the database for itself. The lock for that cannot be had where
/// nothing can be written, and is not needed there.
const WITHOUT_LOCKS: &str = match cfg!(windows) {
    true => "mode=ro&vfs=win32-none",
    false => "mode=ro&vfs=unix-none",
};

/// Connects for reading only.
pub(super) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    // While another process has the database open, the files beside it are there and are shared.
    match open(path, "mode=ro") {
        Err(error) if super::cannot_write(&error) => {}
        done => return done,
    }
    match has_log(path) {
        // All is in the file, and nobody has it open.
        false => open(path, "immutable=1"),
        true => open(path, WITHOUT_LOCKS),
    }
}

fn open(path: &Path, parameters: &str) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(uri(path, parameters), flags)?;
    connection.busy_handler(Some(try_again))?;
    if parameters == WITHOUT_LOCKS {
        connection.pragma_update(None, "locking_mode", "exclusive")?;
    }
    connection.pragma_update(None, "cache_size", -4_000)?;
    // Opening reads nothing; whether it can be read shows now.
    version(&connection)?;
    Ok(connection)
}

/// The path as a URI that SQLite understands.
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
    use super::super::beside;
    use super::*;

    #[cfg(unix)]
    #[test]
    fn signs_in_a_path_are_encoded() {
        let uri = uri(Path::new("/a b/ü?#%.db"), "mode=ro");
        assert_eq!(uri, "file:/a%20b/%C3%BC%3F%23%25.db?mode=ro");
    }

    /// A copy of a database that another process was writing, with its log and without the index of that.
    #[test]
    fn a_log_is_read_without_files_being_made() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let database = crate::Database::open(&path).unwrap();
        let insert = "INSERT INTO about VALUES ('root', '/a')";
        database.write(|db| Ok(db.execute(insert, [])?)).unwrap();
        let copy = folder.path().join("b.db");
        for suffix in ["", "-wal"] {
            std::fs::copy(beside(&path, suffix), beside(&copy, suffix)).unwrap();
        }
        let select = "SELECT value FROM about WHERE key = 'root'";
        let read = |connection: Connection| -> rusqlite::Result<String> {
            connection.query_row(select, [], |row| row.get(0))
        };
        let connection = open(&copy, WITHOUT_LOCKS).unwrap();
        assert_eq!(read(connection).unwrap(), "/a");
        assert!(!beside(&copy, "-shm").exists());
        // Without its log the file has nothing of it.
        assert!(read(open(&copy, "immutable=1").unwrap()).is_err());
    }
}
