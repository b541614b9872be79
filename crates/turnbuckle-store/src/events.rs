//! The event log behind `Last-Event-ID`.

use std::{fmt, ops::Deref, str::FromStr};

use bytes::Bytes;
use turnbuckle_protocol::RequestId;

use crate::{BoxFuture, InstanceId, SessionId, SessionOwner, StoreError};

/// Stores the events sent on the streams of a session, so that a client can resume a stream.
///
/// Each stream has one writer, which chooses the id of the stream and numbers its events. Every lookup is limited to one
/// session: the event id of another session is unknown. The log is bounded and removes the oldest events first;
/// [`EventReplay::lost`] reports that a resumed stream has a gap. The newest event of a stream is removed only when the
/// total limit of all streams is exceeded.
pub trait EventStore: Send + Sync {
    /// Appends events to a stream, and opens or finishes it, as the batch says.
    ///
    /// A repeated append changes nothing and succeeds, so a writer repeats one when it does not know whether it was
    /// stored: events that are in the log are skipped. A number that the writer leaves out counts as a lost event.
    ///
    /// When the log is full, the owner with the largest part of it loses events first. Returns [`StoreError::Gone`] if
    /// the stream is finished or unknown, or another instance has [closed](Self::close_orphan) it.
    fn append<'a>(
        &'a self,
        session: &'a SessionId,
        stream: &'a StreamId,
        batch: EventBatch<'a>,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Returns the events that follow an event on its stream, in order, at most `limit` of them.
    ///
    /// Returns `None` if the id was never assigned in this session, or if its stream was removed. An id beyond the log of
    /// a stream that is not finished is accepted: its writer may have sent events that it could not store.
    fn replay_after<'a>(
        &'a self,
        session: &'a SessionId,
        last: &'a EventId,
        limit: usize,
    ) -> BoxFuture<'a, Result<Option<EventReplay>, StoreError>>;

    /// Appends events to a stream of an instance that no longer writes, and finishes it.
    ///
    /// The events are numbered from the first number that is above `after` and all numbers of the log: a client may have
    /// received events that were not stored. Of all callers one gets true. Returns false, and changes nothing, if the
    /// stream is unknown, finished, or has another writer.
    fn close_orphan<'a>(
        &'a self,
        session: &'a SessionId,
        stream: &'a StreamId,
        dead: &'a InstanceId,
        after: u64,
        events: &'a [Bytes],
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Removes all streams of a session.
    fn remove_session<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Removes finished streams after their retention time.
    ///
    /// Such streams are unreachable even without this call; regular calls free their memory earlier.
    fn sweep(&self) -> BoxFuture<'_, Result<(), StoreError>>;
}

/// Events that a writer appends to its stream together.
#[derive(Clone, Debug, Default)]
pub struct EventBatch<'a> {
    /// Set in the first batch, which opens the stream.
    pub head: Option<StreamHead>,
    /// The number of the first event. Numbers start at 1 and go up by one.
    pub first: u64,
    /// The data of the events.
    ///
    /// Empty data only takes a number: a client can resume after it, but it is never replayed. A server starts a stream
    /// with such an event, so that the client has an id to resume from.
    pub events: &'a [Bytes],
    /// The requests that these events respond to. Not needed in the last batch.
    pub answered: &'a [RequestId],
    /// Set in the last batch, which finishes the stream. The stream is removed after the retention time.
    pub end: bool,
}

/// What a store knows about a stream from its beginning.
#[derive(Clone, Debug)]
pub struct StreamHead {
    /// The instance that writes the stream.
    pub writer: InstanceId,
    /// The owner of the session.
    pub owner: SessionOwner,
    /// The requests that the stream will respond to, without those that the first batch responds to.
    pub requests: Vec<RequestId>,
}

/// The events that a resuming client missed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventReplay {
    /// The resumed stream.
    pub stream: StreamId,
    /// The missed events, oldest first.
    pub events: Vec<StoredEvent>,
    /// Set if the limit left out events that follow these.
    pub more: bool,
    /// The highest number in the log.
    pub last: u64,
    /// Set if the stream is finished: its writer appends no more events.
    pub finished: bool,
    /// Set if some missed events are no longer stored.
    pub lost: bool,
    /// The instance that writes the stream.
    pub writer: InstanceId,
    /// The requests without a response in the log; empty if the stream is finished.
    pub unanswered: Vec<RequestId>,
}

/// One event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    /// The id that a client sends to resume after this event.
    pub id: EventId,
    /// The data of the event.
    pub data: Bytes,
}

/// The id of a stream, unique within its session. The writer chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(u64);

impl StreamId {
    /// Creates the id with this number.
    pub fn new(number: u64) -> Self {
        Self(number)
    }

    /// Returns the number of the id.
    pub fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The id of an event: its stream, and its sequence number there.
///
/// Written as `<stream>-<sequence>`, both decimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId {
    /// The stream of the event.
    pub stream: StreamId,
    /// The sequence number on the stream, starting at 1.
    pub sequence: u64,
}

impl EventId {
    /// Returns the text form without allocating, because it is written with every event.
    pub fn text(self) -> EventIdText {
        let mut text = EventIdText {
            buffer: [b'-'; EventIdText::MAX_LENGTH],
            start: EventIdText::MAX_LENGTH,
        };
        text.prepend(self.sequence);
        // The buffer already contains the dash.
        text.start -= 1;
        text.prepend(self.stream.0);
        text
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// The text form of an [`EventId`].
#[derive(Clone, Copy, Debug)]
pub struct EventIdText {
    /// Filled from the end.
    buffer: [u8; Self::MAX_LENGTH],
    start: usize,
}

impl EventIdText {
    /// Two numbers of twenty digits, and a dash.
    const MAX_LENGTH: usize = 41;

    /// Prepends a number.
    fn prepend(&mut self, mut number: u64) {
        loop {
            self.start -= 1;
            // A remainder of ten fits into one digit.
            self.buffer[self.start] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                return;
            }
        }
    }
}

impl Deref for EventIdText {
    type Target = str;

    fn deref(&self) -> &str {
        str::from_utf8(&self.buffer[self.start..]).expect("digits and a dash are UTF-8")
    }
}

/// The text is not an event id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an event id")]
pub struct InvalidEventId;

impl FromStr for EventId {
    type Err = InvalidEventId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (stream, sequence) = text.split_once('-').ok_or(InvalidEventId)?;
        Ok(Self {
            stream: StreamId(decimal(stream)?),
            sequence: decimal(sequence)?,
        })
    }
}

/// Parses a number in canonical form: no sign, no leading zero.
fn decimal(text: &str) -> Result<u64, InvalidEventId> {
    let canonical = text == "0" || text.starts_with(|c: char| matches!(c, '1'..='9'));
    if canonical {
        text.parse().map_err(|_| InvalidEventId)
    } else {
        Err(InvalidEventId)
    }
}

#[cfg(test)]
mod tests;
