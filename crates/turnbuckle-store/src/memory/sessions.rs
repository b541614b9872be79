//! Sessions in this process.

use std::hash::BuildHasherDefault;
use std::sync::{Arc, Mutex};

use tokio::time::Instant;

use super::profiles::Profiles;
use super::table::{Entry, Table};
use super::weight::weight;
use super::{at_once, deadline, lock};
use crate::random::OwnRandomness;
use crate::{
    BoxFuture, SessionChange, SessionId, SessionLimits, SessionRecord, Sessions, StoreError,
};

/// What an ordinary client says about itself costs less than this.
const ORDINARY: usize = 4 * 1024;

/// Sessions kept in this process.
///
/// An idle session is its record and a table entry: no task, no timer, no channel. Counted by an
/// allocator over 10,000 of them it takes 390 bytes, principal included, and another kilobyte where
/// no other session has the same client profile.
pub struct MemorySessions {
    limits: SessionLimits,
    table: Table<SessionId, Arc<SessionRecord>, BuildHasherDefault<OwnRandomness>>,
    profiles: Profiles,
    /// Sessions that expired and made room before anyone swept them.
    evicted: Mutex<Vec<SessionId>>,
}

impl MemorySessions {
    /// Keeps sessions within `limits`.
    pub fn new(limits: SessionLimits) -> Self {
        Self {
            table: Table::new("session", limits.max_sessions, limits.max_extra_bytes),
            profiles: Profiles::new(),
            evicted: Mutex::default(),
            limits,
        }
    }

    fn insert(&self, mut record: SessionRecord) -> Result<SessionId, StoreError> {
        let now = Instant::now();
        let id = SessionId::generate()?;
        let place = (self.extra_bytes(&record)?, self.expiry(&record, now));
        record.client = self.profiles.share(record.client);
        let record = Arc::new(record);
        self.table
            .insert(id, record, place, now, |_| (), |id| self.evict(id))?;
        Ok(id)
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

    /// Remembers an id for the next sweep.
    fn evict(&self, id: SessionId) {
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
        let mut changed = None;
        self.table.grow(id, bytes, now, |entry| {
            let before = entry.value.subscriptions.len();
            let change = SessionChange::Subscribe(uri);
            let applied = Arc::make_mut(&mut entry.value).apply(change, &self.limits);
            changed = Some(applied.map(|()| self.renew(entry, now)));
            entry.value.subscriptions.len() > before
        })?;
        changed.transpose()
    }

    fn unsubscribe(&self, id: &SessionId, uri: &str, now: Instant) -> Changed {
        let mut changed = None;
        self.table.shrink(id, now, |entry| {
            let removed = Arc::make_mut(&mut entry.value).subscriptions.remove(uri);
            changed = Some(self.renew(entry, now));
            if removed { subscription_bytes(uri) } else { 0 }
        });
        Ok(changed)
    }

    fn renew(&self, entry: &mut Entry<Arc<SessionRecord>>, now: Instant) -> Arc<SessionRecord> {
        entry.expires = self.expiry(&entry.value, now).max(entry.expires);
        Arc::clone(&entry.value)
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
                        Arc::make_mut(&mut entry.value).apply(change, &self.limits)?;
                        Ok(self.renew(entry, now))
                    });
                    changed.transpose()
                }
            }
        })
    }

    fn remove<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<bool, StoreError>> {
        at_once(move || Ok(self.table.remove(id, Instant::now(), |_| true).is_some()))
    }

    fn len(&self) -> BoxFuture<'_, Result<usize, StoreError>> {
        at_once(|| Ok(self.table.len()))
    }

    fn sweep(&self) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        at_once(|| {
            let mut expired = std::mem::take(&mut *lock(&self.evicted));
            self.table.sweep(Instant::now(), |id| expired.push(id));
            Ok(expired)
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
