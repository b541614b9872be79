//! One SQLite file, safe for several processes: one writer at a time, with concurrent readers.
//!
//! A write that was reported as successful is on the disk. A write that was not finished leaves no trace.

mod file;

use std::{
    fs, io,
    io::Read as _,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

pub(crate) use self::file::DRAFT_PREFIX;
use self::file::FileIdentity;
use super::work_limit::WorkLimit;
use crate::{ContextError, DatabaseErrorKind, storage::lock};

const SCHEMA: &str = include_str!("database/schema.sql");
const SCHEMA_VERSION: i64 = 1;
/// Maximum time to wait for a lock held by another process.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval between attempts to get the lock. SQLite's own intervals grow so long that it may never find a busy writer
/// idle.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(3);
/// Pause between two transactions of long work, so that other writers get the lock.
const LOCK_PAUSE: Duration = Duration::from_millis(5);
/// Number of FTS5 pages merged in one transaction.
const MERGE_PAGES: i64 = 500;
/// Number of SQLite VM steps between two stop checks: a few checks per millisecond.
const STOP_CHECK_STEPS: i32 = 4_000;
/// Minimum size of a database. SQLite treats a shorter file as a new database.
const MIN_FILE_BYTES: u64 = 512;
/// Maximum number of idle read connections.
const MAX_READERS: usize = 2;
/// Page cache of the write connection, which also holds the pages of a transaction.
const WRITER_CACHE_KIB: i64 = 1_000;
/// Page cache of a read connection. The operating system caches the file, too. Together with `MAX_READERS` and the number of
/// open databases these sizes bound the memory of a burst of calls, which the allocator does not return.
const READER_CACHE_KIB: i64 = 500;

/// The database of one project, or of the data that an owner shares between projects.
#[derive(Debug)]
pub struct Database {
    path: PathBuf,
    identity: FileIdentity,
    /// `None` if the file or its folder is not writable.
    writer: Option<Mutex<Connection>>,
    readers: Mutex<Vec<Connection>>,
}

/// The reason why a transaction failed.
#[derive(Debug)]
pub enum TransactionError {
    /// SQLite failed.
    Sqlite(rusqlite::Error),
    /// Any other error.
    Context(ContextError),
}

impl Database {
    /// Opens a database and creates it if it does not exist, including its folder. Both are readable by this user only.
    ///
    /// An empty or truncated file is an error. A file that is not writable is opened read-only.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, ContextError> {
        let path = path.into();
        if !path.exists() {
            file::create_database(&path)?;
        }
        Self::open_existing(&path).map_err(|error| detect_truncation(&path, error))
    }

    fn open_existing(path: &Path) -> Result<Self, ContextError> {
        if fs::metadata(path).is_ok_and(|file| file.len() < MIN_FILE_BYTES) {
            return Err(truncated_error(path, corrupt_error()));
        }
        let before = FileIdentity::read(path);
        let had_wal = has_wal(path);
        let writer = match connect(path, WRITER_CACHE_KIB) {
            Ok(writer) => Some(writer).filter(|writer| writer.is_readonly("main") == Ok(false)),
            Err(ContextError::Database {
                kind: DatabaseErrorKind::ReadOnly,
                ..
            }) => None,
            Err(error) => return Err(error),
        };
        // SQLite reads a truncated last page as if it were complete.
        if let Some(writer) = &writer
            && !had_wal
            && is_shorter_than_pages(writer, path).unwrap_or(false)
            && !has_wal(path)
        {
            return Err(truncated_error(path, corrupt_error()));
        }
        let path = path.to_owned();
        let identity = before.filter(|_| before == FileIdentity::read(&path));
        let database = Self {
            identity: identity.ok_or_else(removed_error)?,
            path,
            writer: writer.map(Mutex::new),
            readers: Mutex::default(),
        };
        database.ensure_schema()?;
        Ok(database)
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the file or its folder is not writable.
    pub fn is_read_only(&self) -> bool {
        self.writer.is_none()
    }

    /// Returns whether the path still refers to the open file. Writes to a removed file would be lost.
    pub(crate) fn is_current(&self) -> bool {
        FileIdentity::read(&self.path) == Some(self.identity)
    }

    /// Runs a read transaction. It sees a snapshot and no later writes.
    pub fn read<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, TransactionError>,
    ) -> Result<T, ContextError> {
        let limit = WorkLimit::current();
        if let Some(limit) = &limit {
            limit.check()?;
        }
        let reader = lock(&self.readers).pop();
        let mut reader = match reader {
            Some(reader) => reader,
            None => {
                let reader = if self.is_read_only() {
                    file::connect_read_only(&self.path)
                        .map_err(|error| ContextError::database(&self.path, error))?
                } else {
                    connect(&self.path, READER_CACHE_KIB)?
                };
                self.check_current()?;
                reader
            }
        };
        if let Some(limit) = limit.clone() {
            set_stop_check(&reader, Some(move || limit.is_exceeded()));
        }
        let done = reader
            .transaction()
            .map_err(TransactionError::from)
            .and_then(|transaction| work(&transaction))
            .map_err(|error| {
                interruption_error(&error, limit.as_deref())
                    .unwrap_or_else(|| self.context_error(error))
            })?;
        if limit.is_some() {
            set_stop_check(&reader, None::<fn() -> bool>);
        }
        let mut readers = lock(&self.readers);
        // A connection opened without locks does not see later writes of other processes.
        if readers.len() < MAX_READERS && !self.is_read_only() {
            readers.push(reader);
        }
        Ok(done)
    }

    /// Runs a write transaction. When this returns `Ok`, all changes are on the disk; otherwise none is.
    pub fn write<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, TransactionError>,
    ) -> Result<T, ContextError> {
        let mut writer = self.writer()?;
        let run = || {
            let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
            self.check_current()?;
            let done = work(&transaction)?;
            transaction.commit()?;
            Ok(done)
        };
        run().map_err(|error| self.context_error(error))
    }

    /// Pauses so that other processes can write. Call it between the transactions of long work.
    pub(crate) fn yield_lock(&self) {
        std::thread::sleep(LOCK_PAUSE);
    }

    /// Removes all traces of deleted data from the file. Returns `false` if another reader still uses old pages.
    pub(crate) fn secure_vacuum(&self) -> Result<bool, ContextError> {
        let writer = self.writer()?;
        // Our own read connections would keep old pages in use, too.
        lock(&self.readers).clear();
        let vacuum = || {
            writer.execute_batch(
                "INSERT INTO item_fts (item_fts) VALUES ('optimize');
                 INSERT INTO chunk_fts (chunk_fts) VALUES ('optimize');
                 VACUUM;",
            )?;
            let checkpoint = "PRAGMA wal_checkpoint (TRUNCATE)";
            let busy: i64 = writer.query_row(checkpoint, [], |row| row.get(0))?;
            Ok(busy == 0)
        };
        vacuum().map_err(|error| ContextError::database(&self.path, error))
    }

    /// Moves the contents of the WAL to the database and truncates it. Returns `false` if another reader prevents that.
    pub(crate) fn truncate_wal(&self) -> Result<bool, ContextError> {
        let writer = self.writer()?;
        lock(&self.readers).clear();
        let checkpoint = "PRAGMA wal_checkpoint (TRUNCATE)";
        let busy = writer.query_row(checkpoint, [], |row| row.get::<_, i64>(0));
        let busy = busy.map_err(|error| ContextError::database(&self.path, error))?;
        Ok(busy == 0)
    }

    /// Rewrites an FTS5 index without its deleted entries. Other processes can write between the transactions.
    pub(crate) fn rebuild_fts(&self, index: &str) -> Result<(), ContextError> {
        let merge = format!("INSERT INTO {index} ({index}, rank) VALUES ('merge', ?1)");
        let changes = "SELECT total_changes()";
        let count = |db: &Connection| db.query_row(changes, [], |row| row.get::<_, i64>(0));
        // A negative page count starts a full merge; positive ones continue it until no work is left.
        let mut pages = -MERGE_PAGES;
        loop {
            let changed = self.write(|db| {
                let before = count(db)?;
                db.execute(&merge, [pages])?;
                Ok(count(db)? - before)
            })?;
            // The merge command itself counts as one change.
            if changed < 2 {
                return Ok(());
            }
            pages = MERGE_PAGES;
            self.yield_lock();
        }
    }

    /// Creates the tables of a new file. Several processes may try this at the same time.
    fn ensure_schema(&self) -> Result<(), ContextError> {
        let version = self.read(|db| Ok(version(db)?))?;
        match version {
            SCHEMA_VERSION => Ok(()),
            0 => self.write(|db| {
                if version_is(db, 0)? {
                    db.execute_batch(SCHEMA)?;
                    db.pragma_update(None, "user_version", SCHEMA_VERSION)?;
                }
                Ok(())
            }),
            _ => Err(ContextError::Database {
                path: self.path.clone(),
                kind: DatabaseErrorKind::TooNew,
                source: rusqlite::Error::InvalidQuery,
            }),
        }
    }

    fn writer(&self) -> Result<MutexGuard<'_, Connection>, ContextError> {
        match &self.writer {
            Some(writer) => Ok(lock(writer)),
            None => {
                let source = sqlite_error(rusqlite::ffi::SQLITE_READONLY);
                Err(ContextError::database(&self.path, source))
            }
        }
    }

    fn check_current(&self) -> Result<(), ContextError> {
        self.is_current().then_some(()).ok_or_else(removed_error)
    }

    fn context_error(&self, error: TransactionError) -> ContextError {
        match error {
            TransactionError::Sqlite(error) => ContextError::database(&self.path, error),
            TransactionError::Context(error) => error,
        }
    }
}

/// Installs a callback that tells SQLite when to stop.
fn set_stop_check<F: FnMut() -> bool + Send + 'static>(
    connection: &Connection,
    is_over: Option<F>,
) {
    // Fails only for a connection that we do not own.
    let _ = connection.progress_handler(STOP_CHECK_STEPS, is_over);
}

/// Returns the limit error if SQLite was interrupted by the work limit.
fn interruption_error(error: &TransactionError, limit: Option<&WorkLimit>) -> Option<ContextError> {
    let TransactionError::Sqlite(error) = error else {
        return None;
    };
    let code = error.sqlite_error_code();
    let is_interrupted = code == Some(rusqlite::ErrorCode::OperationInterrupted);
    limit.filter(|_| is_interrupted)?.check().err()
}

/// Returns the current time in milliseconds since 1970.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}

/// Converts a corruption error to a truncation error if the file is truncated.
fn detect_truncation(path: &Path, error: ContextError) -> ContextError {
    match error {
        // Only open the file after the failure: closing it releases SQLite's POSIX locks.
        ContextError::Database {
            kind: DatabaseErrorKind::Corrupt,
            source,
            ..
        } if is_truncated(path).unwrap_or(false) => truncated_error(path, source),
        error => error,
    }
}

/// Returns whether a file without WAL is shorter than its page count.
fn is_shorter_than_pages(
    connection: &Connection,
    path: &Path,
) -> Result<bool, Box<dyn std::error::Error>> {
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let length = pragma("page_size")?.saturating_mul(pragma("page_count")?);
    Ok(length.unsigned_abs() > fs::metadata(path)?.len())
}

/// Returns whether the database has a non-empty WAL.
fn has_wal(path: &Path) -> bool {
    let log = fs::metadata(sibling_path(path, "-wal"));
    log.is_ok_and(|log| log.len() > 0)
}

/// Returns whether a file is shorter than its header says.
fn is_truncated(path: &Path) -> io::Result<bool> {
    const MAGIC: &[u8] = b"SQLite format 3\0";
    let mut header = Vec::new();
    let mut file = fs::File::open(path)?;
    file.by_ref().take(100).read_to_end(&mut header)?;
    let length = file.metadata()?.len();
    if header.len() < 100 {
        let known = header.len().min(MAGIC.len());
        return Ok(header[..known] == MAGIC[..known]);
    }
    let page = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 65_536,
        size => u64::from(size),
    };
    let pages = u32::from_be_bytes([header[28], header[29], header[30], header[31]]);
    Ok(header.starts_with(MAGIC) && u64::from(pages) * page > length)
}

fn truncated_error(path: &Path, source: rusqlite::Error) -> ContextError {
    ContextError::Database {
        path: path.to_owned(),
        kind: DatabaseErrorKind::Truncated,
        source,
    }
}

fn corrupt_error() -> rusqlite::Error {
    sqlite_error(rusqlite::ffi::SQLITE_CORRUPT)
}

fn sqlite_error(code: i32) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None)
}

fn is_read_only_error(error: &rusqlite::Error) -> bool {
    DatabaseErrorKind::from_sqlite(error) == DatabaseErrorKind::ReadOnly
}

/// Returns the path with a suffix appended to the file name.
pub(crate) fn sibling_path(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Flushes the directory entry of a new file to the disk.
#[cfg(unix)]
pub(crate) fn sync_parent_dir(path: &Path) -> io::Result<()> {
    path.parent()
        .map_or(Ok(()), |folder| fs::File::open(folder)?.sync_all())
}

#[cfg(not(unix))]
pub(crate) fn sync_parent_dir(_: &Path) -> io::Result<()> {
    Ok(())
}

fn removed_error() -> ContextError {
    ContextError::invalid("this data was deleted by another process; try again")
}

fn connect(path: &Path, cache_kib: i64) -> Result<Connection, ContextError> {
    let started = Instant::now();
    loop {
        match open_connection(path, cache_kib) {
            // Two processes that switch a new file to WAL meet a lock that SQLite's busy handler does not cover.
            Err(error) if is_busy(&error) && started.elapsed() < LOCK_TIMEOUT => {
                std::thread::sleep(Duration::from_millis(10));
            }
            done => return done.map_err(|error| ContextError::database(path, error)),
        }
    }
}

fn open_connection(path: &Path, cache_kib: i64) -> rusqlite::Result<Connection> {
    // The file exists: SQLite must not create one if it was just moved away.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_handler(Some(wait_for_lock))?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    // Committed data survives a power loss, not only the end of the process.
    connection.pragma_update(None, "synchronous", "full")?;
    // On macOS `fsync` does not reach the disk; this does.
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "cache_size", -cache_kib)?;
    connection.pragma_update(None, "secure_delete", true)?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(connection)
}

/// Busy handler: waits for a lock held by another process.
fn wait_for_lock(times: i32) -> bool {
    std::thread::sleep(LOCK_RETRY_INTERVAL);
    LOCK_RETRY_INTERVAL * times.unsigned_abs() < LOCK_TIMEOUT
}

fn is_busy(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked};
    matches!(
        error.sqlite_error_code(),
        Some(DatabaseBusy | DatabaseLocked)
    )
}

fn version(db: &Connection) -> rusqlite::Result<i64> {
    db.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn version_is(db: &Connection, expected: i64) -> rusqlite::Result<bool> {
    Ok(version(db)? == expected)
}

pub(crate) fn create_private_dir(folder: &Path) -> Result<(), ContextError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
        .create(folder)
        .map_err(|error| ContextError::file(folder, error))
}

/// Creates the file with mode 600 before SQLite opens it. SQLite gives its side files the same mode.
pub(crate) fn create_private_file(path: &Path) -> Result<(), ContextError> {
    let mut options = fs::OpenOptions::new();
    options.append(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(ContextError::file(path, error))
        }
        _ => Ok(()),
    }
}

impl From<rusqlite::Error> for TransactionError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<ContextError> for TransactionError {
    fn from(error: ContextError) -> Self {
        Self::Context(error)
    }
}

#[cfg(test)]
mod tests;
