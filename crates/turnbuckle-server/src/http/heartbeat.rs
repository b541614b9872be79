//! Signs of life on a stream that has nothing to say.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::{Instant, Sleep, sleep};

/// Says when a stream has been silent for too long.
///
/// Its timer is not moved for every event, only looked after when it fires: on a busy stream that is once per period.
pub(super) struct Heartbeat {
    period: Duration,
    last: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Heartbeat {
    /// Wants a sign of life after each `period` of silence.
    pub(super) fn new(period: Duration) -> Self {
        Self {
            period,
            last: Instant::now(),
            timer: Box::pin(sleep(period)),
        }
    }

    /// Notes that something is sent.
    pub(super) fn spoke(&mut self) {
        self.last = Instant::now();
    }

    /// Returns what to send when nothing else was sent for a period.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Bytes> {
        while self.timer.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            let is_silent = now >= self.last + self.period;
            if is_silent {
                self.last = now;
            }
            self.timer.as_mut().reset(self.last + self.period);
            if is_silent {
                return Poll::Ready(Bytes::from_static(b": alive\n\n"));
            }
        }
        Poll::Pending
    }
}
