//! Streams of calls across instances: a client may resume a stream at an instance that does not write it.
//!
//! The instance with the client attaches to the writer, which forwards events to its inbox from then on. Each message has the
//! number of its first event, so the reader notices what it missed and reads that from the log. If the writer is dead, the
//! reader ends the stream in the log, with an error for each request without a response.

use std::{
    collections::{HashMap, VecDeque},
    future::poll_fn,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    runtime::Handle,
    time::{Instant, Sleep, sleep},
};
use turnbuckle_protocol::{RequestId, RpcError, jsonrpc};
use turnbuckle_store::{
    EventId, EventReplay, InstanceId, InstanceMessage, SessionId, StoreError, StreamId,
};

use crate::{
    http::{
        endpoint::Endpoint,
        stream::{ChannelReader, ReadResult, ReaderEnd, SequencedEvent, StreamChannel},
    },
    server::instance::in_time,
    sync::{GatedFuture, lock},
};

/// Interval of checking that the writer lives, and of reading the log in case a message of it was lost.
const WRITER_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// The streams that other instances write and this one reads for its clients.
#[derive(Default)]
pub(crate) struct ForwardedStreams {
    channels: Mutex<HashMap<(SessionId, StreamId), Arc<StreamChannel>>>,
}

impl ForwardedStreams {
    fn insert(&self, session: SessionId, channel: &Arc<StreamChannel>) {
        let key = (session, channel.stream);
        let replaced = lock(&self.channels).insert(key, channel.clone());
        if let Some(replaced) = replaced {
            replaced.close_reader();
        }
    }

    fn find(&self, session: SessionId, stream: StreamId) -> Option<Arc<StreamChannel>> {
        lock(&self.channels).get(&(session, stream)).cloned()
    }

    /// Removes a channel unless another one has replaced it. Returns whether it was removed.
    fn remove(&self, session: SessionId, channel: &Arc<StreamChannel>) -> bool {
        let mut channels = lock(&self.channels);
        let key = (session, channel.stream);
        let is_current = channels
            .get(&key)
            .is_some_and(|current| Arc::ptr_eq(current, channel));
        if is_current {
            channels.remove(&key);
        }
        is_current
    }
}

/// Reads a stream that another instance writes.
pub(crate) struct ForwardedReader {
    endpoint: Arc<Endpoint>,
    session: SessionId,
    channel: Arc<StreamChannel>,
    reader: ChannelReader,
    writer: InstanceId,
    /// This instance.
    own: InstanceId,
    check_at: Instant,
    check_timer: GatedFuture<Sleep>,
}

impl ForwardedReader {
    /// Attaches to the writer of a stream. Returns `None` if the writer is dead.
    pub(crate) async fn attach(
        endpoint: &Arc<Endpoint>,
        session: SessionId,
        last: EventId,
        writer: InstanceId,
        own: InstanceId,
    ) -> Result<Option<Self>, StoreError> {
        let channel = StreamChannel::new(last.stream);
        channel.set_last_sequence(last.sequence);
        let reader = channel.attach();
        endpoint.forwarded_streams.insert(session, &channel);
        let this = Self {
            endpoint: endpoint.clone(),
            session,
            channel,
            reader,
            writer,
            own,
            check_at: Instant::now() + WRITER_CHECK_INTERVAL,
            check_timer: GatedFuture::new(sleep(WRITER_CHECK_INTERVAL)),
        };
        let is_alive = this.is_writer_alive().await? && this.send_attach(last).await?;
        Ok(is_alive.then_some(this))
    }

    async fn is_writer_alive(&self) -> Result<bool, StoreError> {
        let instances = &self.endpoint.server.store_ref().instances;
        in_time(instances.is_alive(&self.writer)).await
    }

    async fn send_attach(&self, last: EventId) -> Result<bool, StoreError> {
        let message = InstanceMessage::Attach {
            session: self.session,
            last,
            reader: self.own,
        };
        let instances = &self.endpoint.server.store_ref().instances;
        in_time(instances.send(self.writer.slot, message)).await
    }

    /// Returns the next event as [`ChannelReader::poll_read`] does, and [`ReadResult::ReadLog`] when the writer has to be
    /// checked.
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        rest: &mut VecDeque<SequencedEvent>,
    ) -> Poll<ReadResult> {
        if let Poll::Ready(result) = self.reader.poll_read(cx, rest) {
            return Poll::Ready(result);
        }
        let is_due = Instant::now() >= self.check_at;
        self.check_timer
            .poll(cx, is_due)
            .map(|()| ReadResult::ReadLog)
    }

    /// Checks the writer if it is time. Ends the stream in the log if the writer is dead.
    pub(crate) async fn check_writer(&mut self, last: EventId) {
        let now = Instant::now();
        if now < self.check_at {
            return;
        }
        self.check_at = now + WRITER_CHECK_INTERVAL;
        self.check_timer.get_pin_mut().reset(self.check_at);
        let is_alive = match self.is_writer_alive().await {
            // The message to attach may have been lost.
            Ok(true) if !self.channel.was_forwarded() => self.send_attach(last).await,
            is_alive => is_alive,
        };
        let ended = match is_alive {
            Ok(true) => return,
            Ok(false) => end_orphan(&self.endpoint, self.session, last, &self.writer).await,
            Err(error) => Err(error),
        };
        if let Err(error) = ended {
            tracing::warn!(%error, "cannot check the writer of a stream");
        }
    }
}

impl Drop for ForwardedReader {
    fn drop(&mut self) {
        let is_current = self
            .endpoint
            .forwarded_streams
            .remove(self.session, &self.channel);
        if !is_current || self.channel.is_finished() {
            return;
        }
        let message = InstanceMessage::Detach {
            session: self.session,
            stream: self.channel.stream,
            reader: self.own,
        };
        let (endpoint, slot) = (self.endpoint.clone(), self.writer.slot);
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                // Otherwise the writer goes on until the stream ends.
                let _ = endpoint
                    .server
                    .store_ref()
                    .instances
                    .send(slot, message)
                    .await;
            });
        }
    }
}

/// Ends a stream of a dead writer, with an error for each request without a response.
pub(crate) async fn end_orphan(
    endpoint: &Endpoint,
    session: SessionId,
    last: EventId,
    writer: &InstanceId,
) -> Result<(), StoreError> {
    let events = &endpoint.server.store_ref().events;
    let Some(replay) = events.replay_after(&session, &last, 0).await? else {
        return Ok(());
    };
    if replay.finished {
        return Ok(());
    }
    let errors: Vec<_> = replay.unanswered.iter().map(stopped_error).collect();
    let (stream, after) = (replay.stream, last.sequence);
    let is_closed = events
        .close_orphan(&session, &stream, writer, after, &errors)
        .await?;
    if is_closed {
        tracing::info!(%stream, %writer, "ended a stream of an instance that stopped");
    }
    Ok(())
}

fn stopped_error(id: &RequestId) -> Bytes {
    let error = RpcError::internal("the instance that ran this call stopped");
    let mut body = Vec::with_capacity(128);
    jsonrpc::write_error(&mut body, Some(id), &error);
    body.into()
}

/// Returns whether an event id is plausible that the log does not have: the writer keeps a limited number of events that it
/// could not store.
pub(crate) fn may_have_sent(replay: &EventReplay, sequence: u64) -> bool {
    const MAX_UNLOGGED: u64 = 10_000;
    sequence <= replay.last.saturating_add(MAX_UNLOGGED)
}

/// Handles a message of another instance about a stream.
pub(crate) fn receive(endpoint: &Arc<Endpoint>, message: InstanceMessage) {
    match message {
        InstanceMessage::Attach {
            session,
            last,
            reader,
        } => receive_attach(endpoint, session, last, reader),
        InstanceMessage::Events {
            session,
            stream,
            first,
            events,
            end,
        } => {
            if let Some(channel) = endpoint.forwarded_streams.find(session, stream) {
                channel.push_forwarded(first, events, end);
            }
        }
        InstanceMessage::Detach {
            session,
            stream,
            reader,
        } => {
            if let Some(channel) = find_written(endpoint, session, stream) {
                channel.detach_instance(&reader);
            } else if let Some(channel) = endpoint.forwarded_streams.find(session, stream) {
                channel.close_reader();
            }
        }
        message => tracing::trace!(?message, "ignored a message of another instance"),
    }
}

/// Returns a stream that this endpoint writes.
pub(crate) fn find_written(
    endpoint: &Endpoint,
    session: SessionId,
    stream: StreamId,
) -> Option<Arc<StreamChannel>> {
    let active = endpoint.active_sessions.find(&session)?;
    active.channel(stream)
}

fn receive_attach(endpoint: &Arc<Endpoint>, session: SessionId, last: EventId, reader: InstanceId) {
    let Ok(runtime) = Handle::try_current() else {
        return;
    };
    let endpoint = endpoint.clone();
    let forwarder = StreamForwarder {
        session,
        stream: last.stream,
        to: reader,
    };
    if let Some(channel) = find_written(&endpoint, session, last.stream) {
        let reader = channel.attach_instance(reader);
        runtime.spawn(async move { forwarder.run(&endpoint, &channel, &reader).await });
    } else if !is_written_elsewhere(&endpoint, session, last.stream) {
        runtime.spawn(async move { forwarder.end_unknown(&endpoint, last).await });
    }
}

/// Forwards the events of a stream to the instance with the client.
struct StreamForwarder {
    session: SessionId,
    stream: StreamId,
    to: InstanceId,
}

impl StreamForwarder {
    async fn run(&self, endpoint: &Endpoint, channel: &StreamChannel, reader: &ChannelReader) {
        // Shows the reader what it has to read from the log.
        let mut next = channel.next_sequence();
        if !self.send(endpoint, next, Vec::new(), false).await {
            return;
        }
        loop {
            let mut rest = VecDeque::new();
            let read = poll_fn(|cx| reader.poll_read(cx, &mut rest)).await;
            let is_received = match read {
                ReadResult::Event(event) => {
                    let first = event.0;
                    let events = contiguous(event, rest);
                    next = first + events.len() as u64;
                    self.send(endpoint, first, events, false).await
                }
                ReadResult::ReadLog => {
                    next = channel.next_sequence();
                    self.send(endpoint, next, Vec::new(), false).await
                }
                ReadResult::End => return self.finish(endpoint, channel, reader, next).await,
            };
            if !is_received {
                return;
            }
        }
    }

    /// Tells the reader why no more events follow.
    async fn finish(
        &self,
        endpoint: &Endpoint,
        channel: &StreamChannel,
        reader: &ChannelReader,
        next: u64,
    ) {
        match reader.end() {
            ReaderEnd::Finished => {
                let next = channel.next_sequence().max(next);
                self.send(endpoint, next, Vec::new(), true).await;
            }
            // A newer reader of the same instance goes on.
            ReaderEnd::Replaced if channel.instance_reader() == Some(self.to) => {}
            ReaderEnd::Replaced | ReaderEnd::CloseRequested => self.send_detach(endpoint).await,
        }
    }

    /// Answers for a stream without a writer here: it has finished, or its writer gave up.
    async fn end_unknown(&self, endpoint: &Endpoint, last: EventId) {
        let own = endpoint.instance_id();
        match end_orphan(endpoint, self.session, last, &own).await {
            // The reader finds the rest in the log.
            Ok(()) => {
                self.send(endpoint, u64::MAX, Vec::new(), true).await;
            }
            Err(error) => tracing::warn!(%error, "cannot end a stream without a writer"),
        }
    }

    /// Returns false if the reader is gone.
    async fn send(&self, endpoint: &Endpoint, first: u64, events: Vec<Bytes>, end: bool) -> bool {
        let message = InstanceMessage::Events {
            session: self.session,
            stream: self.stream,
            first,
            events,
            end,
        };
        let instances = &endpoint.server.store_ref().instances;
        match in_time(instances.send(self.to.slot, message)).await {
            Ok(is_received) => is_received,
            Err(error) => {
                // The reader notices the gap, or looks into the log after a while.
                tracing::debug!(%error, "cannot forward events");
                true
            }
        }
    }

    async fn send_detach(&self, endpoint: &Endpoint) {
        let message = InstanceMessage::Detach {
            session: self.session,
            stream: self.stream,
            reader: self.to,
        };
        let instances = &endpoint.server.store_ref().instances;
        // Otherwise the connection of the other instance stays open until the stream ends.
        let _ = in_time(instances.send(self.to.slot, message)).await;
    }
}

/// Returns whether another endpoint of the server writes a stream. It answers then.
fn is_written_elsewhere(endpoint: &Endpoint, session: SessionId, stream: StreamId) -> bool {
    let users = endpoint.server.session_users().all();
    users
        .iter()
        .any(|user| user.writes_stream(&session, stream))
}

/// Returns the data of events without gaps in their numbers.
fn contiguous(first: SequencedEvent, rest: VecDeque<SequencedEvent>) -> Vec<Bytes> {
    let (start, data) = first;
    let mut events = Vec::with_capacity(1 + rest.len());
    events.push(data);
    for (sequence, data) in rest {
        // Numbers without data.
        while start + (events.len() as u64) < sequence {
            events.push(Bytes::new());
        }
        events.push(data);
    }
    events
}
