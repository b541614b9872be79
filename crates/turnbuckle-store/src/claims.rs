//! Idempotency claims: effects that must happen once.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;

use crate::{BoxFuture, StoreError, id::RandomId};

/// Grants the right to perform an effect to one caller at a time and stores its outcome.
pub trait ClaimStore: Send + Sync {
    /// Claims the right to perform the effect named by `key`.
    ///
    /// Of all concurrent callers one gets [`ClaimStatus::Granted`]; the others learn that the effect is running, or
    /// its outcome. A claim that is neither completed nor abandoned within `ttl` can be granted again.
    fn claim<'a>(
        &'a self,
        key: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<ClaimStatus, StoreError>>;

    /// Completes a claim, and stores the outcome for the time to live of the claim, counted from now.
    ///
    /// Returns [`StoreError::Gone`] if the claim has expired. After any error the outcome is not stored, and the
    /// claim, if it still exists, is left to expire: missing an effect is better than repeating it.
    fn complete(&self, token: ClaimToken, outcome: Bytes) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Abandons a claim without performing its effect, so that it can be granted again.
    fn abandon(&self, token: ClaimToken) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Removes expired claims.
    ///
    /// Expired claims are unreachable even without this call; regular calls free their memory earlier.
    fn sweep(&self) -> BoxFuture<'_, Result<(), StoreError>>;
}

/// The result of [`ClaimStore::claim`].
#[derive(Debug)]
pub enum ClaimStatus {
    /// The caller performs the effect, then completes or abandons the claim.
    ///
    /// Dropping the token leaves the claim running until it expires, because the state of the effect is unknown.
    Granted(ClaimToken),
    /// Another caller is performing the effect.
    Running,
    /// The effect was performed, with this outcome.
    Done(Bytes),
}

/// The right to complete or abandon a claim. A claim that is granted again gets another token.
#[derive(Debug)]
pub struct ClaimToken {
    key: Arc<str>,
    holder: ClaimHolder,
}

/// Distinguishes two claims of the same key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClaimHolder(RandomId);

impl ClaimToken {
    /// Creates the token of a new claim of `key`.
    pub fn generate(key: impl Into<Arc<str>>) -> Result<Self, StoreError> {
        Ok(Self {
            key: key.into(),
            holder: ClaimHolder(RandomId::generate()?),
        })
    }

    /// Returns the key of the claim.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns a text of visible ASCII characters that no other claim has, for a store that keeps claims elsewhere.
    pub fn holder_text(&self) -> String {
        self.holder.0.to_string()
    }

    pub(crate) fn holder(&self) -> ClaimHolder {
        self.holder
    }
}

impl std::fmt::Debug for ClaimHolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt_prefix("ClaimHolder", f)
    }
}
