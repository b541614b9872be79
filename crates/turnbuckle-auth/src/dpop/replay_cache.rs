//! Accepted proofs, stored as long as they could be replayed.

use std::{
    collections::{HashMap, HashSet},
    sync::Mutex,
};

use sha2::{Digest, Sha256};

use crate::sync::lock;

/// Result of inserting a proof.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReplayCheck {
    New,
    Replayed,
    /// The cache is full.
    Full,
}

/// A bounded cache of two periods: the current one and the previous one.
pub(super) struct ReplayCache {
    periods: Mutex<ReplayPeriods>,
    /// In seconds.
    period: u64,
    max_per_period: usize,
    max_per_key: usize,
}

#[derive(Default)]
struct ReplayPeriods {
    started: u64,
    current: HashSet<[u8; 32]>,
    previous: HashSet<[u8; 32]>,
    /// Number of current entries per key.
    count_by_key: HashMap<String, usize>,
}

impl ReplayCache {
    /// Stores each proof for at least one period (in seconds) and at most `max_per_period` proofs per period. The lower
    /// limit per key keeps one client from filling the cache.
    pub(super) fn new(period: u64, max_per_period: usize, max_per_key: usize) -> Self {
        Self {
            periods: Mutex::default(),
            period,
            max_per_period,
            max_per_key,
        }
    }

    pub(super) fn insert(&self, key: &str, id: &str, now: u64) -> ReplayCheck {
        // A thumbprint contains no space, so the pair is unambiguous.
        let digest = Sha256::digest(format!("{key} {id}")).into();
        let mut periods = lock(&self.periods);
        periods.rotate(now, self.period);
        if periods.current.contains(&digest) || periods.previous.contains(&digest) {
            return ReplayCheck::Replayed;
        }
        let count_by_key = periods.count_by_key.get(key).copied().unwrap_or_default();
        if periods.current.len() >= self.max_per_period || count_by_key >= self.max_per_key {
            return ReplayCheck::Full;
        }
        periods.current.insert(digest);
        periods
            .count_by_key
            .insert(key.to_owned(), count_by_key + 1);
        ReplayCheck::New
    }
}

impl ReplayPeriods {
    fn rotate(&mut self, now: u64, period: u64) {
        // A clock that was set back does not end a period.
        let age = now.saturating_sub(self.started);
        if age >= period {
            self.previous = std::mem::take(&mut self.current);
            self.count_by_key.clear();
            self.started = now;
        }
        if age >= 2 * period {
            self.previous.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_new_once_within_a_period() {
        let cache = ReplayCache::new(60, 10, 10);

        assert_eq!(cache.insert("key", "a", 1000), ReplayCheck::New);
        assert_eq!(cache.insert("key", "a", 1000), ReplayCheck::Replayed);
        assert_eq!(cache.insert("other", "a", 1000), ReplayCheck::New);
        assert_eq!(cache.insert("key", "a", 1059), ReplayCheck::Replayed);
        assert_eq!(cache.insert("key", "b", 1059), ReplayCheck::New);
        assert_eq!(cache.insert("key", "b", 1119), ReplayCheck::Replayed);
        assert_eq!(
            cache.insert("key", "a", 1200),
            ReplayCheck::New,
            "forgotten"
        );
    }

    #[test]
    fn a_full_replay_cache_rejects_until_the_period_ends() {
        let cache = ReplayCache::new(60, 10, 10);
        for at in 0..10 {
            assert_eq!(cache.insert("key", &at.to_string(), 1000), ReplayCheck::New);
        }

        assert_eq!(cache.insert("key", "one more", 1059), ReplayCheck::Full);
        assert_eq!(cache.insert("key", "one more", 1060), ReplayCheck::New);
        assert_eq!(
            cache.insert("key", "0", 1060),
            ReplayCheck::Replayed,
            "still stored"
        );
    }

    #[test]
    fn one_key_cannot_fill_the_replay_cache() {
        let cache = ReplayCache::new(60, 10, 3);
        for id in ["a", "b", "c"] {
            assert_eq!(cache.insert("greedy", id, 1000), ReplayCheck::New);
        }

        assert_eq!(cache.insert("greedy", "d", 1000), ReplayCheck::Full);
        assert_eq!(cache.insert("other", "d", 1000), ReplayCheck::New);
        assert_eq!(cache.insert("greedy", "d", 1060), ReplayCheck::New);
    }

    #[test]
    fn a_clock_set_back_keeps_entries() {
        let cache = ReplayCache::new(60, 10, 10);
        cache.insert("key", "a", 1000);

        assert_eq!(cache.insert("key", "a", 10), ReplayCheck::Replayed);
    }
}
