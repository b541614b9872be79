//! Sessions in this process.

use std::hash::BuildHasherDefault;
use std::sync::{Arc, Mutex};

use tokio::time::Instant;

use super::owners::{Candidate, Owners, Rank};
use super::profiles::Profiles;
use super::table::{Entry, Table};
use super::weight::weight;
use super::{at_once, deadline, lock};
use crate::random::OwnRandomness;
use crate::{
    BoxFuture, SessionChange, SessionId, SessionLimits, SessionRecord, SessionRoom, Sessions,
    StoreError,
};

/// What an ordinary client says about itself costs less than this.
const ORDINARY: usize = 4 * 1024;

/// Sessions kept in this process.
///
/// An idle session is its record and a table entry: no task, no timer, no channel. Counted by an
/// allocator over 10,000 of them it takes 450 bytes, or 630 if each has a principal of its own, and another kilobyte where
/// no other session has the same client profile.
pub struct MemorySessions {
    limits: SessionLimits,
    table: Table<SessionId, Kept, BuildHasherDefault<OwnRandomness>>,
    /// Locked before a shard of the table, never after.
    owners: Mutex<Owners>,
    profiles: Profiles,
    started: Instant,
    /// Sessions that expired and made room before anyone swept them.
    evicted: Mutex<Vec<SessionId>>,
}

/// A session, and the rank that its owner has it under.
struct Kept {
    record: Arc<SessionRecord>,
    rank: Rank,
}

impl MemorySessions {
    /// Keeps sessions within `limits`.
    pub fn new(limits: SessionLimits) -> Self {
        Self {
            table: Table::new("session", limits.max_sessions, limits.max_extra_bytes),
            owners: Mutex::default(),
            profiles: Profiles::new(),
            started: Instant::now(),
            evicted: Mutex::default(),
            limits,
        }
    }

    fn insert(&self, mut record: SessionRecord) -> Result<SessionId, StoreError> {
        let now = Instant::now();
        let id = SessionId::generate()?;
        let (bytes, expires) = (self.extra_bytes(&record)?, self.expiry(&record, now));
        record.client = self.profiles.share(record.client);
        let owner = record.owner.clone();
        let mut owners = lock(&self.owners);
        if owners.check(&owner, bytes, &self.limits).is_err() {
            self.forget_expired(&mut owners, now);
            owners.check(&owner, bytes, &self.limits)?;
        }
        let kept = Kept {
            rank: self.rank(&record, expires),
            record: Arc::new(record),
        };
        let rank = kept.rank;
        let mut expired = Vec::new();
        let swept = |id, entry| expired.push((id, entry));
        let inserted = self
            .table
            .insert(id, kept, (bytes, expires), now, |_| (), swept);
        self.note_expired(&mut owners, expired);
        inserted?;
        owners.add(&owner, id, rank, bytes);
        Ok(id)
    }

    fn take_out(&self, id: &SessionId) -> bool {
        let Some(entry) = self.table.remove(id, Instant::now(), |_| true) else {
            return false;
        };
        uncount(&mut lock(&self.owners), *id, &entry);
        true
    }

    /// Drops expired sessions to make room. The next sweep names them.
    fn forget_expired(&self, owners: &mut Owners, now: Instant) {
        let mut expired = Vec::new();
        self.table.sweep(now, |id, entry| expired.push((id, entry)));
        self.note_expired(owners, expired);
    }

    fn note_expired(&self, owners: &mut Owners, expired: Vec<(SessionId, Entry<Kept>)>) {
        for (id, entry) in expired {
            uncount(owners, id, &entry);
            self.note_for_sweep(id);
        }
    }

    /// Ends an idle session, so that there is room for what is needed.
    fn make_room(
        &self,
        needed: SessionRoom<'_>,
        in_use: &(dyn Fn(&SessionId) -> bool + Send + Sync),
    ) -> Option<SessionId> {
        let now = Instant::now();
        let owner = needed.owner();
        let (is_session, bytes) = match needed {
            SessionRoom::Session(record) => (true, self.extra_bytes(record).ok()?),
            SessionRoom::Subscription { uri, .. } => (false, subscription_bytes(uri)),
        };
        let owners = &mut *lock(&self.owners);
        let (own, own_bytes) = (owners.sessions(owner.key()), owners.bytes(owner.key()));
        let own_id = owners.id(owner.key());
        let bytes_then = own_bytes.saturating_add(bytes);
        let lacking_own = bytes_then.saturating_sub(self.limits.bytes_of(owner));
        let lacking = self.table.lacking(bytes);
        let look = |owners: &mut Owners, owner, least| {
            owners.first_idle(owner, |id, rank| self.look(id, rank, least, in_use, now))
        };
        let id = if is_session && own >= self.limits.sessions_of(owner) {
            look(owners, own_id?, 0)?
        } else if bytes > 0 && lacking_own > 0 {
            look(owners, own_id?, lacking_own.max(lacking))?
        } else if is_session && self.table.is_full() {
            // Whoever loses one holds at least as many afterwards as the owner that gets its place.
            let larger = owners.of_size(own + 2);
            let found = larger
                .into_iter()
                .find_map(|larger| look(owners, larger, 0));
            found.or_else(|| look(owners, own_id?, 0))?
        } else if bytes > 0 && lacking > 0 {
            let larger = owners.with_more_bytes(bytes_then);
            let found = larger
                .into_iter()
                .find_map(|larger| look(owners, larger, lacking));
            found.or_else(|| look(owners, own_id?, lacking))?
        } else {
            return None;
        };
        let entry = self.table.remove(&id, now, |_| true)?;
        uncount(owners, id, &entry);
        Some(id)
    }

    /// Sees whether a session can be ended and holds at least so many bytes, and brings its rank up to date.
    fn look(
        &self,
        id: &SessionId,
        known: Rank,
        least: usize,
        in_use: &(dyn Fn(&SessionId) -> bool + Send + Sync),
        now: Instant,
    ) -> Candidate {
        // Not under the lock of a shard: nobody knows what is asked there.
        let is_in_use = in_use(id);
        let candidate = self.table.with(id, now, |entry| {
            let is_small = entry.bytes() < least;
            let kept = &mut entry.value;
            let actual = self.rank(&kept.record, entry.expires);
            if is_in_use {
                // As if it were used now: others come first.
                let expires = self.expiry(&kept.record, now).max(entry.expires);
                kept.rank = self.rank(&kept.record, expires);
                return Candidate::NotThis(kept.rank);
            }
            if is_small {
                kept.rank = actual;
                return Candidate::NotThis(actual);
            }
            if actual <= known {
                return Candidate::Idle;
            }
            kept.rank = actual;
            Candidate::Ranked(actual)
        });
        candidate.unwrap_or(Candidate::Gone)
    }

    /// What this client's words cost beyond what is ordinary.
    fn extra_bytes(&self, record: &SessionRecord) -> Result<usize, StoreError> {
        let client = &record.client;
        let said = weight(&client.info) + weight(&client.capabilities);
        if said > self.limits.max_client_bytes {
            return Err(StoreError::TooLarge {
                what: "client info and capabilities",
                limit: self.limits.max_client_bytes,
            });
        }
        Ok((said + weight(&record.principal)).saturating_sub(ORDINARY))
    }

    /// The rank of a session that expires then.
    fn rank(&self, record: &SessionRecord, expires: Instant) -> Rank {
        let expires_in = expires.saturating_duration_since(self.started);
        Rank::new(record.initialized, expires_in)
    }

    /// Remembers an id for the next sweep.
    fn note_for_sweep(&self, id: SessionId) {
        let mut evicted = lock(&self.evicted);
        // Whoever has something to clean up sweeps long before this many were evicted; for whoever
        // never sweeps, the list must not grow for ever.
        if evicted.len() < self.limits.max_sessions.max(1_000) {
            evicted.push(id);
        }
    }

    /// Notes a subscription, if the budget of all sessions has room for it.
    fn subscribe(&self, id: &SessionId, uri: String, now: Instant) -> Changed {
        let bytes = subscription_bytes(&uri);
        let known = self.table.with(id, now, |entry| {
            let record = &entry.value.record;
            (record.owner.clone(), record.subscriptions.contains(&uri))
        });
        let Some((owner, is_known)) = known else {
            return Ok(None);
        };
        let mut owners = lock(&self.owners);
        if !is_known && owners.grow(&owner, bytes, &self.limits).is_err() {
            self.forget_expired(&mut owners, now);
            owners.grow(&owner, bytes, &self.limits)?;
        }
        let mut changed = None;
        let subscribe = |entry: &mut Entry<Kept>| {
            let record = Arc::make_mut(&mut entry.value.record);
            let before = record.subscriptions.len();
            let applied = record.apply(SessionChange::Subscribe(uri), &self.limits);
            let is_new = record.subscriptions.len() > before;
            changed = Some(applied.map(|()| self.renew(entry, now)));
            is_new
        };
        let mut expired = Vec::new();
        let swept = |id, entry| expired.push((id, entry));
        let grown = self.table.grow(id, bytes, now, subscribe, swept);
        self.note_expired(&mut owners, expired);
        let is_new = matches!(grown, Ok(true));
        match (is_known, is_new) {
            (false, false) => owners.shrink(&owner, bytes),
            // Another call took it away meanwhile, so it is new after all.
            (true, true) => owners.grow_unchecked(&owner, bytes),
            _ => {}
        }
        grown?;
        changed.transpose()
    }

    fn unsubscribe(&self, id: &SessionId, uri: &str, now: Instant) -> Changed {
        let mut changed = None;
        let freed = self.table.shrink(id, now, |entry| {
            let record = Arc::make_mut(&mut entry.value.record);
            let removed = record.subscriptions.remove(uri);
            changed = Some(self.renew(entry, now));
            if removed { subscription_bytes(uri) } else { 0 }
        });
        if let Some(record) = changed.as_ref().filter(|_| freed > 0) {
            lock(&self.owners).shrink(&record.owner, freed);
        }
        Ok(changed)
    }

    fn renew(&self, entry: &mut Entry<Kept>, now: Instant) -> Arc<SessionRecord> {
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

/// What a change came to: the session as it is now, if there still is one.
type Changed = Result<Option<Arc<SessionRecord>>, StoreError>;

/// Counts a session no longer that was taken out of the table.
fn uncount(owners: &mut Owners, id: SessionId, entry: &Entry<Kept>) {
    let kept = &entry.value;
    owners.remove(&kept.record.owner, id, kept.rank, entry.bytes());
}

/// What keeping a subscribed URI costs.
fn subscription_bytes(uri: &str) -> usize {
    uri.len() + 64
}

impl Sessions for MemorySessions {
    fn create(&self, record: SessionRecord) -> BoxFuture<'_, Result<SessionId, StoreError>> {
        at_once(move || self.insert(record))
    }

    fn load<'a>(
        &'a self,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<Arc<SessionRecord>>, StoreError>> {
        at_once(move || {
            let now = Instant::now();
            Ok(self.table.with(id, now, |entry| self.renew(entry, now)))
        })
    }

    fn update<'a>(
        &'a self,
        id: &'a SessionId,
        change: SessionChange,
    ) -> BoxFuture<'a, Result<Option<Arc<SessionRecord>>, StoreError>> {
        at_once(move || {
            let now = Instant::now();
            match change {
                SessionChange::Subscribe(uri) => self.subscribe(id, uri, now),
                SessionChange::Unsubscribe(uri) => self.unsubscribe(id, &uri, now),
                change => {
                    let changed = self.table.with(id, now, |entry| {
                        Arc::make_mut(&mut entry.value.record).apply(change, &self.limits)?;
                        Ok(self.renew(entry, now))
                    });
                    changed.transpose()
                }
            }
        })
    }

    fn remove<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<bool, StoreError>> {
        at_once(move || Ok(self.take_out(id)))
    }

    fn evict<'a>(
        &'a self,
        needed: SessionRoom<'a>,
        in_use: &'a (dyn Fn(&SessionId) -> bool + Send + Sync),
    ) -> BoxFuture<'a, Result<Option<SessionId>, StoreError>> {
        at_once(move || Ok(self.make_room(needed, in_use)))
    }

    fn len(&self) -> BoxFuture<'_, Result<usize, StoreError>> {
        at_once(|| Ok(self.table.len()))
    }

    fn sweep(&self) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        at_once(|| {
            let mut owners = lock(&self.owners);
            let mut named = std::mem::take(&mut *lock(&self.evicted));
            let mut expired = Vec::new();
            self.table
                .sweep(Instant::now(), |id, entry| expired.push((id, entry)));
            for (id, entry) in expired {
                uncount(&mut owners, id, &entry);
                named.push(id);
            }
            Ok(named)
        })
    }
}

impl std::fmt::Debug for MemorySessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemorySessions")
            .field("limits", &self.limits)
            .field("len", &self.table.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use turnbuckle_protocol::Revision;

    use super::*;
    use crate::{ClientProfile, SessionOwner};

    #[tokio::test(start_paused = true)]
    async fn an_owner_without_sessions_is_forgotten() {
        let limits = SessionLimits {
            max_sessions_per_owner: 3,
            ..SessionLimits::default()
        };
        let idle = limits.idle_before_initialized;
        let sessions = MemorySessions::new(limits);
        let owner = SessionOwner::caller("ann");
        let record = || {
            SessionRecord::new(None, Revision::V2025_11_25, ClientProfile::default())
                .owned_by(owner.clone())
        };
        let mut created = Vec::new();
        for _ in 0..3 {
            created.push(sessions.create(record()).await.unwrap());
        }
        let change = SessionChange::Subscribe("file:///a".to_owned());
        sessions.update(&created[1], change).await.unwrap();

        // All are in use once, so that they are ranked anew.
        let another = record();
        let needed = SessionRoom::Session(&another);
        assert_eq!(sessions.evict(needed, &|_| true).await.unwrap(), None);
        let ended = sessions.evict(needed, &|_| false).await.unwrap().unwrap();
        let left = created.iter().find(|id| **id != ended).unwrap();
        assert!(sessions.remove(left).await.unwrap());
        tokio::time::advance(2 * idle).await;
        assert_eq!(sessions.sweep().await.unwrap().len(), 1);

        assert!(lock(&sessions.owners).is_empty());
    }
}
