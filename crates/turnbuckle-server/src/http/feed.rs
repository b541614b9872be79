//! From whoever writes to a resumable stream to the connection that reads it, if there is one.
//!
//! Every event is in the store's log first, then here. A connection that is lost loses nothing: who resumes reads
//! what it missed from the log, and what follows from here.

use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use tokio::time::Instant;
use turnbuckle_store::{EventId, StreamId};

use super::presence::lock;

/// Events that may wait for a slow connection.
const HIGH_WATER: usize = 64;

/// One stream that is still written to.
pub(super) struct Feed {
    pub(super) stream: StreamId,
    state: Mutex<State>,
}

struct State {
    queue: VecDeque<(EventId, Bytes)>,
    /// Whether the queue lacks events that only the log has.
    overflowed: bool,
    /// The connection that reads: the latest one.
    reader: Option<u64>,
    readers: u64,
    /// Since when nobody reads.
    left: Instant,
    finished: bool,
    hung_up: bool,
    /// Who reads, while there is nothing to take.
    waiting_reader: Option<Waker>,
    /// Who writes, while there is no room.
    waiting_writer: Option<Waker>,
}

/// What a reader finds.
pub(super) enum Taken {
    /// Events came.
    Events,
    /// Some events are in the log only.
    SeeLog,
    /// The stream has ended, or the connection is to end.
    End,
}

impl Feed {
    pub(super) fn new(stream: StreamId) -> Arc<Self> {
        Arc::new(Self {
            stream,
            state: Mutex::new(State {
                queue: VecDeque::new(),
                overflowed: false,
                reader: None,
                readers: 0,
                left: Instant::now(),
                finished: false,
                hung_up: false,
                waiting_reader: None,
                waiting_writer: None,
            }),
        })
    }

    /// Hands an event that is in the log to the connection, if there is one.
    pub(super) fn push(&self, id: EventId, data: Bytes) {
        let mut state = lock(&self.state);
        if state.reader.is_none() {
            return;
        }
        if state.queue.len() >= HIGH_WATER {
            state.queue.clear();
            state.overflowed = true;
        }
        if !state.overflowed {
            state.queue.push_back((id, data));
        }
        wake_both(state);
    }

    /// Waits while a connection is slow to read.
    pub(super) async fn has_room(&self) {
        poll_fn(|cx| {
            let mut state = lock(&self.state);
            if state.reader.is_none() || state.finished || state.queue.len() < HIGH_WATER {
                return Poll::Ready(());
            }
            state.waiting_writer = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Says that nothing more comes.
    pub(super) fn finish(&self) {
        let mut state = lock(&self.state);
        state.finished = true;
        wake_both(state);
    }

    /// Ends the connection, once it has what came so far; the stream goes on.
    pub(super) fn hang_up(&self) {
        let mut state = lock(&self.state);
        state.hung_up = true;
        wake_both(state);
    }

    /// Begins to read in place of whoever read before.
    pub(super) fn attach(self: &Arc<Self>) -> Attached {
        let mut state = lock(&self.state);
        state.readers += 1;
        state.reader = Some(state.readers);
        state.queue.clear();
        state.overflowed = false;
        state.hung_up = false;
        let number = state.readers;
        // Whoever read before learns that it no longer does.
        wake_both(state);
        Attached {
            feed: self.clone(),
            number,
        }
    }

    /// Since when nobody reads; `None` while somebody does.
    pub(super) fn unread_since(&self) -> Option<Instant> {
        let state = lock(&self.state);
        state.reader.is_none().then_some(state.left)
    }
}

/// Wakes whoever waits for the state to change, once it is given back.
fn wake_both(mut state: MutexGuard<'_, State>) {
    let waiting = [state.waiting_reader.take(), state.waiting_writer.take()];
    drop(state);
    waiting.into_iter().flatten().for_each(Waker::wake);
}

/// The connection that reads a feed.
pub(super) struct Attached {
    feed: Arc<Feed>,
    number: u64,
}

impl Attached {
    /// Takes what has come into `queue`, which is empty, or sees to it that `cx` is woken when something does.
    pub(super) fn poll_take(
        &self,
        cx: &Context<'_>,
        queue: &mut VecDeque<(EventId, Bytes)>,
    ) -> Poll<Taken> {
        let mut state = lock(&self.feed.state);
        let taken = if state.reader != Some(self.number) {
            return Poll::Ready(Taken::End);
        } else if state.overflowed {
            state.overflowed = false;
            Taken::SeeLog
        } else if !state.queue.is_empty() {
            std::mem::swap(&mut state.queue, queue);
            Taken::Events
        } else if state.finished || state.hung_up {
            Taken::End
        } else {
            match &mut state.waiting_reader {
                Some(waiting) => waiting.clone_from(cx.waker()),
                none => *none = Some(cx.waker().clone()),
            }
            return Poll::Pending;
        };
        wake_both(state);
        Poll::Ready(taken)
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let mut state = lock(&self.feed.state);
        if state.reader != Some(self.number) {
            return;
        }
        state.reader = None;
        state.left = Instant::now();
        state.queue.clear();
        state.overflowed = false;
        wake_both(state);
    }
}
