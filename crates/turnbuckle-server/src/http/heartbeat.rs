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
    pub(super) period: Duration,
    /// When something was sent, unless that was since the last look.
    last: Instant,
    has_spoken: bool,
    /// When the timer fires, once there is one: most streams end before they are silent.
    due: Instant,
    timer: Option<Seldom<Sleep>>,
}

impl Heartbeat {
    /// Wants a sign of life after each `period` of silence.
    pub(super) fn new(period: Duration) -> Self {
        let last = Instant::now();
        Self {
            period,
            last,
            has_spoken: false,
            due: last + period,
            timer: None,
        }
    }

    /// Notes that something is sent; when is found out by [`poll`](Self::poll), which follows.
    pub(super) fn spoke(&mut self) {
        self.has_spoken = true;
    }

    /// Returns what to send when nothing else was sent for a period.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, now: Instant) -> Poll<Bytes> {
        if std::mem::take(&mut self.has_spoken) {
            self.last = now;
        }
        let due = self.due;
        let timer = self
            .timer
            .get_or_insert_with(|| Seldom::new(sleep_until(due)));
        while timer.poll(cx, now >= self.due).is_ready() {
            let is_silent = now >= self.last + self.period;
            if is_silent {
                self.last = now;
            }
            self.due = self.last + self.period;
            timer.get().reset(self.due);
            if is_silent {
                return Poll::Ready(Bytes::from_static(b": alive\n\n"));
            }
        }
        Poll::Pending
    }
}
