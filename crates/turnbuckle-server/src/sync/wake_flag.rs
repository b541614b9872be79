//! Records whether a waker fired, for futures that are polled more often than woken.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Wake, Waker},
};

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
        // The waker is only replaced as a whole, so a poisoned lock has a valid value.
        self.task_waker
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

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
    fn it_wakes_the_task_that_polled_last() {
        let (first, first_waker) = counting_waker();
        let (second, second_waker) = counting_waker();
        let mut flag = WakeFlag::new();
        flag.take_woken(&Context::from_waker(&first_waker));
        flag.take_woken(&Context::from_waker(&second_waker));

        flag.context().waker().wake_by_ref();

        let wakes = |counter: &CountingWaker| counter.0.load(Ordering::SeqCst);
        assert_eq!((wakes(&first), wakes(&second)), (0, 1));
    }
}
