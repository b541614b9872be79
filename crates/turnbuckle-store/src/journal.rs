//! Request state too large to travel, and effects that must happen once.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::random::{RandomId, random_id};
use crate::{BoxFuture, StoreError};

/// Keeps what a call needs in its next round, wherever that round is served.
pub trait Journals: Send + Sync {
    /// Keeps `bytes` for `ttl` and returns the name to find them by.
    fn put(&self, bytes: Bytes, ttl: Duration) -> BoxFuture<'_, Result<JournalId, StoreError>>;

    /// Like [`put`](Self::put), for somebody whose share of the store is limited.
    ///
    /// `owner` names them. [`StoreError::TooMany`] if their share is used up. A store that counts no shares keeps it for
    /// all together.
    fn put_for<'a>(
        &'a self,
        owner: &'a str,
        bytes: Bytes,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<JournalId, StoreError>> {
        let _ = owner;
        self.put(bytes, ttl)
    }

    /// Returns what was kept under this name, as often as asked while it lasts.
    fn get<'a>(&'a self, id: &'a JournalId) -> BoxFuture<'a, Result<Option<Bytes>, StoreError>>;

    /// Asks for the right to do what `key` stands for.
    ///
    /// Of all who ask, one is told [`Claim::Fresh`]; the others learn that it is being done, or how
    /// it ended. A claim that is neither completed nor abandoned within `ttl` can be made again.
    fn claim<'a>(&'a self, key: &'a str, ttl: Duration)
    -> BoxFuture<'a, Result<Claim, StoreError>>;

    /// Says that it is done, and keeps the outcome for the time to live of the claim, from now on.
    ///
    /// [`StoreError::Gone`] if the claim ran out before. After any error the outcome is not kept, and
    /// the claim, if it is still there, is left to run out: an effect is rather missed than repeated.
    fn complete(&self, token: ClaimToken, outcome: Bytes) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Says that it was not done; the next to ask may do it.
    fn abandon(&self, token: ClaimToken) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Drops what has outlived its time.
    ///
    /// It is out of reach without it; calling it now and then returns its memory sooner.
    fn sweep(&self) -> BoxFuture<'_, Result<(), StoreError>>;
}

random_id! {
    /// Names a journal: 144 random bits, as text 24 visible ASCII characters.
    JournalId
}

/// What came of asking for a claim.
#[derive(Debug)]
pub enum Claim {
    /// Do it, then complete or abandon it.
    ///
    /// Dropping the token leaves the claim running until its time is over: nobody can know how far
    /// the effect got.
    Fresh(ClaimToken),
    /// Someone else is doing it.
    Running,
    /// It was done, with this outcome.
    Done(Bytes),
}

/// The right to complete or abandon a claim; whoever made the claim again later has another one.
#[derive(Debug)]
pub struct ClaimToken {
    key: Arc<str>,
    holder: Holder,
}

/// Tells two claims of one key apart.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Holder(RandomId);

impl ClaimToken {
    /// Makes the token of a new claim of `key`.
    pub fn generate(key: impl Into<Arc<str>>) -> Result<Self, StoreError> {
        Ok(Self {
            key: key.into(),
            holder: Holder(RandomId::generate()?),
        })
    }

    /// What was claimed.
    pub fn key(&self) -> &str {
        &self.key
    }

    pub(crate) fn holder(&self) -> Holder {
        self.holder
    }
}

impl std::fmt::Debug for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt_prefix("Holder", f)
    }
}
