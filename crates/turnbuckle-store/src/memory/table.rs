//! A map whose entries expire, bounded in number and in bytes.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::time::Instant;

use super::lock;
use crate::StoreError;

const SHARDS: usize = 64;

/// Entries live until a deadline that only ever moves later; an expired entry is as good as none.
///
/// Nothing runs in the background. Expired entries are dropped by [`sweep`](Self::sweep), and when
/// something new finds no room.
pub(super) struct Table<K, V, S = RandomState> {
    /// What an entry is, for the error that says there is no room.
    what: &'static str,
    shards: Box<[Shard<K, V, S>]>,
    hasher: S,
    entries: Budget,
    bytes: Budget,
    /// Nothing expires before this many milliseconds after `started`.
    quiet_until: AtomicU64,
    started: Instant,
    /// Held by the one who sweeps.
    sweeping: Mutex<()>,
}

type Shard<K, V, S> = Mutex<HashMap<K, Entry<V>, S>>;

pub(super) struct Entry<V> {
    pub(super) value: V,
    /// May be moved, but only to a later time.
    pub(super) expires: Instant,
    bytes: usize,
}

impl<V> Entry<V> {
    /// The bytes that are counted for it.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl<K: Hash + Eq, V, S: BuildHasher + Clone + Default> Table<K, V, S> {
    pub(super) fn new(what: &'static str, max_entries: usize, max_bytes: usize) -> Self {
        let hasher = S::default();
        let shard = |_| Mutex::new(HashMap::with_hasher(hasher.clone()));
        Self {
            what,
            shards: (0..SHARDS).map(shard).collect(),
            hasher,
            entries: Budget::new(max_entries),
            bytes: Budget::new(max_bytes),
            quiet_until: AtomicU64::new(u64::MAX),
            started: Instant::now(),
            sweeping: Mutex::new(()),
        }
    }

    /// Puts `value` there, unless something live has this key: then returns what `seen` makes of it.
    ///
    /// What has to be swept to make room is told to `swept`.
    pub(super) fn insert<R>(
        &self,
        key: K,
        value: V,
        (bytes, expires): (usize, Instant),
        now: Instant,
        seen: impl FnOnce(&V) -> R,
        swept: impl FnMut(K, Entry<V>),
    ) -> Result<Option<R>, StoreError> {
        self.reserve(1, bytes, now, swept)?;
        let mut shard = lock(self.shard(&key));
        if let Some(entry) = shard.get(&key).filter(|entry| entry.expires > now) {
            self.release(1, bytes);
            return Ok(Some(seen(&entry.value)));
        }
        let entry = Entry {
            value,
            expires,
            bytes,
        };
        if let Some(expired) = shard.insert(key, entry) {
            self.release(1, expired.bytes);
        }
        // While the shard is locked: a sweep that passed by already must learn of this deadline.
        self.quiet_until
            .fetch_min(self.milliseconds(expires), Ordering::Relaxed);
        Ok(None)
    }

    /// Shows a live entry to `work`.
    pub(super) fn with<Q, R>(
        &self,
        key: &Q,
        now: Instant,
        work: impl FnOnce(&mut Entry<V>) -> R,
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

    /// Shows a live entry to `work`, which may make it larger by `bytes` and then says true.
    ///
    /// Returns what `work` said, and false if there is no such entry. What has to be swept to make room is told to `swept`.
    pub(super) fn grow<Q>(
        &self,
        key: &Q,
        bytes: usize,
        now: Instant,
        work: impl FnOnce(&mut Entry<V>) -> bool,
        swept: impl FnMut(K, Entry<V>),
    ) -> Result<bool, StoreError>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.reserve(0, bytes, now, swept)?;
        let grown = self.with(key, now, |entry| {
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

    /// Shows a live entry to `work`, which may make it smaller and returns by how much. Returns how much that was.
    pub(super) fn shrink<Q>(
        &self,
        key: &Q,
        now: Instant,
        work: impl FnOnce(&mut Entry<V>) -> usize,
    ) -> usize
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let freed = self.with(key, now, |entry| {
            let freed = work(entry).min(entry.bytes);
            entry.bytes -= freed;
            freed
        });
        let freed = freed.unwrap_or(0);
        self.release(0, freed);
        freed
    }

    /// Takes out the entry if it is live and `wanted` says so.
    pub(super) fn remove<Q>(
        &self,
        key: &Q,
        now: Instant,
        wanted: impl FnOnce(&V) -> bool,
    ) -> Option<Entry<V>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let mut shard = lock(self.shard(key));
        let entry = shard.get(key)?;
        if entry.expires <= now || !wanted(&entry.value) {
            return None;
        }
        let entry = shard.remove(key)?;
        self.release(1, entry.bytes);
        Some(entry)
    }

    /// Takes out what has expired, and hands it to `swept`.
    pub(super) fn sweep(&self, now: Instant, mut swept: impl FnMut(K, Entry<V>)) {
        let _alone = lock(&self.sweeping);
        if self.quiet_until.load(Ordering::Relaxed) > self.milliseconds(now) {
            return;
        }
        self.quiet_until.store(u64::MAX, Ordering::Relaxed);
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
        self.quiet_until.fetch_min(next, Ordering::Relaxed);
    }

    /// How many there are, expired ones that were not yet swept included.
    pub(super) fn len(&self) -> usize {
        self.entries.used.load(Ordering::Relaxed)
    }

    /// Returns whether there is no room for another entry, however small.
    pub(super) fn is_full(&self) -> bool {
        self.len() >= self.entries.max
    }

    /// Returns how many bytes are lacking for so many more.
    pub(super) fn lacking(&self, bytes: usize) -> usize {
        let used = self.bytes.used.load(Ordering::Relaxed);
        used.saturating_add(bytes).saturating_sub(self.bytes.max)
    }

    fn reserve(
        &self,
        entries: usize,
        bytes: usize,
        now: Instant,
        swept: impl FnMut(K, Entry<V>),
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
        if !self.entries.take(entries) {
            return false;
        }
        let both = self.bytes.take(bytes);
        if !both {
            self.entries.give_back(entries);
        }
        both
    }

    fn release(&self, entries: usize, bytes: usize) {
        self.entries.give_back(entries);
        self.bytes.give_back(bytes);
    }

    fn shard<Q: Hash + ?Sized>(&self, key: &Q) -> &Shard<K, V, S> {
        // The map inside a shard places its entries by the lowest and highest bits of the same hash.
        let middle = self.hasher.hash_one(key) >> 32;
        &self.shards[(middle % SHARDS as u64) as usize]
    }

    /// Milliseconds from the start of this table, rounded down.
    fn milliseconds(&self, at: Instant) -> u64 {
        let passed = at.saturating_duration_since(self.started);
        u64::try_from(passed.as_millis()).unwrap_or(u64::MAX)
    }
}

/// A number of things that may be used at one time.
struct Budget {
    used: AtomicUsize,
    max: usize,
}

impl Budget {
    fn new(max: usize) -> Self {
        Self {
            used: AtomicUsize::new(0),
            max,
        }
    }

    fn take(&self, wanted: usize) -> bool {
        let more = |used: usize| used.checked_add(wanted).filter(|sum| *sum <= self.max);
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .is_ok()
    }

    fn give_back(&self, amount: usize) {
        self.used.fetch_sub(amount, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
