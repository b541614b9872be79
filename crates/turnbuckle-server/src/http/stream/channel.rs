//! The channel from the writer of a resumable stream to the connection that reads it, if any.
//!
//! Every event is appended to the store's log first, then to the channel. A lost connection loses no events: a client
//! that resumes reads the missed events from the log, and later ones from the channel.

use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use tokio::time::Instant;
use turnbuckle_store::{InstanceId, StreamId};

use crate::sync::{InlineQueue, lock};

/// Chooses the ids of new streams.
///
/// Processes that share a store serve the same sessions, so each starts at a random number.
pub(crate) struct StreamIdSource(AtomicU64);

impl Default for StreamIdSource {
    fn default() -> Self {
        let mut start = [0; 8];
        getrandom::fill(&mut start[..5]).expect("random bytes are available");
        Self(AtomicU64::new(u64::from_le_bytes(start)))
    }
}

impl StreamIdSource {
    pub(crate) fn next(&self) -> StreamId {
        StreamId::new(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// Number of events that may wait for a slow connection.
const HIGH_WATER: usize = 64;

/// A stream that is still written to.
pub(crate) struct StreamChannel {
    pub(crate) stream: StreamId,
    state: Mutex<ChannelState>,
}

/// An event with its sequence number on the stream.
pub(crate) type SequencedEvent = (u64, Bytes);

struct ChannelState {
    /// Events that were not read yet.
    queue: InlineQueue<SequencedEvent>,
    /// The number of the last event that the writer has sent.
    last_sequence: u64,
    /// The number of the last event that the reader was passed by the writer of calls.
    last_pushed: u64,
    /// Set if events were dropped from the queue and must be read from the log.
    overflowed: bool,
    /// Incremented for each new reader; only the latest one may read.
    reader_generation: u64,
    /// Time since which the stream lacks a reader; `None` while it has one.
    unread_since: Option<Instant>,
    /// The instance that reads the stream for its client, if the reader is there.
    instance_reader: Option<InstanceId>,
    /// Set once the writer, another instance, has forwarded something.
    was_forwarded: bool,
    finished: bool,
    close_requested: bool,
    /// The waker of the reader, while the queue is empty.
    reader_waker: Option<Waker>,
    /// The waker of the writer, while the queue is full.
    writer_waker: Option<Waker>,
}

/// The result of reading from a channel.
pub(crate) enum ReadResult {
    /// The next event; more may follow it.
    Event(SequencedEvent),
    /// Some events must be read from the log.
    ReadLog,
    /// The stream has ended, or the connection is to be closed.
    End,
}

/// The reason why a reader ends.
pub(crate) enum ReaderEnd {
    /// The stream is complete.
    Finished,
    /// Another reader has replaced this one, or its instance has detached it.
    Replaced,
    /// The connection is to be closed, and the stream continues.
    CloseRequested,
}

impl ChannelState {
    fn has_reader(&self) -> bool {
        self.unread_since.is_none()
    }

    fn is_full(&self) -> bool {
        self.queue.len() >= HIGH_WATER
    }
}

impl StreamChannel {
    pub(crate) fn new(stream: StreamId) -> Arc<Self> {
        Arc::new(Self {
            stream,
            state: Mutex::new(ChannelState {
                queue: InlineQueue::default(),
                last_sequence: 0,
                last_pushed: 0,
                overflowed: false,
                reader_generation: 0,
                unread_since: Some(Instant::now()),
                instance_reader: None,
                was_forwarded: false,
                finished: false,
                close_requested: false,
                reader_waker: None,
                writer_waker: None,
            }),
        })
    }

    /// Passes numbered events to the reader, if there is one, and marks the stream as complete if `ends` is set.
    ///
    /// Events that the reader was passed before are skipped.
    pub(crate) fn push_all(&self, events: impl Iterator<Item = SequencedEvent>, ends: bool) {
        let mut state = lock(&self.state);
        state.finished |= ends;
        let has_reader = state.has_reader();
        let is_full = state.is_full();
        for (sequence, data) in events {
            state.last_sequence = state.last_sequence.max(sequence);
            if has_reader && sequence > state.last_pushed && !data.is_empty() {
                state.last_pushed = sequence;
                if is_full && !state.overflowed {
                    state.queue.clear();
                    state.overflowed = true;
                }
                if !state.overflowed {
                    state.queue.push((sequence, data));
                }
            }
        }
        wake_both(state);
    }

    /// Passes events to the reader that the writer, another instance, has forwarded.
    ///
    /// What was not forwarded before the number `first` is read from the log.
    pub(crate) fn push_forwarded(&self, first: u64, events: Vec<Bytes>, ends: bool) {
        let mut state = lock(&self.state);
        state.was_forwarded = true;
        state.finished |= ends;
        if state.is_full() {
            state.queue.clear();
            state.overflowed = true;
        }
        state.overflowed |= first > state.last_sequence.saturating_add(1);
        state.last_sequence = state.last_sequence.max(first.saturating_sub(1));
        for (offset, data) in (0..).zip(events) {
            let sequence = first.saturating_add(offset);
            state.last_sequence = state.last_sequence.max(sequence);
            if state.has_reader() && !data.is_empty() {
                state.queue.push((sequence, data));
            }
        }
        wake_both(state);
    }

    /// Sets the number of the last event that a reader has.
    pub(crate) fn set_last_sequence(&self, sequence: u64) {
        lock(&self.state).last_sequence = sequence;
    }

    /// Returns the number of the next event.
    pub(crate) fn next_sequence(&self) -> u64 {
        lock(&self.state).last_sequence.saturating_add(1)
    }

    /// Returns whether the writer, another instance, has forwarded something.
    pub(crate) fn was_forwarded(&self) -> bool {
        lock(&self.state).was_forwarded
    }

    /// Returns whether the stream is complete.
    pub(crate) fn is_finished(&self) -> bool {
        lock(&self.state).finished
    }

    /// Returns whether the writer has sent an event with this number, though it may not be in the log.
    pub(crate) fn has_sent(&self, sequence: u64) -> bool {
        (1..=lock(&self.state).last_sequence).contains(&sequence)
    }

    /// Waits until the queue has room. Returns immediately without a reader.
    pub(crate) async fn wait_for_room(&self) {
        poll_fn(|cx| {
            let mut state = lock(&self.state);
            if !state.has_reader() || state.finished || !state.is_full() {
                return Poll::Ready(());
            }
            state.writer_waker = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Marks the stream as complete.
    pub(crate) fn finish(&self) {
        let mut state = lock(&self.state);
        state.finished = true;
        wake_both(state);
    }

    /// Closes the reading connection once it has read all queued events. The stream continues.
    pub(crate) fn close_reader(&self) {
        let mut state = lock(&self.state);
        state.close_requested = true;
        wake_both(state);
    }

    /// Attaches a new reader in place of the previous one.
    pub(crate) fn attach(self: &Arc<Self>) -> ChannelReader {
        self.attach_reader(None)
    }

    /// Attaches a reader that forwards events to another instance, in place of the previous one.
    pub(crate) fn attach_instance(self: &Arc<Self>, reader: InstanceId) -> ChannelReader {
        self.attach_reader(Some(reader))
    }

    /// Returns the instance that reads the stream for its client.
    pub(crate) fn instance_reader(&self) -> Option<InstanceId> {
        lock(&self.state).instance_reader
    }

    /// Detaches the reader that forwards events to this instance.
    pub(crate) fn detach_instance(&self, reader: &InstanceId) {
        let mut state = lock(&self.state);
        if state.instance_reader.as_ref() == Some(reader) {
            state.reader_generation += 1;
            state.instance_reader = None;
            state.unread_since = Some(Instant::now());
            state.queue.clear();
            state.overflowed = false;
            wake_both(state);
        }
    }

    fn attach_reader(self: &Arc<Self>, instance: Option<InstanceId>) -> ChannelReader {
        let mut state = lock(&self.state);
        state.instance_reader = instance;
        state.reader_generation += 1;
        state.unread_since = None;
        state.queue.clear();
        state.last_pushed = 0;
        state.overflowed = false;
        state.close_requested = false;
        let generation = state.reader_generation;
        // The previous reader finds out that it was replaced.
        wake_both(state);
        ChannelReader {
            channel: self.clone(),
            generation,
        }
    }
}

/// Releases the lock, then wakes the reader and the writer.
fn wake_both(mut state: MutexGuard<'_, ChannelState>) {
    let (reader, writer) = (state.reader_waker.take(), state.writer_waker.take());
    drop(state);
    if let Some(reader) = reader {
        reader.wake();
    }
    if let Some(writer) = writer {
        writer.wake();
    }
}

/// The reading side of a channel.
pub(crate) struct ChannelReader {
    channel: Arc<StreamChannel>,
    generation: u64,
}

impl ChannelReader {
    /// Returns the next event, and moves the events after it into `rest`, which must be empty. Otherwise registers the waker
    /// of `cx`.
    pub(crate) fn poll_read(
        &self,
        cx: &Context<'_>,
        rest: &mut VecDeque<SequencedEvent>,
    ) -> Poll<ReadResult> {
        let mut state = lock(&self.channel.state);
        let result = if !self.is_current(&state) {
            return Poll::Ready(ReadResult::End);
        } else if state.overflowed {
            state.overflowed = false;
            ReadResult::ReadLog
        } else if let Some(first) = state.queue.take_all(rest) {
            ReadResult::Event(first)
        } else if state.finished || state.close_requested {
            ReadResult::End
        } else {
            match &mut state.reader_waker {
                Some(waker) => waker.clone_from(cx.waker()),
                none => *none = Some(cx.waker().clone()),
            }
            return Poll::Pending;
        };
        wake_both(state);
        Poll::Ready(result)
    }

    /// Returns why [`poll_read`](Self::poll_read) has returned [`ReadResult::End`].
    pub(crate) fn end(&self) -> ReaderEnd {
        let state = lock(&self.channel.state);
        if !self.is_current(&state) {
            ReaderEnd::Replaced
        } else if state.finished {
            ReaderEnd::Finished
        } else {
            ReaderEnd::CloseRequested
        }
    }

    /// Returns whether this reader was not replaced.
    fn is_current(&self, state: &ChannelState) -> bool {
        state.reader_generation == self.generation
    }
}

impl Drop for ChannelReader {
    fn drop(&mut self) {
        let mut state = lock(&self.channel.state);
        if !self.is_current(&state) {
            return;
        }
        state.unread_since = Some(Instant::now());
        state.queue.clear();
        state.overflowed = false;
        wake_both(state);
    }
}
