//! Journals and claims in this process.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::shares::{Share, Shares};
use super::table::{Entry, Table};
use super::{at_once, deadline};
use crate::journal::Holder;
use crate::{BoxFuture, Claim, ClaimToken, JournalId, JournalLimits, Journals, StoreError};

/// Journals and claims kept in this process.
pub struct MemoryJournals {
    limits: JournalLimits,
    journals: Table<JournalId, Kept>,
    shares: Arc<Shares>,
    claims: Table<Arc<str>, Claimed>,
}

/// A journal, with the part that it takes of its owner's share.
struct Kept {
    bytes: Bytes,
    _share: Option<Share>,
}

/// A claim that somebody made.
struct Claimed {
    holder: Holder,
    ttl: Duration,
    outcome: Option<Bytes>,
}

impl MemoryJournals {
    /// Keeps journals and claims within `limits`.
    pub fn new(limits: JournalLimits) -> Self {
        Self {
            journals: Table::new("journal", limits.max_journals, limits.max_journal_bytes),
            shares: Shares::new(limits.max_owner_journals, limits.max_owner_bytes),
            claims: Table::new("claim", limits.max_claims, limits.max_claim_bytes),
            limits,
        }
    }

    fn insert(
        &self,
        owner: Option<&str>,
        bytes: Bytes,
        ttl: Duration,
    ) -> Result<JournalId, StoreError> {
        fits("journal", bytes.len(), self.limits.max_entry_bytes)?;
        let now = Instant::now();
        let share = owner.map(|owner| self.share(owner, bytes.len(), now));
        let share = share.transpose()?;
        let id = JournalId::generate()?;
        let place = (bytes.len(), deadline(now, ttl));
        let kept = Kept {
            bytes,
            _share: share,
        };
        self.journals
            .insert(id, kept, place, now, |_| (), |_, _| {})?;
        Ok(id)
    }

    /// Takes a part of an owner's share, after what has expired has made room.
    fn share(&self, owner: &str, bytes: usize, now: Instant) -> Result<Share, StoreError> {
        self.shares.take(owner, bytes).or_else(|_| {
            self.journals.sweep(now, |_, _| {});
            self.shares.take(owner, bytes)
        })
    }

    fn try_claim(&self, key: &str, ttl: Duration) -> Result<Claim, StoreError> {
        fits("claim key", key.len(), self.limits.max_key_bytes)?;
        let now = Instant::now();
        if let Some(claim) = self.claims.with(key, now, |entry| entry.value.seen()) {
            return Ok(claim);
        }
        let token = ClaimToken::generate(key)?;
        let claimed = Claimed {
            holder: token.holder(),
            ttl,
            outcome: None,
        };
        let place = (key.len(), deadline(now, ttl));
        let other =
            self.claims
                .insert(key.into(), claimed, place, now, Claimed::seen, |_, _| {})?;
        Ok(other.unwrap_or(Claim::Fresh(token)))
    }

    fn settle(&self, token: &ClaimToken, outcome: Bytes) -> Result<(), StoreError> {
        fits("outcome", outcome.len(), self.limits.max_entry_bytes)?;
        let now = Instant::now();
        let bytes = outcome.len();
        let keep = |entry: &mut Entry<Claimed>| {
            let ours = entry.value.is_open_for(token);
            if ours {
                entry.expires = deadline(now, entry.value.ttl);
                entry.value.outcome = Some(outcome);
            }
            ours
        };
        let kept = self.claims.grow(token.key(), bytes, now, keep, |_, _| {})?;
        if kept {
            Ok(())
        } else {
            Err(StoreError::Gone { what: "claim" })
        }
    }
}

impl Claimed {
    /// What others who ask for the same are told.
    fn seen(&self) -> Claim {
        match &self.outcome {
            Some(outcome) => Claim::Done(outcome.clone()),
            None => Claim::Running,
        }
    }

    fn is_open_for(&self, token: &ClaimToken) -> bool {
        self.holder == token.holder() && self.outcome.is_none()
    }
}

impl Journals for MemoryJournals {
    fn put(&self, bytes: Bytes, ttl: Duration) -> BoxFuture<'_, Result<JournalId, StoreError>> {
        at_once(move || self.insert(None, bytes, ttl))
    }

    fn put_for<'a>(
        &'a self,
        owner: &'a str,
        bytes: Bytes,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<JournalId, StoreError>> {
        at_once(move || self.insert(Some(owner), bytes, ttl))
    }

    fn get<'a>(&'a self, id: &'a JournalId) -> BoxFuture<'a, Result<Option<Bytes>, StoreError>> {
        at_once(move || {
            let found = |entry: &mut Entry<Kept>| entry.value.bytes.clone();
            Ok(self.journals.with(id, Instant::now(), found))
        })
    }

    fn claim<'a>(
        &'a self,
        key: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Claim, StoreError>> {
        at_once(move || self.try_claim(key, ttl))
    }

    fn complete(&self, token: ClaimToken, outcome: Bytes) -> BoxFuture<'_, Result<(), StoreError>> {
        at_once(move || self.settle(&token, outcome))
    }

    fn abandon(&self, token: ClaimToken) -> BoxFuture<'_, Result<(), StoreError>> {
        at_once(move || {
            let ours = |claimed: &Claimed| claimed.is_open_for(&token);
            self.claims.remove(token.key(), Instant::now(), ours);
            Ok(())
        })
    }

    fn sweep(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        at_once(|| {
            let now = Instant::now();
            self.journals.sweep(now, |_, _| {});
            self.claims.sweep(now, |_, _| {});
            Ok(())
        })
    }
}

impl std::fmt::Debug for MemoryJournals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryJournals")
            .field("limits", &self.limits)
            .field("journals", &self.journals.len())
            .field("claims", &self.claims.len())
            .finish_non_exhaustive()
    }
}

fn fits(what: &'static str, bytes: usize, limit: usize) -> Result<(), StoreError> {
    if bytes > limit {
        return Err(StoreError::TooLarge { what, limit });
    }
    Ok(())
}
