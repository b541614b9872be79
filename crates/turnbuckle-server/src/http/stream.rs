//! Server-sent event streams: the heartbeat of all of them, and the streams of a session, which clients can resume.

mod change_queue;
mod change_reader;
mod channel;
pub(super) mod forwarding;
pub(super) mod get_stream;
mod resumable;
mod writer;

use std::{
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
pub(super) use change_queue::GetStream;
#[cfg(test)]
pub(super) use change_queue::{GetStreamReader, QueueRead};
pub(super) use channel::{
    ChannelReader, ReadResult, ReaderEnd, SequencedEvent, StreamChannel, StreamIdSource,
};
#[cfg(test)]
pub(super) use get_stream::open_stream;
pub(super) use get_stream::{ChangeSender, GetStreams, begin_turn};
use resumable::RETRY_MS;
pub(super) use resumable::{EventSource, ResumableStream, encode_finished};
use tokio::time::{Instant, Sleep, sleep_until};
pub(super) use writer::{CallStreamWriter, StreamOpening, first_event};

use crate::sync::GatedFuture;

/// Number of bytes of events after which a stream writes them out.
pub(super) const MAX_WRITE_BYTES: usize = 32 * 1024;

/// Produces a comment when a stream was idle for a period.
///
/// The timer is not reset for every event but only when it fires, which is once per period on a busy stream.
pub(super) struct Heartbeat {
    pub(super) period: Duration,
    /// Time of the last event, as of the last poll.
    last_sent: Instant,
    sent_since_poll: bool,
    /// Deadline of the timer. The timer is created late, since most streams end before they are idle.
    due: Instant,
    timer: Option<GatedFuture<Sleep>>,
}

impl Heartbeat {
    /// Creates a heartbeat for idle times longer than `period`.
    pub(super) fn new(period: Duration) -> Self {
        let last_sent = Instant::now();
        Self {
            period,
            last_sent,
            sent_since_poll: false,
            due: last_sent + period,
            timer: None,
        }
    }

    /// Records that an event is sent. The time is set by the next [`poll`](Self::poll).
    pub(super) fn reset(&mut self) {
        self.sent_since_poll = true;
    }

    /// Returns the comment to send when the stream was idle for a period.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, now: Instant) -> Poll<Bytes> {
        if std::mem::take(&mut self.sent_since_poll) {
            self.last_sent = now;
        }
        let due = self.due;
        let timer = self
            .timer
            .get_or_insert_with(|| GatedFuture::new(sleep_until(due)));
        while timer.poll(cx, now >= self.due).is_ready() {
            let is_idle = now >= self.last_sent + self.period;
            if is_idle {
                self.last_sent = now;
            }
            self.due = self.last_sent + self.period;
            timer.get_pin_mut().reset(self.due);
            if is_idle {
                return Poll::Ready(Bytes::from_static(b": alive\n\n"));
            }
        }
        Poll::Pending
    }
}
