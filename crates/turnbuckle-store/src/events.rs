//! The log behind `Last-Event-ID`.

use std::fmt;
use std::future::poll_fn;
use std::ops::Deref;
use std::str::FromStr;
use std::task::Poll;

use bytes::Bytes;

use crate::{BoxFuture, SessionId, StoreError};

/// What was sent on the streams of a session, so that a client can resume one.
///
/// Everything is looked up inside one session: the id of another session's event is unknown here.
/// The log is bounded and forgets the oldest events first; a resumption that would skip some says so
/// in [`Replay::lost`]. The newest event of a stream is forgotten only when all streams together have
/// too much.
pub trait Events: Send + Sync {
    /// Begins a stream.
    fn open<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<StreamId, StoreError>>;

    /// Adds an event at the end of a stream and returns its id.
    ///
    /// Empty data makes an id and nothing else: a client can resume after it, but it is never
    /// replayed. A server opens a stream with one, so that the client has an id to come back with.
    /// The answer is [`StoreError::Gone`] if the stream is finished or unknown.
    fn append<'a>(
        &'a self,
        session: &'a SessionId,
        stream: &'a StreamId,
        data: Bytes,
    ) -> BoxFuture<'a, Result<EventId, StoreError>>;

    /// Adds the same event at the end of many streams, and returns for each, in this order, what
    /// [`append`](Self::append) would.
    ///
    /// Most changes are told to everybody, so this is worth a way of its own. Without one, each is
    /// appended for itself, some of them at the same time.
    fn append_each<'a>(
        &'a self,
        streams: &'a [(SessionId, StreamId)],
        data: Bytes,
    ) -> BoxFuture<'a, Vec<Result<EventId, StoreError>>> {
        Box::pin(async move {
            let mut appended = Vec::with_capacity(streams.len());
            for some in streams.chunks(AT_ONCE) {
                let some = some.iter();
                let some = some.map(|(session, stream)| self.append(session, stream, data.clone()));
                appended.extend(all(some.collect()).await);
            }
            appended
        })
    }

    /// Returns what came after an event on its own stream, in order.
    ///
    /// `None` for an id that was never given out in this session, or whose stream was dropped.
    fn after<'a>(
        &'a self,
        session: &'a SessionId,
        last: &'a EventId,
    ) -> BoxFuture<'a, Result<Option<Replay>, StoreError>>;

    /// Says that nothing more comes on a stream; it is kept for the retention time, then dropped.
    ///
    /// Finishing twice, or a stream that is gone, changes nothing.
    fn finish<'a>(
        &'a self,
        session: &'a SessionId,
        stream: &'a StreamId,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Drops all streams of a session.
    fn forget<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Drops finished streams whose retention time is over.
    ///
    /// They are out of reach without it; calling it now and then returns their memory sooner.
    fn sweep(&self) -> BoxFuture<'_, Result<(), StoreError>>;
}

/// How many streams are appended to at the same time.
const AT_ONCE: usize = 32;

/// Waits for all of them, side by side.
async fn all<T>(mut waiting: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    let mut results: Vec<_> = waiting.iter().map(|_| None).collect();
    poll_fn(|cx| {
        for (result, waiting) in results.iter_mut().zip(&mut waiting) {
            if result.is_none()
                && let Poll::Ready(ready) = waiting.as_mut().poll(cx)
            {
                *result = Some(ready);
            }
        }
        match results.iter().all(Option::is_some) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    results.into_iter().flatten().collect()
}

/// What a resuming client missed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// The stream that the client resumes.
    pub stream: StreamId,
    /// What it missed, oldest first.
    pub events: Vec<Event>,
    /// Whether the stream is finished: nothing follows these events.
    pub finished: bool,
    /// Whether some of what it missed is no longer there.
    pub lost: bool,
}

/// One event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What a client names to resume after it.
    pub id: EventId,
    /// What was sent.
    pub data: Bytes,
}

/// Names a stream; no two streams of a store share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(u64);

impl StreamId {
    /// The stream of this number.
    pub fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number of this stream.
    pub fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Names an event: its stream, and its place there.
///
/// As text `<stream>-<sequence>`, both in decimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId {
    /// The stream it was sent on.
    pub stream: StreamId,
    /// Its place on the stream; the first is 1.
    pub sequence: u64,
}

impl EventId {
    /// Returns its text without a place on the heap: one is written with every event of a stream.
    pub fn text(self) -> EventIdText {
        let mut text = EventIdText {
            room: [b'-'; EventIdText::MOST],
            start: EventIdText::MOST,
        };
        text.prepend(self.sequence);
        // The dash is there already.
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

/// The text of an [`EventId`].
#[derive(Clone, Copy, Debug)]
pub struct EventIdText {
    /// Filled from its end.
    room: [u8; Self::MOST],
    start: usize,
}

impl EventIdText {
    /// Two numbers of twenty digits, and the dash between them.
    const MOST: usize = 41;

    /// Puts a number before what is there.
    fn prepend(&mut self, mut number: u64) {
        loop {
            self.start -= 1;
            // A remainder of ten is a digit.
            self.room[self.start] = b'0' + (number % 10) as u8;
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
        str::from_utf8(&self.room[self.start..]).expect("digits and a dash are text")
    }
}

/// A text that is not the id of an event.
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

/// Reads a number in the one spelling that we write ourselves: no sign, no leading zero.
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
