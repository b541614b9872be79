//! The deadline for request headers: of the first one of a connection, and of each that follows.
//!
//! Every request moves the deadline, and almost none is reached. So a request only records when it started and ended, in
//! the [activity](ConnectionActivity) of its connection, and a single sleep per connection is reset when it elapses before
//! the current deadline.

use std::{
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep};

use super::{ConnectionActivity, MIN_CHECK_INTERVAL};
use crate::sync::GatedFuture;

/// Shortest time between two checks while a request is open, however short the timeout is.
const MIN_BUSY_INTERVAL: Duration = Duration::from_secs(1);

/// The deadline for the next request header of one connection.
pub(crate) struct HeaderDeadline {
    sleep: GatedFuture<Sleep>,
    activity: Arc<ConnectionActivity>,
    /// Deadline for the first header.
    first_deadline: Instant,
    /// Timeout for all other headers.
    next_timeout: Duration,
}

impl HeaderDeadline {
    /// Starts to wait for the first header.
    pub(crate) fn new(
        activity: Arc<ConnectionActivity>,
        first_timeout: Duration,
        next_timeout: Duration,
    ) -> Self {
        Self {
            // After a request, a shorter timeout may apply.
            sleep: GatedFuture::new(sleep(first_timeout.min(next_timeout))),
            activity,
            first_deadline: Instant::now() + first_timeout,
            next_timeout,
        }
    }

    /// Resolves when a header has not been received in time.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.next_timeout < MIN_BUSY_INTERVAL {
            self.end_busy_interval();
        }
        loop {
            let has_elapsed = self.sleep.get_ref().is_elapsed();
            ready!(self.sleep.poll(cx, has_elapsed));
            let now = Instant::now();
            let remaining = self.remaining(now);
            if remaining.is_zero() {
                return Poll::Ready(());
            }
            // The first request may come before its deadline, and the shorter timeout applies after it.
            let interval = if self.activity.had_request() {
                remaining
            } else {
                remaining.min(self.next_timeout)
            };
            let deadline = now + interval.max(MIN_CHECK_INTERVAL);
            self.sleep.get_pin_mut().reset(deadline);
        }
    }

    /// Sets the deadline after a response, for a timeout that is shorter than the interval of checks before it.
    fn end_busy_interval(&mut self) {
        let now = Instant::now();
        if let Some(idle) = self
            .activity
            .idle_for(now)
            .filter(|_| self.activity.had_request())
        {
            let deadline = now + self.next_timeout.saturating_sub(idle);
            self.sleep.get_pin_mut().reset(deadline);
        }
    }

    /// Returns the time until the deadline. While a request is open, it is the shortest time that the next header has.
    fn remaining(&self, now: Instant) -> Duration {
        if !self.activity.had_request() {
            return self.first_deadline.saturating_duration_since(now);
        }
        match self.activity.idle_for(now) {
            Some(idle) => self.next_timeout.saturating_sub(idle),
            None => self.next_timeout.max(MIN_BUSY_INTERVAL),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn deadline(first: Duration, next: Duration) -> HeaderDeadline {
        let activity = Arc::new(ConnectionActivity::new(Instant::now()));
        HeaderDeadline::new(activity, first, next)
    }

    /// Waits for the deadline and returns how long that took.
    async fn wait(deadline: &mut HeaderDeadline) -> Duration {
        let started = Instant::now();
        poll_fn(|cx| deadline.poll(cx)).await;
        started.elapsed()
    }

    /// Waits for a time in which the deadline is not reached.
    async fn pass(deadline: &mut HeaderDeadline, time: Duration) {
        let waiting = tokio::time::timeout(time, wait(deadline)).await;
        assert!(waiting.is_err(), "the deadline was reached");
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_header_has_its_own_timeout() {
        let mut silent = deadline(2 * SECOND, 5 * SECOND);
        let mut used = deadline(2 * SECOND, 5 * SECOND);
        used.activity.request_started();
        used.activity.request_ended();

        assert_eq!(wait(&mut silent).await, 2 * SECOND);
        assert_eq!(wait(&mut used).await, 3 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_shorter_timeout_applies_after_the_first_request() {
        let mut silent = deadline(5 * SECOND, 2 * SECOND);
        let mut used = deadline(5 * SECOND, 2 * SECOND);
        used.activity.request_started();
        used.activity.request_ended();

        assert_eq!(wait(&mut used).await, 2 * SECOND);
        assert_eq!(wait(&mut silent).await, 3 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_shorter_timeout_applies_after_a_late_first_request() {
        let mut deadline = deadline(30 * SECOND, 5 * SECOND);
        pass(&mut deadline, 6 * SECOND).await;
        deadline.activity.request_started();
        deadline.activity.request_ended();

        assert_eq!(wait(&mut deadline).await, 5 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn an_open_request_is_checked_at_most_once_a_second() {
        let mut deadline = deadline(SECOND, Duration::ZERO);
        deadline.activity.request_started();
        let mut polls = 0;
        let waiting = poll_fn(|cx| {
            polls += 1;
            deadline.poll(cx)
        });

        let waiting = tokio::time::timeout(20 * SECOND, waiting).await;

        assert!(waiting.is_err() && polls <= 22, "{polls}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_is_not_limited_and_the_next_header_has_its_full_time() {
        let mut deadline = deadline(SECOND, 5 * SECOND);
        deadline.activity.request_started();
        pass(&mut deadline, 21 * SECOND).await;

        deadline.activity.request_ended();

        assert_eq!(wait(&mut deadline).await, 5 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn each_request_moves_the_deadline() {
        let mut deadline = deadline(SECOND, 5 * SECOND);
        for _ in 0..4 {
            deadline.activity.request_started();
            deadline.activity.request_ended();
            pass(&mut deadline, 4 * SECOND).await;
        }

        assert_eq!(wait(&mut deadline).await, SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_still_sends_a_response_is_not_limited() {
        let mut deadline = deadline(SECOND, 5 * SECOND);
        deadline.activity.request_started();
        deadline.activity.request_ended();
        deadline.activity.set_write_blocked();
        pass(&mut deadline, 20 * SECOND).await;

        deadline.activity.clear_write_blocked(Instant::now());

        assert_eq!(wait(&mut deadline).await, 5 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lingering_close_is_not_limited() {
        let mut deadline = deadline(SECOND, SECOND);
        deadline.activity.request_started();
        deadline.activity.request_linger();
        deadline.activity.request_ended();

        pass(&mut deadline, 20 * SECOND).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_timeout_of_zero_does_not_limit_a_request() {
        let mut deadline = deadline(SECOND, Duration::ZERO);
        deadline.activity.request_started();
        pass(&mut deadline, 5 * SECOND).await;

        deadline.activity.request_ended();

        assert!(wait(&mut deadline).await <= MIN_CHECK_INTERVAL);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_moves_to_another_task_wakes_that_task() {
        let mut deadline = deadline(2 * SECOND, SECOND);
        pass(&mut deadline, SECOND).await;

        let waiting = tokio::spawn(async move { wait(&mut deadline).await });

        assert_eq!(waiting.await.unwrap(), SECOND);
    }
}
