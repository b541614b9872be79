//! One SQLite file, safe for several processes: one writer at a time, readers beside it.
//!
//! Everything that a caller was told is saved is on the disk by then. What was begun and not finished leaves no trace.

mod create;
mod identity;
mod read_only;

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

pub(crate) use self::create::DRAFT_PREFIX;
use self::identity::Identity;
use crate::limit::WorkLimit;
use crate::{ContextError, Trouble};

const SCHEMA: &str = include_str!("database/schema.sql");
const VERSION: i64 = 1;
/// How long another process may hold the lock before we give up.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is tried meanwhile: SQLite's own intervals grow so long that a busy writer is never met at rest.
const TRY_AGAIN: Duration = Duration::from_millis(3);
/// How long one that writes much leaves the lock to others between two transactions.
const REST: Duration = Duration::from_millis(5);
/// How much of a search index is written anew in one transaction.
const MERGED_PAGES: i64 = 500;
/// How often SQLite asks whether to stop, in steps of its machine: a few times in a millisecond.
const STEPS: i32 = 4_000;
/// No database is shorter. SQLite takes a shorter file for a new one.
const SHORTEST: u64 = 512;
/// Connections for reading that are kept open.
const MOST_READERS: usize = 2;
/// What each connection keeps of the file in memory, in KiB. The system keeps it as well, once for all of them; with the
/// connections above and the files that a library has open this is what a burst of calls can leave behind.
const CACHE: i64 = 2_000;

/// The file of one project, or of what an owner shares between projects.
#[derive(Debug)]
pub struct Database {
    path: PathBuf,
    identity: Identity,
    /// Absent where the file or its folder cannot be written.
    writer: Option<Mutex<Connection>>,
    readers: Mutex<Vec<Connection>>,
}

/// Why a transaction was given up: SQLite failed, or what was asked for cannot be done.
#[derive(Debug)]
pub enum Fault {
    /// SQLite failed.
    Sqlite(rusqlite::Error),
    /// Anything else.
    Context(ContextError),
}

impl Database {
    /// Opens a file, and makes it if there is none; its folder is made as well, for this user only.
    ///
    /// A file that is empty or cut short is an error. One that cannot be written can be read.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, ContextError> {
        let path = path.into();
        if !path.exists() {
            create::create(&path)?;
        }
        Self::open_existing(&path).map_err(|error| explain(&path, error))
    }

    fn open_existing(path: &Path) -> Result<Self, ContextError> {
        if fs::metadata(path).is_ok_and(|file| file.len() < SHORTEST) {
            return Err(truncated(path, corrupt()));
        }
        let before = Identity::of(path);
        let had_log = has_log(path);
        let writer = match connect(path) {
            Ok(writer) => Some(writer).filter(|writer| writer.is_readonly("main") == Ok(false)),
            Err(ContextError::Storage {
                trouble: Trouble::ReadOnly,
                ..
            }) => None,
            Err(error) => return Err(error),
        };
        // SQLite reads a last page that is not there completely as if it were.
        if let Some(writer) = &writer
            && !had_log
            && is_shorter(writer, path).unwrap_or(false)
            && !has_log(path)
        {
            return Err(truncated(path, corrupt()));
        }
        let path = path.to_owned();
        let identity = before.filter(|_| before == Identity::of(&path));
        let database = Self {
            identity: identity.ok_or_else(removed)?,
            path,
            writer: writer.map(Mutex::new),
            readers: Mutex::default(),
        };
        database.prepare()?;
        Ok(database)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file or its folder cannot be written.
    pub fn is_read_only(&self) -> bool {
        self.writer.is_none()
    }

    /// Whether the path still leads to the file that is open. What is written to one that was removed is lost.
    pub(crate) fn is_current(&self) -> bool {
        Identity::of(&self.path) == Some(self.identity)
    }

    /// Reads in one snapshot: what others write meanwhile is not seen.
    pub fn read<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Fault>,
    ) -> Result<T, ContextError> {
        let limit = WorkLimit::current();
        if let Some(limit) = &limit {
            limit.check()?;
        }
        let kept = lock(&self.readers).pop();
        let mut reader = match kept {
            Some(reader) => reader,
            None => {
                let reader = match self.is_read_only() {
                    true => read_only::connect(&self.path)
                        .map_err(|error| ContextError::storage(&self.path, error))?,
                    false => connect(&self.path)?,
                };
                self.check_current()?;
                reader
            }
        };
        if let Some(limit) = limit.clone() {
            stop_with(&reader, Some(move || limit.is_over()));
        }
        let done = reader
            .transaction()
            .map_err(Fault::from)
            .and_then(|transaction| work(&transaction))
            .map_err(|fault| {
                interrupted(&fault, limit.as_deref()).unwrap_or_else(|| self.error(fault))
            })?;
        if limit.is_some() {
            stop_with(&reader, None::<fn() -> bool>);
        }
        let mut readers = lock(&self.readers);
        // What is opened without locks sees nothing of what another process writes later.
        if readers.len() < MOST_READERS && !self.is_read_only() {
            readers.push(reader);
        }
        Ok(done)
    }

    /// Writes in one transaction: all of it is on the disk when this returns, or nothing is.
    pub fn write<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Fault>,
    ) -> Result<T, ContextError> {
        let mut writer = self.writer()?;
        let run = || {
            let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
            self.check_current()?;
            let done = work(&transaction)?;
            transaction.commit()?;
            Ok(done)
        };
        run().map_err(|fault| self.error(fault))
    }

    /// Lets others write who wait for it. To be called between the transactions of long work.
    pub(crate) fn rest(&self) {
        std::thread::sleep(REST);
    }

    /// Leaves no trace in the file of what was removed from it. Says whether that worked: one who reads at the same time
    /// keeps the old pages in use.
    pub(crate) fn scrub(&self) -> Result<bool, ContextError> {
        let writer = self.writer()?;
        // Our own readers would keep them in use as well.
        lock(&self.readers).clear();
        let scrub = || {
            writer.execute_batch(
                "INSERT INTO item_fts (item_fts) VALUES ('optimize');
                 INSERT INTO chunk_fts (chunk_fts) VALUES ('optimize');
                 VACUUM;",
            )?;
            let checkpoint = "PRAGMA wal_checkpoint (TRUNCATE)";
            let busy: i64 = writer.query_row(checkpoint, [], |row| row.get(0))?;
            Ok(busy == 0)
        };
        scrub().map_err(|error| ContextError::storage(&self.path, error))
    }

    /// Moves everything out of the log and empties it. Returns whether that worked: another reader can be in the way.
    pub(crate) fn truncate_log(&self) -> Result<bool, ContextError> {
        let writer = self.writer()?;
        lock(&self.readers).clear();
        let checkpoint = "PRAGMA wal_checkpoint (TRUNCATE)";
        let busy = writer.query_row(checkpoint, [], |row| row.get::<_, i64>(0));
        let busy = busy.map_err(|error| ContextError::storage(&self.path, error))?;
        Ok(busy == 0)
    }

    /// Writes a search index anew, without what was deleted from it; others can write meanwhile.
    pub(crate) fn rewrite_index(&self, index: &str) -> Result<(), ContextError> {
        let merge = format!("INSERT INTO {index} ({index}, rank) VALUES ('merge', ?1)");
        let changes = "SELECT total_changes()";
        let count = |db: &Connection| db.query_row(changes, [], |row| row.get::<_, i64>(0));
        // A negative number begins to merge all there is; others go on with it, until there is nothing to do.
        let mut pages = -MERGED_PAGES;
        loop {
            let changed = self.write(|db| {
                let before = count(db)?;
                db.execute(&merge, [pages])?;
                Ok(count(db)? - before)
            })?;
            // The command itself counts as one.
            if changed < 2 {
                return Ok(());
            }
            pages = MERGED_PAGES;
            self.rest();
        }
    }

    /// Makes the tables of a new file; several processes may try at once.
    fn prepare(&self) -> Result<(), ContextError> {
        let version = self.read(|db| Ok(version(db)?))?;
        match version {
            VERSION => Ok(()),
            0 => self.write(|db| {
                if version_is(db, 0)? {
                    db.execute_batch(SCHEMA)?;
                    db.pragma_update(None, "user_version", VERSION)?;
                }
                Ok(())
            }),
            _ => Err(ContextError::Storage {
                path: self.path.clone(),
                trouble: Trouble::TooNew,
                source: rusqlite::Error::InvalidQuery,
            }),
        }
    }

    fn writer(&self) -> Result<MutexGuard<'_, Connection>, ContextError> {
        match &self.writer {
            Some(writer) => Ok(lock(writer)),
            None => {
                let source = sqlite_error(rusqlite::ffi::SQLITE_READONLY);
                Err(ContextError::storage(&self.path, source))
            }
        }
    }

    fn check_current(&self) -> Result<(), ContextError> {
        self.is_current().then_some(()).ok_or_else(removed)
    }

    fn error(&self, fault: Fault) -> ContextError {
        match fault {
            Fault::Sqlite(error) => ContextError::storage(&self.path, error),
            Fault::Context(error) => error,
        }
    }
}

/// Lets SQLite ask now and then whether to stop.
fn stop_with<F: FnMut() -> bool + Send + 'static>(connection: &Connection, is_over: Option<F>) {
    // It fails only for a connection that is not ours.
    let _ = connection.progress_handler(STEPS, is_over);
}

/// Why SQLite was stopped, if it was.
fn interrupted(fault: &Fault, limit: Option<&WorkLimit>) -> Option<ContextError> {
    let Fault::Sqlite(error) = fault else {
        return None;
    };
    let code = error.sqlite_error_code();
    let is_interrupted = code == Some(rusqlite::ErrorCode::OperationInterrupted);
    limit.filter(|_| is_interrupted)?.check().err()
}

/// Milliseconds since 1970.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}

/// Says of a damaged file that it is cut short, if it is.
fn explain(path: &Path, error: ContextError) -> ContextError {
    match error {
        // The file is opened only now: to close it gives up the locks of SQLite.
        ContextError::Storage {
            trouble: Trouble::Corrupt,
            source,
            ..
        } if is_truncated(path).unwrap_or(false) => truncated(path, source),
        error => error,
    }
}

/// Whether a file is shorter than its pages, none of which are in the log.
fn is_shorter(connection: &Connection, path: &Path) -> Result<bool, Box<dyn std::error::Error>> {
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let length = pragma("page_size")?.saturating_mul(pragma("page_count")?);
    Ok(length.unsigned_abs() > fs::metadata(path)?.len())
}

/// Whether something is in the log beside a database.
fn has_log(path: &Path) -> bool {
    let log = fs::metadata(beside(path, "-wal"));
    log.is_ok_and(|log| log.len() > 0)
}

/// Whether a file is shorter than its header says.
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

fn truncated(path: &Path, source: rusqlite::Error) -> ContextError {
    ContextError::Storage {
        path: path.to_owned(),
        trouble: Trouble::Truncated,
        source,
    }
}

fn corrupt() -> rusqlite::Error {
    sqlite_error(rusqlite::ffi::SQLITE_CORRUPT)
}

fn sqlite_error(code: i32) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None)
}

fn cannot_write(error: &rusqlite::Error) -> bool {
    Trouble::of(error) == Trouble::ReadOnly
}

/// A file beside another: its name with a suffix.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Makes sure that a new name is on the disk.
#[cfg(unix)]
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    path.parent()
        .map_or(Ok(()), |folder| fs::File::open(folder)?.sync_all())
}

#[cfg(not(unix))]
pub(crate) fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

fn removed() -> ContextError {
    ContextError::refused("what was kept here was removed meanwhile; try again")
}

fn connect(path: &Path) -> Result<Connection, ContextError> {
    let begun = Instant::now();
    loop {
        match try_to_connect(path) {
            // Two processes that turn a new file to WAL meet a lock that SQLite's own patience does not cover.
            Err(error) if is_busy(&error) && begun.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(10));
            }
            done => return done.map_err(|error| ContextError::storage(path, error)),
        }
    }
}

fn try_to_connect(path: &Path) -> rusqlite::Result<Connection> {
    // The file is there already: SQLite shall not make one where it was just moved away.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_handler(Some(try_again))?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    // What was acknowledged survives a power cut, not only the end of the process.
    connection.pragma_update(None, "synchronous", "full")?;
    // Where `fsync` does not reach the disk, on macOS, this does.
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "cache_size", -CACHE)?;
    connection.pragma_update(None, "secure_delete", true)?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(connection)
}

/// Waits for a lock that somebody else holds.
fn try_again(times: i32) -> bool {
    std::thread::sleep(TRY_AGAIN);
    TRY_AGAIN * times.unsigned_abs() < PATIENCE
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

fn version_is(db: &Connection, wanted: i64) -> rusqlite::Result<bool> {
    Ok(version(db)? == wanted)
}

pub(crate) fn make_private_folder(folder: &Path) -> Result<(), ContextError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
        .create(folder)
        .map_err(|error| ContextError::file(folder, error))
}

/// Makes the file before SQLite does, so that nobody else can ever read it. SQLite gives its side files the same mode.
pub(crate) fn make_private_file(path: &Path) -> Result<(), ContextError> {
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<ContextError> for Fault {
    fn from(error: ContextError) -> Self {
        Self::Context(error)
    }
}

#[cfg(test)]
mod tests;
