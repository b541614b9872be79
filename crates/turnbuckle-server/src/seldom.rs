//! Waiting for what seldom happens, beside what often does.

use std::{
    pin::Pin,
    task::{Context, Poll, Waker},
};

/// A future that is polled again only when it may be ready.
///
/// Whoever waits for two things is woken for either and polls both. Where one of them is rare, as the end of a server is,
/// and a glance tells whether it has happened, polling it each time is wasted work on state that all waiters share.
pub(crate) struct Seldom<F> {
    future: Pin<Box<F>>,
    /// Whom the future wakes.
    waker: Option<Waker>,
}

impl<F: Future> Seldom<F> {
    pub(crate) fn new(future: F) -> Self {
        Self {
            future: Box::pin(future),
            waker: None,
        }
    }

    /// The future, to be changed in its place.
    pub(crate) fn get(&mut self) -> Pin<&mut F> {
        // Changed, it may have forgotten whom to wake.
        self.waker = None;
        self.future.as_mut()
    }

    /// Polls it if it may be ready, or has yet to learn whom to wake.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, may_be_ready: bool) -> Poll<F::Output> {
        let knows = |waker: &Waker| waker.will_wake(cx.waker());
        if !may_be_ready && self.waker.as_ref().is_some_and(knows) {
            return Poll::Pending;
        }
        self.waker = Some(cx.waker().clone());
        self.future.as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::poll_fn,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering::Relaxed},
        },
        task::Wake,
    };

    use super::*;

    /// A waker unlike any other.
    struct Someone;

    impl Wake for Someone {
        fn wake(self: Arc<Self>) {}
    }

    #[test]
    fn it_is_polled_for_a_new_waker_and_when_it_may_be_ready() {
        let polls = AtomicUsize::new(0);
        let mut seldom = Seldom::new(poll_fn(|_| {
            polls.fetch_add(1, Relaxed);
            Poll::<()>::Pending
        }));
        let (one, other) = (
            Waker::from(Arc::new(Someone)),
            Waker::from(Arc::new(Someone)),
        );
        let mut polls_after = |waker: &Waker, may_be_ready| {
            let polled = seldom.poll(&mut Context::from_waker(waker), may_be_ready);
            assert!(polled.is_pending());
            polls.load(Relaxed)
        };

        assert_eq!(polls_after(&one, false), 1);
        assert_eq!(polls_after(&one, false), 1);
        assert_eq!(polls_after(&one, true), 2);
        assert_eq!(polls_after(&other, false), 3);
        assert_eq!(polls_after(&one, false), 4);
    }
}
