//! One SQLite file, safe for several processes: one writer at a time, readers beside it.
//!
//! Everything that a caller was told is saved is on the disk by then. What was begun and not finished leaves no trace.

mod identity;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

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
    writer: Mutex<Connection>,
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
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, ContextError> {
        let path = path.into();
        if let Some(folder) = path.parent() {
            make_private_folder(folder)?;
        }
        make_private_file(&path)?;
        let before = Identity::of(&path);
        let writer = connect(&path)?;
        let identity = before.filter(|_| before == Identity::of(&path));
        let database = Self {
            identity: identity.ok_or_else(removed)?,
            path,
            writer: Mutex::new(writer),
            readers: Mutex::default(),
        };
        database.prepare()?;
        Ok(database)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
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
                let reader = connect(&self.path)?;
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
        if readers.len() < MOST_READERS {
            readers.push(reader);
        }
        Ok(done)
    }

    /// Writes in one transaction: all of it is on the disk when this returns, or nothing is.
    pub fn write<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Fault>,
    ) -> Result<T, ContextError> {
        let mut writer = lock(&self.writer);
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
        let writer = lock(&self.writer);
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
        let writer = lock(&self.writer);
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

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
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
