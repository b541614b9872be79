//! The event log in this process.

use std::hash::{BuildHasher, BuildHasherDefault};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use bytes::Bytes;
use tokio::time::Instant;

use super::shard::Shard;
use super::{at_once, lock};
use crate::random::OwnRandomness;
use crate::{BoxFuture, EventId, EventLimits, Events, Replay, SessionId, StoreError, StreamId};

/// An event log kept in this process.
///
/// Sessions are spread over shards, and each shard has its part of the bytes that may be kept. An
/// event holds on to the buffer it was cut from: append data that owns its buffer.
pub struct MemoryEvents {
    shards: Box<[Mutex<Shard>]>,
    next_stream: AtomicU64,
}

impl MemoryEvents {
    /// Keeps events within `limits`.
    pub fn new(limits: &EventLimits) -> Self {
        let count = shard_count(limits);
        let budget = limits.max_total_bytes / count;
        let shards = (0..count).map(|_| Mutex::new(Shard::new(limits.clone(), budget)));
        Self {
            shards: shards.collect(),
            next_stream: AtomicU64::new(1),
        }
    }

    /// The part of the log that holds this session, without what has outlived its time.
    fn shard(&self, session: &SessionId) -> MutexGuard<'_, Shard> {
        self.shard_at(self.place(session))
    }

    /// Which part of the log holds this session.
    fn place(&self, session: &SessionId) -> usize {
        let count = self.shards.len() as u64;
        let spread = BuildHasherDefault::<OwnRandomness>::default();
        // The remainder is below the number of shards, so it fits.
        (spread.hash_one(session) % count) as usize
    }

    /// Appends to one shard after the other, and to each all that is for it.
    ///
    /// What is written lies far apart. Where nobody else is let in between, the processor need not wait for one before it
    /// begins with the next.
    fn append_by_shard(&self, streams: &[(SessionId, StreamId)], data: Bytes) -> Vec<Appended> {
        let places = streams.iter().map(|(session, _)| self.place(session));
        let mut order: Vec<(usize, usize)> = places.zip(0..).collect();
        order.sort_unstable();
        // Made at once: to count a copy is to wait for what was written before.
        let mut copies = vec![data; streams.len()].into_iter();
        let gone = || Err(StoreError::Gone { what: "stream" });
        let mut appended: Vec<_> = std::iter::repeat_with(gone).take(streams.len()).collect();
        for group in order.chunk_by(|(one, _), (other, _)| one == other) {
            let mut shard = self.shard_at(group[0].0);
            for ((_, at), copy) in group.iter().zip(&mut copies) {
                let (session, stream) = &streams[*at];
                appended[*at] = shard.append(session, *stream, copy);
            }
        }
        appended
    }

    fn shard_at(&self, place: usize) -> MutexGuard<'_, Shard> {
        let mut shard = lock(&self.shards[place]);
        if shard.has_finished() {
            shard.expire(Instant::now());
        }
        shard
    }
}

type Appended = Result<EventId, StoreError>;

/// As many shards as leave room for several full streams in each.
fn shard_count(limits: &EventLimits) -> usize {
    let roomy = limits.max_stream_bytes.max(1).saturating_mul(4);
    (limits.max_total_bytes / roomy).clamp(1, 32)
}

impl Events for MemoryEvents {
    fn open<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<StreamId, StoreError>> {
        at_once(move || {
            let stream = StreamId::new(self.next_stream.fetch_add(1, Ordering::Relaxed));
            self.shard(session).open(*session, stream)?;
            Ok(stream)
        })
    }

    fn append<'a>(
        &'a self,
        session: &'a SessionId,
        stream: &'a StreamId,
        data: Bytes,
    ) -> BoxFuture<'a, Result<EventId, StoreError>> {
        at_once(move || self.shard(session).append(session, *stream, data))
    }

    fn append_each<'a>(
        &'a self,
        streams: &'a [(SessionId, StreamId)],
        data: Bytes,
    ) -> BoxFuture<'a, Vec<Appended>> {
        at_once(move || self.append_by_shard(streams, data))
    }

    fn after<'a>(
        &'a self,
        session: &'a SessionId,
        last: &'a EventId,
    ) -> BoxFuture<'a, Result<Option<Replay>, StoreError>> {
        at_once(move || Ok(self.shard(session).after(session, last)))
    }

    fn finish<'a>(
        &'a self,
        session: &'a SessionId,
        stream: &'a StreamId,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        at_once(move || {
            self.shard(session).finish(session, *stream, Instant::now());
            Ok(())
        })
    }

    fn forget<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<(), StoreError>> {
        at_once(move || {
            self.shard(session).forget(session);
            Ok(())
        })
    }

    fn sweep(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        at_once(|| {
            let now = Instant::now();
            for shard in &self.shards {
                lock(shard).expire(now);
            }
            Ok(())
        })
    }
}

impl std::fmt::Debug for MemoryEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryEvents")
            .field("shards", &self.shards.len())
            .finish_non_exhaustive()
    }
}
