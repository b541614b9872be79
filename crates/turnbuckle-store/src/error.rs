//! Why a store refused.

use std::error::Error;

/// Why a store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store as a whole holds as much as it may; trying again later can help.
    #[error("no room for another {what}")]
    Full {
        /// What found no room.
        what: &'static str,
    },
    /// One caller holds as many of these as it may; letting go of one helps.
    #[error("more than {limit} {what}")]
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// How many there may be.
        limit: usize,
    },
    /// One item is larger than any may be.
    #[error("{what} of more than {limit} bytes")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// How many bytes it may have.
        limit: usize,
    },
    /// What the call refers to was dropped, or never existed.
    #[error("the {what} is gone")]
    Gone {
        /// What is gone.
        what: &'static str,
    },
    /// The place where state is kept cannot be reached.
    #[error("the store is unavailable")]
    Unavailable {
        /// What happened underneath.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl StoreError {
    /// Wraps what happened underneath.
    pub fn unavailable(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unavailable {
            source: source.into(),
        }
    }
}
