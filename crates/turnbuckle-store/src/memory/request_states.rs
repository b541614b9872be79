//! Request state in the memory of this process.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::Instant;

use super::{
    check_size, deadline,
    expiring_map::{ExpiringMap, MapEntry},
    lock, ready,
};
use crate::{BoxFuture, RequestStateId, RequestStateLimits, RequestStateStore, StoreError};

/// A [`RequestStateStore`] in the memory of this process.
pub struct MemoryRequestStateStore {
    limits: RequestStateLimits,
    states: ExpiringMap<RequestStateId, StoredState>,
    quotas: Arc<OwnerQuotas>,
}

/// Stored bytes, with the part of the owner's quota that they use.
struct StoredState {
    bytes: Bytes,
    _quota: Option<QuotaShare>,
}

impl MemoryRequestStateStore {
    /// Creates an empty store with the given limits.
    pub fn new(limits: RequestStateLimits) -> Self {
        Self {
            states: ExpiringMap::new("request state", limits.max_states, limits.max_total_bytes),
            quotas: OwnerQuotas::new(limits.max_states_per_owner, limits.max_owner_bytes),
            limits,
        }
    }

    fn insert(
        &self,
        owner: Option<&str>,
        bytes: Bytes,
        ttl: Duration,
    ) -> Result<RequestStateId, StoreError> {
        check_size("request state", bytes.len(), self.limits.max_state_bytes)?;
        let now = Instant::now();
        let quota = owner.map(|owner| self.reserve_quota(owner, bytes.len(), now));
        let quota = quota.transpose()?;
        let id = RequestStateId::generate()?;
        let size_and_expiry = (bytes.len(), deadline(now, ttl));
        let state = StoredState {
            bytes,
            _quota: quota,
        };
        self.states
            .insert(id, state, size_and_expiry, now, |_| (), |_, _| {})?;
        Ok(id)
    }

    /// Reserves a part of an owner's quota, removing expired entries if it is used up.
    fn reserve_quota(
        &self,
        owner: &str,
        bytes: usize,
        now: Instant,
    ) -> Result<QuotaShare, StoreError> {
        self.quotas.reserve(owner, bytes).or_else(|_| {
            self.states.sweep(now, |_, _| {});
            self.quotas.reserve(owner, bytes)
        })
    }
}

impl RequestStateStore for MemoryRequestStateStore {
    fn put(
        &self,
        bytes: Bytes,
        ttl: Duration,
    ) -> BoxFuture<'_, Result<RequestStateId, StoreError>> {
        ready(move || self.insert(None, bytes, ttl))
    }

    fn put_for<'a>(
        &'a self,
        owner: &'a str,
        bytes: Bytes,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<RequestStateId, StoreError>> {
        ready(move || self.insert(Some(owner), bytes, ttl))
    }

    fn get<'a>(
        &'a self,
        id: &'a RequestStateId,
    ) -> BoxFuture<'a, Result<Option<Bytes>, StoreError>> {
        ready(move || {
            let bytes = |entry: &mut MapEntry<StoredState>| entry.value.bytes.clone();
            Ok(self.states.with_entry(id, Instant::now(), bytes))
        })
    }

    fn sweep(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        ready(|| {
            self.states.sweep(Instant::now(), |_, _| {});
            Ok(())
        })
    }
}

impl std::fmt::Debug for MemoryRequestStateStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryRequestStateStore")
            .field("limits", &self.limits)
            .field("states", &self.states.len())
            .finish_non_exhaustive()
    }
}

/// The quota usage of every owner; owners without entries are absent.
struct OwnerQuotas {
    used: Mutex<HashMap<Arc<str>, QuotaUsage>>,
    max: QuotaUsage,
}

/// Reserved quota of an owner; released on drop.
struct QuotaShare {
    quotas: Arc<OwnerQuotas>,
    owner: Arc<str>,
    bytes: usize,
}

#[derive(Clone, Copy, Default)]
struct QuotaUsage {
    entries: usize,
    bytes: usize,
}

impl OwnerQuotas {
    fn new(max_entries: usize, max_bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            used: Mutex::default(),
            max: QuotaUsage {
                entries: max_entries,
                bytes: max_bytes,
            },
        })
    }

    /// Reserves quota of an owner for one entry.
    fn reserve(self: &Arc<Self>, owner: &str, bytes: usize) -> Result<QuotaShare, StoreError> {
        let mut all = lock(&self.used);
        let found = all.get_key_value(owner);
        let (owner, used) = match found {
            Some((owner, used)) => (owner.clone(), *used),
            None => (owner.into(), QuotaUsage::default()),
        };
        let after = self.add_checked(used, bytes)?;
        all.insert(owner.clone(), after);
        Ok(QuotaShare {
            quotas: self.clone(),
            owner,
            bytes,
        })
    }

    fn add_checked(&self, used: QuotaUsage, bytes: usize) -> Result<QuotaUsage, StoreError> {
        let after = QuotaUsage {
            entries: used.entries + 1,
            bytes: used.bytes.saturating_add(bytes),
        };
        let too_many = |what, limit| Err(StoreError::TooMany { what, limit });
        if after.entries > self.max.entries {
            return too_many("request states of one owner", self.max.entries);
        }
        if after.bytes > self.max.bytes {
            return too_many("bytes of request state of one owner", self.max.bytes);
        }
        Ok(after)
    }
}

impl Drop for QuotaShare {
    fn drop(&mut self) {
        let mut all = lock(&self.quotas.used);
        let Some(used) = all.get_mut(&self.owner) else {
            return;
        };
        used.entries -= 1;
        used.bytes -= self.bytes;
        if used.entries == 0 {
            all.remove(&self.owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_without_entries_is_removed() {
        let quotas = OwnerQuotas::new(2, 100);

        let one = quotas.reserve("ada", 60).unwrap();
        let two = quotas.reserve("ada", 40).unwrap();
        let too_many = quotas.reserve("ada", 0).map(drop);
        drop(two);
        let too_much = quotas.reserve("ada", 41).map(drop);
        let others = quotas.reserve("bob", 100).unwrap();

        assert!(matches!(
            too_many,
            Err(StoreError::TooMany { limit: 2, .. })
        ));
        assert!(matches!(
            too_much,
            Err(StoreError::TooMany { limit: 100, .. })
        ));
        drop((one, others));
        assert!(lock(&quotas.used).is_empty());
    }
}
