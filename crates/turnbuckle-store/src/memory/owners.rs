//! How many sessions each owner holds, and which of them to end first.
//!
//! Using a session does not come by here: ranks are brought up to date when a session has to be ended. A rank only
//! grows, so one that is too old is a lower bound, and the lowest rank that proves current is the lowest of all.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::{SessionId, SessionLimits, SessionOwner, StoreError};

/// What every owner holds; owners without a session are not in it.
#[derive(Default)]
pub(super) struct Owners {
    held: HashMap<Arc<str>, Held>,
    by_size: BTreeSet<(usize, Arc<str>)>,
}

/// What one owner holds.
#[derive(Default)]
struct Held {
    sessions: usize,
    bytes: usize,
    ranked: BTreeSet<(Rank, SessionId)>,
}

/// The order in which idle sessions are ended, lowest first. Small, since every session has two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank(u64);

impl Rank {
    /// Sessions whose handshake is not done come first; then those that expire sooner, because they were used
    /// longer ago.
    pub(super) fn new(initialized: bool, expires_in: Duration) -> Self {
        const INITIALIZED: u64 = 1 << 63;
        let micros = u64::try_from(expires_in.as_micros()).unwrap_or(u64::MAX);
        let class = if initialized { INITIALIZED } else { 0 };
        Self(micros.min(INITIALIZED - 1) | class)
    }
}

/// What is known about a session whose rank is the lowest.
pub(super) enum Candidate {
    /// It is no longer there.
    Gone,
    /// It is in use: this is its rank now.
    InUse(Rank),
    /// It was used since it was ranked: this is its rank now, and higher.
    Ranked(Rank),
    /// It can be ended.
    Idle,
}

impl Owners {
    /// Returns an error if the owner may not hold another session, or not one with so many bytes.
    pub(super) fn check(
        &self,
        owner: &SessionOwner,
        bytes: usize,
        limits: &SessionLimits,
    ) -> Result<(), StoreError> {
        let limit = limits.sessions_of(owner);
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
        let held = self.held.get(owner.key()).map_or(0, |held| held.bytes);
        let limit = limits.bytes_of(owner);
        if more > 0 && held.saturating_add(more) > limit {
            let what = "bytes in sessions of one caller";
            return Err(StoreError::TooMany { what, limit });
        }
        Ok(())
    }

    /// Counts a session.
    pub(super) fn add(&mut self, owner: &SessionOwner, id: SessionId, rank: Rank, bytes: usize) {
        let key = self.key(owner);
        let held = self.held.entry(key.clone()).or_default();
        held.ranked.insert((rank, id));
        held.bytes += bytes;
        let before = held.sessions;
        held.sessions += 1;
        self.by_size.remove(&(before, key.clone()));
        self.by_size.insert((before + 1, key));
    }

    /// Counts more bytes of an owner, if it may hold them.
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

    /// Counts more bytes of an owner that holds them already.
    pub(super) fn grow_unchecked(&mut self, owner: &SessionOwner, bytes: usize) {
        if let Some(held) = self.held.get_mut(owner.key()) {
            held.bytes += bytes;
        }
    }

    /// Counts fewer bytes of an owner.
    pub(super) fn shrink(&mut self, owner: &SessionOwner, bytes: usize) {
        if let Some(held) = self.held.get_mut(owner.key()) {
            held.bytes = held.bytes.saturating_sub(bytes);
        }
    }

    /// Counts a session no longer.
    pub(super) fn remove(&mut self, owner: &SessionOwner, id: SessionId, rank: Rank, bytes: usize) {
        let key = self.key(owner);
        let Some(held) = self.held.get_mut(&key) else {
            return;
        };
        held.ranked.remove(&(rank, id));
        held.bytes = held.bytes.saturating_sub(bytes);
        let before = held.sessions;
        held.sessions = before.saturating_sub(1);
        self.by_size.remove(&(before, key.clone()));
        if held.sessions == 0 {
            self.held.remove(&key);
        } else {
            self.by_size.insert((before - 1, key));
        }
    }

    /// Returns how many sessions an owner holds.
    pub(super) fn sessions(&self, owner: &str) -> usize {
        self.held.get(owner).map_or(0, |held| held.sessions)
    }

    /// Returns the owners that hold at least so many sessions, the largest first.
    pub(super) fn of_size(&self, least: usize) -> Vec<Arc<str>> {
        let large = self.by_size.iter().rev();
        large
            .take_while(|(sessions, _)| *sessions >= least)
            .map(|(_, owner)| owner.clone())
            .collect()
    }

    /// Finds the session of an owner that is to be ended first.
    ///
    /// `look` is asked about one session after the other, beginning with the lowest rank.
    pub(super) fn first_idle(
        &mut self,
        owner: &str,
        mut look: impl FnMut(&SessionId, Rank) -> Candidate,
    ) -> Option<SessionId> {
        let ranked = &mut self.held.get_mut(owner)?.ranked;
        let (mut found, mut in_use) = (None, Vec::new());
        // A session comes up twice: once with an old rank, once with its current one. More often only if it is used
        // meanwhile.
        for _ in 0..2 * ranked.len() {
            let Some((rank, id)) = ranked.pop_first() else {
                break;
            };
            match look(&id, rank) {
                Candidate::Gone => {}
                Candidate::InUse(rank) => in_use.push((rank, id)),
                Candidate::Ranked(rank) => {
                    ranked.insert((rank, id));
                }
                Candidate::Idle => {
                    ranked.insert((rank, id));
                    found = Some(id);
                    break;
                }
            }
        }
        ranked.extend(in_use);
        found
    }

    /// The name of an owner, shared with all its sessions where it is known.
    fn key(&self, owner: &SessionOwner) -> Arc<str> {
        match self.held.get_key_value(owner.key()) {
            Some((key, _)) => key.clone(),
            None => owner.clone().into_key(),
        }
    }

    /// Returns whether nobody holds anything.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty() && self.by_size.is_empty()
    }
}
