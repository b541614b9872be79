//! Errors of the context server, and the messages that callers see.

use std::{
    borrow::Cow,
    error::Error,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::memory_store::MemoryStoreError;

/// An error of the context server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContextError {
    /// The request is invalid. The message tells the caller what to do instead.
    #[error("{0}")]
    InvalidRequest(Cow<'static, str>),
    /// The requested object does not exist, or the caller may not see it.
    #[error("not found: {0}")]
    NotFound(Cow<'static, str>),
    /// The work was cancelled by the caller.
    #[error("cancelled")]
    Cancelled,
    /// The work exceeded its timeout and was stopped.
    #[error(
        "the call took longer than {}, the limit of this server, and was stopped; request less, or try again later",
        humantime::format_duration(*.0)
    )]
    TimedOut(Duration),
    /// A file or folder could not be read or written.
    #[error("{} cannot be used", path.display())]
    File {
        /// The path.
        path: PathBuf,
        /// The underlying error.
        source: std::io::Error,
    },
    /// A database operation failed.
    #[error("{}", DatabaseErrorText::new(*kind, path).for_operator)]
    Database {
        /// The database file.
        path: PathBuf,
        /// The kind of failure.
        kind: DatabaseErrorKind,
        /// The underlying error.
        source: rusqlite::Error,
    },
    /// A memory store other than SQLite failed.
    #[error(transparent)]
    MemoryStore(MemoryStoreError),
    /// The embedding provider failed.
    #[error("embeddings are unavailable")]
    Embedding(#[source] Box<dyn Error + Send + Sync>),
    /// The embedding provider rejects this text, but may accept others.
    #[error("the embedding endpoint rejected this text")]
    EmbeddingRejected(#[source] Box<dyn Error + Send + Sync>),
}

/// The kind of a database failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DatabaseErrorKind {
    /// The disk is full; the change was not written.
    Full,
    /// The file or its folder is not writable.
    ReadOnly,
    /// The file is damaged or not a database.
    Corrupt,
    /// The file is empty or truncated: data is lost.
    Truncated,
    /// Another process held the lock for too long.
    Busy,
    /// The file was written by a newer version of this program.
    TooNew,
    /// This process has too many open files.
    ProcessFileLimit,
    /// All processes together have too many open files.
    SystemFileLimit,
    /// Any other failure.
    Other,
}

impl ContextError {
    /// Creates an error with a message that tells the caller what to change.
    pub fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self::InvalidRequest(message.into())
    }

    /// Creates an error for an object that does not exist.
    pub fn not_found(what: impl Into<Cow<'static, str>>) -> Self {
        Self::NotFound(what.into())
    }

    /// Creates an error for a file or folder.
    pub fn file(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::File {
            path: path.into(),
            source,
        }
    }

    /// Creates an error for a database, classified by what the caller can do.
    pub(crate) fn database(path: &Path, source: rusqlite::Error) -> Self {
        Self::Database {
            path: path.to_owned(),
            kind: DatabaseErrorKind::from_sqlite(&source),
            source,
        }
    }
}

/// Maximum number of files that SQLite opens for one connection: database, WAL, WAL index and folder.
const FILES_PER_CONNECTION: usize = 4;

impl DatabaseErrorKind {
    pub(crate) fn from_sqlite(error: &rusqlite::Error) -> Self {
        use rusqlite::ErrorCode;
        let code = error.sqlite_error_code();
        if let Some(ErrorCode::CannotOpen | ErrorCode::SystemIoFailure) = code
            && let Some(limit) = Self::reached_file_limit()
        {
            return limit;
        }
        match code {
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                Self::ReadOnly
            }
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Corrupt,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            _ => Self::Other,
        }
    }

    /// Returns the limit of open files that prevents another connection.
    ///
    /// SQLite tells only that it cannot open a file. So this opens as many files as SQLite does.
    fn reached_file_limit() -> Option<Self> {
        let mut files = Vec::new();
        while files.len() < FILES_PER_CONNECTION {
            match fs::File::open("/") {
                Ok(file) => files.push(file),
                Err(error) => return Self::from_io(&error),
            }
        }
        None
    }

    /// Returns the limit of open files that caused an error. It may be reached only for a moment.
    pub(crate) fn from_io(error: &io::Error) -> Option<Self> {
        // EMFILE and ENFILE have these numbers on every Unix; on Windows they are other errors.
        match error.raw_os_error().filter(|_| cfg!(unix))? {
            24 => Some(Self::ProcessFileLimit),
            23 => Some(Self::SystemFileLimit),
            _ => None,
        }
    }
}

/// Returns the maximum number of files that this process may open.
#[cfg(unix)]
fn max_open_files() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

#[cfg(not(unix))]
fn max_open_files() -> Option<u64> {
    None
}

/// The texts about a kind of database failure.
pub(crate) struct DatabaseErrorText {
    /// What happened and how to repair it, with the path of the database, for the operator of the server.
    pub(crate) for_operator: String,
    /// What to do next, without a path of the server, for a caller.
    pub(crate) for_caller: &'static str,
}

impl DatabaseErrorText {
    pub(crate) fn new(kind: DatabaseErrorKind, path: &Path) -> Self {
        let path = path.display();
        let (for_operator, for_caller) = match kind {
            DatabaseErrorKind::Full => (
                format!("the disk of {path} is full; nothing was saved"),
                "the disk is full and nothing was saved; tell the user to free some space, then try again",
            ),
            DatabaseErrorKind::ReadOnly => (
                format!("{path} is not writable; check the permissions of the file and its folder"),
                "the data folder of this server is not writable and nothing was saved; tell the user to check its permissions",
            ),
            DatabaseErrorKind::Corrupt => (
                format!(
                    "{path} is damaged or not a database; move it away, and import an export if there is one"
                ),
                "the database of this project is damaged; tell the user to move it away and import an export, if there is one (the server's log names the file)",
            ),
            DatabaseErrorKind::Truncated => (
                format!(
                    "{path} is empty or truncated; move it away, and import an export if there is one"
                ),
                "the database of this project is damaged: it is empty or truncated; tell the user to move it away and import an export, if there is one (the server's log names the file)",
            ),
            DatabaseErrorKind::Busy => (
                format!("{path} is locked by another process; try again in a moment"),
                "the database of this project is locked by another process and nothing was saved; try again in a moment",
            ),
            DatabaseErrorKind::TooNew => (
                format!("{path} was written by a newer version of this program"),
                "the database of this project was written by a newer version of this server; tell the user to update it",
            ),
            DatabaseErrorKind::ProcessFileLimit => {
                let limit = max_open_files().map_or(" of".to_owned(), |max| format!(" of {max}"));
                (
                    format!(
                        "{path} cannot be opened: this process has reached its limit{limit} open files; \
                         raise it with `ulimit -n` (or `LimitNOFILE` of systemd), and start the process again"
                    ),
                    "the server has reached its limit of open files and nothing was saved; try again in a moment, and if the error persists tell the user to raise the limit (`ulimit -n`)",
                )
            }
            DatabaseErrorKind::SystemFileLimit => (
                format!(
                    "{path} cannot be opened: the system has reached its limit of open files; \
                     close other programs, or raise it (`sysctl fs.file-max`)"
                ),
                "the system of the server has reached its limit of open files and nothing was saved; try again in a moment, and tell the user if the error persists",
            ),
            DatabaseErrorKind::Other => (
                format!("the database {path} failed"),
                "the database failed and nothing was saved; tell the user to see the server's log",
            ),
        };
        Self {
            for_operator,
            for_caller,
        }
    }
}
