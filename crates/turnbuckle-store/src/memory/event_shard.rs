//! One shard of the event log, with its own byte budget.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    hash::{BuildHasherDefault, Hasher},
};

use bytes::Bytes;
use tokio::time::Instant;

use super::deadline;
use crate::{
    EventId, EventLimits, EventReplay, SessionId, SessionOwner, StoreError, StoredEvent, StreamId,
};

/// The approximate memory that a stream and an event use in addition to their data.
const STREAM_COST: usize = 256;
const EVENT_COST: usize = 64;

pub(super) struct EventShard {
    limits: EventLimits,
    budget: usize,
    used: usize,
    streams: StreamMap,
    sessions: HashMap<SessionId, SessionStreams>,
    owners: OwnerLogs,
    /// Finished streams and the time of their removal, earliest first; may contain streams that were already removed.
    finished: EvictionQueue<(StreamId, Instant)>,
}

type StreamMap = HashMap<StreamId, StreamLog, BuildHasherDefault<StreamIdHasher>>;

/// Hashes stream ids.
///
/// Ids are sequential, and a peer cannot choose them, only which of its own few stay open. It is enough that every
/// bit of the id affects the hash.
#[derive(Default)]
struct StreamIdHasher(u64);

impl Hasher for StreamIdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // 2⁶⁴ divided by the golden ratio.
        self.0 = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

/// The streams of one session, oldest first. Each is in one of the two sets.
#[derive(Default)]
struct SessionStreams {
    open: BTreeSet<StreamId>,
    finished: BTreeSet<StreamId>,
}

/// The logs of all owners with streams.
#[derive(Default)]
struct OwnerLogs {
    /// Those without streams are in `unused`.
    logs: Vec<OwnerLog>,
    indices: HashMap<SessionOwner, usize>,
    unused: Vec<usize>,
}

/// What the streams of one owner use, and the order in which it is removed.
struct OwnerLog {
    owner: SessionOwner,
    stream_count: usize,
    event_count: usize,
    used: usize,
    /// Events, oldest first; may contain events that were already removed.
    events: EvictionQueue<(StreamId, u64)>,
    /// Finished streams, oldest first; may contain streams that were already removed.
    finished: EvictionQueue<StreamId>,
}

struct StreamLog {
    session: SessionId,
    /// The index of its owner.
    owner: usize,
    /// Events by sequence number; gaps are ids without data.
    log: VecDeque<(u64, Bytes)>,
    /// The bytes that the log uses.
    cost: usize,
    /// The last assigned sequence number.
    last: u64,
    /// The last sequence number with removed data.
    lost: u64,
    finished: bool,
}

impl EventShard {
    pub(super) fn new(limits: EventLimits, budget: usize) -> Self {
        Self {
            limits,
            budget,
            used: 0,
            streams: StreamMap::default(),
            sessions: HashMap::new(),
            owners: OwnerLogs::default(),
            finished: EvictionQueue::default(),
        }
    }

    pub(super) fn open_stream(
        &mut self,
        session: SessionId,
        owner: &SessionOwner,
        id: StreamId,
    ) -> Result<(), StoreError> {
        self.make_room_for_stream(&session)?;
        self.used += STREAM_COST;
        if !self.shrink_to_budget() {
            self.used -= STREAM_COST;
            return Err(StoreError::Full { what: "stream" });
        }
        let owner = self.owners.add_stream(owner);
        self.streams.insert(id, StreamLog::new(session, owner));
        self.sessions.entry(session).or_default().open.insert(id);
        Ok(())
    }

    pub(super) fn append(
        &mut self,
        session: &SessionId,
        id: StreamId,
        data: Bytes,
    ) -> Result<EventId, StoreError> {
        let stream = self
            .streams
            .get_mut(&id)
            .filter(|stream| stream.session == *session && !stream.finished)
            .ok_or(StoreError::Gone { what: "stream" })?;
        stream.last += 1;
        let sequence = stream.last;
        if !data.is_empty() {
            let (cost, count) = (stream.cost, stream.log.len());
            stream.push(sequence, data);
            stream.trim(&self.limits);
            self.used = self.used - cost + stream.cost;
            let owner = stream.owner;
            let owner_log = &mut self.owners.logs[owner];
            owner_log.used = owner_log.used - cost + stream.cost;
            owner_log.event_count = owner_log.event_count - count + stream.log.len();
            owner_log.events.push((id, sequence));
            self.shrink_to_budget();
            let owner_log = &mut self.owners.logs[owner];
            owner_log
                .events
                .compact(owner_log.event_count, |(id, sequence)| {
                    has_event(&self.streams, *id, *sequence)
                });
        }
        Ok(EventId {
            stream: id,
            sequence,
        })
    }

    pub(super) fn replay_after(&self, session: &SessionId, last: &EventId) -> Option<EventReplay> {
        let stream = self.streams.get(&last.stream)?;
        let is_assigned = (1..=stream.last).contains(&last.sequence);
        if stream.session != *session || !is_assigned {
            return None;
        }
        Some(stream.replay(last))
    }

    pub(super) fn finish_stream(&mut self, session: &SessionId, id: StreamId, now: Instant) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        if stream.session != *session || stream.finished {
            return;
        }
        stream.finished = true;
        if let Some(streams_of_session) = self.sessions.get_mut(session) {
            streams_of_session.open.remove(&id);
            streams_of_session.finished.insert(id);
        }
        let owner_log = &mut self.owners.logs[stream.owner];
        owner_log.finished.push(id);
        owner_log
            .finished
            .compact(owner_log.stream_count, |id| self.streams.contains_key(id));
        let drop_at = deadline(now, self.limits.retention);
        self.finished.push((id, drop_at));
        self.finished
            .compact(self.streams.len(), |(id, _)| self.streams.contains_key(id));
    }

    pub(super) fn remove_session(&mut self, session: &SessionId) {
        let Some(SessionStreams { open, finished }) = self.sessions.remove(session) else {
            return;
        };
        for id in open.into_iter().chain(finished) {
            self.drop_stream(id);
        }
    }

    /// Returns whether there are streams that may have expired.
    pub(super) fn has_finished_streams(&self) -> bool {
        !self.finished.is_empty()
    }

    /// Removes finished streams after their retention time.
    pub(super) fn expire(&mut self, now: Instant) {
        while let Some((id, _)) = self.finished.pop_if(|(_, drop_at)| *drop_at <= now) {
            self.drop_stream(id);
        }
    }

    /// Ensures that the session may open one more stream.
    fn make_room_for_stream(&mut self, session: &SessionId) -> Result<(), StoreError> {
        let limit = self.limits.max_streams;
        let (count, oldest) = self
            .sessions
            .get(session)
            .map_or((0, None), |streams_of_session| {
                let count = streams_of_session.open.len() + streams_of_session.finished.len();
                (count, streams_of_session.finished.first().copied())
            });
        if count < limit {
            return Ok(());
        }
        let what = "open streams";
        let oldest = oldest.ok_or(StoreError::TooMany { what, limit })?;
        self.drop_stream(oldest);
        Ok(())
    }

    /// Removes the oldest events of the largest owner, then its finished streams, until the budget is met. Returns false
    /// if that is impossible.
    fn shrink_to_budget(&mut self) -> bool {
        while self.used > self.budget {
            let Some((largest, second)) = self.owners.largest() else {
                return false;
            };
            // A little below the second, so that the owners are not compared again for every event.
            self.shrink_owner(largest, second.saturating_sub(self.budget / 256));
        }
        true
    }

    /// Removes events and finished streams of an owner until the budget is met or the owner uses less than `target`.
    fn shrink_owner(&mut self, owner: usize, target: usize) {
        while self.used > self.budget && self.owners.logs[owner].used >= target {
            let owner_log = &mut self.owners.logs[owner];
            if let Some((id, sequence)) = owner_log.events.pop() {
                self.drop_event(id, sequence);
            } else if let Some(id) = owner_log.finished.pop() {
                self.drop_stream(id);
            } else {
                return;
            }
        }
    }

    fn drop_event(&mut self, id: StreamId, sequence: u64) {
        if !has_event(&self.streams, id, sequence) {
            return;
        }
        if let Some(stream) = self.streams.get_mut(&id) {
            let before = stream.cost;
            stream.pop();
            self.used = self.used - before + stream.cost;
            let owner_log = &mut self.owners.logs[stream.owner];
            owner_log.used = owner_log.used - before + stream.cost;
            owner_log.event_count -= 1;
        }
    }

    fn drop_stream(&mut self, id: StreamId) {
        let Some(stream) = self.streams.remove(&id) else {
            return;
        };
        self.used -= STREAM_COST + stream.cost;
        self.owners.remove_stream(&stream);
        if let Some(streams_of_session) = self.sessions.get_mut(&stream.session) {
            streams_of_session.open.remove(&id);
            streams_of_session.finished.remove(&id);
            if streams_of_session.open.is_empty() && streams_of_session.finished.is_empty() {
                self.sessions.remove(&stream.session);
            }
        }
    }
}

/// Returns whether the data of this event is still stored. A log removes its oldest events first.
fn has_event(streams: &StreamMap, id: StreamId, sequence: u64) -> bool {
    let oldest = streams.get(&id).and_then(|stream| stream.log.front());
    oldest.is_some_and(|(oldest, _)| *oldest <= sequence)
}

impl OwnerLogs {
    /// Counts a new stream of an owner, and returns the index of the owner.
    fn add_stream(&mut self, owner: &SessionOwner) -> usize {
        let index = match self.indices.get(owner) {
            Some(index) => *index,
            None => self.add_owner(owner),
        };
        let owner_log = &mut self.logs[index];
        owner_log.stream_count += 1;
        owner_log.used += STREAM_COST;
        index
    }

    fn add_owner(&mut self, owner: &SessionOwner) -> usize {
        let owner_log = OwnerLog::new(owner.clone());
        let index = match self.unused.pop() {
            Some(index) => {
                self.logs[index] = owner_log;
                index
            }
            None => {
                self.logs.push(owner_log);
                self.logs.len() - 1
            }
        };
        self.indices.insert(owner.clone(), index);
        index
    }

    /// Removes a stream from its owner, and the owner with its last stream.
    fn remove_stream(&mut self, stream: &StreamLog) {
        let owner_log = &mut self.logs[stream.owner];
        owner_log.stream_count -= 1;
        owner_log.event_count -= stream.log.len();
        owner_log.used -= STREAM_COST + stream.cost;
        if owner_log.stream_count == 0 {
            self.indices.remove(&owner_log.owner);
            owner_log.events = EvictionQueue::default();
            owner_log.finished = EvictionQueue::default();
            self.unused.push(stream.owner);
        }
    }

    /// Returns the index of the owner that uses most of those with something to remove, and the usage of the second.
    fn largest(&self) -> Option<(usize, usize)> {
        let mut largest = None;
        let (mut first, mut second) = (0, 0);
        for (index, owner_log) in self.logs.iter().enumerate() {
            if owner_log.events.is_empty() && owner_log.finished.is_empty() {
                continue;
            }
            if largest.is_none() || owner_log.used > first {
                second = first;
                first = owner_log.used;
                largest = Some(index);
            } else {
                second = second.max(owner_log.used);
            }
        }
        largest.map(|index| (index, second))
    }
}

impl OwnerLog {
    fn new(owner: SessionOwner) -> Self {
        Self {
            owner,
            stream_count: 0,
            event_count: 0,
            used: 0,
            events: EvictionQueue::default(),
            finished: EvictionQueue::default(),
        }
    }
}

impl StreamLog {
    fn new(session: SessionId, owner: usize) -> Self {
        Self {
            session,
            owner,
            log: VecDeque::new(),
            cost: 0,
            last: 0,
            lost: 0,
            finished: false,
        }
    }

    fn push(&mut self, sequence: u64, data: Bytes) {
        self.cost += EVENT_COST + data.len();
        self.log.push_back((sequence, data));
    }

    fn pop(&mut self) {
        if let Some((sequence, data)) = self.log.pop_front() {
            self.cost -= EVENT_COST + data.len();
            self.lost = sequence;
        }
    }

    /// Removes the oldest events. The newest is never removed for its size: it is most likely the response.
    fn trim(&mut self, limits: &EventLimits) {
        while self.log.len() > limits.max_events
            || (self.log.len() > 1 && self.bytes() > limits.max_stream_bytes)
        {
            self.pop();
        }
    }

    /// Returns the bytes of data in the log.
    fn bytes(&self) -> usize {
        self.cost - EVENT_COST * self.log.len()
    }

    fn replay(&self, last: &EventId) -> EventReplay {
        let seen = self
            .log
            .partition_point(|(sequence, _)| *sequence <= last.sequence);
        let missed = self.log.range(seen..).map(|(sequence, data)| StoredEvent {
            id: EventId {
                stream: last.stream,
                sequence: *sequence,
            },
            data: data.clone(),
        });
        EventReplay {
            stream: last.stream,
            events: missed.collect(),
            finished: self.finished,
            lost: last.sequence < self.lost,
        }
    }
}

/// A FIFO queue with lazy deletion: entries may refer to items that no longer exist.
struct EvictionQueue<T> {
    entries: VecDeque<T>,
}

impl<T> Default for EvictionQueue<T> {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
        }
    }
}

impl<T> EvictionQueue<T> {
    /// The number of stale entries that does not justify a scan.
    const COMPACT_THRESHOLD: usize = 64;

    fn push(&mut self, entry: T) {
        self.entries.push_back(entry);
    }

    fn pop(&mut self) -> Option<T> {
        self.entries.pop_front()
    }

    fn pop_if(&mut self, condition: impl FnOnce(&T) -> bool) -> Option<T> {
        self.entries
            .front()
            .is_some_and(condition)
            .then(|| self.pop())?
    }

    fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.entries.len()
    }

    /// Removes stale entries once they outnumber the live ones, of which there are at most `live`.
    ///
    /// A queue without stale entries is never scanned; otherwise the amortized cost per push is constant.
    fn compact(&mut self, live: usize, is_live: impl FnMut(&T) -> bool) {
        if self.entries.len() > live * 2 + Self::COMPACT_THRESHOLD {
            self.entries.retain(is_live);
        }
    }
}

#[cfg(test)]
mod tests;
