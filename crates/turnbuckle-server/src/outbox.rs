//! What a running call sends before its answer: progress, log messages, questions.
//!
//! No channel and no task: whoever drives the call takes messages from here after each poll of the handler.

use std::{
    future::poll_fn,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;

use crate::short_queue::ShortQueue;

/// Messages that may wait unsent before a sending handler has to wait too.
const HIGH_WATER: usize = 64;

/// The queue between a handler and whoever drives it.
#[derive(Default)]
pub(crate) struct Outbox {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    queue: ShortQueue<Bytes>,
    /// Whom to wake, while the driver waits.
    driver: Option<Waker>,
    /// Whether the driver was to be woken while it did not wait.
    woken: bool,
    /// Whoever polls the handler, where that is not the driver.
    inside: Option<Waker>,
    senders: Vec<Waker>,
    cancelled: bool,
    hangs_up: bool,
    closed: bool,
}

/// What a driver finds.
pub(crate) enum Found {
    /// The oldest message.
    Message(Bytes),
    /// No message, and the handler is to be dropped.
    Cancelled,
    Nothing,
}

impl State {
    /// Takes what there is, and the senders that it makes room for.
    fn take(&mut self) -> (Found, Vec<Waker>) {
        match self.queue.pop() {
            Some(message) if self.queue.len() < HIGH_WATER => {
                (Found::Message(message), std::mem::take(&mut self.senders))
            }
            Some(message) => (Found::Message(message), Vec::new()),
            None if self.cancelled => (Found::Cancelled, Vec::new()),
            None => (Found::Nothing, Vec::new()),
        }
    }

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
        state.queue.push(message);
        let driver = state.driver.take();
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

    /// The driver is about to run the handler: it takes what is there first, and nobody needs to wake it meanwhile.
    pub(crate) fn attend(&self) -> Found {
        let mut state = self.lock();
        state.driver = None;
        state.woken = false;
        let (found, senders) = state.take();
        drop(state);
        senders.into_iter().for_each(Waker::wake);
        found
    }

    /// The handler waits, and so does the driver: it is woken for whatever comes next, if nothing has come already.
    pub(crate) fn watch(&self, cx: &Context<'_>) -> Found {
        let mut state = self.lock();
        let (found, mut wakers) = state.take();
        if let Found::Nothing = found {
            let driver = cx.waker().clone();
            match std::mem::take(&mut state.woken) {
                true => wakers.push(driver),
                false => state.driver = Some(driver),
            }
        }
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        found
    }

    /// Takes the oldest message. Where there is none, nothing can be sent any more: the answer follows.
    pub(crate) fn pop_or_close(&self) -> Option<Bytes> {
        let mut state = self.lock();
        let (found, senders) = match state.take() {
            (Found::Message(message), senders) => (Some(message), senders),
            _ => {
                state.closed = true;
                (None, std::mem::take(&mut state.senders))
            }
        };
        drop(state);
        senders.into_iter().for_each(Waker::wake);
        found
    }

    /// Says whether nothing waits to be taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().queue.is_empty()
    }

    /// Remembers who polls the handler: it may be someone else than the driver.
    pub(crate) fn watch_inside(&self, cx: &Context<'_>) {
        let mut state = self.lock();
        let inside = state.inside.as_ref();
        if !inside.is_some_and(|inside| inside.will_wake(cx.waker())) {
            state.inside = Some(cx.waker().clone());
        }
    }

    /// Wakes the driver, so that it looks at the call again.
    pub(crate) fn wake(&self) {
        let mut state = self.lock();
        let wakers = [state.driver.take(), state.inside.take()];
        state.woken = wakers[0].is_none();
        drop(state);
        wakers.into_iter().flatten().for_each(Waker::wake);
    }

    /// Asks the driver to drop the handler.
    pub(crate) fn cancel(&self) {
        self.lock().cancelled = true;
        self.wake();
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

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
        task::Wake,
    };

    use super::*;

    #[derive(Default)]
    struct Alarm(AtomicUsize);

    impl Wake for Alarm {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Waits as a driver does, and says how often it was woken when `then` is done.
    fn woken(outbox: &Outbox, then: impl FnOnce(&Outbox)) -> usize {
        let alarm = Arc::new(Alarm::default());
        let waker = alarm.clone().into();
        let found = outbox.watch(&Context::from_waker(&waker));
        assert!(matches!(found, Found::Nothing));
        then(outbox);
        alarm.0.load(Ordering::SeqCst)
    }

    #[test]
    fn a_driver_that_waits_is_woken_by_a_message_a_cancellation_and_whoever_calls() {
        let outbox = Outbox::default();

        assert_eq!(woken(&outbox, |_| {}), 0);
        assert_eq!(woken(&outbox, |outbox| outbox.push("1".into())), 1);
        assert!(matches!(outbox.attend(), Found::Message(message) if message == "1"));
        assert_eq!(woken(&outbox, Outbox::hang_up), 1);
        assert_eq!(woken(&outbox, Outbox::wake), 1);
        assert_eq!(woken(&outbox, Outbox::cancel), 1);
        assert!(matches!(outbox.attend(), Found::Cancelled));
    }

    #[test]
    fn what_happens_while_the_handler_runs_is_found_when_it_waits() {
        let outbox = Outbox::default();

        assert!(matches!(outbox.attend(), Found::Nothing));
        outbox.wake();
        assert_eq!(woken(&outbox, |_| {}), 1, "called while it ran");

        assert!(matches!(outbox.attend(), Found::Nothing));
        outbox.push("1".into());
        outbox.cancel();
        let waker = Waker::noop();
        let cx = Context::from_waker(waker);
        assert!(matches!(outbox.watch(&cx), Found::Message(message) if message == "1"));
        assert!(matches!(outbox.watch(&cx), Found::Cancelled));
    }

    #[test]
    fn a_driver_that_looks_at_the_call_needs_no_other_call() {
        let outbox = Outbox::default();
        outbox.wake();

        assert!(matches!(outbox.attend(), Found::Nothing));

        assert_eq!(woken(&outbox, |_| {}), 0);
    }

    #[test]
    fn nothing_follows_the_answer() {
        let outbox = Outbox::default();
        outbox.push("1".into());

        assert_eq!(outbox.pop_or_close(), Some("1".into()));
        assert_eq!(outbox.pop_or_close(), None);
        outbox.push("2".into());

        assert!(outbox.is_closed() && outbox.is_empty());
    }
}
