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
        self.shard_at(self.shard_index(session), now)
    }

    /// Returns the index of the shard of this session.
    fn shard_index(&self, session: &SessionId) -> usize {
        let count = self.shards.len() as u64;
        let spread = BuildHasherDefault::<RandomIdHasher>::default();
        // The remainder is below the number of shards, so it fits into `usize`.
        (spread.hash_one(session) % count) as usize
    }

    /// Appends to all streams of one shard before the next shard.
    ///
    /// The streams lie far apart in memory. Without lock operations in between, the processor can overlap the cache
    /// misses.
    fn append_by_shard(&self, streams: &[(SessionId, StreamId)], data: Bytes) -> Vec<AppendResult> {
        let indices = streams.iter().map(|(session, _)| self.shard_index(session));
        let mut order: Vec<(usize, usize)> = indices.zip(0..).collect();
        order.sort_unstable();
        let now = Instant::now();
        // Cloned in advance: updating the reference count between appends would serialize them.
        let mut copies = vec![data; streams.len()].into_iter();
        let gone = || Err(StoreError::Gone { what: "stream" });
        let mut appended: Vec<_> = std::iter::repeat_with(gone).take(streams.len()).collect();
        for group in order.chunk_by(|(one, _), (other, _)| one == other) {
            let mut shard = self.shard_at(group[0].0, now);
            for ((_, at), copy) in group.iter().zip(&mut copies) {
                let (session, stream) = &streams[*at];
                appended[*at] = shard.append_next(session, *stream, copy);
            }
        }
        appended
    }

    fn shard_at(&self, shard_index: usize, now: Instant) -> MutexGuard<'_, EventShard> {
        let mut shard = lock(&self.shards[shard_index]);
        shard.expire(now);
        shard
    }
}

type AppendResult = Result<EventId, StoreError>;

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

    fn append_to_all<'a>(
        &'a self,
        streams: &'a [(SessionId, StreamId)],
        data: Bytes,
    ) -> BoxFuture<'a, Vec<AppendResult>> {
        ready(move || self.append_by_shard(streams, data))
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
