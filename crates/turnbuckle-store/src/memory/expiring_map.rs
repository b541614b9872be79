//! A map with expiring entries, bounded in number and bytes.

use std::{
    borrow::Borrow,
    collections::HashMap,
    hash::{BuildHasher, Hash, RandomState},
    sync::{
        Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use tokio::time::Instant;

use super::lock;
use crate::StoreError;

const SHARDS: usize = 64;

/// A map with entries that live until a deadline that only moves later. An expired entry is treated as absent.
///
/// Works without a background task. Expired entries are removed by [`sweep`](Self::sweep), and when an insertion finds no
/// room.
pub(super) struct ExpiringMap<K, V, S = RandomState> {
    /// The kind of entry, for [`StoreError::Full`].
    what: &'static str,
    shards: Box<[MapShard<K, V, S>]>,
    hasher: S,
    entries: MapBudget,
    bytes: MapBudget,
    /// Milliseconds after `started` before which no entry expires.
    next_expiry_ms: AtomicU64,
    started: Instant,
    /// Locked while a sweep runs.
    sweeping: Mutex<()>,
}

type MapShard<K, V, S> = Mutex<HashMap<K, MapEntry<V>, S>>;

pub(super) struct MapEntry<V> {
    pub(super) value: V,
    /// The deadline; it may only be moved to a later time.
    pub(super) expires: Instant,
    bytes: usize,
}

impl<V> MapEntry<V> {
    /// Returns the bytes that are accounted to the entry.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl<K: Hash + Eq, V, S: BuildHasher + Clone + Default> ExpiringMap<K, V, S> {
    pub(super) fn new(what: &'static str, max_entries: usize, max_bytes: usize) -> Self {
        let hasher = S::default();
        let shard = |_| Mutex::new(HashMap::with_hasher(hasher.clone()));
        Self {
            what,
            shards: (0..SHARDS).map(shard).collect(),
            hasher,
            entries: MapBudget::new(max_entries),
            bytes: MapBudget::new(max_bytes),
            next_expiry_ms: AtomicU64::new(u64::MAX),
            started: Instant::now(),
            sweeping: Mutex::new(()),
        }
    }

    /// Inserts `value` unless a live entry has this key; in that case returns the result of `seen` for it.
    ///
    /// Entries that are removed to make room are passed to `swept`.
    pub(super) fn insert<R>(
        &self,
        key: K,
        value: V,
        (bytes, expires): (usize, Instant),
        now: Instant,
        seen: impl FnOnce(&V) -> R,
        swept: impl FnMut(K, MapEntry<V>),
    ) -> Result<Option<R>, StoreError> {
        self.reserve(1, bytes, now, swept)?;
        let mut shard = lock(self.shard(&key));
        if let Some(entry) = shard.get(&key).filter(|entry| entry.expires > now) {
            self.release(1, bytes);
            return Ok(Some(seen(&entry.value)));
        }
        let entry = MapEntry {
            value,
            expires,
            bytes,
        };
        if let Some(expired) = shard.insert(key, entry) {
            self.release(1, expired.bytes);
        }
        // Under the lock of the shard, because a concurrent sweep that already passed it must see this deadline.
        self.next_expiry_ms
            .fetch_min(self.milliseconds(expires), Ordering::Relaxed);
        Ok(None)
    }

    /// Calls `work` with a live entry.
    pub(super) fn with_entry<Q, R>(
        &self,
        key: &Q,
        now: Instant,
        work: impl FnOnce(&mut MapEntry<V>) -> R,
    ) -> Option<R>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let mut shard = lock(self.shard(key));
        shard
            .get_mut(key)
            .filter(|entry| entry.expires > now)
            .map(work)
    }

    /// Calls `work` with a live entry. If `work` returns true, the entry has grown by `bytes`.
    ///
    /// Returns the result of `work`, or false if the entry does not exist. Entries that are removed to make room are
    /// passed to `swept`.
    pub(super) fn grow<Q>(
        &self,
        key: &Q,
        bytes: usize,
        now: Instant,
        work: impl FnOnce(&mut MapEntry<V>) -> bool,
        swept: impl FnMut(K, MapEntry<V>),
    ) -> Result<bool, StoreError>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.reserve(0, bytes, now, swept)?;
        let grown = self.with_entry(key, now, |entry| {
            let grown = work(entry);
            if grown {
                entry.bytes += bytes;
            }
            grown
        });
        if grown != Some(true) {
            self.release(0, bytes);
        }
        Ok(grown.unwrap_or(false))
    }

    /// Calls `work` with a live entry. `work` returns by how many bytes it shrank the entry; so does this method.
    pub(super) fn shrink<Q>(
        &self,
        key: &Q,
        now: Instant,
        work: impl FnOnce(&mut MapEntry<V>) -> usize,
    ) -> usize
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let freed = self.with_entry(key, now, |entry| {
            let freed = work(entry).min(entry.bytes);
            entry.bytes -= freed;
            freed
        });
        let freed = freed.unwrap_or(0);
        self.release(0, freed);
        freed
    }

    /// Removes the entry if it is live and meets `condition`.
    pub(super) fn remove<Q>(
        &self,
        key: &Q,
        now: Instant,
        condition: impl FnOnce(&V) -> bool,
    ) -> Option<MapEntry<V>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let mut shard = lock(self.shard(key));
        let entry = shard.get(key)?;
        if entry.expires <= now || !condition(&entry.value) {
            return None;
        }
        let entry = shard.remove(key)?;
        self.release(1, entry.bytes);
        Some(entry)
    }

    /// Removes expired entries and passes them to `swept`.
    pub(super) fn sweep(&self, now: Instant, mut swept: impl FnMut(K, MapEntry<V>)) {
        let _guard = lock(&self.sweeping);
        if self.next_expiry_ms.load(Ordering::Relaxed) > self.milliseconds(now) {
            return;
        }
        self.next_expiry_ms.store(u64::MAX, Ordering::Relaxed);
        let mut next = u64::MAX;
        for shard in &self.shards {
            let mut shard = lock(shard);
            for (key, entry) in shard.extract_if(|_, entry| entry.expires <= now) {
                self.release(1, entry.bytes);
                swept(key, entry);
            }
            let earliest = shard.values().map(|entry| entry.expires).min();
            next = next.min(earliest.map_or(u64::MAX, |at| self.milliseconds(at)));
        }
        self.next_expiry_ms.fetch_min(next, Ordering::Relaxed);
    }

    /// Returns the number of entries, including expired ones that were not swept yet.
    pub(super) fn len(&self) -> usize {
        self.entries.used.load(Ordering::Relaxed)
    }

    /// Returns whether the maximum number of entries is reached.
    pub(super) fn is_full(&self) -> bool {
        self.len() >= self.entries.max
    }

    /// Returns how many bytes are missing to store `bytes` more.
    pub(super) fn missing_bytes(&self, bytes: usize) -> usize {
        let used = self.bytes.used.load(Ordering::Relaxed);
        used.saturating_add(bytes).saturating_sub(self.bytes.max)
    }

    fn reserve(
        &self,
        entries: usize,
        bytes: usize,
        now: Instant,
        swept: impl FnMut(K, MapEntry<V>),
    ) -> Result<(), StoreError> {
        if self.try_reserve(entries, bytes) {
            return Ok(());
        }
        self.sweep(now, swept);
        if self.try_reserve(entries, bytes) {
            return Ok(());
        }
        Err(StoreError::Full { what: self.what })
    }

    fn try_reserve(&self, entries: usize, bytes: usize) -> bool {
        if !self.entries.reserve(entries) {
            return false;
        }
        let both = self.bytes.reserve(bytes);
        if !both {
            self.entries.release(entries);
        }
        both
    }

    fn release(&self, entries: usize, bytes: usize) {
        self.entries.release(entries);
        self.bytes.release(bytes);
    }

    fn shard<Q: Hash + ?Sized>(&self, key: &Q) -> &MapShard<K, V, S> {
        // The map inside a shard uses the lowest and highest bits of the same hash.
        let middle = self.hasher.hash_one(key) >> 32;
        &self.shards[(middle % SHARDS as u64) as usize]
    }

    /// Returns the milliseconds since the creation of this map, rounded down.
    fn milliseconds(&self, at: Instant) -> u64 {
        let passed = at.saturating_duration_since(self.started);
        u64::try_from(passed.as_millis()).unwrap_or(u64::MAX)
    }
}

/// A counter with a maximum.
struct MapBudget {
    used: AtomicUsize,
    max: usize,
}

impl MapBudget {
    fn new(max: usize) -> Self {
        Self {
            used: AtomicUsize::new(0),
            max,
        }
    }

    fn reserve(&self, amount: usize) -> bool {
        let more = |used: usize| used.checked_add(amount).filter(|sum| *sum <= self.max);
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .is_ok()
    }

    fn release(&self, amount: usize) {
        self.used.fetch_sub(amount, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
