//! GET on the endpoint: streams for messages outside of calls, and resumed streams.
//!
//! A change notification is appended to the newest stream that has a reader, so that each is sent once. A stream outlives
//! its connection for a while, so that a client that reconnects misses nothing.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use ::http::{Response, StatusCode};
use tokio::time::Instant;
use turnbuckle_protocol::RpcError;
use turnbuckle_store::{EventId, EventReplay, SessionId, SessionRecord, StoreError};

use crate::{
    http::{
        body::ResponseBody,
        changes::{self, finish},
        connection::ConnectionHandle,
        endpoint::{Endpoint, InFlightPermit, RequestHead},
        mcp_headers::LAST_EVENT_ID,
        post,
        responses::{self, event_stream},
        session::{ActiveSessionGuard, SessionRefresher, find_session, limits},
        stream::{
            EventSource, ResumableStream, StreamChannel, StreamWriter,
            forwarding::{self, ForwardedReader},
        },
    },
    lifecycle::session,
    sync::lock,
};

/// Time that a stream without a reader is kept for a client that may reconnect.
const UNREAD_TTL: Duration = Duration::from_secs(5 * 60);

/// The GET streams of a session.
#[derive(Default)]
pub(crate) struct GetStreams {
    channels: Mutex<GetChannels>,
}

/// The channels of the GET streams. Most sessions have one stream, so the newest has its own field.
#[derive(Default)]
struct GetChannels {
    newest: Option<Arc<StreamChannel>>,
    /// Oldest first; empty if `newest` is `None`.
    older: Vec<Arc<StreamChannel>>,
    /// Set once the session is known to receive list changes.
    receives_list_changes: bool,
}

impl GetChannels {
    fn push(&mut self, channel: Arc<StreamChannel>) {
        if let Some(older) = self.newest.replace(channel) {
            older.set_receives_list_changes(false);
            self.older.push(older);
        }
        self.update_direct_delivery();
    }

    /// Enables direct delivery of list changes if there is a single stream and the session receives them.
    fn update_direct_delivery(&self) {
        if let Some(only) = &self.newest
            && self.older.is_empty()
        {
            only.set_receives_list_changes(self.receives_list_changes);
        }
    }

    fn take_all(&mut self) -> Vec<Arc<StreamChannel>> {
        let mut all = std::mem::take(&mut self.older);
        all.extend(self.newest.take());
        all.iter()
            .for_each(|channel| channel.set_receives_list_changes(false));
        all
    }

    /// Removes and returns the matching channels.
    fn take_matching(
        &mut self,
        is_match: impl FnMut(&Arc<StreamChannel>) -> bool,
    ) -> Vec<Arc<StreamChannel>> {
        let all = self.take_all().into_iter();
        let (matching, rest): (Vec<_>, _) = all.partition(is_match);
        self.older = rest;
        self.newest = self.older.pop();
        self.update_direct_delivery();
        matching
    }

    /// Removes and returns the channels that have been without a reader for long enough.
    fn take_unread(&mut self, is_expired: impl Fn(Instant) -> bool) -> Vec<Arc<StreamChannel>> {
        self.take_matching(|channel| channel.unread_since().is_some_and(&is_expired))
    }
}

/// Responds to a GET on the endpoint.
pub(crate) async fn get(endpoint: &Arc<Endpoint>, head: RequestHead) -> Response<ResponseBody> {
    let (session_id, record) = match find_session(endpoint, &head, None).await {
        Ok(found) => found,
        Err(response) => return response,
    };
    if !post::accepted_types(&head.headers).event_stream {
        return responses::invalid_request(
            StatusCode::NOT_ACCEPTABLE,
            "send `Accept: text/event-stream`",
        );
    }
    let mut permit = match endpoint.acquire_permit(|| limits::quota_owner(&head)) {
        Ok(permit) => permit,
        Err(response) => return response,
    };
    permit.count_for(&head);
    match head.headers.get(LAST_EVENT_ID) {
        Some(last_id) => {
            let last_id = last_id
                .to_str()
                .ok()
                .and_then(|last_id| last_id.parse().ok());
            resume(endpoint, session_id, &head.connection, last_id, permit).await
        }
        None => {
            let active = head.connection.take_session(endpoint, session_id);
            open(active, &record, permit).await
        }
    }
}

/// Resumes the stream that an event belongs to.
async fn resume(
    endpoint: &Arc<Endpoint>,
    session_id: SessionId,
    connection: &ConnectionHandle,
    last_id: Option<EventId>,
    permit: InFlightPermit,
) -> Response<ResponseBody> {
    let unknown_id = || {
        responses::rpc_error(
            StatusCode::BAD_REQUEST,
            None,
            &RpcError::invalid_request(
                "`Last-Event-ID` is unknown or expired, or its stream has ended and the final response has expired; \
                 open a new stream without it",
            ),
        )
    };
    // Not 404, which would mean that the session has ended.
    let Some(last_id) = last_id else {
        return unknown_id();
    };
    let active = connection.take_session(endpoint, session_id);
    SessionRefresher::start(endpoint);
    let source = match find_source(&active, last_id).await {
        Ok(Some(source)) => source,
        Ok(None) => return unknown_id(),
        Err(error) => return responses::service_unavailable(None, error.to_string()),
    };
    let stream = ResumableStream::new(active, source, last_id)
        .with_prelude(false)
        .with_permit(permit);
    event_stream(ResponseBody::from_sse(stream.into_body()))
}

/// Finds out where the events after `last` come from. Returns `None` if the id is unknown.
async fn find_source(
    active: &ActiveSessionGuard,
    last: EventId,
) -> Result<Option<EventSource>, StoreError> {
    let (endpoint, session) = (&active.endpoint, active.session_id);
    let channel = active.session.channel(last.stream);
    if let Some(channel) = &channel
        && channel.has_sent(last.sequence)
    {
        return Ok(Some(EventSource::Channel(channel.attach())));
    }
    let events = &endpoint.server.store_ref().events;
    let replay = match events.replay_after(&session, &last, 1).await? {
        Some(replay) if !is_final_event_lost(&replay) => replay,
        _ => return Ok(None),
    };
    let is_beyond = last.sequence > replay.last;
    match channel {
        Some(_) if is_beyond => return Ok(None),
        Some(channel) => return Ok(Some(EventSource::Channel(channel.attach()))),
        None => {}
    }
    if replay.finished || endpoint.server.instance().is_none() {
        return Ok((!is_beyond).then(EventSource::log));
    }
    if !forwarding::may_have_sent(&replay, last.sequence) {
        return Ok(None);
    }
    let (writer, own) = (replay.writer, endpoint.instance_id());
    match ForwardedReader::attach(endpoint, session, last, writer, own).await? {
        Some(reader) => Ok(Some(EventSource::Forwarded(Box::new(reader)))),
        None => {
            forwarding::end_orphan(endpoint, session, last, &writer).await?;
            Ok(Some(EventSource::log()))
        }
    }
}

/// Returns whether the final event of a finished stream, usually the response, has expired.
///
/// A client that resumes such a stream would see it end without an event, and reconnect again and again. Earlier gaps
/// are not reported: the final response is still sent.
fn is_final_event_lost(replay: &EventReplay) -> bool {
    replay.lost && replay.finished && replay.events.is_empty()
}

/// Opens a new stream.
async fn open(
    active: ActiveSessionGuard,
    record: &SessionRecord,
    permit: InFlightPermit,
) -> Response<ResponseBody> {
    let endpoint = active.endpoint.clone();
    SessionRefresher::start(&endpoint);
    let writer = match StreamWriter::open(&active, &record.owner).await {
        Ok(writer) => writer,
        Err(error) => return responses::service_unavailable(None, error.to_string()),
    };
    let reader = writer.channel.attach();
    let replaced = active.session.get_streams.add(&writer.channel);
    endpoint
        .active_sessions
        .add_subscriber(active.session_id, &active.session);
    // Started before the client gets its stream, so that later changes are not missed.
    changes::start(&endpoint);
    changes::read_interests(&endpoint, &active.session_id, &active.session).await;
    for channel in replaced {
        finish(&endpoint, &active.session_id, &active.session, &channel).await;
    }
    let stream = ResumableStream::new(active, EventSource::Channel(reader), writer.start)
        .with_prelude(session::rules(record).sends_priming_event)
        .with_permit(permit);
    event_stream(ResponseBody::from_sse(stream.into_body()))
}

impl GetStreams {
    /// Adds a stream. Returns the streams that it replaces because they lack a reader.
    pub(crate) fn add(&self, channel: &Arc<StreamChannel>) -> Vec<Arc<StreamChannel>> {
        let mut channels = lock(&self.channels);
        let replaced = channels.take_unread(|_| true);
        channels.push(channel.clone());
        replaced
    }

    /// Records that the session receives every list change.
    pub(crate) fn set_receives_list_changes(&self) {
        let mut channels = lock(&self.channels);
        channels.receives_list_changes = true;
        channels.update_direct_delivery();
    }

    /// Returns whether the session is known to receive every list change.
    pub(crate) fn receives_list_changes(&self) -> bool {
        lock(&self.channels).receives_list_changes
    }

    /// Returns the newest stream.
    pub(crate) fn newest(&self) -> Option<Arc<StreamChannel>> {
        lock(&self.channels).newest.clone()
    }

    /// Returns whether the session lacks GET streams.
    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.channels).newest.is_none()
    }

    /// Returns the stream for the next message: the newest with a reader, otherwise the newest.
    pub(crate) fn current(&self) -> Option<Arc<StreamChannel>> {
        let channels = lock(&self.channels);
        let is_read = |channel: &&Arc<StreamChannel>| channel.unread_since().is_none();
        let newest = channels.newest.as_ref()?;
        if channels.older.is_empty() || is_read(&newest) {
            return Some(newest.clone());
        }
        let mut from_newest = channels.older.iter().rev();
        from_newest.find(is_read).or(Some(newest)).cloned()
    }

    /// Removes a stream.
    pub(crate) fn remove(&self, removed: &Arc<StreamChannel>) {
        let mut channels = lock(&self.channels);
        channels.take_matching(|channel| Arc::ptr_eq(channel, removed));
    }

    /// Removes and returns the streams that had no reader for [`UNREAD_TTL`].
    pub(crate) fn expire(&self, now: Instant) -> Vec<Arc<StreamChannel>> {
        lock(&self.channels).take_unread(|since| now - since >= UNREAD_TTL)
    }

    /// Removes and returns all streams.
    pub(crate) fn take_all(&self) -> Vec<Arc<StreamChannel>> {
        lock(&self.channels).take_all()
    }
}
