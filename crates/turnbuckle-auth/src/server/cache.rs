//! What was found out about a token, for a while.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use sha2::{Digest as _, Sha256};

/// What tokens are remembered by. Whoever reads the memory of the process finds no token in it.
pub(super) type Digest = [u8; 32];

pub(super) fn digest(token: &str) -> Digest {
    Sha256::digest(token).into()
}

/// At most so many entries, each until its time is over.
///
/// Two generations: when the younger one is full it becomes the older one, and what was in that is forgotten. Nothing is ever
/// searched for what to forget.
pub(super) struct Cache<V> {
    generations: Mutex<Generations<V>>,
    most: usize,
}

struct Generations<V> {
    younger: HashMap<Digest, Entry<V>>,
    older: HashMap<Digest, Entry<V>>,
}

struct Entry<V> {
    until: u64,
    value: V,
}

impl<V: Clone> Cache<V> {
    pub(super) fn new(most: usize) -> Self {
        Self {
            generations: Mutex::new(Generations {
                younger: HashMap::new(),
                older: HashMap::new(),
            }),
            most,
        }
    }

    pub(super) fn get(&self, digest: &Digest, now: u64) -> Option<V> {
        let generations = self
            .generations
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let Generations { younger, older } = &*generations;
        let entry = younger.get(digest).or_else(|| older.get(digest))?;
        (now < entry.until).then(|| entry.value.clone())
    }

    pub(super) fn put(&self, digest: Digest, until: u64, value: V) {
        let mut generations = self
            .generations
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if generations.younger.len() >= self.most / 2 {
            generations.older = std::mem::take(&mut generations.younger);
        }
        generations.younger.insert(digest, Entry { until, value });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_there_until_its_time_is_over() {
        let cache = Cache::new(10);
        cache.put(digest("a"), 100, 1);

        assert_eq!(cache.get(&digest("a"), 99), Some(1));
        assert_eq!(cache.get(&digest("a"), 100), None);
        assert_eq!(cache.get(&digest("b"), 99), None);
    }

    #[test]
    fn a_flood_is_forgotten() {
        let cache = Cache::new(10);
        for at in 0..1000 {
            cache.put(digest(&at.to_string()), 100, at);
        }

        let kept = (0..1000).filter(|at| cache.get(&digest(&at.to_string()), 0).is_some());
        assert!((5..=10).contains(&kept.count()));
        assert_eq!(cache.get(&digest("999"), 0), Some(999));
    }
}
