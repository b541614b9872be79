//! A part of the event log, with its own budget of bytes.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use bytes::Bytes;
use tokio::time::Instant;

use super::deadline;
use super::queue::Queue;
use crate::{Event, EventId, EventLimits, Replay, SessionId, StoreError, StreamId};

/// What keeping a stream or an event costs beside its data, roughly.
const STREAM_COST: usize = 256;
const EVENT_COST: usize = 64;

pub(super) struct Shard {
    limits: EventLimits,
    budget: usize,
    used: usize,
    /// How many events the logs of all streams hold.
    kept: usize,
    streams: Streams,
    sessions: HashMap<SessionId, Siblings>,
    /// All events, oldest first; also some that are gone.
    events: Queue<(StreamId, u64)>,
    /// Finished streams and when to drop them, first due first; also some that are gone.
    finished: Queue<(StreamId, Instant)>,
}

type Streams = HashMap<StreamId, Stream, BuildHasherDefault<Counted>>;

/// Spreads the names of streams over a table.
///
/// They count up, and no peer can choose one, only which of its own few it keeps: so it is enough that every bit of a
/// name has a say in where it goes.
#[derive(Default)]
struct Counted(u64);

impl Hasher for Counted {
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

/// The streams of one session; each is in one of the two, oldest first.
#[derive(Default)]
struct Siblings {
    open: BTreeSet<StreamId>,
    finished: BTreeSet<StreamId>,
}

struct Stream {
    session: SessionId,
    /// Events by sequence; gaps are ids without data.
    log: VecDeque<(u64, Bytes)>,
    /// What the log costs.
    cost: usize,
    /// The last sequence given out.
    last: u64,
    /// The last sequence whose data had to go.
    lost: u64,
    finished: bool,
}

impl Shard {
    pub(super) fn new(limits: EventLimits, budget: usize) -> Self {
        Self {
            limits,
            budget,
            used: 0,
            kept: 0,
            streams: Streams::default(),
            sessions: HashMap::new(),
            events: Queue::default(),
            finished: Queue::default(),
        }
    }

    pub(super) fn open(&mut self, session: SessionId, id: StreamId) -> Result<(), StoreError> {
        self.make_place(&session)?;
        self.used += STREAM_COST;
        if !self.shrink_to_budget() {
            self.used -= STREAM_COST;
            return Err(StoreError::Full { what: "stream" });
        }
        self.streams.insert(id, Stream::new(session));
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
            self.kept = self.kept - count + stream.log.len();
            self.events.push((id, sequence));
            self.shrink_to_budget();
            self.events.compact(self.kept, |(id, sequence)| {
                holds(&self.streams, *id, *sequence)
            });
        }
        Ok(EventId {
            stream: id,
            sequence,
        })
    }

    pub(super) fn after(&self, session: &SessionId, last: &EventId) -> Option<Replay> {
        let stream = self.streams.get(&last.stream)?;
        let given_out = (1..=stream.last).contains(&last.sequence);
        if stream.session != *session || !given_out {
            return None;
        }
        Some(stream.replay(last))
    }

    pub(super) fn finish(&mut self, session: &SessionId, id: StreamId, now: Instant) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        if stream.session != *session || stream.finished {
            return;
        }
        stream.finished = true;
        if let Some(siblings) = self.sessions.get_mut(session) {
            siblings.open.remove(&id);
            siblings.finished.insert(id);
        }
        let due = deadline(now, self.limits.retention);
        self.finished.push((id, due));
        self.finished
            .compact(self.streams.len(), |(id, _)| self.streams.contains_key(id));
    }

    pub(super) fn forget(&mut self, session: &SessionId) {
        let Some(Siblings { open, finished }) = self.sessions.remove(session) else {
            return;
        };
        for id in open.into_iter().chain(finished) {
            self.drop_stream(id);
        }
    }

    /// Says whether there are streams whose time may be over.
    pub(super) fn has_finished(&self) -> bool {
        !self.finished.is_empty()
    }

    /// Drops finished streams whose time is over.
    pub(super) fn expire(&mut self, now: Instant) {
        while let Some((id, _)) = self.finished.pop_if(|(_, due)| *due <= now) {
            self.drop_stream(id);
        }
    }

    /// Sees to it that the session may open one more stream.
    fn make_place(&mut self, session: &SessionId) -> Result<(), StoreError> {
        let limit = self.limits.max_streams;
        let (count, oldest) = self.sessions.get(session).map_or((0, None), |siblings| {
            let count = siblings.open.len() + siblings.finished.len();
            (count, siblings.finished.first().copied())
        });
        if count < limit {
            return Ok(());
        }
        let what = "open streams";
        let oldest = oldest.ok_or(StoreError::TooMany { what, limit })?;
        self.drop_stream(oldest);
        Ok(())
    }

    /// Lets go of the oldest events, then of finished streams; says whether that was enough.
    fn shrink_to_budget(&mut self) -> bool {
        while self.used > self.budget {
            if let Some((id, sequence)) = self.events.pop() {
                self.drop_event(id, sequence);
            } else if let Some((id, _)) = self.finished.pop() {
                self.drop_stream(id);
            } else {
                return false;
            }
        }
        true
    }

    fn drop_event(&mut self, id: StreamId, sequence: u64) {
        if !holds(&self.streams, id, sequence) {
            return;
        }
        if let Some(stream) = self.streams.get_mut(&id) {
            let before = stream.cost;
            stream.pop();
            self.used = self.used - before + stream.cost;
            self.kept -= 1;
        }
    }

    fn drop_stream(&mut self, id: StreamId) {
        let Some(stream) = self.streams.remove(&id) else {
            return;
        };
        self.used -= STREAM_COST + stream.cost;
        self.kept -= stream.log.len();
        if let Some(siblings) = self.sessions.get_mut(&stream.session) {
            siblings.open.remove(&id);
            siblings.finished.remove(&id);
            if siblings.open.is_empty() && siblings.finished.is_empty() {
                self.sessions.remove(&stream.session);
            }
        }
    }
}

/// Whether the data of this event is still there: a log loses its oldest first.
fn holds(streams: &Streams, id: StreamId, sequence: u64) -> bool {
    let oldest = streams.get(&id).and_then(|stream| stream.log.front());
    oldest.is_some_and(|(oldest, _)| *oldest <= sequence)
}

impl Stream {
    fn new(session: SessionId) -> Self {
        Self {
            session,
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

    /// Forgets the oldest events, but not the newest for its size: most likely it is the answer.
    fn trim(&mut self, limits: &EventLimits) {
        while self.log.len() > limits.max_events
            || (self.log.len() > 1 && self.bytes() > limits.max_stream_bytes)
        {
            self.pop();
        }
    }

    /// Bytes of data in the log.
    fn bytes(&self) -> usize {
        self.cost - EVENT_COST * self.log.len()
    }

    fn replay(&self, last: &EventId) -> Replay {
        let seen = self
            .log
            .partition_point(|(sequence, _)| *sequence <= last.sequence);
        let missed = self.log.range(seen..).map(|(sequence, data)| Event {
            id: EventId {
                stream: last.stream,
                sequence: *sequence,
            },
            data: data.clone(),
        });
        Replay {
            stream: last.stream,
            events: missed.collect(),
            finished: self.finished,
            lost: last.sequence < self.lost,
        }
    }
}

#[cfg(test)]
mod tests;
