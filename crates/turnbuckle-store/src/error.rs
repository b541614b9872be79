//! Errors of a store.

use std::error::Error;

/// The reason why a store operation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store is full. A later retry can succeed.
    #[error("no room for another {what}")]
    Full {
        /// The kind of entry that did not fit.
        what: &'static str,
    },
    /// One caller has reached its limit. Removing an entry of that caller helps.
    #[error("more than {limit} {what}")]
    TooMany {
        /// The kind of entry.
        what: &'static str,
        /// The maximum number.
        limit: usize,
    },
    /// A single entry is too large.
    #[error("{what} of more than {limit} bytes")]
    TooLarge {
        /// The kind of entry.
        what: &'static str,
        /// The maximum size in bytes.
        limit: usize,
    },
    /// The entry does not exist or was removed.
    #[error("the {what} no longer exists")]
    Gone {
        /// The kind of entry.
        what: &'static str,
    },
    /// The storage backend cannot be reached.
    #[error("the store is unavailable")]
    Unavailable {
        /// The underlying error.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl StoreError {
    /// Wraps an error of the storage backend.
    pub fn unavailable(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unavailable {
            source: source.into(),
        }
    }
}
