//! Timeouts for request headers: the first one of a connection, and each that follows.
//!
//! Every request sets a new deadline, and almost none is reached. So a connection has a single sleep. It is reset only when
//! it elapses before the current deadline, and its waker is registered only once per task.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use hyper::rt::Timer;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::{http::connection::ConnectionActivity, sync::lock};

/// The timer of one HTTP/1.1 connection, for deadlines that only move later.
pub(crate) struct HeaderTimer {
    shared_sleep: Arc<Mutex<Option<SharedSleep>>>,
    activity: Arc<ConnectionActivity>,
    /// Timeout for the first header.
    first_timeout: Duration,
    /// Timeout for all other headers, which is also the one configured in hyper.
    next_timeout: Duration,
    first_started: AtomicBool,
}

impl HeaderTimer {
    pub(crate) fn new(
        activity: Arc<ConnectionActivity>,
        first_timeout: Duration,
        next_timeout: Duration,
    ) -> Self {
        Self {
            shared_sleep: Arc::default(),
            activity,
            first_timeout,
            next_timeout,
            first_started: AtomicBool::new(false),
        }
    }

    /// Marks the connection as idle and returns the deadline for the next header.
    fn start_wait(&self, deadline: Instant) -> Instant {
        let now = deadline.checked_sub(self.next_timeout).unwrap_or(deadline);
        self.activity.mark_idle(now);
        if self.first_started.load(Ordering::Relaxed) {
            return deadline;
        }
        self.first_started.store(true, Ordering::Relaxed);
        now + self.first_timeout
    }
}

/// A sleep, and the waker that is registered with it.
struct SharedSleep {
    sleep: Pin<Box<Sleep>>,
    registered_waker: Option<Waker>,
}

impl SharedSleep {
    fn until(deadline: Instant) -> Self {
        Self {
            sleep: Box::pin(sleep_until(deadline)),
            registered_waker: None,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let is_registered = self
            .registered_waker
            .as_ref()
            .is_some_and(|registered_waker| registered_waker.will_wake(cx.waker()));
        if is_registered && !self.sleep.is_elapsed() {
            return Poll::Pending;
        }
        let polled = self.sleep.as_mut().poll(cx);
        self.registered_waker = polled.is_pending().then(|| cx.waker().clone());
        polled
    }
}

impl Timer for HeaderTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn hyper::rt::Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: std::time::Instant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(HeaderSleep {
            deadline: self.start_wait(deadline.into()),
            shared_sleep: self.shared_sleep.clone(),
        })
    }

    fn now(&self) -> std::time::Instant {
        Instant::now().into_std()
    }
}

/// The wait for one header.
struct HeaderSleep {
    deadline: Instant,
    shared_sleep: Arc<Mutex<Option<SharedSleep>>>,
}

impl hyper::rt::Sleep for HeaderSleep {}

impl Future for HeaderSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut shared_sleep = lock(&self.shared_sleep);
        let shared_sleep = shared_sleep.get_or_insert_with(|| SharedSleep::until(self.deadline));
        loop {
            ready!(shared_sleep.poll(cx));
            if shared_sleep.sleep.deadline() >= self.deadline {
                return Poll::Ready(());
            }
            shared_sleep.sleep.as_mut().reset(self.deadline);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn timer(first: Duration, next: Duration) -> HeaderTimer {
        HeaderTimer::new(
            Arc::new(ConnectionActivity::new(Instant::now())),
            first,
            next,
        )
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_header_has_its_own_timeout() {
        let timer = timer(2 * SECOND, 5 * SECOND);
        let started = Instant::now();

        timer.sleep(5 * SECOND).await;
        assert_eq!(started.elapsed(), 2 * SECOND);
        timer.sleep(5 * SECOND).await;

        assert_eq!(started.elapsed(), 7 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_while_it_waits_for_a_request() {
        let timer = timer(2 * SECOND, 5 * SECOND);
        assert_eq!(timer.activity.idle_since(), Some(0));
        timer.activity.request_started();
        assert_eq!(timer.activity.idle_since(), None);
        tokio::time::advance(3 * SECOND).await;

        let waiting = timer.sleep(5 * SECOND);

        assert_eq!(timer.activity.idle_since(), Some(3000));
        drop(waiting);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_ends_at_its_own_deadline_after_an_earlier_one_was_dropped() {
        let timer = timer(SECOND, SECOND);
        let started = Instant::now();
        let mut first = timer.sleep(2 * SECOND);
        tokio::time::timeout(SECOND, &mut first).await.unwrap_err();
        drop(first);

        timer.sleep(5 * SECOND).await;

        assert_eq!(started.elapsed(), 6 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_moves_to_another_task_wakes_that_task() {
        let timer = timer(SECOND, SECOND);
        let mut waiting = timer.sleep(2 * SECOND);
        tokio::time::timeout(SECOND, &mut waiting)
            .await
            .unwrap_err();
        let started = Instant::now();

        tokio::spawn(waiting).await.unwrap();

        assert_eq!(started.elapsed(), SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_starts_after_the_sleep_elapsed_lasts_its_full_time() {
        let timer = timer(SECOND, SECOND);
        timer.sleep(SECOND).await;
        tokio::time::sleep(7 * SECOND).await;
        let started = Instant::now();

        timer.sleep(3 * SECOND).await;

        assert_eq!(started.elapsed(), 3 * SECOND);
    }
}
