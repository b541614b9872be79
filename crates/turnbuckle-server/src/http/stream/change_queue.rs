//! A GET stream: the queue from the fan-out of changes to the connection that reads it, if any.
//!
//! Changes are not stored: a client that resumes gets those that it missed from the log of the bus. Other messages are
//! stored here, the newest ones, and only while the stream exists in this process.

use std::{
    collections::VecDeque,
    ops::Deref,
    str::FromStr,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use tokio::time::Instant;
use turnbuckle_store::Position;

use crate::sync::{InlineQueue, lock};

/// Number of messages that may wait for a slow connection. The others are read again.
const HIGH_WATER: usize = 64;

/// Number of messages other than changes that are stored for a client that reads slowly or reconnects: what an event log keeps
/// by default.
const MAX_STORED: usize = 1_000;

/// Bytes of these messages, of which the newest is stored in any case.
const MAX_STORED_BYTES: usize = 1024 * 1024;

/// A place on a GET stream: after a change, and after a number of other messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StreamPlace {
    pub(crate) position: Position,
    /// The number of messages that are not changes, in this process.
    pub(crate) messages: u64,
}

/// The id of an event on a GET stream, written as `g<generation>-<position>`, with `-<messages>` if there were any.
///
/// No event of a call has such an id, because those begin with a digit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChangeEventId {
    /// The number of the stream in its session.
    pub(crate) generation: u32,
    pub(crate) place: StreamPlace,
}

impl ChangeEventId {
    /// Returns the text form without allocating, because it is written with every event.
    pub(crate) fn text(self) -> ChangeEventText {
        let mut text = ChangeEventText {
            buffer: [0; ChangeEventText::MAX_LENGTH],
            start: ChangeEventText::MAX_LENGTH,
        };
        if self.place.messages > 0 {
            text.prepend_number(self.place.messages);
            text.prepend(b'-');
        }
        text.prepend_number(self.place.position.number());
        text.prepend(b'-');
        text.prepend_number(self.generation.into());
        text.prepend(b'g');
        text
    }
}

/// The text form of a [`ChangeEventId`].
pub(crate) struct ChangeEventText {
    /// Filled from the end.
    buffer: [u8; Self::MAX_LENGTH],
    start: usize,
}

impl ChangeEventText {
    /// A letter, a number of ten digits and two of twenty digits, with dashes.
    const MAX_LENGTH: usize = 53;

    fn prepend(&mut self, byte: u8) {
        self.start -= 1;
        self.buffer[self.start] = byte;
    }

    fn prepend_number(&mut self, mut number: u64) {
        loop {
            // A remainder of ten fits into one digit.
            self.prepend(b'0' + (number % 10) as u8);
            number /= 10;
            if number == 0 {
                return;
            }
        }
    }
}

impl Deref for ChangeEventText {
    type Target = str;

    fn deref(&self) -> &str {
        str::from_utf8(&self.buffer[self.start..]).expect("letters, digits and dashes are UTF-8")
    }
}

/// The text is not the id of an event on a GET stream.
#[derive(Debug)]
pub(crate) struct NotAChangeEvent;

impl FromStr for ChangeEventId {
    type Err = NotAChangeEvent;

    fn from_str(text: &str) -> Result<Self, NotAChangeEvent> {
        let mut numbers = text.strip_prefix('g').ok_or(NotAChangeEvent)?.split('-');
        let mut next = || numbers.next().map(decimal);
        let generation = next().ok_or(NotAChangeEvent)??;
        let position = next().ok_or(NotAChangeEvent)??;
        let messages = next().unwrap_or(Ok(0))?;
        if next().is_some() {
            return Err(NotAChangeEvent);
        }
        Ok(Self {
            generation: u32::try_from(generation).map_err(|_| NotAChangeEvent)?,
            place: StreamPlace {
                position: Position::new(position),
                messages,
            },
        })
    }
}

fn decimal(text: &str) -> Result<u64, NotAChangeEvent> {
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = is_decimal.then(|| text.parse().ok()).flatten();
    number.ok_or(NotAChangeEvent)
}

/// A message for the reader of a GET stream.
#[derive(Clone, Debug)]
pub(crate) struct QueuedMessage {
    pub(crate) place: StreamPlace,
    /// Set for the last message of its place. Only this event has an id, so that a client that loses one of them gets all
    /// again.
    pub(crate) has_id: bool,
    /// Set if it is sent although the client has an event with this place or a later one.
    pub(crate) is_forced: bool,
    pub(crate) data: Bytes,
}

/// A GET stream of a session, of which this process sends or has sent the events.
pub(crate) struct GetStream {
    /// The number of the stream in its session.
    pub(crate) generation: u32,
    /// Set if list changes can be sent here without looking up the session: the session is known to receive them, this is its
    /// only GET stream, and no other endpoint sends its changes.
    receives_list_changes: AtomicBool,
    state: Mutex<QueueState>,
}

struct QueueState {
    /// Messages that were not read yet.
    queue: InlineQueue<QueuedMessage>,
    /// The place of the newest message.
    last: StreamPlace,
    /// Set if messages are missing in the queue and must be read from the bus.
    must_replay: bool,
    /// Incremented for each new reader; only the latest one may read.
    reader_number: u32,
    finished: bool,
    /// Time since which the stream lacks a reader; `None` while it has one.
    unread_since: Option<Instant>,
    /// The waker of the reader, while the queue is empty.
    waker: Option<Waker>,
    /// Messages other than changes, for a client that reconnects.
    stored: StoredMessages,
}

/// The newest messages that the bus does not have.
#[derive(Default)]
struct StoredMessages(Option<Box<MessageBuffer>>);

#[derive(Default)]
struct MessageBuffer {
    messages: VecDeque<(StreamPlace, Bytes)>,
    bytes: usize,
}

impl StoredMessages {
    fn push(&mut self, place: StreamPlace, data: Bytes) {
        let buffer = self.0.get_or_insert_default();
        buffer.bytes += data.len();
        buffer.messages.push_back((place, data));
        while buffer.messages.len() > MAX_STORED
            || buffer.bytes > MAX_STORED_BYTES && buffer.messages.len() > 1
        {
            let Some((_, oldest)) = buffer.messages.pop_front() else {
                break;
            };
            buffer.bytes -= oldest.len();
        }
    }

    fn after(&self, place: StreamPlace) -> Vec<(StreamPlace, Bytes)> {
        let messages = self.0.iter().flat_map(|buffer| &buffer.messages);
        let newer = messages.filter(|(of, _)| of.messages > place.messages);
        newer.cloned().collect()
    }
}

/// The result of reading from a GET stream.
pub(crate) enum QueueRead {
    /// The next message; more may follow it.
    Message(QueuedMessage),
    /// Some messages must be read from the bus.
    Replay,
    /// The stream has ended.
    End,
}

impl GetStream {
    /// Creates a stream without a reader, which begins at a place.
    pub(crate) fn new(generation: u32, place: StreamPlace) -> Arc<Self> {
        Arc::new(Self {
            generation,
            receives_list_changes: AtomicBool::new(false),
            state: Mutex::new(QueueState {
                queue: InlineQueue::default(),
                last: place,
                must_replay: false,
                reader_number: 0,
                finished: false,
                unread_since: Some(Instant::now()),
                waker: None,
                stored: StoredMessages::default(),
            }),
        })
    }

    /// Returns whether list changes can be sent here without looking up the session.
    pub(crate) fn receives_list_changes(&self) -> bool {
        self.receives_list_changes.load(Ordering::Relaxed)
    }

    /// Sets whether list changes can be sent here without looking up the session.
    pub(super) fn set_receives_list_changes(&self, receives: bool) {
        self.receives_list_changes
            .store(receives, Ordering::Relaxed);
    }

    /// Sends the notification of the change at a position.
    pub(crate) fn send_change(&self, position: Position, data: Bytes) {
        let mut state = lock(&self.state);
        if position <= state.last.position {
            return;
        }
        state.last.position = position;
        let place = state.last;
        state.push(place, true, data);
        state.wake();
    }

    /// Sends several notifications for one position.
    pub(crate) fn send_changes(&self, position: Position, all: Vec<Bytes>) {
        let mut state = lock(&self.state);
        state.last.position = position.max(state.last.position);
        let place = state.last;
        let count = all.len();
        for (number, data) in (1..).zip(all) {
            state.push(place, number == count, data);
        }
        state.wake();
    }

    /// Sends a message that is not a change, and stores it.
    pub(crate) fn send_message(&self, data: Bytes) {
        let mut state = lock(&self.state);
        state.last.messages += 1;
        let place = state.last;
        state.stored.push(place, data.clone());
        state.push(place, true, data);
        state.wake();
    }

    /// Returns the stored messages after a place.
    pub(super) fn stored_after(&self, place: StreamPlace) -> Vec<(StreamPlace, Bytes)> {
        lock(&self.state).stored.after(place)
    }

    /// Lets the reader get from the bus what the fan-out has not sent yet, because the turn of this stream has ended.
    pub(super) fn request_replay(&self) {
        let mut state = lock(&self.state);
        state.must_replay = state.unread_since.is_none();
        state.wake();
    }

    /// Returns the place of the newest message.
    #[cfg(test)]
    pub(super) fn last(&self) -> StreamPlace {
        lock(&self.state).last
    }

    /// Ends the stream once its queue was read.
    pub(crate) fn finish(&self) {
        let mut state = lock(&self.state);
        state.finished = true;
        state.wake();
    }

    /// Attaches a new reader in place of the previous one.
    pub(crate) fn attach(self: &Arc<Self>) -> GetStreamReader {
        let mut state = lock(&self.state);
        state.reader_number += 1;
        state.unread_since = None;
        state.queue.clear();
        state.must_replay = false;
        let number = state.reader_number;
        // The previous reader finds out that it was replaced.
        state.wake();
        GetStreamReader {
            stream: self.clone(),
            number,
        }
    }

    /// Ends the reader, because the client has resumed the stream elsewhere.
    pub(super) fn detach(&self) {
        let mut state = lock(&self.state);
        state.reader_number += 1;
        state.unread_since = Some(Instant::now());
        state.queue.clear();
        state.wake();
    }

    /// Returns since when the stream lacks a reader, or `None` while it has one.
    pub(crate) fn unread_since(&self) -> Option<Instant> {
        lock(&self.state).unread_since
    }
}

impl QueueState {
    fn push(&mut self, place: StreamPlace, has_id: bool, data: Bytes) {
        if self.unread_since.is_some() {
            return;
        }
        if self.queue.len() >= HIGH_WATER {
            self.queue.clear();
            self.must_replay = true;
        }
        if !self.must_replay {
            self.queue.push(QueuedMessage {
                place,
                has_id,
                is_forced: false,
                data,
            });
        }
    }
}

/// Wakes a reader after the lock is released.
trait WakeReader {
    fn wake(self);
}

impl WakeReader for MutexGuard<'_, QueueState> {
    fn wake(mut self) {
        let waker = self.waker.take();
        drop(self);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The reading side of a GET stream.
pub(crate) struct GetStreamReader {
    pub(super) stream: Arc<GetStream>,
    number: u32,
}

impl GetStreamReader {
    /// Returns the next message, and moves the messages after it into `rest`, which must be empty. Otherwise registers the
    /// waker of `cx`.
    pub(crate) fn poll_read(
        &self,
        cx: &Context<'_>,
        rest: &mut VecDeque<QueuedMessage>,
    ) -> Poll<QueueRead> {
        let mut state = lock(&self.stream.state);
        if state.reader_number != self.number {
            Poll::Ready(QueueRead::End)
        } else if std::mem::take(&mut state.must_replay) {
            Poll::Ready(QueueRead::Replay)
        } else if let Some(first) = state.queue.take_all(rest) {
            Poll::Ready(QueueRead::Message(first))
        } else if state.finished {
            Poll::Ready(QueueRead::End)
        } else {
            match &mut state.waker {
                Some(waker) => waker.clone_from(cx.waker()),
                none => *none = Some(cx.waker().clone()),
            }
            Poll::Pending
        }
    }
}

impl Drop for GetStreamReader {
    fn drop(&mut self) {
        let mut state = lock(&self.stream.state);
        if state.reader_number == self.number {
            state.unread_since = Some(Instant::now());
            state.queue.clear();
            state.must_replay = false;
            state.waker = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_id_is_read_as_it_was_written() {
        for (text, generation, position, messages) in [
            ("g1-0", 1, 0, 0),
            ("g4294967295-18446744073709551615", u32::MAX, u64::MAX, 0),
            (
                "g4294967295-18446744073709551615-18446744073709551615",
                u32::MAX,
                u64::MAX,
                u64::MAX,
            ),
            ("g2-7-3", 2, 7, 3),
        ] {
            let id: ChangeEventId = text.parse().unwrap();
            let place = StreamPlace {
                position: Position::new(position),
                messages,
            };
            assert_eq!(id, ChangeEventId { generation, place });
            assert_eq!(&*id.text(), text);
        }
    }

    #[test]
    fn other_texts_are_no_event_ids() {
        for text in [
            "",
            "g",
            "1-1",
            "g1",
            "g1-",
            "g-1",
            "g1-1-",
            "g1-1-1-1",
            "g1-+1",
            "g4294967296-1",
            "h1-1",
            "g1-18446744073709551616",
            "g1 -1",
        ] {
            assert!(text.parse::<ChangeEventId>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_newest_messages_are_stored() {
        let stream = GetStream::new(1, StreamPlace::default());
        for _ in 0..1_000 {
            stream.send_message(Bytes::from_static(b"message"));
        }

        let stored = || stream.stored_after(StreamPlace::default());
        assert_eq!(stored().len(), 1_000);
        stream.send_message(Bytes::from_static(b"message"));
        assert_eq!((stored().len(), stored()[0].0.messages), (1_000, 2));
        let last = stream.last();
        assert!(stream.stored_after(last).is_empty());
        stream.send_message(vec![0; 2 * MAX_STORED_BYTES].into());
        assert_eq!(stored().len(), 1);
    }
}
