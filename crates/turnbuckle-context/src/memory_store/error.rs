//! Errors of memory stores.

use std::{error::Error, time::Duration};

use crate::{ContextError, DatabaseErrorKind};

type Source = Box<dyn Error + Send + Sync>;

/// An error of a [`MemoryStore`](super::MemoryStore), by what the caller can do. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryStoreError {
    /// The store cannot do it at the moment: a lock, a conflict, a lost connection, too many connections or open files.
    #[error("the store is not available at the moment")]
    TryAgain(#[source] Source),
    /// The store has reached its size limit.
    #[error("the store is full")]
    Full(#[source] Source),
    /// The store cannot be written.
    #[error("the store is read-only")]
    ReadOnly(#[source] Source),
    /// Stored data is damaged.
    #[error("the store is damaged")]
    Damaged(#[source] Source),
    /// The data was written by a newer version of this program.
    #[error("the store was written by a newer version of this program")]
    NewerVersion(#[source] Source),
    /// The project was not created.
    #[error("the project does not exist in the store")]
    UnknownProject,
    /// The caller is gone.
    #[error("cancelled")]
    Cancelled,
    /// The work limit was exceeded.
    #[error("the store took longer than {0:?}")]
    TimedOut(Duration),
    /// Any other failure.
    #[error("the store failed")]
    Other(#[source] Source),
}

impl From<ContextError> for MemoryStoreError {
    fn from(error: ContextError) -> Self {
        use DatabaseErrorKind::{
            Busy, Corrupt, Full, ProcessFileLimit, ReadOnly, SystemFileLimit, TooNew, Truncated,
        };
        let kind = match error {
            ContextError::Cancelled => return Self::Cancelled,
            ContextError::TimedOut(limit) => return Self::TimedOut(limit),
            ContextError::MemoryStore(error) => return error,
            ContextError::Database { kind, .. } => Some(kind),
            _ => None,
        };
        let of_kind = match kind {
            Some(Busy | ProcessFileLimit | SystemFileLimit) => Self::TryAgain,
            Some(Full) => Self::Full,
            Some(ReadOnly) => Self::ReadOnly,
            Some(Corrupt | Truncated) => Self::Damaged,
            Some(TooNew) => Self::NewerVersion,
            _ => Self::Other,
        };
        of_kind(Box::new(error))
    }
}

impl From<MemoryStoreError> for ContextError {
    /// Returns the original error if a [`ContextError`] caused this one, so that its message stays.
    fn from(error: MemoryStoreError) -> Self {
        use MemoryStoreError::{Damaged, Full, NewerVersion, Other, ReadOnly, TryAgain};
        let restored = |source: Source, variant: fn(Source) -> MemoryStoreError| {
            let source = source.downcast::<Self>().map(|error| *error);
            source.unwrap_or_else(|source| Self::MemoryStore(variant(source)))
        };
        match error {
            MemoryStoreError::Cancelled => Self::Cancelled,
            MemoryStoreError::TimedOut(limit) => Self::TimedOut(limit),
            MemoryStoreError::UnknownProject => {
                Self::not_found("such project; save something in it first")
            }
            TryAgain(source) => restored(source, TryAgain),
            Full(source) => restored(source, Full),
            ReadOnly(source) => restored(source, ReadOnly),
            Damaged(source) => restored(source, Damaged),
            NewerVersion(source) => restored(source, NewerVersion),
            Other(source) => restored(source, Other),
        }
    }
}

impl MemoryStoreError {
    /// Returns what to do next, for a caller that may not see names of the server.
    pub(crate) fn caller_message(&self) -> &'static str {
        match self {
            Self::TryAgain(_) => {
                "the memory store is not available at the moment and nothing was saved; try again in a moment"
            }
            Self::Full(_) => {
                "the memory store is full and nothing was saved; tell the user to free some space, then try again"
            }
            Self::ReadOnly(_) => {
                "the memory store is not writable and nothing was saved; tell the user to check its permissions"
            }
            Self::Damaged(_) => {
                "the memory store is damaged; tell the user (the server's log has the cause)"
            }
            Self::NewerVersion(_) => {
                "the memory store was written by a newer version of this server; tell the user to update it"
            }
            _ => "the memory store failed; tell the user (the server's log has the cause)",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database_error(kind: DatabaseErrorKind) -> ContextError {
        ContextError::Database {
            path: "/data/a.db".into(),
            kind,
            source: rusqlite::Error::InvalidQuery,
        }
    }

    #[test]
    fn an_error_of_sqlite_keeps_its_kind_and_message() {
        for (kind, expected) in [
            (DatabaseErrorKind::Busy, "at the moment"),
            (DatabaseErrorKind::Full, "full"),
            (DatabaseErrorKind::ReadOnly, "read-only"),
            (DatabaseErrorKind::Truncated, "damaged"),
            (DatabaseErrorKind::TooNew, "newer"),
            (DatabaseErrorKind::Other, "failed"),
        ] {
            let message = database_error(kind).to_string();
            let error = MemoryStoreError::from(database_error(kind));
            assert!(error.to_string().contains(expected), "{error}");
            assert_eq!(ContextError::from(error).to_string(), message);
        }
        let rejected = MemoryStoreError::from(ContextError::invalid("`limit` is 0"));
        assert!(matches!(
            ContextError::from(rejected),
            ContextError::InvalidRequest(_)
        ));
    }

    #[test]
    fn an_error_of_another_store_stays_what_it_is() {
        let lost = MemoryStoreError::TryAgain("connection lost".into());
        let error = MemoryStoreError::from(ContextError::from(lost));
        assert!(matches!(error, MemoryStoreError::TryAgain(_)));
    }
}
