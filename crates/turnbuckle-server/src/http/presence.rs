//! The part of a session that is in this process: what runs, and which streams are open.
//!
//! Made when a session has something to do and gone when it has nothing more, so that an idle session is only its
//! record in the store.

use std::{
    collections::{HashMap, hash_map},
    hash::{BuildHasher, BuildHasherDefault},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use turnbuckle_protocol::RpcError;
use turnbuckle_store::{OwnRandomness, SessionId, StreamId};

use super::{
    audience::{Audience, Seat},
    endpoint::Endpoint,
    feed::Feed,
    general::GeneralStreams,
};
use crate::{
    context::Call,
    lifecycle::live::{self, Live},
};

/// Sessions whose keys fall into different shards do not wait for each other.
const SHARDS: usize = 32;

/// The sessions that are present in this process.
pub(super) struct Presences {
    shards: [Mutex<Shard>; SHARDS],
    audience: Audience,
}

/// Only ids of sessions that exist are put here, so nobody can choose them.
type Shard = HashMap<SessionId, Entry, Spread>;

type Spread = BuildHasherDefault<OwnRandomness>;

struct Entry {
    presence: Arc<Presence>,
    users: usize,
}

impl Entry {
    /// Says whether nothing needs the session to be present.
    fn is_idle(&self) -> bool {
        self.users == 0 && self.presence.general.is_empty()
    }
}

/// What a session does in this process.
#[derive(Default)]
pub(super) struct Presence {
    pub(super) live: Arc<Live>,
    pub(super) general: GeneralStreams,
    /// Its place in the audience, once it had one.
    pub(super) seat: OnceLock<u64>,
    /// The streams that something is still written to.
    feeds: Mutex<HashMap<StreamId, Arc<Feed>>>,
    /// How many calls are running.
    running: AtomicUsize,
    closed: AtomicBool,
}

impl Default for Presences {
    fn default() -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            audience: Audience::default(),
        }
    }
}

impl Presences {
    /// Enters a session; it stays present until the guard is dropped.
    pub(super) fn enter(endpoint: &Arc<Endpoint>, session: SessionId) -> Present {
        let mut shard = endpoint.presences.shard(&session);
        let entry = shard.entry(session).or_insert_with(|| Entry {
            presence: Arc::default(),
            users: 0,
        });
        entry.users += 1;
        Present {
            endpoint: endpoint.clone(),
            session,
            presence: entry.presence.clone(),
        }
    }

    /// Ends what a session that is over still does here.
    pub(super) fn close(&self, session: &SessionId) {
        let entry = self.shard(session).remove(session);
        if let Some(entry) = entry {
            entry.presence.close();
            self.audience.leave(&entry.presence);
        }
    }

    /// Ends what all sessions do here.
    pub(super) fn close_all(&self) {
        for shard in &self.shards {
            let entries = std::mem::take(&mut *lock(shard));
            entries.values().for_each(|entry| entry.presence.close());
        }
        self.audience.clear();
    }

    /// Returns whether a request of a session is running here, or one of its streams is read, or a connection holds on to
    /// it between two requests.
    pub(super) fn is_in_use(&self, session: &SessionId) -> bool {
        let shard = self.shard(session);
        shard
            .get(session)
            .is_some_and(|entry| entry.users > 0 || entry.presence.running() > 0)
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).len()).sum()
    }

    fn leave(&self, session: &SessionId, presence: &Arc<Presence>) {
        let mut shard = self.shard(session);
        let hash_map::Entry::Occupied(mut place) = shard.entry(*session) else {
            return;
        };
        let entry = place.get_mut();
        // A closed presence is no longer in the table; another may be there in its place.
        if !Arc::ptr_eq(&entry.presence, presence) {
            return;
        }
        entry.users -= 1;
        if entry.is_idle() {
            place.remove();
        }
    }

    /// Puts a session that has a stream among those that are told of changes.
    pub(super) fn join(&self, session: SessionId, presence: &Arc<Presence>) {
        self.audience.join(session, presence);
    }

    /// The sessions that are told of changes.
    pub(super) fn audience(&self) -> Arc<[Seat]> {
        self.audience.list()
    }

    /// Says whether no session is told of changes.
    pub(super) fn has_no_audience(&self) -> bool {
        self.audience.is_empty()
    }

    /// Notes that streams of a session are gone, and with the last of them lets go of the session, unless somebody still
    /// uses it.
    pub(super) fn tidy(&self, session: &SessionId, presence: &Presence) {
        self.audience.leave(presence);
        let mut shard = self.shard(session);
        if shard.get(session).is_some_and(Entry::is_idle) {
            shard.remove(session);
        }
    }

    fn shard(&self, session: &SessionId) -> MutexGuard<'_, Shard> {
        // The map inside a shard places its entries by the lowest and highest bits of the same hash.
        let middle = Spread::default().hash_one(session) >> 32;
        // The remainder is below the number of shards, so it fits.
        lock(&self.shards[(middle % SHARDS as u64) as usize])
    }
}

impl Presence {
    /// Notes a running call, so that it can be cancelled; refuses an id that is in use.
    pub(super) fn begin(self: &Arc<Self>, call: &Arc<Call>) -> Result<Running, RpcError> {
        let running = self.live.begin(call)?;
        self.running.fetch_add(1, Ordering::Relaxed);
        Ok(Running {
            _running: running,
            presence: self.clone(),
        })
    }

    /// How many calls are running.
    pub(super) fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    /// Adds a stream, so that a client that resumes it finds it.
    pub(super) fn add(&self, feed: &Arc<Feed>) {
        let finished = {
            let mut feeds = lock(&self.feeds);
            feeds.insert(feed.stream, feed.clone());
            self.closed.load(Ordering::SeqCst)
        };
        if finished {
            feed.finish();
        }
    }

    /// Finds a stream that something is still written to.
    pub(super) fn feed(&self, stream: StreamId) -> Option<Arc<Feed>> {
        lock(&self.feeds).get(&stream).cloned()
    }

    /// Lets go of a stream to which nothing more will be written.
    pub(super) fn remove(&self, stream: StreamId) {
        lock(&self.feeds).remove(&stream);
    }

    /// Says whether the session is over.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    fn close(&self) {
        let feeds = {
            let mut feeds = lock(&self.feeds);
            self.closed.store(true, Ordering::SeqCst);
            std::mem::take(&mut *feeds)
        };
        self.live.cancel_all();
        feeds.values().for_each(|feed| feed.finish());
    }
}

/// A running call of a session.
pub(super) struct Running {
    _running: live::Running,
    presence: Arc<Presence>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.presence.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Keeps a session present.
pub(super) struct Present {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) session: SessionId,
    pub(super) presence: Arc<Presence>,
}

impl Clone for Present {
    fn clone(&self) -> Self {
        let mut shard = self.endpoint.presences.shard(&self.session);
        if let Some(entry) = shard.get_mut(&self.session)
            && Arc::ptr_eq(&entry.presence, &self.presence)
        {
            entry.users += 1;
        }
        Self {
            endpoint: self.endpoint.clone(),
            session: self.session,
            presence: self.presence.clone(),
        }
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.endpoint.presences.leave(&self.session, &self.presence);
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that runs under these locks stops halfway, so a poisoned one holds a sound value.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
