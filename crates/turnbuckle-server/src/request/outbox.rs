//! Messages that a running request sends before its response: progress, log messages, client requests.
//!
//! Without a channel or task: the driver of the request takes messages after each poll of the handler.

use std::{
    future::poll_fn,
    sync::{Mutex, MutexGuard},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;

pub(crate) use super::relayed_queue::{RelayedKind, RelayedQueue};
use crate::sync::{InlineQueue, lock};

/// Queued messages above which a sending handler waits.
const HIGH_WATER: usize = 64;

/// The queue between a handler and its driver.
#[derive(Default)]
pub(crate) struct Outbox {
    state: Mutex<OutboxState>,
}

#[derive(Default)]
struct OutboxState {
    queue: InlineQueue<Bytes>,
    /// Notifications of a relay, which are sent first and may be dropped. Boxed because it is rare.
    relayed: Option<Box<RelayedQueue>>,
    /// Waker of the driver, while it waits.
    driver: Option<Waker>,
    /// True if the driver was woken while it was not waiting.
    missed_wake: bool,
    /// Waker of the task that polls the handler, if that is not the driver.
    handler_waker: Option<Waker>,
    senders: Vec<Waker>,
    cancelled: bool,
    stream_close_requested: bool,
    closed: bool,
}

/// An event for the driver.
pub(crate) enum OutboxEvent {
    /// The oldest message.
    Message(Bytes),
    /// The handler should be dropped; no messages are left.
    Cancelled,
    Empty,
}

impl OutboxState {
    /// Takes the next event, and the senders that now have room.
    fn take(&mut self) -> (OutboxEvent, Vec<Waker>) {
        if let Some((_, message)) = self.relayed.as_mut().and_then(|relayed| relayed.pop()) {
            return (OutboxEvent::Message(message), Vec::new());
        }
        match self.queue.pop() {
            Some(message) if self.queue.len() < HIGH_WATER => (
                OutboxEvent::Message(message),
                std::mem::take(&mut self.senders),
            ),
            Some(message) => (OutboxEvent::Message(message), Vec::new()),
            None if self.cancelled => (OutboxEvent::Cancelled, Vec::new()),
            None => (OutboxEvent::Empty, Vec::new()),
        }
    }

    fn register_sender(&mut self, cx: &Context<'_>) {
        let is_registered = self.senders.iter().any(|waker| waker.will_wake(cx.waker()));
        if !is_registered {
            self.senders.push(cx.waker().clone());
        }
    }
}

impl Outbox {
    /// Queues a message and wakes the driver. Dropped after [`close`](Self::close).
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

    /// Queues a notification of a relay, which cannot wait for the client: of too many, some are dropped.
    pub(crate) fn push_relayed(&self, kind: RelayedKind, message: Bytes) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        state.relayed.get_or_insert_default().push(kind, message);
        let driver = state.driver.take();
        drop(state);
        if let Some(driver) = driver {
            driver.wake();
        }
    }

    /// Waits until the queue has room.
    pub(crate) async fn wait_for_room(&self) {
        poll_fn(|cx| {
            let mut state = self.lock();
            if state.closed || state.queue.len() < HIGH_WATER {
                return Poll::Ready(());
            }
            state.register_sender(cx);
            Poll::Pending
        })
        .await;
    }

    /// Waits until the outbox is closed.
    pub(crate) async fn closed(&self) {
        poll_fn(|cx| {
            let mut state = self.lock();
            if state.closed {
                return Poll::Ready(());
            }
            state.register_sender(cx);
            Poll::Pending
        })
        .await;
    }

    /// Called before polling the handler: returns the next event, and clears the driver's waker.
    pub(crate) fn begin_poll(&self) -> OutboxEvent {
        let mut state = self.lock();
        state.driver = None;
        state.missed_wake = false;
        let (found, senders) = state.take();
        drop(state);
        senders.into_iter().for_each(Waker::wake);
        found
    }

    /// Called while the handler is pending: returns the next event, or registers the driver's waker.
    pub(crate) fn register_driver(&self, cx: &Context<'_>) -> OutboxEvent {
        let mut state = self.lock();
        let (found, mut wakers) = state.take();
        if let OutboxEvent::Empty = found {
            let driver = cx.waker().clone();
            if std::mem::take(&mut state.missed_wake) {
                wakers.push(driver);
            } else {
                state.driver = Some(driver);
            }
        }
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        found
    }

    /// Takes the oldest message. If there is none, closes the outbox before the response.
    pub(crate) fn pop_or_close(&self) -> Option<Bytes> {
        let mut state = self.lock();
        let (found, senders) = match state.take() {
            (OutboxEvent::Message(message), senders) => (Some(message), senders),
            _ => {
                state.closed = true;
                (None, std::mem::take(&mut state.senders))
            }
        };
        drop(state);
        senders.into_iter().for_each(Waker::wake);
        found
    }

    /// Returns whether the queue is empty.
    pub(crate) fn is_empty(&self) -> bool {
        let state = self.lock();
        let relayed = state.relayed.as_ref();
        state.queue.is_empty() && relayed.is_none_or(|relayed| relayed.is_empty())
    }

    /// Registers the task that polls the handler, which may not be the driver.
    pub(crate) fn register_handler(&self, cx: &Context<'_>) {
        let mut state = self.lock();
        let handler_waker = state.handler_waker.as_ref();
        if !handler_waker.is_some_and(|handler_waker| handler_waker.will_wake(cx.waker())) {
            state.handler_waker = Some(cx.waker().clone());
        }
    }

    /// Wakes the driver.
    pub(crate) fn wake(&self) {
        let mut state = self.lock();
        let wakers = [state.driver.take(), state.handler_waker.take()];
        state.missed_wake = wakers[0].is_none();
        drop(state);
        wakers.into_iter().flatten().for_each(Waker::wake);
    }

    /// Requests that the driver drops the handler.
    pub(crate) fn cancel(&self) {
        self.lock().cancelled = true;
        self.wake();
    }

    /// Requests that the driver closes the client's stream and continues without it.
    pub(crate) fn close_stream(&self) {
        self.lock().stream_close_requested = true;
        self.wake();
    }

    /// Returns whether [`close_stream`](Self::close_stream) was called since the last check.
    pub(crate) fn take_close_stream(&self) -> bool {
        std::mem::take(&mut self.lock().stream_close_requested)
    }

    /// Returns whether the outbox is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Closes the outbox: later messages are dropped, because the response is last.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let senders = std::mem::take(&mut state.senders);
        drop(state);
        senders.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, OutboxState> {
        // A panic cannot leave the queue in an invalid state.
        lock(&self.state)
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
    struct CountingWaker(AtomicUsize);

    impl Wake for CountingWaker {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Waits like a driver, and returns how often it was woken after `then`.
    fn woken(outbox: &Outbox, then: impl FnOnce(&Outbox)) -> usize {
        let alarm = Arc::new(CountingWaker::default());
        let waker = alarm.clone().into();
        let found = outbox.register_driver(&Context::from_waker(&waker));
        assert!(matches!(found, OutboxEvent::Empty));
        then(outbox);
        alarm.0.load(Ordering::SeqCst)
    }

    #[test]
    fn a_waiting_driver_is_woken_by_a_message_a_cancellation_or_an_explicit_wake() {
        let outbox = Outbox::default();

        assert_eq!(woken(&outbox, |_| {}), 0);
        assert_eq!(woken(&outbox, |outbox| outbox.push("1".into())), 1);
        assert!(matches!(outbox.begin_poll(), OutboxEvent::Message(message) if message == "1"));
        assert_eq!(woken(&outbox, Outbox::close_stream), 1);
        assert_eq!(woken(&outbox, Outbox::wake), 1);
        assert_eq!(woken(&outbox, Outbox::cancel), 1);
        assert!(matches!(outbox.begin_poll(), OutboxEvent::Cancelled));
    }

    #[test]
    fn events_during_a_handler_poll_are_found_afterwards() {
        let outbox = Outbox::default();

        assert!(matches!(outbox.begin_poll(), OutboxEvent::Empty));
        outbox.wake();
        assert_eq!(woken(&outbox, |_| {}), 1, "called while it ran");

        assert!(matches!(outbox.begin_poll(), OutboxEvent::Empty));
        outbox.push("1".into());
        outbox.cancel();
        let waker = Waker::noop();
        let cx = Context::from_waker(waker);
        assert!(
            matches!(outbox.register_driver(&cx), OutboxEvent::Message(message) if message == "1")
        );
        assert!(matches!(
            outbox.register_driver(&cx),
            OutboxEvent::Cancelled
        ));
    }

    #[test]
    fn a_wake_seen_by_begin_poll_is_not_repeated() {
        let outbox = Outbox::default();
        outbox.wake();

        assert!(matches!(outbox.begin_poll(), OutboxEvent::Empty));

        assert_eq!(woken(&outbox, |_| {}), 0);
    }

    #[test]
    fn no_message_follows_the_response() {
        let outbox = Outbox::default();
        outbox.push("1".into());

        assert_eq!(outbox.pop_or_close(), Some("1".into()));
        assert_eq!(outbox.pop_or_close(), None);
        outbox.push("2".into());

        assert!(outbox.is_closed() && outbox.is_empty());
    }
}
