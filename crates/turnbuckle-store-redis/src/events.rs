//! The event log in Redis.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use turnbuckle_protocol::RequestId;
use turnbuckle_store::{
    BoxFuture, EventBatch, EventId, EventReplay, EventStore, InstanceId, SessionId, StoreError,
    StoredEvent, StreamId,
};

use crate::{
    encoding::{decode_requests, encode_requests},
    index::millis,
    log::parse_instance,
    script::{Argument, Script},
    sealing::UnsealError,
    shared::Shared,
};

static APPEND: Script = Script::new(include_str!("scripts/events_append.lua"));
static REPLAY: Script = Script::new(include_str!("scripts/events_replay.lua"));
static CLOSE_ORPHAN: Script = Script::new(include_str!("scripts/events_close_orphan.lua"));
static REMOVE_SESSION: Script = Script::new(include_str!("scripts/events_remove_session.lua"));

/// The time after the last append for which Redis keeps a stream that is not finished. Streams are removed with their session, so
/// this is for those of processes that ended.
const OPEN_STREAM: Duration = Duration::from_secs(24 * 60 * 60);

/// A hash for each stream, in the slot of its session. Its fields are `w` writer, `h` requests, `a` answered requests, `f` 1 if
/// finished and 2 if closed for its writer, `n` last number, `l` last lost number, `o` lowest number that may be stored, `b` bytes,
/// `c` number of events, and the events by number.
///
/// The total of all streams is limited by the memory of Redis.
pub(crate) struct RedisEventStore {
    shared: Arc<Shared>,
}

impl RedisEventStore {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    async fn append_now(
        &self,
        session: &SessionId,
        stream: StreamId,
        batch: EventBatch<'_>,
    ) -> Result<(), StoreError> {
        const GONE: StoreError = StoreError::Gone { what: "stream" };
        let limits = &self.shared.limits.events;
        let (keys, number) = (&self.shared.keys, stream.number().to_string());
        let (key, streams, prefix) = (
            keys.stream(session, &number),
            keys.streams(session),
            keys.stream(session, ""),
        );
        let head = batch.head.map(|head| {
            let requests = self.seal_requests(&head.requests, &key);
            (requests, head.writer.to_string())
        });
        let (head, writer) = head.unwrap_or_default();
        let answered = match batch.answered {
            [] => Vec::new(),
            answered => self.seal_requests(answered, &key),
        };
        let events: Vec<_> = batch
            .events
            .iter()
            .map(|data| self.seal(data, &key))
            .collect();
        let mut arguments: Vec<Argument<'_>> = vec![
            (&number).into(),
            batch.first.into(),
            events.len().into(),
            usize::from(batch.end).into(),
            (&head).into(),
            (&writer).into(),
            (&answered).into(),
            millis(OPEN_STREAM).into(),
            millis(limits.retention).into(),
            limits.max_events.into(),
            limits.max_stream_bytes.into(),
            limits.max_streams.into(),
            (&prefix).into(),
        ];
        arguments.extend(events.iter().map(Argument::from));
        let connection = &self.shared.connection;
        let result: String = connection
            .script(&APPEND, &[&key, &streams], &arguments)
            .await?;
        match &*result {
            "ok" => Ok(()),
            "many" => Err(StoreError::TooMany {
                what: "open streams",
                limit: limits.max_streams,
            }),
            _ => Err(GONE),
        }
    }

    async fn replay_now(
        &self,
        session: &SessionId,
        last: &EventId,
        limit: usize,
    ) -> Result<Option<EventReplay>, StoreError> {
        let key = self.shared.keys.stream(session, last.stream.number());
        let arguments = [last.sequence.into(), limit.min(100_000).into()];
        let connection = &self.shared.connection;
        let values: Vec<Vec<u8>> = connection.script(&REPLAY, &[&key], &arguments).await?;
        let [
            writer,
            head,
            answered,
            newest,
            lost,
            state,
            more,
            events @ ..,
        ] = &*values
        else {
            return Ok(None);
        };
        let finished = state != b"0";
        let unanswered = if finished {
            Vec::new()
        } else {
            self.unanswered(head, answered, &key)?
        };
        let mut missed = Vec::with_capacity(events.len() / 2);
        for pair in events.chunks_exact(2) {
            missed.push(StoredEvent {
                id: EventId {
                    stream: last.stream,
                    sequence: number(&pair[0])?,
                },
                data: self.shared.open(&pair[1], &key)?.into(),
            });
        }
        let writer = str::from_utf8(writer).ok().and_then(parse_instance);
        Ok(Some(EventReplay {
            stream: last.stream,
            events: missed,
            more: more == b"1",
            last: number(newest)?,
            finished,
            lost: last.sequence < number(lost)?,
            writer: writer.ok_or_else(invalid)?,
            unanswered,
        }))
    }

    /// Returns the requests of a stream that no batch has answered. `answered` has sealed lists, each after its length.
    fn unanswered(
        &self,
        head: &[u8],
        mut answered: &[u8],
        key: &str,
    ) -> Result<Vec<RequestId>, StoreError> {
        let open = |sealed: &[u8]| {
            let plain = self.shared.open(sealed, key)?;
            decode_requests(&plain).map_err(StoreError::unavailable)
        };
        let mut requests = open(head)?;
        while !answered.is_empty() {
            let colon = answered.iter().position(|byte| *byte == b':');
            let colon = colon.ok_or_else(invalid)?;
            let length = usize::try_from(number(&answered[..colon])?).map_err(|_| invalid())?;
            let rest = &answered[colon + 1..];
            let (sealed, rest) = rest.split_at_checked(length).ok_or_else(invalid)?;
            let batch = open(sealed)?;
            requests.retain(|request| !batch.contains(request));
            answered = rest;
        }
        Ok(requests)
    }

    async fn close_orphan_now(
        &self,
        session: &SessionId,
        stream: StreamId,
        dead: &InstanceId,
        after: u64,
        events: &[Bytes],
    ) -> Result<bool, StoreError> {
        let key = self.shared.keys.stream(session, stream.number());
        let (dead, events) = (
            dead.to_string(),
            events.iter().map(|data| self.seal(data, &key)),
        );
        let events: Vec<_> = events.collect();
        let retention = millis(self.shared.limits.events.retention);
        let mut arguments: Vec<Argument<'_>> = vec![(&dead).into(), after.into(), retention.into()];
        arguments.extend(events.iter().map(Argument::from));
        let connection = &self.shared.connection;
        connection.script(&CLOSE_ORPHAN, &[&key], &arguments).await
    }

    /// Seals an event. An event without data stays empty.
    fn seal(&self, data: &[u8], key: &str) -> Vec<u8> {
        if data.is_empty() {
            return Vec::new();
        }
        self.shared.sealer.seal(data, key)
    }

    fn seal_requests(&self, requests: &[RequestId], key: &str) -> Vec<u8> {
        self.shared.sealer.seal(&encode_requests(requests), key)
    }
}

fn number(text: &[u8]) -> Result<u64, StoreError> {
    let number = str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(invalid)
}

fn invalid() -> StoreError {
    StoreError::unavailable(UnsealError)
}

impl EventStore for RedisEventStore {
    fn append<'a>(
        &'a self,
        session: &'a SessionId,
        stream: &'a StreamId,
        batch: EventBatch<'a>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.append_now(session, *stream, batch))
    }

    fn replay_after<'a>(
        &'a self,
        session: &'a SessionId,
        last: &'a EventId,
        limit: usize,
    ) -> BoxFuture<'a, Result<Option<EventReplay>, StoreError>> {
        Box::pin(self.replay_now(session, last, limit))
    }

    fn close_orphan<'a>(
        &'a self,
        session: &'a SessionId,
        stream: &'a StreamId,
        dead: &'a InstanceId,
        after: u64,
        events: &'a [Bytes],
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.close_orphan_now(session, *stream, dead, after, events))
    }

    fn remove_session<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let keys = &self.shared.keys;
            let (streams, prefix) = (keys.streams(session), keys.stream(session, ""));
            let arguments = [(&prefix).into()];
            let connection = &self.shared.connection;
            connection
                .script(&REMOVE_SESSION, &[&streams], &arguments)
                .await
        })
    }

    fn sweep(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        // Redis removes finished streams after their retention time.
        Box::pin(async { Ok(()) })
    }
}
