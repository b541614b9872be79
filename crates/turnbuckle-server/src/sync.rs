//! Async primitives that the transports share.

use std::{
    collections::VecDeque,
    pin::{Pin, pin},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use tokio::{sync::Notify, task::coop::has_budget_remaining};

/// Locks a mutex, ignoring poisoning.
///
/// Only for values that stay consistent when a holder of the lock panics.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks a value for reading, ignoring poisoning as [`lock`] does.
pub(crate) fn read<T>(value: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    value.read().unwrap_or_else(PoisonError::into_inner)
}

/// Locks a value for writing, ignoring poisoning as [`lock`] does.
pub(crate) fn write<T>(value: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    value.write().unwrap_or_else(PoisonError::into_inner)
}

/// A one-time shutdown signal.
#[derive(Default)]
pub(crate) struct ShutdownSignal {
    is_triggered: AtomicBool,
    waiters: Notify,
}

impl ShutdownSignal {
    /// Triggers the signal and wakes all waiters.
    pub(crate) fn trigger(&self) {
        self.is_triggered.store(true, Ordering::SeqCst);
        self.waiters.notify_waiters();
    }

    /// Returns whether the signal was triggered.
    pub(crate) fn is_triggered(&self) -> bool {
        self.is_triggered.load(Ordering::SeqCst)
    }

    /// Resolves when the signal is triggered.
    pub(crate) async fn triggered(&self) {
        let mut notified = pin!(self.waiters.notified());
        // Enabled before the check, so that a trigger in between is not missed.
        notified.as_mut().enable();
        if !self.is_triggered() {
            notified.await;
        }
    }
}

/// Wakes a task, and records that it was woken.
///
/// hyper polls a body several times per wake of its connection. The futures inside the body get the waker of this flag
/// instead of that of the task, and need not be polled again before the flag is set.
pub(crate) struct WakeFlag {
    shared: Arc<WakeFlagShared>,
    waker: Waker,
    /// The waker of the task, as last registered.
    task_waker: Option<Waker>,
}

#[derive(Default)]
struct WakeFlagShared {
    woken: AtomicBool,
    /// The waker of the task, once it was polled.
    task_waker: Mutex<Option<Waker>>,
}

impl WakeFlag {
    pub(crate) fn new() -> Self {
        let shared = Arc::<WakeFlagShared>::default();
        let waker = shared.clone().into();
        Self {
            shared,
            waker,
            task_waker: None,
        }
    }

    /// Returns whether the flag was set since the last call, clears it, and registers the waker of `cx`.
    pub(crate) fn take_woken(&mut self, cx: &Context<'_>) -> bool {
        let is_registered = |task_waker: &Waker| task_waker.will_wake(cx.waker());
        if !self.task_waker.as_ref().is_some_and(is_registered) {
            self.task_waker = Some(cx.waker().clone());
            *self.shared.lock() = self.task_waker.clone();
        }
        // Checked after registering: a wake in between is either seen here or wakes the task.
        self.shared.woken.load(Ordering::SeqCst) && self.shared.woken.swap(false, Ordering::SeqCst)
    }

    /// Returns a context with the waker that sets the flag.
    pub(crate) fn context(&self) -> Context<'_> {
        Context::from_waker(&self.waker)
    }
}

impl WakeFlagShared {
    fn lock(&self) -> MutexGuard<'_, Option<Waker>> {
        lock(&self.task_waker)
    }
}

impl Wake for WakeFlagShared {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        let task_waker = self.lock().clone();
        if let Some(task_waker) = task_waker {
            task_waker.wake();
        }
    }
}

/// A future that is polled again only when it may be ready, as indicated by the caller.
///
/// A task that waits for two futures is woken for either and polls both. If one of them is rarely ready, such as a
/// shutdown signal, and a flag shows whether it is, polling it each time wastes work on state that all waiters share.
pub(crate) struct GatedFuture<F> {
    future: Pin<Box<F>>,
    /// The waker that is registered with the future.
    registered_waker: Option<Waker>,
}

impl<F: Future> GatedFuture<F> {
    pub(crate) fn new(future: F) -> Self {
        Self {
            future: Box::pin(future),
            registered_waker: None,
        }
    }

    /// Returns the future.
    pub(crate) fn get_ref(&self) -> &F {
        &self.future
    }

    /// Returns the future for modification.
    pub(crate) fn get_pin_mut(&mut self) -> Pin<&mut F> {
        // A modified future may have dropped its waker.
        self.registered_waker = None;
        self.future.as_mut()
    }

    /// Polls the future if it may be ready, or if the waker of `cx` is not registered.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, may_be_ready: bool) -> Poll<F::Output> {
        let is_registered = |waker: &Waker| waker.will_wake(cx.waker());
        if !may_be_ready && self.registered_waker.as_ref().is_some_and(is_registered) {
            return Poll::Pending;
        }
        // When the coop budget of the task is exhausted, `poll` returns before registering the waker, so do not record it.
        self.registered_waker = has_budget_remaining().then(|| cx.waker().clone());
        self.future.as_mut().poll(cx)
    }
}

/// A FIFO queue. The first element is stored inline, so a queue of one does not allocate.
pub(crate) struct InlineQueue<T> {
    first: Option<T>,
    /// The elements after the first; empty if `first` is `None`.
    rest: VecDeque<T>,
}

impl<T> InlineQueue<T> {
    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(crate) fn push(&mut self, value: T) {
        match &self.first {
            None => self.first = Some(value),
            Some(_) => self.rest.push_back(value),
        }
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        let first = self.first.take()?;
        self.first = self.rest.pop_front();
        Some(first)
    }

    /// Removes all elements: returns the first and moves the others into `rest`, which must be empty.
    pub(crate) fn take_all(&mut self, rest: &mut VecDeque<T>) -> Option<T> {
        let first = self.first.take()?;
        if !self.rest.is_empty() {
            std::mem::swap(&mut self.rest, rest);
        }
        Some(first)
    }

    pub(crate) fn clear(&mut self) {
        self.first = None;
        self.rest.clear();
    }
}

impl<T> Default for InlineQueue<T> {
    fn default() -> Self {
        Self {
            first: None,
            rest: VecDeque::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::poll_fn,
        sync::atomic::{AtomicUsize, Ordering::Relaxed},
        time::Duration,
    };

    use tokio::{
        task::{consume_budget, yield_now},
        time::{Instant, sleep_until, timeout},
    };

    use super::*;

    #[derive(Default)]
    struct CountingWaker(AtomicUsize);

    impl Wake for CountingWaker {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn counting_waker() -> (Arc<CountingWaker>, Waker) {
        let counter = Arc::<CountingWaker>::default();
        (counter.clone(), counter.into())
    }

    #[test]
    fn several_wakes_are_reported_once() {
        let (_, waker) = counting_waker();
        let (mut flag, cx) = (WakeFlag::new(), Context::from_waker(&waker));

        assert!(!flag.take_woken(&cx));
        flag.context().waker().wake_by_ref();
        flag.context().waker().wake_by_ref();
        assert!(flag.take_woken(&cx) && !flag.take_woken(&cx));
    }

    #[test]
    fn a_wake_flag_wakes_the_task_that_polled_last() {
        let (first, first_waker) = counting_waker();
        let (second, second_waker) = counting_waker();
        let mut flag = WakeFlag::new();
        flag.take_woken(&Context::from_waker(&first_waker));
        flag.take_woken(&Context::from_waker(&second_waker));

        flag.context().waker().wake_by_ref();

        let wakes = |counter: &CountingWaker| counter.0.load(Ordering::SeqCst);
        assert_eq!((wakes(&first), wakes(&second)), (0, 1));
    }

    /// A waker that differs from all others.
    struct TestWaker;

    impl Wake for TestWaker {
        fn wake(self: Arc<Self>) {}
    }

    #[test]
    fn a_gated_future_is_polled_for_a_new_waker_and_when_it_may_be_ready() {
        let polls = AtomicUsize::new(0);
        let mut gated = GatedFuture::new(poll_fn(|_| {
            polls.fetch_add(1, Relaxed);
            Poll::<()>::Pending
        }));
        let (one, other) = (
            Waker::from(Arc::new(TestWaker)),
            Waker::from(Arc::new(TestWaker)),
        );
        let mut polls_after = |waker: &Waker, may_be_ready| {
            let polled = gated.poll(&mut Context::from_waker(waker), may_be_ready);
            assert!(polled.is_pending());
            polls.load(Relaxed)
        };

        assert_eq!(polls_after(&one, false), 1);
        assert_eq!(polls_after(&one, false), 1);
        assert_eq!(polls_after(&one, true), 2);
        assert_eq!(polls_after(&other, false), 3);
        assert_eq!(polls_after(&one, false), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_first_polled_without_coop_budget_still_fires() {
        let due = Instant::now() + Duration::from_secs(1);
        let mut gated = GatedFuture::new(sleep_until(due));
        poll_fn(|cx| {
            while has_budget_remaining() {
                assert!(pin!(consume_budget()).poll(cx).is_ready());
            }
            assert!(gated.poll(cx, false).is_pending());
            Poll::Ready(())
        })
        .await;
        yield_now().await;

        let fired = poll_fn(|cx| gated.poll(cx, Instant::now() >= due));

        assert!(timeout(Duration::from_secs(2), fired).await.is_ok());
        assert_eq!(Instant::now(), due);
    }

    fn queue(numbers: impl IntoIterator<Item = u8>) -> InlineQueue<u8> {
        let mut queue = InlineQueue::default();
        numbers.into_iter().for_each(|number| queue.push(number));
        queue
    }

    #[test]
    fn values_are_popped_in_order() {
        let mut queue = queue([1, 2, 3]);

        assert_eq!((queue.pop(), queue.len()), (Some(1), 2));
        queue.push(4);
        let remaining: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();

        assert_eq!(remaining, [2, 3, 4]);
        assert!(queue.is_empty());
    }

    #[test]
    fn take_all_returns_the_first_and_moves_the_rest() {
        for count in 0..4 {
            let (mut queue, mut rest) = (queue(1..=count), VecDeque::new());

            let first = queue.take_all(&mut rest);

            assert_eq!(first, (count > 0).then_some(1));
            assert!(rest.into_iter().eq(2..=count), "{count}");
            assert!(queue.is_empty());
        }
    }

    #[test]
    fn clear_removes_every_value() {
        let mut queue = queue([1, 2, 3]);

        queue.clear();

        assert_eq!((queue.len(), queue.pop()), (0, None));
    }
}
