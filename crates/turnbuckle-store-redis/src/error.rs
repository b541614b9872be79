//! Errors of connecting to Redis.

use std::error::Error;

/// The reason why a [`RedisStore`](crate::RedisStore) could not be connected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RedisStoreError {
    /// The URL is not one of a store. The message never contains the URL, which may have a password.
    #[error("invalid store URL: {reason}")]
    InvalidUrl {
        /// What is wrong.
        reason: String,
    },
    /// The state keys cannot seal values.
    #[error(transparent)]
    InvalidKeys(#[from] InvalidStoreKeys),
    /// Redis could not be reached.
    #[error("cannot reach Redis at {address}")]
    Unreachable {
        /// The addresses that were tried, without credentials.
        address: String,
        /// The underlying error.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Redis rejected user or password, or wants a password.
    #[error("Redis at {address} rejected the user, the password or the lack of one")]
    Unauthorized {
        /// The addresses, without credentials.
        address: String,
        /// The underlying error.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The server is too old.
    #[error("Redis at {address} has version {version}; version 7.0 or newer is required")]
    TooOld {
        /// The addresses, without credentials.
        address: String,
        /// The version that the server reports.
        version: String,
    },
    /// The data under this prefix was sealed with other state keys.
    #[error(
        "the data with prefix `{prefix}` in Redis was sealed with other state keys; all instances need the same keys"
    )]
    WrongStateKeys {
        /// The prefix of the keys in Redis.
        prefix: String,
    },
}

/// The reason why secrets cannot seal values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidStoreKeys {
    /// The list is empty.
    #[error("at least one state key is required")]
    Missing,
    /// A secret is too short.
    #[error("a state key must have at least 16 bytes")]
    TooShort,
}
