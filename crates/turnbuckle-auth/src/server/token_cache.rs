//! A bounded cache of verification results.

use std::{collections::HashMap, sync::Mutex};

use sha2::{Digest as _, Sha256};

use crate::sync::lock;

/// Hash of a token. The cache stores no tokens, so that they cannot be read from memory.
pub(super) type TokenDigest = [u8; 32];

pub(super) fn digest(token: &str) -> TokenDigest {
    Sha256::digest(token).into()
}

/// A cache of limited size with expiring entries.
///
/// It has two generations: when the recent one is full, it replaces the previous one. Eviction never searches for
/// entries.
pub(super) struct TokenCache<V> {
    generations: Mutex<CacheGenerations<V>>,
    capacity: usize,
}

struct CacheGenerations<V> {
    recent: HashMap<TokenDigest, CacheEntry<V>>,
    previous: HashMap<TokenDigest, CacheEntry<V>>,
}

struct CacheEntry<V> {
    expires_at: u64,
    value: V,
}

impl<V: Clone> TokenCache<V> {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            generations: Mutex::new(CacheGenerations {
                recent: HashMap::new(),
                previous: HashMap::new(),
            }),
            capacity,
        }
    }

    pub(super) fn get(&self, digest: &TokenDigest, now: u64) -> Option<V> {
        let generations = lock(&self.generations);
        let CacheGenerations { recent, previous } = &*generations;
        let entry = recent.get(digest).or_else(|| previous.get(digest))?;
        (now < entry.expires_at).then(|| entry.value.clone())
    }

    pub(super) fn insert(&self, digest: TokenDigest, expires_at: u64, value: V) {
        let mut generations = lock(&self.generations);
        if generations.recent.len() >= self.capacity / 2 {
            generations.previous = std::mem::take(&mut generations.recent);
        }
        generations
            .recent
            .insert(digest, CacheEntry { expires_at, value });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_cached_until_it_expires() {
        let cache = TokenCache::new(10);
        cache.insert(digest("a"), 100, 1);

        assert_eq!(cache.get(&digest("a"), 99), Some(1));
        assert_eq!(cache.get(&digest("a"), 100), None);
        assert_eq!(cache.get(&digest("b"), 99), None);
    }

    #[test]
    fn a_full_cache_drops_older_entries() {
        let cache = TokenCache::new(10);
        for at in 0..1000 {
            cache.insert(digest(&at.to_string()), 100, at);
        }

        let cached = (0..1000).filter(|at| cache.get(&digest(&at.to_string()), 0).is_some());
        assert!((5..=10).contains(&cached.count()));
        assert_eq!(cache.get(&digest("999"), 0), Some(999));
    }
}
