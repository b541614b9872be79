//! The event log behind `Last-Event-ID`.

use std::{fmt, future::poll_fn, ops::Deref, str::FromStr, task::Poll};

use bytes::Bytes;

use crate::{BoxFuture, SessionId, SessionOwner, StoreError};

/// Stores the events sent on the streams of a session, so that a client can resume a stream.
///
/// Every lookup is limited to one session: the event id of another session is unknown. The log is bounded and removes
/// the oldest events first; [`EventReplay::lost`] reports that a resumed stream has a gap. The newest event of a
/// stream is removed only when the total limit of all streams is exceeded.
pub trait EventStore: Send + Sync {
    /// Opens a stream of a session. When the log is full, the owner with the largest part of it loses events first.
    fn open_stream<'a>(
        &'a self,
        session: &'a SessionId,
        owner: &'a SessionOwner,
    ) -> BoxFuture<'a, Result<StreamId, StoreError>>;

    /// Appends an event to a stream and returns its id.
    ///
    /// Empty data only allocates an id: a client can resume after it, but it is never replayed. A server starts a
    /// stream with such an event, so that the client has an id to resume from. Returns [`StoreError::Gone`] if the
    /// stream is finished or unknown.
    fn append<'a>(
        &'a self,
        session: &'a SessionId,
        stream: &'a StreamId,
        data: Bytes,
    ) -> BoxFuture<'a, Result<EventId, StoreError>>;

    /// Appends the same event to many streams. Returns, in the order of `streams`, the results that
    /// [`append`](Self::append) would return.
    ///
    /// Most changes go to all sessions, so a store can implement this more efficiently. The default implementation
    /// calls [`append`](Self::append) for each stream, several at a time.
    fn append_to_all<'a>(
        &'a self,
        streams: &'a [(SessionId, StreamId)],
        data: Bytes,
    ) -> BoxFuture<'a, Vec<Result<EventId, StoreError>>> {
        Box::pin(async move {
            let mut appended = Vec::with_capacity(streams.len());
            for chunk in streams.chunks(MAX_CONCURRENT_APPENDS) {
                let chunk = chunk.iter();
                let appends =
                    chunk.map(|(session, stream)| self.append(session, stream, data.clone()));
                appended.extend(join_all(appends.collect()).await);
            }
            appended
        })
    }

    /// Returns the events that follow an event on its stream, in order.
    ///
    /// Returns `None` if the id was never assigned in this session, or if its stream was removed.
    fn replay_after<'a>(
        &'a self,
        session: &'a SessionId,
        last: &'a EventId,
    ) -> BoxFuture<'a, Result<Option<EventReplay>, StoreError>>;

    /// Marks a stream as finished. It is removed after the retention time.
    ///
    /// Has no effect on a stream that is finished or does not exist.
    fn finish_stream<'a>(
        &'a self,
        session: &'a SessionId,
        stream: &'a StreamId,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

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

/// The maximum number of concurrent appends.
const MAX_CONCURRENT_APPENDS: usize = 32;

/// Polls all futures concurrently and returns their results.
async fn join_all<T>(mut futures: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    let mut results: Vec<_> = futures.iter().map(|_| None).collect();
    poll_fn(|cx| {
        for (result, futures) in results.iter_mut().zip(&mut futures) {
            if result.is_none()
                && let Poll::Ready(ready) = futures.as_mut().poll(cx)
            {
                *result = Some(ready);
            }
        }
        if results.iter().all(Option::is_some) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    results.into_iter().flatten().collect()
}

/// The events that a resuming client missed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventReplay {
    /// The resumed stream.
    pub stream: StreamId,
    /// The missed events, oldest first.
    pub events: Vec<StoredEvent>,
    /// Set if the stream is finished: no event follows these.
    pub finished: bool,
    /// Set if some missed events are no longer stored.
    pub lost: bool,
}

/// One event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    /// The id that a client sends to resume after this event.
    pub id: EventId,
    /// The data of the event.
    pub data: Bytes,
}

/// The id of a stream, unique within a store.
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
