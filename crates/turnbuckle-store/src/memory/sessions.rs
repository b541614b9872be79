//! Sessions in the memory of this process.

use std::{
    hash::{BuildHasher, BuildHasherDefault, RandomState},
    io,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use serde::Serialize;
use tokio::time::Instant;

use super::{
    deadline,
    expiring_map::{ExpiringMap, MapEntry},
    lock, ready,
    session_owners::{EvictionCandidate, EvictionRank, SessionOwners},
};
use crate::{
    BoxFuture, ClientProfile, RequiredSpace, SessionId, SessionInUse, SessionLimits, SessionRecord,
    SessionStore, SessionUpdate, StoreError, id::RandomIdHasher,
};

/// The free allowance for the client data of one session.
const FREE_CLIENT_BYTES: usize = 4 * 1024;

/// A [`SessionStore`] in the memory of this process.
///
/// An idle session is a record and a map entry, without task, timer or channel. Measured with a counting allocator
/// over 10,000 sessions it takes 450 bytes, or 630 with a principal of its own, and another kilobyte if no other
/// session has the same client profile.
pub struct MemorySessionStore {
    limits: SessionLimits,
    map: ExpiringMap<SessionId, StoredSession, BuildHasherDefault<RandomIdHasher>>,
    /// Locked before a shard of the map, never after.
    owners: Mutex<SessionOwners>,
    profiles: ProfileInterner,
    started: Instant,
    /// Sessions that expired and were removed before the next sweep.
    evicted: Mutex<Vec<SessionId>>,
}

/// A session, and its current rank in `owners`.
struct StoredSession {
    record: Arc<SessionRecord>,
    rank: EvictionRank,
}

impl MemorySessionStore {
    /// Creates an empty store with the given limits.
    pub fn new(limits: SessionLimits) -> Self {
        Self {
            map: ExpiringMap::new("session", limits.max_sessions, limits.max_extra_bytes),
            owners: Mutex::default(),
            profiles: ProfileInterner::new(),
            started: Instant::now(),
            evicted: Mutex::default(),
            limits,
        }
    }

    fn insert(&self, mut record: SessionRecord) -> Result<SessionId, StoreError> {
        let now = Instant::now();
        let id = SessionId::generate()?;
        let (bytes, expires) = (self.extra_bytes(&record)?, self.expiry(&record, now));
        record.client = self.profiles.intern(record.client);
        let owner = record.owner.clone();
        let mut owners = lock(&self.owners);
        if owners.check(&owner, bytes, &self.limits).is_err() {
            self.remove_expired(&mut owners, now);
            owners.check(&owner, bytes, &self.limits)?;
        }
        let stored = StoredSession {
            rank: self.rank(&record, expires),
            record: Arc::new(record),
        };
        let rank = stored.rank;
        let mut expired = Vec::new();
        let swept = |id, entry| expired.push((id, entry));
        let inserted = self
            .map
            .insert(id, stored, (bytes, expires), now, |_| (), swept);
        self.record_expired(&mut owners, expired);
        inserted?;
        owners.add(&owner, id, rank, bytes);
        Ok(id)
    }

    fn remove_now(&self, id: &SessionId) -> bool {
        let Some(entry) = self.map.remove(id, Instant::now(), |_| true) else {
            return false;
        };
        subtract_from_owner(&mut lock(&self.owners), *id, &entry);
        true
    }

    /// Removes expired sessions to make room. The next sweep reports them.
    fn remove_expired(&self, owners: &mut SessionOwners, now: Instant) {
        let mut expired = Vec::new();
        self.map.sweep(now, |id, entry| expired.push((id, entry)));
        self.record_expired(owners, expired);
    }

    fn record_expired(
        &self,
        owners: &mut SessionOwners,
        expired: Vec<(SessionId, MapEntry<StoredSession>)>,
    ) {
        for (id, entry) in expired {
            subtract_from_owner(owners, id, &entry);
            self.record_for_sweep(id);
        }
    }

    /// Removes an idle session to make the required space.
    fn make_room(
        &self,
        needed: RequiredSpace<'_>,
        in_use: &(dyn Fn(&SessionId) -> bool + Send + Sync),
    ) -> Option<SessionId> {
        let now = Instant::now();
        let owner = needed.owner();
        let (is_session, bytes) = match needed {
            RequiredSpace::Session(record) => (true, self.extra_bytes(record).ok()?),
            RequiredSpace::Subscription { uri, .. } => (false, subscription_bytes(uri)),
        };
        let owners = &mut *lock(&self.owners);
        let (own, own_bytes) = (owners.sessions(owner.key()), owners.bytes(owner.key()));
        let own_id = owners.owner_id(owner.key());
        let own_bytes_after = own_bytes.saturating_add(bytes);
        let missing_own_bytes = own_bytes_after.saturating_sub(self.limits.max_bytes_for(owner));
        let missing_bytes = self.map.missing_bytes(bytes);
        let inspect = |owners: &mut SessionOwners, owner, min_bytes| {
            owners.first_idle(owner, |id, rank| {
                self.inspect(id, rank, min_bytes, in_use, now)
            })
        };
        let id = if is_session && own >= self.limits.max_sessions_for(owner) {
            inspect(owners, own_id?, 0)?
        } else if bytes > 0 && missing_own_bytes > 0 {
            inspect(owners, own_id?, missing_own_bytes.max(missing_bytes))?
        } else if is_session && self.map.is_full() {
            // An owner that loses a session must still have at least as many as the owner that gains one.
            let larger = owners.with_sessions_at_least(own + 2);
            let found = larger
                .into_iter()
                .find_map(|larger| inspect(owners, larger, 0));
            found.or_else(|| inspect(owners, own_id?, 0))?
        } else if bytes > 0 && missing_bytes > 0 {
            let larger = owners.with_more_bytes(own_bytes_after);
            let found = larger
                .into_iter()
                .find_map(|larger| inspect(owners, larger, missing_bytes));
            found.or_else(|| inspect(owners, own_id?, missing_bytes))?
        } else {
            return None;
        };
        let entry = self.map.remove(&id, now, |_| true)?;
        subtract_from_owner(owners, id, &entry);
        Some(id)
    }

    /// Checks whether a session can be removed and has at least `min_bytes`, and updates its rank.
    fn inspect(
        &self,
        id: &SessionId,
        recorded_rank: EvictionRank,
        min_bytes: usize,
        in_use: &(dyn Fn(&SessionId) -> bool + Send + Sync),
        now: Instant,
    ) -> EvictionCandidate {
        // Called without the lock of a shard, because the callback may do anything.
        let is_in_use = in_use(id);
        let candidate = self.map.with_entry(id, now, |entry| {
            let is_small = entry.bytes() < min_bytes;
            let stored = &mut entry.value;
            let actual = self.rank(&stored.record, entry.expires);
            if is_in_use {
                // Treated as used just now, so that others are removed first.
                let expires = self.expiry(&stored.record, now).max(entry.expires);
                stored.rank = self.rank(&stored.record, expires);
                return EvictionCandidate::Skip(stored.rank);
            }
            if is_small {
                stored.rank = actual;
                return EvictionCandidate::Skip(actual);
            }
            if actual <= recorded_rank {
                return EvictionCandidate::Idle;
            }
            stored.rank = actual;
            EvictionCandidate::Reranked(actual)
        });
        candidate.unwrap_or(EvictionCandidate::Gone)
    }

    /// Returns the bytes of client data above the free allowance.
    fn extra_bytes(&self, record: &SessionRecord) -> Result<usize, StoreError> {
        let client = &record.client;
        let client_bytes = estimated_size(&client.info) + estimated_size(&client.capabilities);
        if client_bytes > self.limits.max_client_bytes {
            return Err(StoreError::TooLarge {
                what: "client info and capabilities",
                limit: self.limits.max_client_bytes,
            });
        }
        Ok((client_bytes + estimated_size(&record.principal)).saturating_sub(FREE_CLIENT_BYTES))
    }

    /// Returns the rank of a session that expires at `expires`.
    fn rank(&self, record: &SessionRecord, expires: Instant) -> EvictionRank {
        let expires_in = expires.saturating_duration_since(self.started);
        EvictionRank::new(record.initialized, expires_in)
    }

    /// Records an id for the next sweep.
    fn record_for_sweep(&self, id: SessionId) {
        let mut evicted = lock(&self.evicted);
        // A caller with cleanup to do sweeps long before this limit; without sweeps, the list must stay bounded.
        if evicted.len() < self.limits.max_sessions.max(1_000) {
            evicted.push(id);
        }
    }

    /// Adds a subscription, if the byte budget allows.
    fn subscribe(&self, id: &SessionId, uri: String, now: Instant) -> UpdateResult {
        let bytes = subscription_bytes(&uri);
        let found = self.map.with_entry(id, now, |entry| {
            let record = &entry.value.record;
            (record.owner.clone(), record.subscriptions.contains(&uri))
        });
        let Some((owner, is_subscribed)) = found else {
            return Ok(None);
        };
        let mut owners = lock(&self.owners);
        if !is_subscribed && owners.grow(&owner, bytes, &self.limits).is_err() {
            self.remove_expired(&mut owners, now);
            owners.grow(&owner, bytes, &self.limits)?;
        }
        let mut changed = None;
        let subscribe = |entry: &mut MapEntry<StoredSession>| {
            let record = Arc::make_mut(&mut entry.value.record);
            let before = record.subscriptions.len();
            let applied = record.apply(SessionUpdate::Subscribe(uri), &self.limits);
            let is_new = record.subscriptions.len() > before;
            changed = Some(applied.map(|()| self.restart_idle_timer(entry, now)));
            is_new
        };
        let mut expired = Vec::new();
        let swept = |id, entry| expired.push((id, entry));
        let grown = self.map.grow(id, bytes, now, subscribe, swept);
        self.record_expired(&mut owners, expired);
        let is_new = matches!(grown, Ok(true));
        match (is_subscribed, is_new) {
            (false, false) => owners.shrink(&owner, bytes),
            // A concurrent call removed the subscription, so it is new after all.
            (true, true) => owners.grow_unchecked(&owner, bytes),
            _ => {}
        }
        grown?;
        changed.transpose()
    }

    fn unsubscribe(&self, id: &SessionId, uri: String, now: Instant) -> UpdateResult {
        let mut changed = None;
        let bytes = subscription_bytes(&uri);
        let freed = self.map.shrink(id, now, |entry| {
            let record = Arc::make_mut(&mut entry.value.record);
            let before = record.subscriptions.len();
            let applied = record.apply(SessionUpdate::Unsubscribe(uri), &self.limits);
            let is_removed = record.subscriptions.len() < before;
            changed = Some(applied.map(|()| self.restart_idle_timer(entry, now)));
            if is_removed { bytes } else { 0 }
        });
        let changed = changed.transpose()?;
        if let Some(record) = changed.as_ref().filter(|_| freed > 0) {
            lock(&self.owners).shrink(&record.owner, freed);
        }
        Ok(changed)
    }

    fn restart_idle_timer(
        &self,
        entry: &mut MapEntry<StoredSession>,
        now: Instant,
    ) -> Arc<SessionRecord> {
        let record = &entry.value.record;
        entry.expires = self.expiry(record, now).max(entry.expires);
        Arc::clone(record)
    }

    fn expiry(&self, record: &SessionRecord, now: Instant) -> Instant {
        let idle = if record.initialized {
            self.limits.idle
        } else {
            self.limits.idle_before_initialized
        };
        deadline(now, idle)
    }
}

/// The current record after an update, if the session still exists.
type UpdateResult = Result<Option<Arc<SessionRecord>>, StoreError>;

/// Subtracts a removed session from the usage of its owner.
fn subtract_from_owner(owners: &mut SessionOwners, id: SessionId, entry: &MapEntry<StoredSession>) {
    let stored = &entry.value;
    owners.remove(&stored.record.owner, id, stored.rank, entry.bytes());
}

/// Returns the bytes that a subscription uses.
fn subscription_bytes(uri: &str) -> usize {
    uri.len() + 64
}

impl SessionStore for MemorySessionStore {
    fn create(&self, record: SessionRecord) -> BoxFuture<'_, Result<SessionId, StoreError>> {
        ready(move || self.insert(record))
    }

    fn load<'a>(
        &'a self,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<Arc<SessionRecord>>, StoreError>> {
        ready(move || {
            let now = Instant::now();
            let record = |entry: &mut MapEntry<StoredSession>| Arc::clone(&entry.value.record);
            Ok(self.map.with_entry(id, now, record))
        })
    }

    fn load_for_request<'a>(
        &'a self,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<SessionInUse>, StoreError>> {
        ready(move || {
            let now = Instant::now();
            // The lock is held and the record is read anyway, so this costs less than a second lookup.
            let found = self.map.with_entry(id, now, |entry| SessionInUse {
                record: self.restart_idle_timer(entry, now),
                is_touched: true,
            });
            Ok(found)
        })
    }

    fn touch<'a>(&'a self, ids: &'a [SessionId]) -> BoxFuture<'a, Result<Vec<bool>, StoreError>> {
        ready(move || {
            let now = Instant::now();
            let touch = |id: &SessionId| {
                let restart = |entry: &mut MapEntry<StoredSession>| {
                    entry.expires = self.expiry(&entry.value.record, now).max(entry.expires);
                };
                self.map.with_entry(id, now, restart).is_some()
            };
            Ok(ids.iter().map(touch).collect())
        })
    }

    fn touch_interval(&self) -> Duration {
        self.limits.idle.min(self.limits.idle_before_initialized) / 8
    }

    fn update<'a>(
        &'a self,
        id: &'a SessionId,
        update: SessionUpdate,
    ) -> BoxFuture<'a, Result<Option<Arc<SessionRecord>>, StoreError>> {
        ready(move || {
            let now = Instant::now();
            match update {
                SessionUpdate::Subscribe(uri) => self.subscribe(id, uri, now),
                SessionUpdate::Unsubscribe(uri) => self.unsubscribe(id, uri, now),
                update => {
                    let changed = self.map.with_entry(id, now, |entry| {
                        Arc::make_mut(&mut entry.value.record).apply(update, &self.limits)?;
                        Ok(self.restart_idle_timer(entry, now))
                    });
                    changed.transpose()
                }
            }
        })
    }

    fn remove<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<bool, StoreError>> {
        ready(move || Ok(self.remove_now(id)))
    }

    fn evict<'a>(
        &'a self,
        needed: RequiredSpace<'a>,
        in_use: &'a (dyn Fn(&SessionId) -> bool + Send + Sync),
    ) -> BoxFuture<'a, Result<Option<SessionId>, StoreError>> {
        ready(move || Ok(self.make_room(needed, in_use)))
    }

    fn len(&self) -> BoxFuture<'_, Result<usize, StoreError>> {
        ready(|| Ok(self.map.len()))
    }

    fn sweep(&self) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        ready(|| {
            let mut owners = lock(&self.owners);
            let mut expired_ids = std::mem::take(&mut *lock(&self.evicted));
            let mut expired = Vec::new();
            self.map
                .sweep(Instant::now(), |id, entry| expired.push((id, entry)));
            for (id, entry) in expired {
                subtract_from_owner(&mut owners, id, &entry);
                expired_ids.push(id);
            }
            Ok(expired_ids)
        })
    }
}

impl std::fmt::Debug for MemorySessionStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemorySessionStore")
            .field("limits", &self.limits)
            .field("len", &self.map.len())
            .finish_non_exhaustive()
    }
}

/// Estimates the memory of `value` from the length of its JSON text.
///
/// A short text can be a large tree, so every node counts extra. The text is counted while it is written, not stored.
fn estimated_size(value: &impl Serialize) -> usize {
    let mut counter = SizeCounter(0);
    match serde_json::to_writer(&mut counter, value) {
        Ok(()) => counter.0,
        // A value that cannot be measured counts as too large.
        Err(_) => usize::MAX / 4,
    }
}

/// The memory of a JSON node in addition to its text.
const NODE_BYTES: usize = 64;

struct SizeCounter(usize);

impl io::Write for SizeCounter {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let nodes = text
            .iter()
            .filter(|byte| matches!(byte, b',' | b'{' | b'['));
        self.0 += text.len() + NODE_BYTES * nodes.count();
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The number of slots; a server rarely has more kinds of clients at a time.
const SLOTS: usize = 256;

/// Lets sessions of the same client program share one profile, which is the largest part of a session.
///
/// Holds at most one weak reference per slot. A profile that was displaced or dropped is not shared any more.
struct ProfileInterner {
    slots: Box<[Mutex<Weak<ClientProfile>>]>,
    hasher: RandomState,
}

impl ProfileInterner {
    fn new() -> Self {
        Self {
            slots: (0..SLOTS).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
        }
    }

    /// Returns a profile equal to this one that many sessions share.
    fn intern(&self, profile: Arc<ClientProfile>) -> Arc<ClientProfile> {
        let mut slot = lock(self.slot(&profile));
        if let Some(interned) = slot.upgrade().filter(|interned| *interned == profile) {
            return interned;
        }
        *slot = Arc::downgrade(&profile);
        profile
    }

    fn slot(&self, profile: &ClientProfile) -> &Mutex<Weak<ClientProfile>> {
        let info = profile.info.as_ref();
        let name = info.map(|info| (&info.name, &info.version));
        // The remainder is below `SLOTS`, so it fits into `usize`.
        &self.slots[(self.hasher.hash_one(name) % SLOTS as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use turnbuckle_protocol::{
        Revision,
        types::{Implementation, RootsCapability},
    };

    use super::*;
    use crate::SessionOwner;

    #[tokio::test(start_paused = true)]
    async fn an_owner_without_sessions_is_removed() {
        let limits = SessionLimits {
            max_sessions_per_owner: 3,
            ..SessionLimits::default()
        };
        let idle = limits.idle_before_initialized;
        let sessions = MemorySessionStore::new(limits);
        let owner = SessionOwner::caller("ann");
        let record = || {
            SessionRecord::new(None, Revision::V2025_11_25, ClientProfile::default())
                .owned_by(owner.clone())
        };
        let mut created = Vec::new();
        for _ in 0..3 {
            created.push(sessions.create(record()).await.unwrap());
        }
        let update = SessionUpdate::Subscribe("file:///a".to_owned());
        sessions.update(&created[1], update).await.unwrap();

        // All sessions are in use once, so that they are ranked again.
        let another = record();
        let needed = RequiredSpace::Session(&another);
        assert_eq!(sessions.evict(needed, &|_| true).await.unwrap(), None);
        let ended = sessions.evict(needed, &|_| false).await.unwrap().unwrap();
        let left = created.iter().find(|id| **id != ended).unwrap();
        assert!(sessions.remove(left).await.unwrap());
        tokio::time::advance(2 * idle).await;
        assert_eq!(sessions.sweep().await.unwrap().len(), 1);

        assert!(lock(&sessions.owners).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_sessions_is_exact() {
        let limits = SessionLimits::default();
        let idle = limits.idle_before_initialized;
        let sessions = MemorySessionStore::new(limits);
        let record = || SessionRecord::new(None, Revision::V2025_11_25, editor());
        let first = sessions.create(record()).await.unwrap();
        sessions.create(record()).await.unwrap();

        assert_eq!(sessions.len().await.unwrap(), 2);
        assert!(sessions.remove(&first).await.unwrap());
        assert_eq!(sessions.len().await.unwrap(), 1);
        tokio::time::advance(idle).await;
        assert_eq!(sessions.sweep().await.unwrap().len(), 1);
        assert_eq!(sessions.len().await.unwrap(), 0);
    }

    fn editor() -> ClientProfile {
        ClientProfile {
            info: Some(Implementation::new("editor", "1.0")),
            ..ClientProfile::default()
        }
    }

    #[test]
    fn equal_profiles_become_one() {
        let profiles = ProfileInterner::new();

        let one = profiles.intern(Arc::new(editor()));
        let two = profiles.intern(Arc::new(editor()));

        assert!(Arc::ptr_eq(&one, &two));
    }

    #[test]
    fn profiles_with_the_same_name_and_other_capabilities_are_not_shared() {
        let profiles = ProfileInterner::new();
        let mut able = editor();
        able.capabilities.roots = Some(RootsCapability::default());

        let one = profiles.intern(Arc::new(editor()));
        let two = profiles.intern(Arc::new(able));

        assert_eq!(one.capabilities.roots, None);
        assert!(two.capabilities.roots.is_some());
    }

    #[test]
    fn an_unused_profile_is_dropped() {
        let profiles = ProfileInterner::new();
        let profile = profiles.intern(Arc::new(editor()));
        let watch = Arc::downgrade(&profile);

        drop(profile);

        assert!(watch.upgrade().is_none());
    }
}
