//! Errors of PostgreSQL: at the connection, and of operations.

use std::time::Duration;

use deadpool_postgres::PoolError;
use tokio_postgres::error::SqlState;

use crate::memory_store::MemoryStoreError;

/// Why a database cannot be used. No message contains the password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PostgresError {
    /// The URL is invalid.
    #[error(
        "the database URL is invalid; expected postgres://USER:PASSWORD@HOST:PORT/DATABASE, with special characters as %XX"
    )]
    InvalidUrl,
    /// No connection to the server is possible.
    #[error("{server} cannot be reached; check that the server runs and that the address is right")]
    Unreachable {
        /// The address, without the password.
        server: String,
        /// The underlying error.
        #[source]
        source: tokio_postgres::Error,
    },
    /// The server rejects user or password.
    #[error("{server} rejects the user or the password")]
    Unauthorized {
        /// The address, without the password.
        server: String,
        /// The underlying error.
        #[source]
        source: tokio_postgres::Error,
    },
    /// The database does not exist.
    #[error("{server} does not exist; create it with `createdb`")]
    UnknownDatabase {
        /// The address, without the password.
        server: String,
        /// The underlying error.
        #[source]
        source: tokio_postgres::Error,
    },
    /// The user may not create or use the tables.
    #[error(
        "the user of {server} lacks a permission; it has to own the schema `turnbuckle`, or to have CREATE on the database"
    )]
    MissingPermission {
        /// The address, without the password.
        server: String,
        /// The underlying error.
        #[source]
        source: tokio_postgres::Error,
    },
    /// A newer version of this program has changed the tables.
    #[error(
        "{server} was written by a newer version of this program (schema {found}; this one knows up to {known}); update this program"
    )]
    NewerVersion {
        /// The address, without the password.
        server: String,
        /// The version of the tables.
        found: i32,
        /// The newest version that this program knows.
        known: i32,
    },
    /// The database cannot store all texts.
    #[error("{server} has the encoding {encoding}; create a database with the encoding UTF8")]
    WrongEncoding {
        /// The address, without the password.
        server: String,
        /// The encoding.
        encoding: String,
    },
    /// Any other failure.
    #[error("{server} cannot be used")]
    Other {
        /// The address, without the password.
        server: String,
        /// The underlying error.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl PostgresError {
    /// Describes an error at the start.
    pub(super) fn new(server: String, source: tokio_postgres::Error) -> Self {
        match source.code() {
            Some(&SqlState::INVALID_PASSWORD | &SqlState::INVALID_AUTHORIZATION_SPECIFICATION) => {
                Self::Unauthorized { server, source }
            }
            Some(&SqlState::INVALID_CATALOG_NAME) => Self::UnknownDatabase { server, source },
            Some(&SqlState::INSUFFICIENT_PRIVILEGE) => Self::MissingPermission { server, source },
            None if is_missing_password(&source) => Self::Unauthorized { server, source },
            None if is_disconnect(&source) => Self::Unreachable { server, source },
            _ => Self::Other {
                server,
                source: source.into(),
            },
        }
    }
}

/// Returns whether the server asks for a password and there is none.
fn is_missing_password(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().is_none() && error.to_string() == "invalid configuration"
}

/// A failed attempt of an operation.
#[derive(Debug)]
pub(super) enum AttemptError {
    /// No connection was free in time, or none could be opened.
    Pool(PoolError),
    /// A statement failed.
    Sql(tokio_postgres::Error),
    /// The commit failed. If the connection was lost, it may have succeeded.
    Commit(tokio_postgres::Error),
    /// The server did not respond in time.
    TimedOut(Duration),
    /// The operation is not possible.
    Store(MemoryStoreError),
}

impl From<tokio_postgres::Error> for AttemptError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<MemoryStoreError> for AttemptError {
    fn from(error: MemoryStoreError) -> Self {
        Self::Store(error)
    }
}

/// What the next attempt can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retry {
    /// Another transaction was in the way.
    AfterConflict,
    /// Another connection is needed.
    AfterDisconnect,
    /// As [`AfterDisconnect`](Self::AfterDisconnect), but the transaction may have been committed.
    AfterUnknownOutcome,
    /// Nothing.
    No,
}

impl AttemptError {
    /// Returns what the next attempt can change.
    pub(super) fn retry(&self) -> Retry {
        match self {
            Self::Pool(PoolError::Backend(error)) if is_disconnect(error) => Retry::AfterDisconnect,
            Self::Sql(error) | Self::Commit(error) if is_conflict(error) => Retry::AfterConflict,
            Self::Sql(error) if is_disconnect(error) => Retry::AfterDisconnect,
            Self::Commit(error) if is_disconnect(error) => Retry::AfterUnknownOutcome,
            _ => Retry::No,
        }
    }

    /// Returns whether the connection cannot be used any more.
    pub(super) fn breaks_connection(&self) -> bool {
        match self {
            Self::Sql(error) | Self::Commit(error) => is_disconnect(error),
            Self::TimedOut(_) => true,
            Self::Pool(_) | Self::Store(_) => false,
        }
    }

    /// Returns the error for the caller. `limit` is that of a statement.
    pub(super) fn into_store_error(self, limit: Duration) -> MemoryStoreError {
        match self {
            Self::Store(error) => error,
            Self::TimedOut(limit) => MemoryStoreError::TimedOut(limit),
            Self::Pool(PoolError::Backend(error)) => sql_error(error, limit),
            Self::Pool(error) => MemoryStoreError::TryAgain(error.into()),
            Self::Sql(error) | Self::Commit(error) => sql_error(error, limit),
        }
    }
}

fn sql_error(error: tokio_postgres::Error, limit: Duration) -> MemoryStoreError {
    if is_read_only(&error) {
        return MemoryStoreError::ReadOnly(error.into());
    }
    if is_conflict(&error) || is_disconnect(&error) {
        return MemoryStoreError::TryAgain(error.into());
    }
    match error.code() {
        Some(&SqlState::QUERY_CANCELED) => MemoryStoreError::TimedOut(limit),
        Some(&SqlState::LOCK_NOT_AVAILABLE) => MemoryStoreError::TryAgain(error.into()),
        Some(&SqlState::INSUFFICIENT_PRIVILEGE) => MemoryStoreError::ReadOnly(error.into()),
        Some(&SqlState::DATA_CORRUPTED | &SqlState::INDEX_CORRUPTED) => {
            MemoryStoreError::Damaged(error.into())
        }
        Some(&SqlState::DISK_FULL | &SqlState::OUT_OF_MEMORY) => {
            MemoryStoreError::Full(error.into())
        }
        _ => MemoryStoreError::Other(error.into()),
    }
}

/// Returns whether another transaction was in the way.
fn is_conflict(error: &tokio_postgres::Error) -> bool {
    matches!(
        error.code(),
        Some(
            &SqlState::T_R_SERIALIZATION_FAILURE
                | &SqlState::T_R_DEADLOCK_DETECTED
                | &SqlState::UNIQUE_VIOLATION
        )
    )
}

/// Returns whether the connection is lost, could not be opened, or leads to a server that is not the primary one any more.
fn is_disconnect(error: &tokio_postgres::Error) -> bool {
    match error.code() {
        None => {
            error.is_closed()
                || std::error::Error::source(error)
                    .and_then(|source| source.downcast_ref::<std::io::Error>())
                    .is_some()
        }
        Some(code) => {
            is_read_only(error)
                || code.code().starts_with("08")
                || matches!(
                    *code,
                    SqlState::ADMIN_SHUTDOWN
                        | SqlState::CRASH_SHUTDOWN
                        | SqlState::CANNOT_CONNECT_NOW
                        | SqlState::TOO_MANY_CONNECTIONS
                )
        }
    }
}

fn is_read_only(error: &tokio_postgres::Error) -> bool {
    error.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION)
}
