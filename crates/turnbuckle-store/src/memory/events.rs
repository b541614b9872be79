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
        let count = self.shards.len() as u64;
        let spread = BuildHasherDefault::<OwnRandomness>::default();
        // The remainder is below the number of shards, so it fits.
        let mut shard = lock(&self.shards[(spread.hash_one(session) % count) as usize]);
        if shard.has_finished() {
            shard.expire(Instant::now());
        }
        shard
    }
}

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
