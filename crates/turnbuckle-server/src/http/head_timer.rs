//! How long a connection waits for the head of a request.
//!
//! Every request sets a new deadline, and hardly any is ever reached. So a connection has one sleep, it is moved only
//! when it is over and the deadline has moved on meanwhile, and it is told once whom to wake.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use hyper::rt::Timer;
use tokio::time::{Instant, Sleep, sleep_until};

/// The timer of one HTTP/1.1 connection, for deadlines that only move later.
#[derive(Clone, Default)]
pub(super) struct HeadTimer {
    alarm: Arc<Mutex<Option<Alarm>>>,
}

/// A sleep, and whom it wakes when it is over.
struct Alarm {
    sleep: Pin<Box<Sleep>>,
    wakes: Option<Waker>,
}

impl Alarm {
    fn at(deadline: Instant) -> Self {
        Self {
            sleep: Box::pin(sleep_until(deadline)),
            wakes: None,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let is_set = self
            .wakes
            .as_ref()
            .is_some_and(|wakes| wakes.will_wake(cx.waker()));
        if is_set && !self.sleep.is_elapsed() {
            return Poll::Pending;
        }
        let polled = self.sleep.as_mut().poll(cx);
        self.wakes = polled.is_pending().then(|| cx.waker().clone());
        polled
    }
}

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn hyper::rt::Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: std::time::Instant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(Waiting {
            deadline: deadline.into(),
            timer: self.clone(),
        })
    }

    fn now(&self) -> std::time::Instant {
        Instant::now().into_std()
    }
}

/// A wait for one head.
struct Waiting {
    deadline: Instant,
    timer: HeadTimer,
}

impl hyper::rt::Sleep for Waiting {}

impl Future for Waiting {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let alarm = &self.timer.alarm;
        let mut alarm = alarm.lock().unwrap_or_else(PoisonError::into_inner);
        let alarm = alarm.get_or_insert_with(|| Alarm::at(self.deadline));
        loop {
            ready!(alarm.poll(cx));
            if alarm.sleep.deadline() >= self.deadline {
                return Poll::Ready(());
            }
            alarm.sleep.as_mut().reset(self.deadline);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_wait_is_over_at_its_own_deadline_although_an_earlier_one_was_given_up() {
        let timer = HeadTimer::default();
        let began = Instant::now();
        let mut first = timer.sleep(2 * SECOND);
        tokio::time::timeout(SECOND, &mut first).await.unwrap_err();
        drop(first);

        timer.sleep(5 * SECOND).await;

        assert_eq!(began.elapsed(), 6 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_moves_to_another_task_wakes_that_one() {
        let timer = HeadTimer::default();
        let mut waiting = timer.sleep(2 * SECOND);
        tokio::time::timeout(SECOND, &mut waiting)
            .await
            .unwrap_err();
        let began = Instant::now();

        tokio::spawn(waiting).await.unwrap();

        assert_eq!(began.elapsed(), SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_begins_after_the_sleep_is_over_still_takes_its_time() {
        let timer = HeadTimer::default();
        timer.sleep(SECOND).await;
        tokio::time::sleep(7 * SECOND).await;
        let began = Instant::now();

        timer.sleep(3 * SECOND).await;

        assert_eq!(began.elapsed(), 3 * SECOND);
    }
}
