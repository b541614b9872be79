//! A future that is polled only when it may be ready.

use std::{
    pin::Pin,
    task::{Context, Poll, Waker},
};

use tokio::task::coop::has_budget_remaining;

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

    /// A waker that differs from all others.
    struct TestWaker;

    impl Wake for TestWaker {
        fn wake(self: Arc<Self>) {}
    }

    #[test]
    fn it_is_polled_for_a_new_waker_and_when_it_may_be_ready() {
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
}
