//! Claims in this process.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::time::Instant;

use super::{
    check_size, deadline,
    expiring_map::{ExpiringMap, MapEntry},
    ready,
};
use crate::{
    BoxFuture, ClaimLimits, ClaimStatus, ClaimStore, ClaimToken, StoreError, claims::ClaimHolder,
};

/// A [`ClaimStore`] in the memory of this process.
pub struct MemoryClaimStore {
    limits: ClaimLimits,
    claims: ExpiringMap<Arc<str>, StoredClaim>,
}

/// A claim that was granted.
struct StoredClaim {
    holder: ClaimHolder,
    ttl: Duration,
    outcome: Option<Bytes>,
}

impl MemoryClaimStore {
    /// Creates an empty store with the given limits.
    pub fn new(limits: ClaimLimits) -> Self {
        Self {
            claims: ExpiringMap::new("claim", limits.max_claims, limits.max_total_bytes),
            limits,
        }
    }

    fn try_claim(&self, key: &str, ttl: Duration) -> Result<ClaimStatus, StoreError> {
        check_size("claim key", key.len(), self.limits.max_key_bytes)?;
        let now = Instant::now();
        if let Some(status) = self
            .claims
            .with_entry(key, now, |entry| entry.value.status())
        {
            return Ok(status);
        }
        let token = ClaimToken::generate(key)?;
        let claim = StoredClaim {
            holder: token.holder(),
            ttl,
            outcome: None,
        };
        let size_and_expiry = (key.len(), deadline(now, ttl));
        let status = StoredClaim::status;
        let other =
            self.claims
                .insert(key.into(), claim, size_and_expiry, now, status, |_, _| {})?;
        Ok(other.unwrap_or(ClaimStatus::Granted(token)))
    }

    fn store_outcome(&self, token: &ClaimToken, outcome: Bytes) -> Result<(), StoreError> {
        check_size("outcome", outcome.len(), self.limits.max_outcome_bytes)?;
        let now = Instant::now();
        let bytes = outcome.len();
        let store = |entry: &mut MapEntry<StoredClaim>| {
            let ours = entry.value.is_open_for(token);
            if ours {
                entry.expires = deadline(now, entry.value.ttl);
                entry.value.outcome = Some(outcome);
            }
            ours
        };
        let stored = self
            .claims
            .grow(token.key(), bytes, now, store, |_, _| {})?;
        if stored {
            Ok(())
        } else {
            Err(StoreError::Gone { what: "claim" })
        }
    }
}

impl StoredClaim {
    /// Returns the status that other callers of the same key get.
    fn status(&self) -> ClaimStatus {
        match &self.outcome {
            Some(outcome) => ClaimStatus::Done(outcome.clone()),
            None => ClaimStatus::Running,
        }
    }

    fn is_open_for(&self, token: &ClaimToken) -> bool {
        self.holder == token.holder() && self.outcome.is_none()
    }
}

impl ClaimStore for MemoryClaimStore {
    fn claim<'a>(
        &'a self,
        key: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<ClaimStatus, StoreError>> {
        ready(move || self.try_claim(key, ttl))
    }

    fn complete(&self, token: ClaimToken, outcome: Bytes) -> BoxFuture<'_, Result<(), StoreError>> {
        ready(move || self.store_outcome(&token, outcome))
    }

    fn abandon(&self, token: ClaimToken) -> BoxFuture<'_, Result<(), StoreError>> {
        ready(move || {
            let is_ours = |claim: &StoredClaim| claim.is_open_for(&token);
            self.claims.remove(token.key(), Instant::now(), is_ours);
            Ok(())
        })
    }

    fn sweep(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        ready(|| {
            self.claims.sweep(Instant::now(), |_, _| {});
            Ok(())
        })
    }
}

impl std::fmt::Debug for MemoryClaimStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryClaimStore")
            .field("limits", &self.limits)
            .field("claims", &self.claims.len())
            .finish_non_exhaustive()
    }
}
