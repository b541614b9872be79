//! The reading connection of a resumable stream.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::{Instant, Sleep, sleep};
use turnbuckle_protocol::codec::sse;
use turnbuckle_store::{EventId, StoredEvent};

use crate::{
    http::{
        body::SseBody,
        endpoint::InFlightPermit,
        session::ActiveSessionGuard,
        stream::{
            ChannelReader, Heartbeat, MAX_WRITE_BYTES, ReadResult, SequencedEvent,
            forwarding::ForwardedReader,
        },
    },
    request::BoxFuture,
};

/// The SSE `retry` value in milliseconds: how long a client waits before it reconnects.
pub(super) const RETRY_MS: u64 = 1_000;

/// Interval of polling the log of a stream that another process writes.
const LOG_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A resumable stream as read by one connection.
pub(crate) struct ResumableStream {
    active: ActiveSessionGuard,
    source: EventSource,
    /// The id of the last event that was sent.
    last_id: EventId,
    /// The first output, until it was sent.
    prelude: Option<StreamPrelude>,
    /// Events that were read but not sent yet.
    queue: VecDeque<SequencedEvent>,
    /// Set if the log may contain events that are not in the queue.
    must_read_log: bool,
    ended: bool,
    heartbeat: Heartbeat,
    /// Set for streams that do not belong to a running request.
    _permit: Option<InFlightPermit>,
}

/// The first output of a stream.
enum StreamPrelude {
    /// An event with only an id, from which the client can resume.
    PrimingEvent,
    /// A comment, for revisions without priming events.
    Comment,
}

/// The source of new events.
pub(crate) enum EventSource {
    /// The writer of the stream, in this process.
    Channel(ChannelReader),
    /// The log, polled by a timer: the stream is finished, or the store does not tell which process writes it.
    Log(Pin<Box<Sleep>>),
    /// The writer, another instance.
    Forwarded(Box<ForwardedReader>),
}

/// The next step of a stream.
enum ReadStep {
    /// Send these bytes.
    Bytes(Bytes),
    /// Query the store.
    QueryStore,
    /// End the stream.
    End,
}

impl ResumableStream {
    /// Creates a new stream. Its first event is written after `reader` was attached, so the log is not read.
    pub(crate) fn of_new(
        active: ActiveSessionGuard,
        reader: ChannelReader,
        start: EventId,
    ) -> Self {
        Self {
            must_read_log: false,
            ..Self::new(active, EventSource::Channel(reader), start)
        }
    }

    /// Creates a stream of the events after `last_id`.
    pub(crate) fn new(active: ActiveSessionGuard, source: EventSource, last_id: EventId) -> Self {
        let heartbeat = Heartbeat::new(active.endpoint.options.stream_heartbeat);
        Self {
            active,
            source,
            last_id,
            prelude: None,
            queue: VecDeque::new(),
            must_read_log: true,
            ended: false,
            heartbeat,
            _permit: None,
        }
    }

    /// Starts the stream with a priming event if the revision has them, otherwise with a comment.
    pub(crate) fn with_prelude(mut self, sends_priming_event: bool) -> Self {
        self.prelude = Some(StreamPrelude::new(sends_priming_event));
        self
    }

    /// Counts the stream as in flight.
    pub(crate) fn with_permit(mut self, permit: InFlightPermit) -> Self {
        self._permit = Some(permit);
        self
    }

    /// Converts into a response body.
    pub(crate) fn into_body(self) -> impl SseBody {
        ResumableBody::Reading(self)
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<ReadStep> {
        if let Some(prelude) = self.prelude.take() {
            let mut out = Vec::new();
            prelude.write(self.last_id, &mut out);
            return Poll::Ready(ReadStep::Bytes(out.into()));
        }
        loop {
            if let Some(next) = self.queue.pop_front()
                && let Some(bytes) = self.write(next)
            {
                return Poll::Ready(ReadStep::Bytes(bytes));
            }
            if self.ended {
                return Poll::Ready(ReadStep::End);
            }
            if self.must_read_log {
                return Poll::Ready(ReadStep::QueryStore);
            }
            match self.source.poll_read(cx, &mut self.queue) {
                Poll::Ready(ReadResult::Event(first)) => {
                    if let Some(bytes) = self.write(first) {
                        return Poll::Ready(ReadStep::Bytes(bytes));
                    }
                }
                Poll::Ready(ReadResult::ReadLog) => self.must_read_log = true,
                Poll::Ready(ReadResult::End) => self.ended = true,
                Poll::Pending => {
                    let heartbeat = self.heartbeat.poll(cx, Instant::now());
                    return heartbeat.map(ReadStep::Bytes);
                }
            }
        }
    }

    /// Reads the log.
    async fn query_store(mut self) -> Self {
        if let EventSource::Forwarded(reader) = &mut self.source {
            reader.check_writer(self.last_id).await;
        }
        self.read_log().await;
        self
    }

    async fn read_log(&mut self) {
        self.must_read_log = false;
        let events = &self.active.endpoint.server.store_ref().events;
        match events
            .replay_after(&self.active.session_id, &self.last_id, usize::MAX)
            .await
        {
            Ok(Some(replay)) => {
                if replay.lost {
                    tracing::debug!(stream = %replay.stream, "events expired before they were read");
                }
                let replayed = replay.events.into_iter();
                self.queue
                    .extend(replayed.map(|StoredEvent { id, data }| (id.sequence, data)));
                self.ended |= replay.finished && !matches!(self.source, EventSource::Channel(_));
            }
            // The writer has not opened the stream in the log yet, or will finish the channel.
            Ok(None) if matches!(self.source, EventSource::Channel(_)) => {}
            // The stream expired or was removed with its session.
            Ok(None) => self.ended = true,
            Err(error) => {
                tracing::warn!(%error, "cannot read the log of a stream");
                self.ended = true;
            }
        }
    }

    /// Encodes an event and some of the queued ones, skipping those that were already sent.
    fn write(&mut self, first: SequencedEvent) -> Option<Bytes> {
        let mut out = Vec::new();
        let mut next = Some(first);
        while let Some((sequence, data)) = next {
            if sequence > self.last_id.sequence {
                self.last_id.sequence = sequence;
                write_event(self.last_id, &data, &mut out);
            }
            let has_room = out.len() < MAX_WRITE_BYTES;
            next = has_room.then(|| self.queue.pop_front()).flatten();
        }
        if out.is_empty() {
            return None;
        }
        self.heartbeat.reset();
        Some(out.into())
    }
}

/// Encodes a stream that is complete: the priming event with the id `start`, or a comment, and all events after it.
pub(crate) fn encode_finished(
    start: EventId,
    sends_priming_event: bool,
    events: &[Bytes],
) -> Bytes {
    /// More than an id and the names of fields.
    const EVENT_OVERHEAD: usize = 64;
    let length: usize = events.iter().map(|data| EVENT_OVERHEAD + data.len()).sum();
    let mut out = Vec::with_capacity(EVENT_OVERHEAD + length);
    StreamPrelude::new(sends_priming_event).write(start, &mut out);
    for (sequence, data) in (start.sequence + 1..).zip(events) {
        let id = EventId { sequence, ..start };
        write_event(id, data, &mut out);
    }
    out.into()
}

fn write_event(id: EventId, data: &[u8], out: &mut Vec<u8>) {
    sse::SseEvent::message(data).with_id(&id.text()).write(out);
}

impl StreamPrelude {
    fn new(sends_priming_event: bool) -> Self {
        if sends_priming_event {
            Self::PrimingEvent
        } else {
            Self::Comment
        }
    }

    fn write(self, last_id: EventId, out: &mut Vec<u8>) {
        match self {
            Self::PrimingEvent => sse::SseEvent::message(b"")
                .with_id(&last_id.text())
                .with_retry(RETRY_MS)
                .write(out),
            Self::Comment => sse::write_comment(out, "open"),
        }
    }
}

impl EventSource {
    /// Reads the log of a stream, and looks for more events there.
    pub(crate) fn log() -> Self {
        Self::Log(Box::pin(sleep(LOG_POLL_INTERVAL)))
    }

    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        rest: &mut VecDeque<SequencedEvent>,
    ) -> Poll<ReadResult> {
        match self {
            Self::Channel(reader) => reader.poll_read(cx, rest),
            Self::Forwarded(reader) => reader.poll_read(cx, rest),
            Self::Log(poll_timer) => {
                ready!(poll_timer.as_mut().poll(cx));
                poll_timer
                    .as_mut()
                    .reset(Instant::now() + LOG_POLL_INTERVAL);
                Poll::Ready(ReadResult::ReadLog)
            }
        }
    }
}

/// A resumable stream as a response body.
enum ResumableBody {
    Reading(ResumableStream),
    /// Waiting for the store.
    QueryingStore(BoxFuture<ResumableStream>),
    Ended,
}

impl ResumableBody {
    /// Starts the store query.
    fn query_store(&mut self) {
        if let Self::Reading(stream) = std::mem::replace(self, Self::Ended) {
            *self = Self::QueryingStore(Box::pin(stream.query_store()));
        }
    }
}

impl SseBody for ResumableBody {
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            match &mut *self {
                Self::Reading(stream) => match ready!(stream.poll_next(cx)) {
                    ReadStep::Bytes(bytes) => return Poll::Ready(Some(bytes)),
                    ReadStep::QueryStore => self.query_store(),
                    ReadStep::End => *self = Self::Ended,
                },
                Self::QueryingStore(query) => {
                    *self = Self::Reading(ready!(query.as_mut().poll(cx)));
                }
                Self::Ended => return Poll::Ready(None),
            }
        }
    }
}
