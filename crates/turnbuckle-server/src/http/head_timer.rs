//! How long a connection waits for the head of a request: the first one, and each that follows.
//!
//! Every request sets a new deadline, and hardly any is ever reached. So a connection has one sleep, it is moved only
//! when it is over and the deadline has moved on meanwhile, and it is told once whom to wake.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use hyper::rt::Timer;
use tokio::time::{Instant, Sleep, sleep_until};

use super::activity::Activity;

/// The timer of one HTTP/1.1 connection, for deadlines that only move later.
pub(super) struct HeadTimer {
    alarm: Arc<Mutex<Option<Alarm>>>,
    activity: Arc<Activity>,
    /// How long the first head may take.
    first: Duration,
    /// How long any other may take, which is what hyper is told.
    next: Duration,
    had_first: AtomicBool,
}

impl HeadTimer {
    pub(super) fn new(activity: Arc<Activity>, first: Duration, next: Duration) -> Self {
        Self {
            alarm: Arc::default(),
            activity,
            first,
            next,
            had_first: AtomicBool::new(false),
        }
    }

    /// Notes that the connection waits from now on, and returns until when.
    fn begin(&self, deadline: Instant) -> Instant {
        let now = deadline.checked_sub(self.next).unwrap_or(deadline);
        self.activity.wait(now);
        if self.had_first.load(Ordering::Relaxed) {
            return deadline;
        }
        self.had_first.store(true, Ordering::Relaxed);
        now + self.first
    }
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
            deadline: self.begin(deadline.into()),
            alarm: self.alarm.clone(),
        })
    }

    fn now(&self) -> std::time::Instant {
        Instant::now().into_std()
    }
}

/// A wait for one head.
struct Waiting {
    deadline: Instant,
    alarm: Arc<Mutex<Option<Alarm>>>,
}

impl hyper::rt::Sleep for Waiting {}

impl Future for Waiting {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut alarm = self.alarm.lock().unwrap_or_else(PoisonError::into_inner);
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

    fn timer(first: Duration, next: Duration) -> HeadTimer {
        HeadTimer::new(Arc::new(Activity::new(Instant::now())), first, next)
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_head_has_a_time_of_its_own() {
        let timer = timer(2 * SECOND, 5 * SECOND);
        let began = Instant::now();

        timer.sleep(5 * SECOND).await;
        assert_eq!(began.elapsed(), 2 * SECOND);
        timer.sleep(5 * SECOND).await;

        assert_eq!(began.elapsed(), 7 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_from_when_it_waits_until_a_request_comes() {
        let timer = timer(2 * SECOND, 5 * SECOND);
        assert_eq!(timer.activity.idle_since(), Some(0));
        timer.activity.begin();
        assert_eq!(timer.activity.idle_since(), None);
        tokio::time::advance(3 * SECOND).await;

        let waiting = timer.sleep(5 * SECOND);

        assert_eq!(timer.activity.idle_since(), Some(3000));
        drop(waiting);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_is_over_at_its_own_deadline_although_an_earlier_one_was_given_up() {
        let timer = timer(SECOND, SECOND);
        let began = Instant::now();
        let mut first = timer.sleep(2 * SECOND);
        tokio::time::timeout(SECOND, &mut first).await.unwrap_err();
        drop(first);

        timer.sleep(5 * SECOND).await;

        assert_eq!(began.elapsed(), 6 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_moves_to_another_task_wakes_that_one() {
        let timer = timer(SECOND, SECOND);
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
        let timer = timer(SECOND, SECOND);
        timer.sleep(SECOND).await;
        tokio::time::sleep(7 * SECOND).await;
        let began = Instant::now();

        timer.sleep(3 * SECOND).await;

        assert_eq!(began.elapsed(), 3 * SECOND);
    }
}
