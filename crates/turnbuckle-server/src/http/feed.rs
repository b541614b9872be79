//! From whoever writes to a resumable stream to the connection that reads it, if there is one.
//!
//! Every event is in the store's log first, then here. A connection that is lost loses nothing: who resumes reads
//! what it missed from the log, and what follows from here.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use tokio::{sync::Notify, time::Instant};
use turnbuckle_store::{EventId, StreamId};

use super::presence::lock;

/// Events that may wait for a slow connection.
const HIGH_WATER: usize = 64;

/// One stream that is still written to.
pub(super) struct Feed {
    pub(super) stream: StreamId,
    state: Mutex<State>,
    changed: Notify,
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
}

/// What a reader finds.
pub(super) enum Taken {
    /// These events came, in this order.
    Events(VecDeque<(EventId, Bytes)>),
    /// Some events are in the log only.
    SeeLog,
    /// Nothing, for now.
    Nothing,
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
            }),
            changed: Notify::new(),
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
        drop(state);
        self.changed.notify_waiters();
    }

    /// Waits while a connection is slow to read.
    pub(super) async fn has_room(&self) {
        self.wait_until(|state| {
            state.reader.is_none() || state.finished || state.queue.len() < HIGH_WATER
        })
        .await;
    }

    /// Says that nothing more comes.
    pub(super) fn finish(&self) {
        lock(&self.state).finished = true;
        self.changed.notify_waiters();
    }

    /// Ends the connection, once it has what came so far; the stream goes on.
    pub(super) fn hang_up(&self) {
        lock(&self.state).hung_up = true;
        self.changed.notify_waiters();
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
        drop(state);
        self.changed.notify_waiters();
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

    async fn wait_until(&self, holds: impl Fn(&State) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Before looking, so that a change in between is not missed.
            changed.as_mut().enable();
            if holds(&lock(&self.state)) {
                return;
            }
            changed.await;
        }
    }
}

/// The connection that reads a feed.
pub(super) struct Attached {
    feed: Arc<Feed>,
    number: u64,
}

impl Attached {
    /// Takes what has come.
    pub(super) fn take(&self) -> Taken {
        let mut state = lock(&self.feed.state);
        if state.reader != Some(self.number) {
            return Taken::End;
        }
        let taken = if state.overflowed {
            state.overflowed = false;
            Taken::SeeLog
        } else if !state.queue.is_empty() {
            Taken::Events(std::mem::take(&mut state.queue))
        } else if state.finished || state.hung_up {
            Taken::End
        } else {
            Taken::Nothing
        };
        drop(state);
        self.feed.changed.notify_waiters();
        taken
    }

    /// Waits until there is something to take.
    pub(super) async fn changed(&self) {
        self.feed
            .wait_until(|state| {
                state.reader != Some(self.number)
                    || state.overflowed
                    || !state.queue.is_empty()
                    || state.finished
                    || state.hung_up
            })
            .await;
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
        drop(state);
        self.feed.changed.notify_waiters();
    }
}
