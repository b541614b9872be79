//! The number of sessions of each owner, and the order of their eviction.
//!
//! Using a session does not update its rank here; ranks are updated during eviction. A rank only grows, so an
//! outdated rank is a lower bound, and the lowest rank that proves current is the lowest of all.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use crate::{SessionId, SessionLimits, SessionOwner, StoreError};

/// The usage of every owner; owners without sessions are absent.
///
/// Most owners have one session, so all owners share the sets.
#[derive(Default)]
pub(super) struct SessionOwners {
    usage: HashMap<Arc<str>, OwnerUsage>,
    by_size: BTreeSet<(usize, OwnerId)>,
    /// The id is `None` only in range bounds.
    ranked: BTreeSet<(OwnerId, EvictionRank, Option<SessionId>)>,
    next: u64,
}

/// The id of an owner as long as it has sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OwnerId(u64);

/// The usage of one owner.
struct OwnerUsage {
    id: OwnerId,
    sessions: usize,
    bytes: usize,
}

/// The eviction order of idle sessions, lowest first. Compact, because every session has two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EvictionRank(u64);

impl EvictionRank {
    const LOWEST: Self = Self(0);

    /// Creates a rank. Sessions that are not initialized come first, then those that expire earlier, because they
    /// were unused for longer.
    pub(super) fn new(initialized: bool, expires_in: Duration) -> Self {
        const INITIALIZED: u64 = 1 << 63;
        let micros = u64::try_from(expires_in.as_micros()).unwrap_or(u64::MAX);
        let class = if initialized { INITIALIZED } else { 0 };
        Self(micros.min(INITIALIZED - 1) | class)
    }
}

/// The state of the session with the lowest rank.
pub(super) enum EvictionCandidate {
    /// The session no longer exists.
    Gone,
    /// The session is in use, or removing it would not help; this is its current rank.
    Skip(EvictionRank),
    /// The session was used since it was ranked; this is its current, higher rank.
    Reranked(EvictionRank),
    /// The session can be removed.
    Idle,
}

impl SessionOwners {
    /// Returns an error if the quota of the owner does not allow another session of this size.
    pub(super) fn check(
        &self,
        owner: &SessionOwner,
        bytes: usize,
        limits: &SessionLimits,
    ) -> Result<(), StoreError> {
        let limit = limits.max_sessions_for(owner);
        if self.sessions(owner.key()) >= limit {
            let what = "sessions of one caller";
            return Err(StoreError::TooMany { what, limit });
        }
        self.check_bytes(owner, bytes, limits)
    }

    fn check_bytes(
        &self,
        owner: &SessionOwner,
        more: usize,
        limits: &SessionLimits,
    ) -> Result<(), StoreError> {
        let usage = self.bytes(owner.key());
        let limit = limits.max_bytes_for(owner);
        if more > 0 && usage.saturating_add(more) > limit {
            let what = "bytes in sessions of one caller";
            return Err(StoreError::TooMany { what, limit });
        }
        Ok(())
    }

    /// Adds a session to its owner.
    pub(super) fn add(
        &mut self,
        owner: &SessionOwner,
        id: SessionId,
        rank: EvictionRank,
        bytes: usize,
    ) {
        if !self.usage.contains_key(owner.key()) {
            let usage = OwnerUsage {
                id: OwnerId(self.next),
                sessions: 0,
                bytes: 0,
            };
            self.next += 1;
            self.usage.insert(owner.clone().into_key(), usage);
        }
        let Some(usage) = self.usage.get_mut(owner.key()) else {
            return;
        };
        self.ranked.insert((usage.id, rank, Some(id)));
        self.by_size.remove(&(usage.sessions, usage.id));
        usage.sessions += 1;
        usage.bytes += bytes;
        self.by_size.insert((usage.sessions, usage.id));
    }

    /// Adds bytes to an owner, if its quota allows.
    pub(super) fn grow(
        &mut self,
        owner: &SessionOwner,
        bytes: usize,
        limits: &SessionLimits,
    ) -> Result<(), StoreError> {
        self.check_bytes(owner, bytes, limits)?;
        self.grow_unchecked(owner, bytes);
        Ok(())
    }

    /// Adds bytes to an owner without checking its quota.
    pub(super) fn grow_unchecked(&mut self, owner: &SessionOwner, bytes: usize) {
        if let Some(usage) = self.usage.get_mut(owner.key()) {
            usage.bytes += bytes;
        }
    }

    /// Subtracts bytes from an owner.
    pub(super) fn shrink(&mut self, owner: &SessionOwner, bytes: usize) {
        if let Some(usage) = self.usage.get_mut(owner.key()) {
            usage.bytes = usage.bytes.saturating_sub(bytes);
        }
    }

    /// Removes a session from its owner.
    pub(super) fn remove(
        &mut self,
        owner: &SessionOwner,
        id: SessionId,
        rank: EvictionRank,
        bytes: usize,
    ) {
        let Some(usage) = self.usage.get_mut(owner.key()) else {
            return;
        };
        self.ranked.remove(&(usage.id, rank, Some(id)));
        self.by_size.remove(&(usage.sessions, usage.id));
        usage.bytes = usage.bytes.saturating_sub(bytes);
        usage.sessions = usage.sessions.saturating_sub(1);
        if usage.sessions > 0 {
            self.by_size.insert((usage.sessions, usage.id));
        } else {
            self.usage.remove(owner.key());
        }
    }

    /// Returns the number of sessions of an owner.
    pub(super) fn sessions(&self, owner: &str) -> usize {
        self.usage.get(owner).map_or(0, |usage| usage.sessions)
    }

    /// Returns the owners with at least this many sessions, largest first.
    pub(super) fn with_sessions_at_least(&self, min_sessions: usize) -> Vec<OwnerId> {
        let large = self.by_size.iter().rev();
        large
            .take_while(|(sessions, _)| *sessions >= min_sessions)
            .map(|(_, owner)| *owner)
            .collect()
    }

    /// Returns the bytes of an owner.
    pub(super) fn bytes(&self, owner: &str) -> usize {
        self.usage.get(owner).map_or(0, |usage| usage.bytes)
    }

    /// Returns the owners with more than this many bytes, largest first.
    pub(super) fn with_more_bytes(&self, bytes: usize) -> Vec<OwnerId> {
        let large = self.usage.values().filter(|usage| usage.bytes > bytes);
        let mut large: Vec<_> = large.map(|usage| (usage.bytes, usage.id)).collect();
        large.sort_unstable_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        large.into_iter().map(|(_, owner)| owner).collect()
    }

    /// Returns the id of an owner, if it has sessions.
    pub(super) fn owner_id(&self, owner: &str) -> Option<OwnerId> {
        self.usage.get(owner).map(|usage| usage.id)
    }

    /// Finds the session of an owner to remove first.
    ///
    /// Calls `inspect` for one session after the other, beginning with the lowest rank.
    pub(super) fn first_idle(
        &mut self,
        owner: OwnerId,
        mut inspect: impl FnMut(&SessionId, EvictionRank) -> EvictionCandidate,
    ) -> Option<SessionId> {
        let ranked = &mut self.ranked;
        let (mut found, mut in_use) = (None, Vec::new());
        // Each session comes up at most twice, with an outdated and its current rank, unless it is used concurrently.
        for _ in 0..2 * ranked.len() {
            let own = (owner, EvictionRank::LOWEST, None)..;
            let next = ranked.range(own).next().copied();
            let Some(first @ (_, rank, Some(id))) = next.filter(|(of, ..)| *of == owner) else {
                break;
            };
            match inspect(&id, rank) {
                EvictionCandidate::Gone => {
                    ranked.remove(&first);
                }
                EvictionCandidate::Skip(rank) => {
                    ranked.remove(&first);
                    in_use.push((owner, rank, Some(id)));
                }
                EvictionCandidate::Reranked(rank) => {
                    ranked.remove(&first);
                    ranked.insert((owner, rank, Some(id)));
                }
                EvictionCandidate::Idle => {
                    found = Some(id);
                    break;
                }
            }
        }
        ranked.extend(in_use);
        found
    }

    /// Returns whether all owners are gone.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.usage.is_empty() && self.by_size.is_empty() && self.ranked.is_empty()
    }
}
