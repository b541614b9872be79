//! How many sessions each owner holds, and which of them to end first.
//!
//! Using a session does not come by here: ranks are brought up to date when a session has to be ended. A rank only
//! grows, so one that is too old is a lower bound, and the lowest rank that proves current is the lowest of all.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::{SessionId, SessionLimits, SessionOwner, StoreError};

/// What every owner holds; owners without a session are not in it.
///
/// Most owners have one session, so the sets are shared by all.
#[derive(Default)]
pub(super) struct Owners {
    held: HashMap<Arc<str>, Held>,
    by_size: BTreeSet<(usize, OwnerId)>,
    /// The id is `None` only in what is looked for.
    ranked: BTreeSet<(OwnerId, Rank, Option<SessionId>)>,
    next: u64,
}

/// Stands for an owner as long as it holds something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OwnerId(u64);

/// What one owner holds.
struct Held {
    id: OwnerId,
    sessions: usize,
    bytes: usize,
}

/// The order in which idle sessions are ended, lowest first. Small, since every session has two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank(u64);

impl Rank {
    const LOWEST: Self = Self(0);

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
    /// It is in use, or its end would not help: this is its rank now.
    NotThis(Rank),
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
        let held = self.bytes(owner.key());
        let limit = limits.bytes_of(owner);
        if more > 0 && held.saturating_add(more) > limit {
            let what = "bytes in sessions of one caller";
            return Err(StoreError::TooMany { what, limit });
        }
        Ok(())
    }

    /// Counts a session.
    pub(super) fn add(&mut self, owner: &SessionOwner, id: SessionId, rank: Rank, bytes: usize) {
        if !self.held.contains_key(owner.key()) {
            let held = Held {
                id: OwnerId(self.next),
                sessions: 0,
                bytes: 0,
            };
            self.next += 1;
            self.held.insert(owner.clone().into_key(), held);
        }
        let Some(held) = self.held.get_mut(owner.key()) else {
            return;
        };
        self.ranked.insert((held.id, rank, Some(id)));
        self.by_size.remove(&(held.sessions, held.id));
        held.sessions += 1;
        held.bytes += bytes;
        self.by_size.insert((held.sessions, held.id));
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
        let Some(held) = self.held.get_mut(owner.key()) else {
            return;
        };
        self.ranked.remove(&(held.id, rank, Some(id)));
        self.by_size.remove(&(held.sessions, held.id));
        held.bytes = held.bytes.saturating_sub(bytes);
        held.sessions = held.sessions.saturating_sub(1);
        if held.sessions > 0 {
            self.by_size.insert((held.sessions, held.id));
        } else {
            self.held.remove(owner.key());
        }
    }

    /// Returns how many sessions an owner holds.
    pub(super) fn sessions(&self, owner: &str) -> usize {
        self.held.get(owner).map_or(0, |held| held.sessions)
    }

    /// Returns the owners that hold at least so many sessions, the largest first.
    pub(super) fn of_size(&self, least: usize) -> Vec<OwnerId> {
        let large = self.by_size.iter().rev();
        large
            .take_while(|(sessions, _)| *sessions >= least)
            .map(|(_, owner)| *owner)
            .collect()
    }

    /// Returns how many bytes an owner holds.
    pub(super) fn bytes(&self, owner: &str) -> usize {
        self.held.get(owner).map_or(0, |held| held.bytes)
    }

    /// Returns the owners that hold more than so many bytes, the largest first.
    pub(super) fn with_more_bytes(&self, than: usize) -> Vec<OwnerId> {
        let large = self.held.values().filter(|held| held.bytes > than);
        let mut large: Vec<_> = large.map(|held| (held.bytes, held.id)).collect();
        large.sort_unstable_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        large.into_iter().map(|(_, owner)| owner).collect()
    }

    /// Returns what stands for an owner, if it holds something.
    pub(super) fn id(&self, owner: &str) -> Option<OwnerId> {
        self.held.get(owner).map(|held| held.id)
    }

    /// Finds the session of an owner that is to be ended first.
    ///
    /// `look` is asked about one session after the other, beginning with the lowest rank.
    pub(super) fn first_idle(
        &mut self,
        owner: OwnerId,
        mut look: impl FnMut(&SessionId, Rank) -> Candidate,
    ) -> Option<SessionId> {
        let ranked = &mut self.ranked;
        let (mut found, mut in_use) = (None, Vec::new());
        // A session comes up twice: once with an old rank, once with its current one. More often only if it is used
        // meanwhile.
        for _ in 0..2 * ranked.len() {
            let own = (owner, Rank::LOWEST, None)..;
            let next = ranked.range(own).next().copied();
            let Some(first @ (_, rank, Some(id))) = next.filter(|(of, ..)| *of == owner) else {
                break;
            };
            match look(&id, rank) {
                Candidate::Gone => {
                    ranked.remove(&first);
                }
                Candidate::NotThis(rank) => {
                    ranked.remove(&first);
                    in_use.push((owner, rank, Some(id)));
                }
                Candidate::Ranked(rank) => {
                    ranked.remove(&first);
                    ranked.insert((owner, rank, Some(id)));
                }
                Candidate::Idle => {
                    found = Some(id);
                    break;
                }
            }
        }
        ranked.extend(in_use);
        found
    }

    /// Returns whether nobody holds anything.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty() && self.by_size.is_empty() && self.ranked.is_empty()
    }
}
