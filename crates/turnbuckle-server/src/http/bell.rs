//! Knowing whether anything happened, where one is asked more often than woken.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Wake, Waker},
};

/// Wakes a task, and remembers that it was rung.
///
/// An HTTP library asks a body several times each time its connection is woken. What waits inside the body is given this
/// bell in place of the task's own waker, and need not be asked again before it has rung.
pub(super) struct Bell {
    wire: Arc<Wire>,
    waker: Waker,
    /// Whom it wakes.
    sleeper: Option<Waker>,
}

#[derive(Default)]
struct Wire {
    rang: AtomicBool,
    /// Whom to wake, once somebody has asked.
    sleeper: Mutex<Option<Waker>>,
}

impl Bell {
    pub(super) fn new() -> Self {
        let wire = Arc::<Wire>::default();
        let waker = wire.clone().into();
        Self {
            wire,
            waker,
            sleeper: None,
        }
    }

    /// Says whether it has rung since it was asked last, and wakes `cx` when it rings next.
    pub(super) fn rang(&mut self, cx: &Context<'_>) -> bool {
        let knows = |sleeper: &Waker| sleeper.will_wake(cx.waker());
        if !self.sleeper.as_ref().is_some_and(knows) {
            self.sleeper = Some(cx.waker().clone());
            *self.wire.lock() = self.sleeper.clone();
        }
        // Only now: what rings in between is either seen here or wakes.
        self.wire.rang.load(Ordering::SeqCst) && self.wire.rang.swap(false, Ordering::SeqCst)
    }

    /// What rings it.
    pub(super) fn context(&self) -> Context<'_> {
        Context::from_waker(&self.waker)
    }
}

impl Wire {
    fn lock(&self) -> MutexGuard<'_, Option<Waker>> {
        // A waker is put there or taken, so a poisoned lock holds a sound value.
        self.sleeper.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Wire {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rang.store(true, Ordering::SeqCst);
        let sleeper = self.lock().clone();
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Sleeper(AtomicUsize);

    impl Wake for Sleeper {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn sleeper() -> (Arc<Sleeper>, Waker) {
        let sleeper = Arc::<Sleeper>::default();
        (sleeper.clone(), sleeper.into())
    }

    #[test]
    fn it_rang_once_for_all_that_came_since_it_was_asked() {
        let (_, waker) = sleeper();
        let (mut bell, cx) = (Bell::new(), Context::from_waker(&waker));

        assert!(!bell.rang(&cx));
        bell.context().waker().wake_by_ref();
        bell.context().waker().wake_by_ref();
        assert!(bell.rang(&cx) && !bell.rang(&cx));
    }

    #[test]
    fn it_wakes_whoever_asked_last() {
        let (first, first_waker) = sleeper();
        let (second, second_waker) = sleeper();
        let mut bell = Bell::new();
        bell.rang(&Context::from_waker(&first_waker));
        bell.rang(&Context::from_waker(&second_waker));

        bell.context().waker().wake_by_ref();

        let woken = |sleeper: &Sleeper| sleeper.0.load(Ordering::SeqCst);
        assert_eq!((woken(&first), woken(&second)), (0, 1));
    }
}
