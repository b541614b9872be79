//! The event log of this process.

use std::{
    hash::{BuildHasher, BuildHasherDefault},
    sync::{Mutex, MutexGuard},
};

use bytes::Bytes;
use tokio::time::Instant;

use super::{event_shard::EventShard, lock, ready};
use crate::{
    BoxFuture, EventBatch, EventId, EventLimits, EventReplay, EventStore, InstanceId, SessionId,
    StoreError, StreamId, id::RandomIdHasher,
};

/// An [`EventStore`] in the memory of this process.
///
/// Sessions are spread over shards, and each shard has an equal part of the byte budget. When a shard is full, the owner
/// with the most bytes there loses its oldest events. An event keeps the buffer
/// alive that it is a slice of, so append data that owns its buffer.
pub struct MemoryEventStore {
    shards: Box<[Mutex<EventShard>]>,
}

impl MemoryEventStore {
    /// Creates an empty log with the given limits.
    pub fn new(limits: &EventLimits) -> Self {
        let count = shard_count(limits);
        let budget = limits.max_total_bytes / count;
        let shards = (0..count).map(|_| Mutex::new(EventShard::new(limits.clone(), budget)));
        Self {
            shards: shards.collect(),
        }
    }

    /// Locks the shard of this session and removes its expired streams.
    fn shard(&self, session: &SessionId, now: Instant) -> MutexGuard<'_, EventShard> {
        let mut shard = lock(&self.shards[self.shard_index(session)]);
        shard.expire(now);
        shard
    }

    /// Returns the index of the shard of this session.
    fn shard_index(&self, session: &SessionId) -> usize {
        let count = self.shards.len() as u64;
        let spread = BuildHasherDefault::<RandomIdHasher>::default();
        // The remainder is below the number of shards, so it fits into `usize`.
        (spread.hash_one(session) % count) as usize
    }
}

/// Returns the number of shards, so that each has room for several full streams.
fn shard_count(limits: &EventLimits) -> usize {
    let bytes_per_shard = limits.max_stream_bytes.max(1).saturating_mul(4);
    (limits.max_total_bytes / bytes_per_shard).clamp(1, 32)
}

impl EventStore for MemoryEventStore {
    fn append<'a>(
        &'a self,
        session: &'a SessionId,
        stream: &'a StreamId,
        batch: EventBatch<'a>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        ready(move || {
            let now = Instant::now();
            let mut shard = self.shard(session, now);
            shard.append(session, *stream, batch, now)
        })
    }

    fn replay_after<'a>(
        &'a self,
        session: &'a SessionId,
        last: &'a EventId,
        limit: usize,
    ) -> BoxFuture<'a, Result<Option<EventReplay>, StoreError>> {
        ready(move || {
            let shard = self.shard(session, Instant::now());
            Ok(shard.replay_after(session, last, limit))
        })
    }

    fn close_orphan<'a>(
        &'a self,
        session: &'a SessionId,
        stream: &'a StreamId,
        dead: &'a InstanceId,
        after: u64,
        events: &'a [Bytes],
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        ready(move || {
            let now = Instant::now();
            let mut shard = self.shard(session, now);
            Ok(shard.close_orphan(session, *stream, dead, after, events, now))
        })
    }

    fn remove_session<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        ready(move || {
            self.shard(session, Instant::now()).remove_session(session);
            Ok(())
        })
    }

    fn sweep(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        ready(|| {
            let now = Instant::now();
            for shard in &self.shards {
                lock(shard).expire(now);
            }
            Ok(())
        })
    }
}

impl std::fmt::Debug for MemoryEventStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryEventStore")
            .field("shards", &self.shards.len())
            .finish_non_exhaustive()
    }
}
