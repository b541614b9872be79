//! Waiting for what seldom happens, beside what often does.

use std::{
    pin::Pin,
    task::{Context, Poll, Waker},
};

use tokio::task::coop::has_budget_remaining;

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
        // A task that has done enough for now is sent away before the future has seen whom to wake, and comes back soon.
        self.waker = has_budget_remaining().then(|| cx.waker().clone());
        self.future.as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::poll_fn,
        pin::pin,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering::Relaxed},
        },
        task::Wake,
        time::Duration,
    };

    use tokio::{
        task::{consume_budget, yield_now},
        time::{Instant, sleep_until, timeout},
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

    #[tokio::test(start_paused = true)]
    async fn a_timer_that_was_first_asked_by_a_tired_task_still_fires() {
        let due = Instant::now() + Duration::from_secs(1);
        let mut seldom = Seldom::new(sleep_until(due));
        poll_fn(|cx| {
            while has_budget_remaining() {
                assert!(pin!(consume_budget()).poll(cx).is_ready());
            }
            assert!(seldom.poll(cx, false).is_pending());
            Poll::Ready(())
        })
        .await;
        yield_now().await;

        let fired = poll_fn(|cx| seldom.poll(cx, Instant::now() >= due));

        assert!(timeout(Duration::from_secs(2), fired).await.is_ok());
        assert_eq!(Instant::now(), due);
    }
}
