//! Finds the session of a request, and keeps its per-process state: running calls and open streams.
//!
//! The state is created when a session has something to do and removed when it is idle, so an idle session consists only of
//! its record in the store.

use std::{
    collections::{HashMap, hash_map},
    hash::{BuildHasher, BuildHasherDefault},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use ::http::{Response, StatusCode};
use turnbuckle_protocol::{RequestId, RpcError};
use turnbuckle_store::{
    InstanceSlot, RandomIdHasher, SessionId, SessionRecord, StoreError, StreamId,
};

use crate::{
    Server,
    http::{
        body::ResponseBody,
        changes::{ChangeSubscriber, ChangeSubscribers},
        connection::ConnectionHandle,
        endpoint::{Endpoint, RequestHead},
        mcp_headers::MCP_SESSION_ID,
        responses,
        session::SessionRefresher,
        stream::{GetStreams, StreamChannel},
    },
    lifecycle::{runtime::SessionRuntime, session},
    sync::lock,
};

/// Finds the session of a request, and checks its owner and protocol version.
pub(crate) async fn find_session(
    endpoint: &Arc<Endpoint>,
    head: &RequestHead,
    id: Option<&RequestId>,
) -> Result<(SessionId, Arc<SessionRecord>), Response<ResponseBody>> {
    let mut values = head.headers.get_all(MCP_SESSION_ID).iter();
    let (Some(session), None) = (values.next(), values.next()) else {
        return Err(missing_session_id(endpoint, id));
    };
    let session_id: Option<SessionId> = session.to_str().ok().and_then(|text| text.parse().ok());
    let Some(session_id) = session_id else {
        return Err(session_not_found(id));
    };
    if !endpoint.server.may_serve_sessions() {
        Box::pin(join_instances(endpoint, id)).await?;
    }
    let sessions = &endpoint.server.store_ref().sessions;
    let record = match sessions.load_for_request(&session_id).await {
        Ok(Some(found)) if head.is_from_owner(found.record.principal.as_ref()) => {
            if !found.is_touched {
                SessionRefresher::note_request(endpoint, session_id);
            }
            found.record
        }
        Ok(_) => return Err(session_not_found(id)),
        Err(error) => return Err(store_unavailable(endpoint, id, &error)),
    };
    match check_version(&record, head) {
        Ok(()) => Ok((session_id, record)),
        Err(error) => Err(responses::rpc_error(StatusCode::BAD_REQUEST, id, &error)),
    }
}

/// Joins the instances of a shared store, or rejects the request if that is not possible.
pub(crate) async fn join_instances(
    endpoint: &Endpoint,
    id: Option<&RequestId>,
) -> Result<(), Response<ResponseBody>> {
    if let Some(instance) = endpoint.server.instance()
        && let Err(error) = instance.join().await
    {
        return Err(store_unavailable(endpoint, id, &error));
    }
    Ok(())
}

fn check_version(record: &SessionRecord, head: &RequestHead) -> Result<(), RpcError> {
    head.version.reject_duplicate()?;
    session::check_version(record, head.version())
}

/// Rejects a message without a session id.
pub(crate) fn missing_session_id(
    endpoint: &Endpoint,
    id: Option<&RequestId>,
) -> Response<ResponseBody> {
    let error = session::session_required(&endpoint.server);
    responses::rpc_error(StatusCode::BAD_REQUEST, id, &error)
}

/// Rejects a session id that is unknown, expired, or belongs to another caller. The response is the same for all three.
pub(crate) fn session_not_found(id: Option<&RequestId>) -> Response<ResponseBody> {
    let error =
        RpcError::invalid_request("session not found; send `initialize` to start a new one");
    responses::rpc_error(StatusCode::NOT_FOUND, id, &error)
}

/// Responds with 503 when the session store failed.
pub(crate) fn store_unavailable(
    endpoint: &Endpoint,
    id: Option<&RequestId>,
    error: &StoreError,
) -> Response<ResponseBody> {
    endpoint.log_limiters.store_failed(error);
    responses::service_unavailable(id, "the session store is unavailable")
}

/// Number of shards of the session table. Sessions in different shards do not contend for a lock.
pub(super) const SHARDS: usize = 32;

/// The sessions that are active in this process.
pub(crate) struct ActiveSessions {
    shards: [Mutex<SessionShard>; SHARDS],
    subscribers: ChangeSubscribers,
}

/// The keys are ids that the server generated, so clients cannot choose colliding ones.
type SessionShard = HashMap<SessionId, ActiveEntry, SessionHasher>;

pub(super) type SessionHasher = BuildHasherDefault<RandomIdHasher>;

struct ActiveEntry {
    session: Arc<ActiveSession>,
    guards: usize,
}

impl ActiveEntry {
    /// Returns whether the session can be removed from the table.
    fn is_idle(&self) -> bool {
        self.guards == 0 && self.session.get_streams.is_empty()
    }

    /// Returns whether a request runs, a stream is open, or a connection keeps the session active.
    fn is_in_use(&self) -> bool {
        self.guards > 0 || self.session.runtime.in_flight() > 0
    }
}

/// The per-process state of a session.
pub(crate) struct ActiveSession {
    /// Running calls and pending client requests.
    pub(crate) runtime: Arc<SessionRuntime>,
    pub(crate) get_streams: GetStreams,
    /// Its key in the table of change subscribers, once it has one.
    pub(crate) subscriber_key: OnceLock<u64>,
    /// The streams that are still written to.
    channels: Mutex<HashMap<StreamId, Arc<StreamChannel>>>,
    closed: AtomicBool,
}

impl Default for ActiveSessions {
    fn default() -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            subscribers: ChangeSubscribers::default(),
        }
    }
}

impl ActiveSessions {
    /// Activates a session until the guard is dropped.
    pub(crate) fn activate(endpoint: &Arc<Endpoint>, session_id: SessionId) -> ActiveSessionGuard {
        let mut shard = endpoint.active_sessions.shard(&session_id);
        let entry = shard.entry(session_id).or_insert_with(|| ActiveEntry {
            session: Arc::new(ActiveSession::new(&endpoint.server)),
            guards: 0,
        });
        entry.guards += 1;
        ActiveSessionGuard {
            endpoint: endpoint.clone(),
            session_id,
            session: entry.session.clone(),
        }
    }

    /// Cancels the calls and ends the streams of a session that has ended.
    pub(crate) fn close(&self, session_id: &SessionId) {
        let entry = self.shard(session_id).remove(session_id);
        if let Some(entry) = entry {
            entry.session.close();
            self.subscribers.streams_removed(&entry.session);
        }
    }

    /// Cancels the calls and ends the streams of all sessions.
    pub(crate) fn close_all(&self) {
        for shard in &self.shards {
            let entries = std::mem::take(&mut *lock(shard));
            entries.values().for_each(|entry| entry.session.close());
        }
        self.subscribers.clear();
    }

    /// Returns whether a session has a running request or an open stream, or is kept active by a connection.
    pub(crate) fn is_in_use(&self, session_id: &SessionId) -> bool {
        let shard = self.shard(session_id);
        shard.get(session_id).is_some_and(ActiveEntry::is_in_use)
    }

    /// Returns the sessions that are in use, as [`is_in_use`](Self::is_in_use) tells.
    pub(super) fn in_use(&self) -> Vec<SessionId> {
        let mut in_use = Vec::new();
        for shard in &self.shards {
            let shard = lock(shard);
            let used = shard.iter().filter(|(_, entry)| entry.is_in_use());
            in_use.extend(used.map(|(session_id, _)| *session_id));
        }
        in_use
    }

    /// Returns the sessions that are active.
    pub(crate) fn ids(&self) -> Vec<SessionId> {
        let shards = self.shards.iter();
        shards
            .flat_map(|shard| lock(shard).keys().copied().collect::<Vec<_>>())
            .collect()
    }

    /// Fails the client requests with ids of other slots than this one.
    pub(super) fn fail_requests_of_other_slots(&self, slot: InstanceSlot) {
        for session in self.ids().iter().filter_map(|id| self.find(id)) {
            session.runtime.fail_requests_of_other_slots(slot);
        }
    }

    /// Returns the number of active sessions.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).len()).sum()
    }

    fn release(&self, session_id: &SessionId, session: &Arc<ActiveSession>) {
        let mut shard = self.shard(session_id);
        let hash_map::Entry::Occupied(mut occupied) = shard.entry(*session_id) else {
            return;
        };
        let entry = occupied.get_mut();
        // A closed session is no longer in the table; another entry may have taken its key.
        if !Arc::ptr_eq(&entry.session, session) {
            return;
        }
        entry.guards -= 1;
        if entry.is_idle() {
            occupied.remove();
        }
    }

    /// Adds a session with a GET stream to the change subscribers.
    pub(crate) fn add_subscriber(&self, session_id: SessionId, session: &Arc<ActiveSession>) {
        self.subscribers.stream_added(session_id, session);
    }

    /// Returns the sessions that receive change notifications.
    pub(crate) fn subscribers(&self) -> Arc<[ChangeSubscriber]> {
        self.subscribers.snapshot()
    }

    /// Returns the table of the sessions that receive change notifications.
    pub(crate) fn subscriber_table(&self) -> &ChangeSubscribers {
        &self.subscribers
    }

    /// Returns an active session.
    pub(crate) fn find(&self, session_id: &SessionId) -> Option<Arc<ActiveSession>> {
        let shard = self.shard(session_id);
        shard.get(session_id).map(|entry| entry.session.clone())
    }

    /// Returns whether no session receives change notifications.
    pub(crate) fn has_no_subscribers(&self) -> bool {
        self.subscribers.is_empty()
    }

    /// Updates the change subscribers after streams of a session ended, and removes the session if it is idle.
    pub(crate) fn remove_if_idle(&self, session_id: &SessionId, session: &ActiveSession) {
        self.subscribers.streams_removed(session);
        let mut shard = self.shard(session_id);
        if shard.get(session_id).is_some_and(ActiveEntry::is_idle) {
            shard.remove(session_id);
        }
    }

    fn shard(&self, session_id: &SessionId) -> MutexGuard<'_, SessionShard> {
        lock(&self.shards[shard_of(session_id)])
    }
}

/// Returns the shard of a session in a table with [`SHARDS`].
pub(super) fn shard_of(session_id: &SessionId) -> usize {
    // The hash map of a shard uses the lowest and highest bits of the same hash, so use bits from the middle.
    let hash_bits = SessionHasher::default().hash_one(session_id) >> 32;
    // The remainder is below the number of shards, so it fits.
    (hash_bits % SHARDS as u64) as usize
}

impl ActiveSession {
    fn new(server: &Server) -> Self {
        Self {
            runtime: Arc::new(SessionRuntime::of_server(server)),
            get_streams: GetStreams::default(),
            subscriber_key: OnceLock::new(),
            channels: Mutex::default(),
            closed: AtomicBool::new(false),
        }
    }

    /// Adds a stream, so that a client can resume it.
    pub(crate) fn add_channel(&self, channel: &Arc<StreamChannel>) {
        let finished = {
            let mut channels = lock(&self.channels);
            channels.insert(channel.stream, channel.clone());
            self.closed.load(Ordering::SeqCst)
        };
        if finished {
            channel.finish();
        }
    }

    /// Returns a stream that is still written to.
    pub(crate) fn channel(&self, stream: StreamId) -> Option<Arc<StreamChannel>> {
        lock(&self.channels).get(&stream).cloned()
    }

    /// Removes a stream that is complete.
    pub(crate) fn remove_channel(&self, stream: StreamId) {
        lock(&self.channels).remove(&stream);
    }

    /// Returns whether the session has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    fn close(&self) {
        let channels = {
            let mut channels = lock(&self.channels);
            self.closed.store(true, Ordering::SeqCst);
            std::mem::take(&mut *channels)
        };
        self.runtime.close();
        self.runtime.cancel_all();
        channels.values().for_each(|channel| channel.finish());
        let get_streams = self.get_streams.take_all();
        get_streams.iter().for_each(|stream| stream.finish());
    }
}

/// Keeps a session active until it is dropped.
pub(crate) struct ActiveSessionGuard {
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) session_id: SessionId,
    pub(crate) session: Arc<ActiveSession>,
}

impl Clone for ActiveSessionGuard {
    fn clone(&self) -> Self {
        let mut shard = self.endpoint.active_sessions.shard(&self.session_id);
        if let Some(entry) = shard.get_mut(&self.session_id)
            && Arc::ptr_eq(&entry.session, &self.session)
        {
            entry.guards += 1;
        }
        Self {
            endpoint: self.endpoint.clone(),
            session_id: self.session_id,
            session: self.session.clone(),
        }
    }
}

impl Drop for ActiveSessionGuard {
    fn drop(&mut self) {
        self.endpoint
            .active_sessions
            .release(&self.session_id, &self.session);
    }
}

impl ConnectionHandle {
    /// Activates a session, or takes it over from the last call on this connection.
    pub(crate) fn take_session(
        &self,
        endpoint: &Arc<Endpoint>,
        session_id: SessionId,
    ) -> ActiveSessionGuard {
        let last_session = self.last_session().and_then(|last_session| {
            lock(last_session).take_if(|last_session| {
                last_session.session_id == session_id && !last_session.session.is_closed()
            })
        });
        last_session.unwrap_or_else(|| ActiveSessions::activate(endpoint, session_id))
    }

    /// Keeps a session active for the next call on this connection.
    pub(crate) fn return_session(&self, active: ActiveSessionGuard) {
        let previous = match self.last_session() {
            Some(last_session) => lock(last_session).replace(active),
            None => Some(active),
        };
        // Dropped after the lock is released.
        drop(previous);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use crate::http::{HttpOptions, connection::ConnectionActivity};

    fn endpoint() -> Arc<Endpoint> {
        let server = Server::new("test", "1.0.0");
        Arc::new(Endpoint::new(server, HttpOptions::default(), None))
    }

    fn connection() -> ConnectionHandle {
        ConnectionHandle::new(None, Arc::new(ConnectionActivity::new(Instant::now())))
    }

    fn session_id() -> SessionId {
        SessionId::generate().unwrap()
    }

    #[test]
    fn a_session_stays_active_until_another_is_used_or_the_connection_ends() {
        let (endpoint, connection) = (endpoint(), connection());
        let (first, second) = (session_id(), session_id());

        let active = connection.take_session(&endpoint, first);
        let session = active.session.clone();
        connection.return_session(active);
        let again = connection.take_session(&endpoint, first);
        assert!(Arc::ptr_eq(&again.session, &session));
        connection.return_session(again);
        let other = connection.take_session(&endpoint, second);
        assert_eq!(endpoint.active_sessions.len(), 2);
        connection.return_session(other);
        assert_eq!(endpoint.active_sessions.len(), 1);

        drop(connection);
        assert_eq!(endpoint.active_sessions.len(), 0);
    }

    #[test]
    fn a_closed_session_is_not_reused() {
        let (endpoint, connection) = (endpoint(), connection());
        let session_id = session_id();
        connection.return_session(connection.take_session(&endpoint, session_id));

        endpoint.active_sessions.close(&session_id);
        let active = connection.take_session(&endpoint, session_id);

        assert!(!active.session.is_closed());
    }

    #[test]
    fn an_unknown_connection_keeps_no_session() {
        let (endpoint, connection) = (endpoint(), ConnectionHandle::default());

        connection.return_session(connection.take_session(&endpoint, session_id()));

        assert_eq!(endpoint.active_sessions.len(), 0);
    }
}
