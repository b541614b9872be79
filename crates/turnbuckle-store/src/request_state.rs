//! Request state that is too large to send to the client.

use std::time::Duration;

use bytes::Bytes;

use crate::{BoxFuture, StoreError, id::random_id};

/// Stores what a call needs in its next round trip, for any process that may serve it.
pub trait RequestStateStore: Send + Sync {
    /// Stores `bytes` for `ttl` and returns their id.
    fn put(&self, bytes: Bytes, ttl: Duration)
    -> BoxFuture<'_, Result<RequestStateId, StoreError>>;

    /// Like [`put`](Self::put), and counts the bytes against the quota of `owner`.
    ///
    /// Returns [`StoreError::TooMany`] if the quota is used up. The default implementation ignores quotas.
    fn put_for<'a>(
        &'a self,
        owner: &'a str,
        bytes: Bytes,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<RequestStateId, StoreError>> {
        let _ = owner;
        self.put(bytes, ttl)
    }

    /// Returns the bytes stored under `id`. They can be read repeatedly until they expire.
    fn get<'a>(
        &'a self,
        id: &'a RequestStateId,
    ) -> BoxFuture<'a, Result<Option<Bytes>, StoreError>>;

    /// Removes expired entries.
    ///
    /// Expired entries are unreachable even without this call; regular calls free their memory earlier.
    fn sweep(&self) -> BoxFuture<'_, Result<(), StoreError>>;
}

random_id! {
    /// The id of stored request state: 144 random bits, written as 24 visible ASCII characters.
    RequestStateId
}
