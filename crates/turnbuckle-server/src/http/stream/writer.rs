//! The writing side of a stream of calls: appends events to the log, then passes them to the reader.
//!
//! While the store is unavailable, a connected reader gets events at once. They are kept and appended later, so that they
//! are lost only if the store does not return in time.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::time::{Instant, sleep_until};
use turnbuckle_protocol::RequestId;
use turnbuckle_store::{
    EventBatch, EventId, InstanceId, SessionOwner, StoreError, StreamHead, StreamId,
};

use crate::http::{log_limiter::LogLimiter, session::ActiveSessionGuard, stream::StreamChannel};

/// The first and the longest delay before events are appended again.
const RETRY_DELAY: Duration = Duration::from_millis(100);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(5);

/// Time for which the last events are kept for a store that is unavailable.
const MAX_RETRY_TIME: Duration = Duration::from_secs(60);

/// Maximum number and bytes of events that are kept for a store that is unavailable: what a log keeps by default.
const MAX_KEPT_EVENTS: usize = 1_000;
const MAX_KEPT_BYTES: usize = 1024 * 1024;

/// The number of the first event of a stream, which only gives the client an id to resume from.
const PRIMING_SEQUENCE: u64 = 1;

/// Writes the stream of one POST.
pub(crate) struct CallStreamWriter {
    pub(crate) channel: Arc<StreamChannel>,
    active: ActiveSessionGuard,
    /// The part of the first batch that opens the stream.
    opening: Option<StreamOpening>,
    /// The number of the first event that is not in the log.
    first: u64,
    /// Events that are not in the log.
    unlogged: Vec<Bytes>,
    /// The requests that those events respond to.
    answered: Vec<RequestId>,
    /// Set once no event follows.
    has_ended: bool,
    /// Set while the store is unavailable.
    retry: Option<AppendRetry>,
    /// Set once the stream is complete in the log, or nothing more can be appended.
    is_closed: bool,
}

/// What the log stores about a new stream.
pub(crate) struct StreamOpening {
    pub(crate) owner: SessionOwner,
    /// The requests that the stream will respond to.
    pub(crate) requests: Vec<RequestId>,
}

/// The next attempt to append events that the store did not take.
struct AppendRetry {
    at: Instant,
    delay: Duration,
    give_up_at: Instant,
}

impl CallStreamWriter {
    /// Creates the writer of a new stream, which the first [`flush`](Self::flush) opens.
    pub(crate) fn new(active: ActiveSessionGuard, opening: StreamOpening) -> Self {
        let stream = active.endpoint.stream_ids.next();
        Self {
            channel: StreamChannel::new(stream),
            active,
            opening: Some(opening),
            first: PRIMING_SEQUENCE,
            unlogged: vec![Bytes::new()],
            answered: Vec::new(),
            has_ended: false,
            retry: None,
            is_closed: false,
        }
    }

    /// Creates the writer of a stream that is complete, after it could not be appended.
    pub(crate) fn of_finished(
        active: ActiveSessionGuard,
        opening: StreamOpening,
        start: EventId,
        events: Vec<Bytes>,
        error: &StoreError,
    ) -> Self {
        let mut writer = Self {
            channel: StreamChannel::new(start.stream),
            first: start.sequence,
            unlogged: events,
            has_ended: true,
            ..Self::new(active, opening)
        };
        writer.retry_later(error);
        writer
    }

    /// Returns the id of the first event.
    pub(crate) fn start(&self) -> EventId {
        first_event(self.channel.stream)
    }

    /// Returns whether no event follows those that the writer has.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Returns whether there is nothing left to do.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Returns the time of the next [`flush`](Self::flush) while the store is unavailable.
    pub(crate) fn retry_at(&self) -> Option<Instant> {
        self.retry.as_ref().map(|retry| retry.at)
    }

    /// Adds events for the next [`flush`](Self::flush), and the requests that they respond to.
    pub(crate) fn add(
        &mut self,
        events: impl IntoIterator<Item = Bytes>,
        answered: impl IntoIterator<Item = RequestId>,
    ) {
        self.unlogged.extend(events);
        self.answered.extend(answered);
    }

    /// Marks the stream as complete.
    pub(crate) fn end(&mut self) {
        self.has_ended = true;
    }

    /// Takes the events that could not be appended to a stream that was not opened.
    pub(crate) fn take_events(&mut self) -> impl Iterator<Item = Bytes> + use<> {
        std::mem::take(&mut self.unlogged).into_iter().skip(1)
    }

    /// Appends all events, then passes them to the reader. Fails only if the log is too full for the stream.
    pub(crate) async fn flush(&mut self) -> Result<(), StoreError> {
        if self.is_closed {
            self.unlogged.clear();
            return Ok(());
        }
        if self.retry_at().is_some_and(|at| Instant::now() < at) {
            self.keep_for_later();
            return Ok(());
        }
        if !self.active.endpoint.may_write() {
            self.retry_later(&StoreError::unavailable(
                "this instance could not renew its lease",
            ));
            return Ok(());
        }
        let events = &self.active.endpoint.server.store_ref().events;
        let batch = EventBatch {
            head: self
                .opening
                .as_ref()
                .map(|opening| opening.head(self.active.endpoint.instance_id())),
            first: self.first,
            events: &self.unlogged,
            answered: &self.answered,
            end: self.has_ended,
        };
        let (session_id, stream) = (&self.active.session_id, &self.channel.stream);
        match events.append(session_id, stream, batch).await {
            Ok(()) => self.logged(),
            // Its session has ended, or another instance has ended the stream.
            Err(StoreError::Gone { .. }) => self.close(),
            Err(error) if is_rejected(&error) && self.opening.is_some() && self.retry.is_none() => {
                return Err(error);
            }
            Err(error) => self.retry_later(&error),
        }
        Ok(())
    }

    /// Appends the last events of a stream that has ended when the store is available again.
    pub(crate) async fn append_later(&mut self) {
        while !self.is_closed {
            if let Some(at) = self.retry_at() {
                sleep_until(at).await;
            }
            // The stream is open, so it is not rejected.
            let _ = self.flush().await;
        }
    }

    /// Passes events that are in the log to the reader.
    fn logged(&mut self) {
        if self.opening.take().is_some() && !self.has_ended {
            self.active.session.add_channel(&self.channel);
        }
        self.retry = None;
        self.answered.clear();
        let first = self.first;
        self.first += self.unlogged.len() as u64;
        self.channel
            .push_all((first..).zip(self.unlogged.drain(..)), self.has_ended);
        if self.has_ended {
            self.close();
        }
    }

    fn close(&mut self) {
        self.is_closed = true;
        self.retry = None;
        self.unlogged.clear();
        self.channel.finish();
        self.active.session.remove_channel(self.channel.stream);
    }

    fn retry_later(&mut self, error: &StoreError) {
        static NOT_APPENDED: LogLimiter = LogLimiter::new();
        let now = Instant::now();
        let (delay, give_up_at) = match &self.retry {
            None => {
                if let Some(suppressed) = NOT_APPENDED.try_pass() {
                    tracing::warn!(%error, suppressed, "cannot append events to the log; they are kept and appended later");
                }
                // From now on, a client can resume the stream.
                self.active.session.add_channel(&self.channel);
                (RETRY_DELAY, now + MAX_RETRY_TIME)
            }
            Some(retry) => (
                (retry.delay * 2).min(MAX_RETRY_DELAY),
                // Calls that still run keep the stream alive.
                if self.has_ended {
                    retry.give_up_at
                } else {
                    now + MAX_RETRY_TIME
                },
            ),
        };
        if now >= give_up_at {
            tracing::error!(%error, "cannot append the last events of a stream to the log; only a connected client gets them");
            self.send_unlogged();
            self.close();
            return;
        }
        self.retry = Some(AppendRetry {
            at: now + delay,
            delay,
            give_up_at,
        });
        self.keep_for_later();
    }

    /// Passes events to the reader that are not in the log, and keeps them.
    fn keep_for_later(&mut self) {
        self.send_unlogged();
        if self.has_ended {
            // A connected client has everything. Another one waits for the log.
            self.channel.close_reader();
        }
        let mut bytes: usize = self.unlogged.iter().map(Bytes::len).sum();
        let mut dropped = 0;
        while self.unlogged.len() - dropped > MAX_KEPT_EVENTS
            || (bytes > MAX_KEPT_BYTES && self.unlogged.len() - dropped > 1)
        {
            bytes -= self.unlogged[dropped].len();
            dropped += 1;
        }
        self.unlogged.drain(..dropped);
        // The log has a gap then, and reports it.
        self.first += dropped as u64;
    }

    fn send_unlogged(&self) {
        let events = self.unlogged.iter().cloned();
        self.channel.push_all((self.first..).zip(events), false);
    }
}

impl StreamOpening {
    pub(crate) fn head(&self, writer: InstanceId) -> StreamHead {
        StreamHead {
            writer,
            owner: self.owner.clone(),
            requests: self.requests.clone(),
        }
    }
}

/// Returns whether a store is too full for a stream, rather than unavailable.
fn is_rejected(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Full { .. } | StoreError::TooMany { .. } | StoreError::TooLarge { .. }
    )
}

/// Returns the id of the first event of a stream.
pub(crate) fn first_event(stream: StreamId) -> EventId {
    EventId {
        stream,
        sequence: PRIMING_SEQUENCE,
    }
}
