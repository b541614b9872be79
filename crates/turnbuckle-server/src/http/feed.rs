//! From whoever writes to a resumable stream to the connection that reads it, if there is one.
//!
//! Every event is in the store's log first, then here. A connection that is lost loses nothing: who resumes reads
//! what it missed from the log, and what follows from here.

use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use tokio::time::Instant;
use turnbuckle_store::StreamId;

use super::presence::lock;
use crate::short_queue::ShortQueue;

/// Events that may wait for a slow connection.
const HIGH_WATER: usize = 64;

/// One stream that is still written to.
pub(super) struct Feed {
    pub(super) stream: StreamId,
    /// Whether every change of a list is to go here, as far as that is known: its session is told of them, and has no other
    /// stream of this kind.
    takes_lists: AtomicBool,
    state: Mutex<State>,
}

/// An event: its place on the stream, and what it says.
pub(super) type Numbered = (u64, Bytes);

struct State {
    /// Events that wait to be read.
    queue: ShortQueue<Numbered>,
    /// Whether events are missing here that only the log has.
    overflowed: bool,
    /// How many connections have read it; only the latest one may.
    readers: u64,
    /// Since when nobody reads; `None` while somebody does.
    left: Option<Instant>,
    finished: bool,
    hung_up: bool,
    /// Who reads, while there is nothing to take.
    waiting_reader: Option<Waker>,
    /// Who writes, while there is no room.
    waiting_writer: Option<Waker>,
}

/// What a reader finds.
pub(super) enum Taken {
    /// This event came, and maybe more.
    Event(Numbered),
    /// Some events are in the log only.
    SeeLog,
    /// The stream has ended, or the connection is to end.
    End,
}

impl State {
    fn has_reader(&self) -> bool {
        self.left.is_none()
    }

    fn is_full(&self) -> bool {
        self.queue.len() >= HIGH_WATER
    }
}

impl Feed {
    pub(super) fn new(stream: StreamId) -> Arc<Self> {
        Arc::new(Self {
            stream,
            takes_lists: AtomicBool::new(false),
            state: Mutex::new(State {
                queue: ShortQueue::default(),
                overflowed: false,
                readers: 0,
                left: Some(Instant::now()),
                finished: false,
                hung_up: false,
                waiting_reader: None,
                waiting_writer: None,
            }),
        })
    }

    /// Says whether every change of a list is to go here.
    pub(super) fn takes_lists(&self) -> bool {
        self.takes_lists.load(Ordering::Relaxed)
    }

    /// Notes whether every change of a list is to go here.
    pub(super) fn set_takes_lists(&self, takes: bool) {
        self.takes_lists.store(takes, Ordering::Relaxed);
    }

    /// Hands an event that is in the log to the connection, if there is one.
    pub(super) fn push(&self, sequence: u64, data: Bytes) {
        let mut state = lock(&self.state);
        if !state.has_reader() {
            return;
        }
        if state.is_full() {
            state.queue.clear();
            state.overflowed = true;
        }
        if !state.overflowed {
            state.queue.push((sequence, data));
        }
        wake_both(state);
    }

    /// Waits while a connection is slow to read.
    pub(super) async fn has_room(&self) {
        poll_fn(|cx| {
            let mut state = lock(&self.state);
            if !state.has_reader() || state.finished || !state.is_full() {
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
        state.left = None;
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
        lock(&self.state).left
    }
}

/// Wakes whoever waits for the state to change, once it is given back.
fn wake_both(mut state: MutexGuard<'_, State>) {
    let (reader, writer) = (state.waiting_reader.take(), state.waiting_writer.take());
    drop(state);
    if let Some(reader) = reader {
        reader.wake();
    }
    if let Some(writer) = writer {
        writer.wake();
    }
}

/// The connection that reads a feed.
pub(super) struct Attached {
    feed: Arc<Feed>,
    number: u64,
}

impl Attached {
    /// Takes the next event, and what is behind it into `more`, which is empty; or sees to it that `cx` is woken when
    /// something comes.
    pub(super) fn poll_take(&self, cx: &Context<'_>, more: &mut VecDeque<Numbered>) -> Poll<Taken> {
        let mut state = lock(&self.feed.state);
        let taken = if !self.reads(&state) {
            return Poll::Ready(Taken::End);
        } else if state.overflowed {
            state.overflowed = false;
            Taken::SeeLog
        } else if let Some(first) = state.queue.take(more) {
            Taken::Event(first)
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

    /// Says whether no later connection reads in place of this one.
    fn reads(&self, state: &State) -> bool {
        state.readers == self.number
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let mut state = lock(&self.feed.state);
        if !self.reads(&state) {
            return;
        }
        state.left = Some(Instant::now());
        state.queue.clear();
        state.overflowed = false;
        wake_both(state);
    }
}
