//! GET on the endpoint: streams for messages outside of calls, and resumed streams.
//!
//! A change notification is sent on one stream: that of the current turn, see [`StreamTurns`](turnbuckle_store::StreamTurns).
//! A client that reconnects gets the changes that it missed from the log of the bus.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use ::http::{Response, StatusCode};
use tokio::time::Instant;
use turnbuckle_protocol::RpcError;
use turnbuckle_store::{
    ControlMessage, EventId, EventReplay, Position, SessionId, SessionRecord, SessionUpdate,
    StoreError, StreamTurn,
};

use super::{
    change_queue::{ChangeEventId, GetStreamReader, StreamPlace},
    change_reader::{ChangeReader, Prelude},
};
use crate::{
    http::{
        body::ResponseBody,
        changes,
        connection::ConnectionHandle,
        endpoint::{Endpoint, InFlightPermit, RequestHead},
        mcp_headers::LAST_EVENT_ID,
        post,
        responses::{self, event_stream},
        session::{ActiveSessionGuard, SessionRefresher, find_session, limits, session_not_found},
        stream::{
            EventSource, GetStream, ResumableStream,
            forwarding::{self, ForwardedReader},
        },
    },
    lifecycle::session,
    sync::lock,
};

/// Time that a stream without a reader is kept for a client that may reconnect.
const UNREAD_TTL: Duration = Duration::from_secs(5 * 60);

/// The GET streams of a session in this process.
#[derive(Default)]
pub(crate) struct GetStreams {
    state: Mutex<StreamsState>,
}

/// Most sessions have one stream, so the newest has its own field.
#[derive(Default)]
struct StreamsState {
    newest: Option<Arc<GetStream>>,
    /// Oldest first; empty if `newest` is `None`.
    older: Vec<Arc<GetStream>>,
    /// Set once the session is known to receive list changes.
    receives_list_changes: bool,
    /// Set if the current turn is that of a stream at another endpoint.
    is_turn_elsewhere: bool,
    /// The stream of the current turn, 0 if it is not known.
    turn_of: u32,
    /// The position after which the current turn began.
    turn_after: Position,
    /// The version of the record that the turn is from.
    turn_version: u32,
    /// The number of turns that are beginning. Until they have begun, no stream sends changes.
    pauses: u32,
}

/// The stream that sends a change.
pub(crate) enum ChangeSender {
    /// This stream.
    Stream(Arc<GetStream>),
    /// This stream, once its turn has begun.
    NextTurn(Arc<GetStream>),
    /// A stream at another endpoint, one that the client has to resume, or one that reads the change from the bus.
    Elsewhere,
}

/// Pauses the changes of a session while a turn begins, until this is dropped.
pub(crate) struct ChangePause<'a>(&'a GetStreams);

impl Drop for ChangePause<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.pauses -= 1;
        state.update_direct_delivery();
        // It has not got the changes of the meantime.
        if let Some(current) = state.current() {
            current.request_replay();
        }
    }
}

impl StreamsState {
    fn add(&mut self, stream: Arc<GetStream>) {
        let mut all = self.take_all();
        all.push(stream);
        // A resumed stream may be older than others.
        all.sort_by_key(|stream| stream.generation);
        self.set_all(all);
    }

    fn set_all(&mut self, mut all: Vec<Arc<GetStream>>) {
        self.newest = all.pop();
        self.older = all;
        self.update_direct_delivery();
    }

    /// Enables direct delivery of list changes if there is a single stream, it has the turn, and the session receives them.
    fn update_direct_delivery(&self) {
        if let Some(newest) = &self.newest {
            let is_alone = self.older.is_empty() && !self.is_turn_elsewhere && self.pauses == 0;
            let has_turn = newest.generation == self.turn_of;
            newest.set_receives_list_changes(is_alone && has_turn && self.receives_list_changes);
        }
    }

    fn take_all(&mut self) -> Vec<Arc<GetStream>> {
        let mut all = std::mem::take(&mut self.older);
        all.extend(self.newest.take());
        all.iter()
            .for_each(|stream| stream.set_receives_list_changes(false));
        all
    }

    /// Removes and returns the streams that have been without a reader for long enough.
    fn take_unread(&mut self, is_expired: impl Fn(Instant) -> bool) -> Vec<Arc<GetStream>> {
        let all = self.take_all().into_iter();
        let is_unread = |stream: &Arc<GetStream>| stream.unread_since().is_some_and(&is_expired);
        let (unread, rest) = all.partition(is_unread);
        self.set_all(rest);
        unread
    }

    fn find(&self, generation: u32) -> Option<&Arc<GetStream>> {
        let mut all = self.older.iter().chain(&self.newest);
        all.find(|stream| stream.generation == generation)
    }

    fn set_turn(&mut self, turn: StreamTurn, version: u32, is_elsewhere: bool) {
        let is_older = version.wrapping_sub(self.turn_version) > u32::MAX / 2;
        if is_older && self.turn_of > 0 {
            return;
        }
        let is_over = turn.generation != self.turn_of || is_elsewhere;
        if let Some(earlier) = self.find(self.turn_of).filter(|_| is_over) {
            if turn.generation == earlier.generation {
                // The client has resumed it elsewhere.
                earlier.detach();
            } else {
                earlier.request_replay();
            }
        }
        self.turn_version = version;
        self.turn_of = turn.generation;
        self.turn_after = turn.after;
        self.is_turn_elsewhere = is_elsewhere;
        self.update_direct_delivery();
    }

    /// Returns the stream for a message now: that of the current turn if it has a reader, otherwise the newest with one.
    fn current(&self) -> Option<&Arc<GetStream>> {
        let is_read = |stream: &&Arc<GetStream>| stream.unread_since().is_none();
        let with_turn = self.find(self.turn_of);
        if let Some(stream) = with_turn.filter(is_read) {
            return Some(stream);
        }
        let mut from_newest = self.newest.iter().chain(self.older.iter().rev());
        from_newest
            .find(is_read)
            .or(with_turn)
            .or(self.newest.as_ref())
    }

    fn sender_of(&self, position: Position) -> ChangeSender {
        // The reader of an earlier turn gets its changes from the bus.
        let is_earlier = position <= self.turn_after;
        match self.current() {
            _ if self.is_turn_elsewhere || is_earlier || self.pauses > 0 => ChangeSender::Elsewhere,
            None => ChangeSender::Elsewhere,
            Some(stream) if stream.generation == self.turn_of => {
                ChangeSender::Stream(stream.clone())
            }
            Some(stream) => ChangeSender::NextTurn(stream.clone()),
        }
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
    let last_id = head.headers.get(LAST_EVENT_ID);
    let last_id = last_id.map(|last_id| last_id.to_str().unwrap_or_default());
    match last_id.map(|last_id| (last_id, last_id.parse::<ChangeEventId>())) {
        Some((_, Ok(change_event))) => {
            let active = head.connection.take_session(endpoint, session_id);
            resume_get_stream(active, record, change_event, permit).await
        }
        Some((last_id, Err(_))) => {
            let last_id = last_id.parse().ok();
            resume(endpoint, session_id, &head.connection, last_id, permit).await
        }
        None => {
            let active = head.connection.take_session(endpoint, session_id);
            open(active, &record, permit).await
        }
    }
}

/// Resumes the stream of a call that an event belongs to.
async fn resume(
    endpoint: &Arc<Endpoint>,
    session_id: SessionId,
    connection: &ConnectionHandle,
    last_id: Option<EventId>,
    permit: InFlightPermit,
) -> Response<ResponseBody> {
    let Some(last_id) = last_id else {
        return unknown_event();
    };
    let active = connection.take_session(endpoint, session_id);
    SessionRefresher::start(endpoint);
    let source = match find_source(&active, last_id).await {
        Ok(Some(source)) => source,
        Ok(None) => return unknown_event(),
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

/// Rejects an event id. Not with 404, which would mean that the session has ended.
fn unknown_event() -> Response<ResponseBody> {
    responses::rpc_error(
        StatusCode::BAD_REQUEST,
        None,
        &RpcError::invalid_request(
            "`Last-Event-ID` is unknown or expired, or its stream has ended and the final response has expired; open a \
             new stream without it",
        ),
    )
}

/// Returns whether the final event of a finished stream, usually the response, has expired.
///
/// A client that resumes such a stream would see it end without an event, and reconnect again and again. Earlier gaps
/// are not reported: the final response is still sent.
fn is_final_event_lost(replay: &EventReplay) -> bool {
    replay.lost && replay.finished && replay.events.is_empty()
}

/// Opens a new stream for messages outside of calls.
async fn open(
    active: ActiveSessionGuard,
    record: &SessionRecord,
    permit: InFlightPermit,
) -> Response<ResponseBody> {
    let (stream, place) = match open_stream(&active).await {
        Ok(Some(opened)) => opened,
        Ok(None) => return session_not_found(None),
        Err(error) => return responses::service_unavailable(None, error.to_string()),
    };
    let reader = stream.attach();
    let prelude = if session::rules(record).sends_priming_event {
        Prelude::PrimingEvent
    } else {
        Prelude::Comment
    };
    respond(active, reader, place, prelude, permit).await
}

/// Opens a stream, which takes over from the streams before. Returns `None` if the session has ended.
pub(crate) async fn open_stream(
    active: &ActiveSessionGuard,
) -> Result<Option<(Arc<GetStream>, StreamPlace)>, StoreError> {
    // Paused before the position is read: a later change belongs to the new stream.
    let _pause = active.session.get_streams.pause();
    let after = active.endpoint.server.store_ref().bus.position();
    let record = begin_turn(&active.endpoint, &active.session_id, None, after).await?;
    let Some((record, turn)) = record.and_then(with_turn) else {
        return Ok(None);
    };
    let place = StreamPlace {
        position: turn.after,
        messages: 0,
    };
    let stream = GetStream::new(turn.generation, place);
    add(active, &stream, &record, turn);
    Ok(Some((stream, place)))
}

/// Resumes a stream for messages outside of calls.
async fn resume_get_stream(
    active: ActiveSessionGuard,
    record: Arc<SessionRecord>,
    last: ChangeEventId,
    permit: InFlightPermit,
) -> Response<ResponseBody> {
    let pause = active.session.get_streams.pause();
    let after = active.endpoint.server.store_ref().bus.position();
    let (endpoint, session_id) = (&active.endpoint, &active.session_id);
    let begun = if last.generation == record.stream_turns.newest_generation() {
        begin_turn(endpoint, session_id, Some(last.generation), after).await
    } else {
        // A newer stream has taken over.
        Ok(Some(record))
    };
    let record = match begun {
        Ok(Some(record)) => record,
        Ok(None) => return session_not_found(None),
        Err(error) => return responses::service_unavailable(None, error.to_string()),
    };
    let known = 1..=record.stream_turns.newest_generation();
    let Some((record, turn)) = with_turn(record).filter(|_| known.contains(&last.generation))
    else {
        return unknown_event();
    };
    let mut place = last.place;
    let stream = match active.session.get_streams.find(last.generation) {
        Some(stream) => stream,
        None => {
            // Other messages than changes were stored at the process that had the stream.
            place.messages = 0;
            GetStream::new(last.generation, place)
        }
    };
    let reader = stream.attach();
    add(&active, &stream, &record, turn);
    drop(pause);
    respond(active, reader, place, Prelude::Comment, permit).await
}

/// Returns a record with its current turn.
fn with_turn(record: Arc<SessionRecord>) -> Option<(Arc<SessionRecord>, StreamTurn)> {
    let turn = record.stream_turns.current()?;
    Some((record, turn))
}

/// Begins a turn of a stream of this endpoint, or of a new one, if it may. Returns the record of the session, or `None` if it
/// has ended.
pub(crate) async fn begin_turn(
    endpoint: &Endpoint,
    session_id: &SessionId,
    generation: Option<u32>,
    after: Position,
) -> Result<Option<Arc<SessionRecord>>, StoreError> {
    let (store, sender) = (endpoint.server.store_ref(), endpoint.sender);
    let before = store.sessions.load(session_id).await?;
    let before = before.and_then(|before| before.stream_turns.current());
    let update = SessionUpdate::BeginTurn {
        generation,
        after,
        sender,
    };
    let Some(record) = store.sessions.update(session_id, update).await? else {
        return Ok(None);
    };
    let is_elsewhere = |turn: &StreamTurn| turn.sender != sender;
    // Another endpoint may have begun a turn since the record was loaded.
    let mut earlier = record.stream_turns.turns().iter().rev().skip(1);
    let was_elsewhere =
        before.as_ref().is_some_and(is_elsewhere) || earlier.next().is_some_and(is_elsewhere);
    if let Some(turn) = record.stream_turns.current()
        && was_elsewhere
        && !is_elsewhere(&turn)
    {
        // The endpoint before reads the record again, and sends nothing after the position.
        let session = *session_id;
        let message = ControlMessage::SessionChanged { session };
        store.control.publish(message).await?;
    }
    Ok(Some(record))
}

/// Adds a stream to those of its session, and notes the current turn.
fn add(
    active: &ActiveSessionGuard,
    stream: &Arc<GetStream>,
    record: &SessionRecord,
    turn: StreamTurn,
) {
    let (endpoint, session) = (&active.endpoint, &active.session);
    session.get_streams.add(stream);
    let is_elsewhere = turn.sender != endpoint.sender;
    session
        .get_streams
        .set_turn(turn, record.version, is_elsewhere);
    endpoint
        .active_sessions
        .add_subscriber(active.session_id, session);
    if session.is_closed() {
        stream.finish();
    }
}

/// Responds with a stream.
async fn respond(
    active: ActiveSessionGuard,
    reader: GetStreamReader,
    place: StreamPlace,
    prelude: Prelude,
    permit: InFlightPermit,
) -> Response<ResponseBody> {
    SessionRefresher::start(&active.endpoint);
    // After the stream was added, because the fan-out task stops without one. The reader gets earlier changes from the bus.
    changes::start(&active.endpoint);
    changes::read_interests(&active.endpoint, &active.session_id, &active.session).await;
    let reader = ChangeReader::new(active, reader, place, prelude, permit);
    event_stream(ResponseBody::from_sse(reader.into_body()))
}

impl GetStreams {
    /// Adds a stream, unless it is there. Streams without a reader end when another is opened.
    fn add(&self, stream: &Arc<GetStream>) {
        let mut state = lock(&self.state);
        if state.find(stream.generation).is_none() {
            let unread = state.take_unread(|_| true);
            unread.iter().for_each(|stream| stream.finish());
            state.add(stream.clone());
        }
    }

    /// Pauses the changes of the streams here, because a turn begins. The stream with the turn then reads them from the bus.
    fn pause(&self) -> ChangePause<'_> {
        let mut state = lock(&self.state);
        state.pauses += 1;
        state.update_direct_delivery();
        ChangePause(self)
    }

    /// Sets the current turn, unless a newer one is known.
    pub(crate) fn set_turn(&self, turn: StreamTurn, version: u32, is_elsewhere: bool) {
        lock(&self.state).set_turn(turn, version, is_elsewhere);
    }

    /// Removes and returns the streams without a reader.
    #[cfg(test)]
    pub(crate) fn take_unread(&self) -> Vec<Arc<GetStream>> {
        lock(&self.state).take_unread(|_| true)
    }

    /// Returns a stream.
    fn find(&self, generation: u32) -> Option<Arc<GetStream>> {
        lock(&self.state).find(generation).cloned()
    }

    /// Sets the current turn from the record of the session. Streams without a reader end if it is that of another endpoint.
    pub(crate) fn read_turn(&self, record: &SessionRecord, sender: u64) {
        let mut state = lock(&self.state);
        if let Some(turn) = record.stream_turns.current() {
            state.set_turn(turn, record.version, turn.sender != sender);
        }
        if state.is_turn_elsewhere {
            let unread = state.take_unread(|_| true);
            unread.iter().for_each(|stream| stream.finish());
        }
    }

    /// Forgets that the session receives every list change here, so that its record is read for the next one.
    pub(crate) fn forget_record(&self) {
        let mut state = lock(&self.state);
        state.receives_list_changes = false;
        state.update_direct_delivery();
    }

    /// Records that the session receives every list change.
    pub(crate) fn set_receives_list_changes(&self) {
        let mut state = lock(&self.state);
        state.receives_list_changes = true;
        state.update_direct_delivery();
    }

    /// Returns whether the session is known to receive every list change.
    pub(crate) fn receives_list_changes(&self) -> bool {
        lock(&self.state).receives_list_changes
    }

    /// Returns the newest stream.
    pub(crate) fn newest(&self) -> Option<Arc<GetStream>> {
        lock(&self.state).newest.clone()
    }

    /// Returns whether the session lacks GET streams.
    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.state).newest.is_none()
    }

    /// Returns whether the streams here send no changes, because the current turn is that of a stream elsewhere.
    pub(crate) fn is_turn_elsewhere(&self) -> bool {
        lock(&self.state).is_turn_elsewhere
    }

    /// Returns the stream that sends the change at a position.
    pub(crate) fn sender_of(&self, position: Position) -> ChangeSender {
        lock(&self.state).sender_of(position)
    }

    /// Returns the stream for a message that is not a change: the one with the turn or the newest, with a reader if there is
    /// one.
    pub(crate) fn current(&self) -> Option<Arc<GetStream>> {
        lock(&self.state).current().cloned()
    }

    /// Removes and returns the streams that had no reader for [`UNREAD_TTL`].
    pub(crate) fn expire(&self, now: Instant) -> Vec<Arc<GetStream>> {
        lock(&self.state).take_unread(|since| now - since >= UNREAD_TTL)
    }

    /// Removes and returns all streams.
    pub(crate) fn take_all(&self) -> Vec<Arc<GetStream>> {
        lock(&self.state).take_all()
    }
}
