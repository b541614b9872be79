//! One shard of the event log, with its own byte budget.

use std::{
    collections::{HashMap, VecDeque},
    hash::{BuildHasherDefault, Hasher},
};

use bytes::Bytes;
use tokio::time::Instant;
use turnbuckle_protocol::RequestId;

use super::deadline;
use crate::{
    EventBatch, EventId, EventLimits, EventReplay, InstanceId, SessionId, SessionOwner, StoreError,
    StoredEvent, StreamHead, StreamId, id::RandomIdHasher,
};

/// The approximate memory that a stream, a request without a response and an event use in addition to their data.
const STREAM_COST: usize = 256;
const REQUEST_COST: usize = 32;
const EVENT_COST: usize = 64;

pub(super) struct EventShard {
    limits: EventLimits,
    budget: usize,
    used: usize,
    streams: StreamMap,
    /// The streams of each session, in the order in which they were opened.
    sessions: HashMap<SessionId, VecDeque<StreamId>, BuildHasherDefault<RandomIdHasher>>,
    owners: OwnerLogs,
    /// Finished streams and the time of their removal, earliest first; may contain streams that were already removed.
    finished: EvictionQueue<(StreamKey, Instant)>,
}

type StreamMap = HashMap<StreamKey, StreamLog, BuildHasherDefault<StreamKeyHasher>>;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct StreamKey {
    session: SessionId,
    stream: StreamId,
}

/// Hashes stream keys.
///
/// Servers choose both ids; a peer can only choose which of its own few streams stay open. It is enough that every bit
/// of the ids affects the hash.
#[derive(Default)]
struct StreamKeyHasher(u64);

impl Hasher for StreamKeyHasher {
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
    events: EvictionQueue<(StreamKey, u64)>,
    /// Finished streams, oldest first; may contain streams that were already removed.
    finished: EvictionQueue<StreamKey>,
}

struct StreamLog {
    writer: InstanceId,
    /// Requests without a response in the log.
    unanswered: Vec<RequestId>,
    /// The bytes that the stream uses without its events.
    head_cost: usize,
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
    end: StreamEnd,
}

/// Whether and how a stream has ended.
#[derive(Clone, Copy, PartialEq)]
enum StreamEnd {
    Open,
    Finished,
    /// Another instance has finished it.
    Orphaned,
}

impl EventShard {
    pub(super) fn new(limits: EventLimits, budget: usize) -> Self {
        Self {
            limits,
            budget,
            used: 0,
            streams: StreamMap::default(),
            sessions: HashMap::default(),
            owners: OwnerLogs::default(),
            finished: EvictionQueue::default(),
        }
    }

    pub(super) fn append(
        &mut self,
        session: &SessionId,
        stream: StreamId,
        batch: EventBatch<'_>,
        now: Instant,
    ) -> Result<(), StoreError> {
        let key = StreamKey {
            session: *session,
            stream,
        };
        match (self.streams.get(&key), batch.head) {
            (Some(known), head) => known.check_append(head, batch.first, batch.events)?,
            (None, Some(head)) => self.open(key, head)?,
            (None, None) => return Err(StoreError::Gone { what: "stream" }),
        }
        self.push(key, batch.first, batch.events);
        if let Some(known) = self.streams.get_mut(&key) {
            if !batch.answered.is_empty() {
                known.unanswered.retain(|id| !batch.answered.contains(id));
            }
            if batch.end && known.end == StreamEnd::Open {
                self.finish(key, StreamEnd::Finished, now);
            }
        }
        Ok(())
    }

    pub(super) fn replay_after(
        &self,
        session: &SessionId,
        last: &EventId,
        limit: usize,
    ) -> Option<EventReplay> {
        let stream = self.streams.get(&StreamKey {
            session: *session,
            stream: last.stream,
        })?;
        let is_assigned = last.sequence <= stream.last || stream.end == StreamEnd::Open;
        if last.sequence == 0 || !is_assigned {
            return None;
        }
        Some(stream.replay(last, limit))
    }

    pub(super) fn close_orphan(
        &mut self,
        session: &SessionId,
        stream: StreamId,
        dead: &InstanceId,
        after: u64,
        events: &[Bytes],
        now: Instant,
    ) -> bool {
        let key = StreamKey {
            session: *session,
            stream,
        };
        let Some(orphan) = self
            .streams
            .get_mut(&key)
            .filter(|stream| stream.end == StreamEnd::Open && stream.writer == *dead)
        else {
            return false;
        };
        let first = orphan.last.max(after).saturating_add(1);
        self.push(key, first, events);
        self.finish(key, StreamEnd::Orphaned, now);
        true
    }

    pub(super) fn remove_session(&mut self, session: &SessionId) {
        for stream in self.sessions.remove(session).unwrap_or_default() {
            let session = *session;
            self.drop_stream(StreamKey { session, stream });
        }
    }

    fn open(&mut self, key: StreamKey, head: StreamHead) -> Result<(), StoreError> {
        self.make_room_for_stream(&key.session)?;
        let stream = StreamLog::new(head.writer, head.requests);
        self.used += stream.head_cost;
        if !self.shrink_to_budget() {
            self.used -= stream.head_cost;
            return Err(StoreError::Full { what: "stream" });
        }
        let owner = self.owners.add_stream(&head.owner, stream.head_cost);
        self.streams.insert(key, StreamLog { owner, ..stream });
        self.sessions
            .entry(key.session)
            .or_default()
            .push_back(key.stream);
        Ok(())
    }

    /// Adds the events that are not in the log to an open stream.
    fn push(&mut self, key: StreamKey, first: u64, events: &[Bytes]) {
        let Some(stream) = self.streams.get_mut(&key) else {
            return;
        };
        if stream.end != StreamEnd::Open || events.is_empty() {
            return;
        }
        let (cost, count) = (stream.cost, stream.log.len());
        if first > stream.last.saturating_add(1) {
            stream.lost = first - 1;
        }
        let owner = stream.owner;
        let owner_log = &mut self.owners.logs[owner];
        for (offset, data) in (0..).zip(events) {
            let sequence = first.saturating_add(offset);
            if sequence > stream.last {
                stream.last = sequence;
                if !data.is_empty() {
                    stream.push(sequence, data.clone());
                    owner_log.events.push((key, sequence));
                }
            }
        }
        stream.trim(&self.limits);
        self.used = self.used - cost + stream.cost;
        owner_log.used = owner_log.used - cost + stream.cost;
        owner_log.event_count = owner_log.event_count - count + stream.log.len();
        self.shrink_to_budget();
        let owner_log = &mut self.owners.logs[owner];
        owner_log
            .events
            .compact(owner_log.event_count, |(key, sequence)| {
                has_event(&self.streams, *key, *sequence)
            });
    }

    fn finish(&mut self, key: StreamKey, end: StreamEnd, now: Instant) {
        let Some(stream) = self.streams.get_mut(&key) else {
            return;
        };
        stream.end = end;
        stream.unanswered = Vec::new();
        let owner_log = &mut self.owners.logs[stream.owner];
        owner_log.finished.push(key);
        owner_log
            .finished
            .compact(owner_log.stream_count, |key| self.streams.contains_key(key));
        let drop_at = deadline(now, self.limits.retention);
        self.finished.push((key, drop_at));
        self.finished.compact(self.streams.len(), |(key, _)| {
            self.streams.contains_key(key)
        });
    }

    /// Removes finished streams after their retention time.
    pub(super) fn expire(&mut self, now: Instant) {
        while let Some((key, _)) = self.finished.pop_if(|(_, drop_at)| *drop_at <= now) {
            self.drop_stream(key);
        }
    }

    /// Ensures that the session may open one more stream.
    fn make_room_for_stream(&mut self, session: &SessionId) -> Result<(), StoreError> {
        let limit = self.limits.max_streams;
        let Some(streams) = self
            .sessions
            .get(session)
            .filter(|streams| streams.len() >= limit)
        else {
            return Ok(());
        };
        let mut keys = streams.iter().map(|stream| StreamKey {
            session: *session,
            stream: *stream,
        });
        let what = "open streams";
        let oldest = keys
            .find(|key| {
                let stream = self.streams.get(key);
                stream.is_some_and(|stream| stream.end != StreamEnd::Open)
            })
            .ok_or(StoreError::TooMany { what, limit })?;
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
            if let Some((key, sequence)) = owner_log.events.pop() {
                self.drop_event(key, sequence);
            } else if let Some(key) = owner_log.finished.pop() {
                self.drop_stream(key);
            } else {
                return;
            }
        }
    }

    fn drop_event(&mut self, key: StreamKey, sequence: u64) {
        if !has_event(&self.streams, key, sequence) {
            return;
        }
        if let Some(stream) = self.streams.get_mut(&key) {
            let before = stream.cost;
            stream.pop();
            self.used = self.used - before + stream.cost;
            let owner_log = &mut self.owners.logs[stream.owner];
            owner_log.used = owner_log.used - before + stream.cost;
            owner_log.event_count -= 1;
        }
    }

    fn drop_stream(&mut self, key: StreamKey) {
        let Some(stream) = self.streams.remove(&key) else {
            return;
        };
        self.used -= stream.head_cost + stream.cost;
        self.owners.remove_stream(&stream);
        if let Some(streams) = self.sessions.get_mut(&key.session) {
            if let Some(at) = streams.iter().position(|stream| *stream == key.stream) {
                streams.remove(at);
            }
            if streams.is_empty() {
                self.sessions.remove(&key.session);
            }
        }
    }
}

/// Returns whether the data of this event is still stored. A log removes its oldest events first.
fn has_event(streams: &StreamMap, key: StreamKey, sequence: u64) -> bool {
    let oldest = streams.get(&key).and_then(|stream| stream.log.front());
    oldest.is_some_and(|(oldest, _)| *oldest <= sequence)
}

impl OwnerLogs {
    /// Counts a new stream of an owner, and returns the index of the owner.
    fn add_stream(&mut self, owner: &SessionOwner, cost: usize) -> usize {
        let index = match self.indices.get(owner) {
            Some(index) => *index,
            None => self.add_owner(owner),
        };
        let owner_log = &mut self.logs[index];
        owner_log.stream_count += 1;
        owner_log.used += cost;
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
        owner_log.used -= stream.head_cost + stream.cost;
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
    fn new(writer: InstanceId, unanswered: Vec<RequestId>) -> Self {
        let requests: usize = unanswered
            .iter()
            .map(|id| REQUEST_COST + id.raw().len())
            .sum();
        Self {
            writer,
            unanswered,
            head_cost: STREAM_COST + requests,
            owner: 0,
            log: VecDeque::new(),
            cost: 0,
            last: 0,
            lost: 0,
            end: StreamEnd::Open,
        }
    }

    /// Fails unless the stream accepts these events, or they repeat an append of its writer.
    fn check_append(
        &self,
        head: Option<StreamHead>,
        first: u64,
        events: &[Bytes],
    ) -> Result<(), StoreError> {
        let is_writer = head.is_none_or(|head| head.writer == self.writer);
        let next = first.saturating_add(events.len() as u64);
        let is_repeated = events.is_empty() || next <= self.last.saturating_add(1);
        let accepts = match self.end {
            StreamEnd::Open => true,
            StreamEnd::Finished => is_repeated,
            StreamEnd::Orphaned => false,
        };
        if is_writer && accepts {
            Ok(())
        } else {
            Err(StoreError::Gone { what: "stream" })
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

    fn replay(&self, last: &EventId, limit: usize) -> EventReplay {
        let seen = self
            .log
            .partition_point(|(sequence, _)| *sequence <= last.sequence);
        let missed = self.log.range(seen..).take(limit);
        let missed = missed.map(|(sequence, data)| StoredEvent {
            id: EventId {
                stream: last.stream,
                sequence: *sequence,
            },
            data: data.clone(),
        });
        EventReplay {
            stream: last.stream,
            events: missed.collect(),
            more: self.log.len() - seen > limit,
            last: self.last,
            finished: self.end != StreamEnd::Open,
            lost: last.sequence < self.lost,
            writer: self.writer,
            unanswered: self.unanswered.clone(),
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
