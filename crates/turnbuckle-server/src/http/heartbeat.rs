//! Signs of life on a stream that has nothing to say.

use std::{
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::seldom::Seldom;

/// Says when a stream has been silent for too long.
///
/// Its timer is not moved for every event, only looked after when it fires: on a busy stream that is once per period.
pub(super) struct Heartbeat {
    period: Duration,
    last: Instant,
    due: Instant,
    timer: Seldom<Sleep>,
}

impl Heartbeat {
    /// Wants a sign of life after each `period` of silence.
    pub(super) fn new(period: Duration) -> Self {
        let last = Instant::now();
        let due = last + period;
        Self {
            period,
            last,
            due,
            timer: Seldom::new(sleep_until(due)),
        }
    }

    /// Notes that something is sent.
    pub(super) fn spoke(&mut self, now: Instant) {
        self.last = now;
    }

    /// Returns what to send when nothing else was sent for a period.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, now: Instant) -> Poll<Bytes> {
        while self.timer.poll(cx, now >= self.due).is_ready() {
            let is_silent = now >= self.last + self.period;
            if is_silent {
                self.last = now;
            }
            self.due = self.last + self.period;
            self.timer.get().reset(self.due);
            if is_silent {
                return Poll::Ready(Bytes::from_static(b": alive\n\n"));
            }
        }
        Poll::Pending
    }
}
