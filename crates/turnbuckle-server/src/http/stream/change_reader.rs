//! The reading connection of a GET stream.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use tokio::time::Instant;
use turnbuckle_protocol::codec::sse;
use turnbuckle_store::{Position, SessionRecord, StoreError};

use super::{
    Heartbeat, MAX_WRITE_BYTES, RETRY_MS,
    change_queue::{ChangeEventId, GetStreamReader, QueueRead, QueuedMessage, StreamPlace},
};
use crate::{
    catalog::subscriptions::EncodedChange,
    http::{body::SseBody, endpoint::InFlightPermit, session::ActiveSessionGuard},
    lifecycle::session as rules,
    request::BoxFuture,
};

/// Number of changes that are read from the bus together.
const REPLAY_BATCH: usize = 256;

/// The first output of a stream.
#[derive(Clone, Copy)]
pub(super) enum Prelude {
    /// An event with only an id, from which the client can resume.
    PrimingEvent,
    /// A comment, if the client knows an id or the revision lacks priming events.
    Comment,
}

/// A GET stream as read by one connection.
pub(super) struct ChangeReader {
    active: ActiveSessionGuard,
    reader: GetStreamReader,
    /// The place of the last event that was sent.
    last: StreamPlace,
    prelude: Option<Prelude>,
    /// Messages that were read but not sent yet.
    queue: VecDeque<QueuedMessage>,
    /// Set if messages are missing in the queue and must be read from the bus.
    must_replay: bool,
    ended: bool,
    heartbeat: Heartbeat,
    _permit: InFlightPermit,
}

/// The next step of a stream.
enum ReadStep {
    /// Send these bytes.
    Bytes(Bytes),
    /// Read from the bus.
    Replay,
    /// End the stream.
    End,
}

impl ChangeReader {
    /// Creates a stream of the messages after a place.
    pub(super) fn new(
        active: ActiveSessionGuard,
        reader: GetStreamReader,
        last: StreamPlace,
        prelude: Prelude,
        permit: InFlightPermit,
    ) -> Self {
        let heartbeat = Heartbeat::new(active.endpoint.options.stream_heartbeat);
        Self {
            active,
            reader,
            last,
            prelude: Some(prelude),
            queue: VecDeque::new(),
            must_replay: true,
            ended: false,
            heartbeat,
            _permit: permit,
        }
    }

    /// Converts into a response body.
    pub(super) fn into_body(self) -> impl SseBody {
        ChangeBody::Reading(self)
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<ReadStep> {
        if let Some(prelude) = self.prelude.take() {
            return Poll::Ready(ReadStep::Bytes(self.write_prelude(prelude)));
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
            if std::mem::take(&mut self.must_replay) {
                return Poll::Ready(ReadStep::Replay);
            }
            match self.reader.poll_read(cx, &mut self.queue) {
                Poll::Ready(QueueRead::Message(first)) => {
                    if let Some(bytes) = self.write(first) {
                        return Poll::Ready(ReadStep::Bytes(bytes));
                    }
                }
                Poll::Ready(QueueRead::Replay) => self.must_replay = true,
                Poll::Ready(QueueRead::End) => self.ended = true,
                Poll::Pending => {
                    let heartbeat = self.heartbeat.poll(cx, Instant::now());
                    return heartbeat.map(ReadStep::Bytes);
                }
            }
        }
    }

    /// Reads the missed changes from the bus, and the other messages that are stored.
    async fn replay(mut self) -> Self {
        let sessions = &self.active.endpoint.server.store_ref().sessions;
        let replayed = match sessions.load(&self.active.session_id).await {
            Ok(Some(record)) => self.replay_changes(&record).await,
            // The session has ended.
            Ok(None) => {
                self.ended = true;
                Ok(())
            }
            Err(error) => Err(error),
        };
        if let Err(error) = replayed {
            // The client reconnects.
            tracing::warn!(%error, "cannot read the changes that a stream has missed");
            self.ended = true;
        }
        self
    }

    async fn replay_changes(&mut self, record: &SessionRecord) -> Result<(), StoreError> {
        let endpoint = self.active.endpoint.clone();
        let bus = &endpoint.server.store_ref().bus;
        let mut messages = self.reader.stream.stored_after(self.last);
        let mut position = self.last.position;
        let mut is_complete = false;
        while !is_complete {
            let newest = bus.position();
            let Some(changes) = bus.after(position, REPLAY_BATCH).await? else {
                self.announce_all(record, newest);
                break;
            };
            is_complete = changes.len() < REPLAY_BATCH;
            for (at, change) in changes {
                position = at;
                let earlier = messages.partition_point(|(place, _)| place.position < at);
                for (place, data) in messages.drain(..earlier) {
                    self.queue_at(place, true, false, data);
                }
                self.queue_change(record, at, &EncodedChange::new(change));
            }
        }
        for (place, data) in messages {
            self.queue_at(place, true, false, data);
        }
        Ok(())
    }

    /// Queues a change of the bus, if it belongs to this stream.
    fn queue_change(&mut self, record: &SessionRecord, position: Position, change: &EncodedChange) {
        let generation = self.reader.stream.generation;
        if record.stream_turns.is_turn_of(generation, position)
            && let Some(data) = self.notification(record, change)
        {
            let messages = self.last.messages;
            let place = StreamPlace { position, messages };
            self.queue_at(place, true, false, data);
        }
    }

    /// Queues notifications of everything, because the bus does not have all missed changes.
    fn announce_all(&mut self, record: &SessionRecord, position: Position) {
        let all = rules::all_changes(record).into_iter();
        let all: Vec<_> = all
            .filter_map(|change| self.notification(record, &EncodedChange::new(change)))
            .collect();
        let messages = self.last.messages;
        let place = StreamPlace { position, messages };
        let count = all.len();
        for (number, data) in (1..).zip(all) {
            self.queue_at(place, number == count, true, data);
        }
    }

    fn notification(&self, record: &SessionRecord, change: &EncodedChange) -> Option<Bytes> {
        let (server, id) = (&self.active.endpoint.server, self.active.session_id);
        rules::notification_for(server, record, id, &self.active.session.runtime, change)
    }

    fn queue_at(&mut self, place: StreamPlace, has_id: bool, is_forced: bool, data: Bytes) {
        self.queue.push_back(QueuedMessage {
            place,
            has_id,
            is_forced,
            data,
        });
    }

    fn write_prelude(&self, prelude: Prelude) -> Bytes {
        let mut out = Vec::new();
        match prelude {
            Prelude::PrimingEvent => sse::SseEvent::message(b"")
                .with_id(&self.last_id().text())
                .with_retry(RETRY_MS)
                .write(&mut out),
            Prelude::Comment => sse::write_comment(&mut out, "open"),
        }
        out.into()
    }

    fn last_id(&self) -> ChangeEventId {
        ChangeEventId {
            generation: self.reader.stream.generation,
            place: self.last,
        }
    }

    /// Encodes a message and some of the queued ones, skipping those that were already sent.
    fn write(&mut self, first: QueuedMessage) -> Option<Bytes> {
        let mut out = Vec::new();
        let mut next = Some(first);
        while let Some(message) = next {
            self.write_message(&message, &mut out);
            let has_room = out.len() < MAX_WRITE_BYTES;
            next = has_room.then(|| self.queue.pop_front()).flatten();
        }
        if out.is_empty() {
            return None;
        }
        self.heartbeat.reset();
        Some(out.into())
    }

    fn write_message(&mut self, message: &QueuedMessage, out: &mut Vec<u8>) {
        let (place, last) = (message.place, &mut self.last);
        let is_newer = place.position > last.position || place.messages > last.messages;
        if !is_newer && !message.is_forced {
            return;
        }
        let event = sse::SseEvent::message(&message.data);
        if !message.has_id {
            event.write(out);
            return;
        }
        last.messages = last.messages.max(place.messages);
        last.position = if message.is_forced {
            // A bus that has lost its log may have begun again.
            place.position
        } else {
            last.position.max(place.position)
        };
        event.with_id(&self.last_id().text()).write(out);
    }
}

/// A GET stream as a response body.
enum ChangeBody {
    Reading(ChangeReader),
    /// Waiting for the store.
    Replaying(BoxFuture<ChangeReader>),
    Ended,
}

impl ChangeBody {
    /// Starts to read from the bus.
    fn replay(&mut self) {
        if let Self::Reading(reader) = std::mem::replace(self, Self::Ended) {
            *self = Self::Replaying(Box::pin(reader.replay()));
        }
    }
}

impl SseBody for ChangeBody {
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            match &mut *self {
                Self::Reading(reader) => match ready!(reader.poll_next(cx)) {
                    ReadStep::Bytes(bytes) => return Poll::Ready(Some(bytes)),
                    ReadStep::Replay => self.replay(),
                    ReadStep::End => *self = Self::Ended,
                },
                Self::Replaying(replay) => {
                    *self = Self::Reading(ready!(replay.as_mut().poll(cx)));
                }
                Self::Ended => return Poll::Ready(None),
            }
        }
    }
}
