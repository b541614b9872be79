//! What a running call sends before its answer: progress, log messages, questions.
//!
//! No channel and no task: whoever drives the call takes messages from here after each poll of the handler.

use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;

/// Messages that may wait unsent before a sending handler has to wait too.
const HIGH_WATER: usize = 64;

/// The queue between a handler and whoever drives it.
#[derive(Default)]
pub(crate) struct Outbox {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Bytes>,
    driver: Option<Waker>,
    /// Whether the driver runs the handler just now, and takes what it says without being woken.
    attended: bool,
    /// Whoever polls the handler, where that is not the driver.
    inside: Option<Waker>,
    senders: Vec<Waker>,
    cancelled: bool,
    hangs_up: bool,
    closed: bool,
}

impl State {
    fn wait(&mut self, cx: &Context<'_>) {
        let known = self.senders.iter().any(|waker| waker.will_wake(cx.waker()));
        if !known {
            self.senders.push(cx.waker().clone());
        }
    }
}

impl Outbox {
    /// Queues a message and wakes the driver. After [`close`](Self::close) it is dropped.
    pub(crate) fn push(&self, message: Bytes) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        state.queue.push_back(message);
        let driver = if state.attended {
            None
        } else {
            state.driver.take()
        };
        drop(state);
        if let Some(driver) = driver {
            driver.wake();
        }
    }

    /// Waits until a slow reader has taken enough of what was sent.
    pub(crate) async fn flushed(&self) {
        poll_fn(|cx| {
            let mut state = self.lock();
            if state.closed || state.queue.len() < HIGH_WATER {
                return Poll::Ready(());
            }
            state.wait(cx);
            Poll::Pending
        })
        .await;
    }

    /// Waits until nothing can be sent any more, because the call is over.
    pub(crate) async fn closed(&self) {
        poll_fn(|cx| {
            let mut state = self.lock();
            if state.closed {
                return Poll::Ready(());
            }
            state.wait(cx);
            Poll::Pending
        })
        .await;
    }

    /// Takes the oldest message. Where there is none, the driver is woken for the next.
    pub(crate) fn pop(&self) -> Option<Bytes> {
        let mut state = self.lock();
        let Some(message) = state.queue.pop_front() else {
            state.attended = false;
            return None;
        };
        let senders = if state.queue.len() < HIGH_WATER {
            std::mem::take(&mut state.senders)
        } else {
            Vec::new()
        };
        drop(state);
        senders.into_iter().for_each(Waker::wake);
        Some(message)
    }

    /// Says whether nothing waits to be taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().queue.is_empty()
    }

    /// Remembers whom to wake for a cancellation and, once [`pop`](Self::pop) found nothing, for the next message.
    pub(crate) fn watch(&self, cx: &Context<'_>) {
        let mut state = self.lock();
        state.attended = true;
        match &mut state.driver {
            Some(driver) => driver.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
    }

    /// Remembers who polls the handler, if it is someone else than the driver.
    pub(crate) fn watch_inside(&self, cx: &Context<'_>) {
        let mut state = self.lock();
        let driver = state.driver.as_ref();
        if !driver.is_some_and(|driver| driver.will_wake(cx.waker())) {
            state.inside = Some(cx.waker().clone());
        }
    }

    /// Wakes the driver, so that it looks at the call again.
    pub(crate) fn wake(&self) {
        let mut state = self.lock();
        let wakers = [state.driver.take(), state.inside.take()];
        drop(state);
        wakers.into_iter().flatten().for_each(Waker::wake);
    }

    /// Asks the driver to drop the handler.
    pub(crate) fn cancel(&self) {
        self.lock().cancelled = true;
        self.wake();
    }

    /// Says whether [`cancel`](Self::cancel) was called.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.lock().cancelled
    }

    /// Asks the driver to end the connection, and to go on without it.
    pub(crate) fn hang_up(&self) {
        self.lock().hangs_up = true;
        self.wake();
    }

    /// Says whether [`hang_up`](Self::hang_up) was called since the last time.
    pub(crate) fn takes_hang_up(&self) -> bool {
        std::mem::take(&mut self.lock().hangs_up)
    }

    /// Says whether nothing can be sent any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Drops whatever is sent from now on: nothing may follow the answer.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let senders = std::mem::take(&mut state.senders);
        drop(state);
        senders.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic while the lock is held leaves a valid queue behind.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
