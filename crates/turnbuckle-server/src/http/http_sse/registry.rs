//! The open HTTP+SSE sessions, by session id.

use std::{
    collections::HashMap,
    sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use tokio::sync::Semaphore;
use turnbuckle_protocol::Principal;
use turnbuckle_store::{SessionId, SessionOwner, StoreError};

use crate::{
    Server,
    http::{
        HttpOptions, HttpSse,
        caller_shares::{CallerShares, LimitUsage},
        endpoint::RequestHead,
        http_sse::HttpSseRoute,
        session::limits,
    },
    ndjson::{self, NdjsonConnection, WriteQueue},
    sync::{read, write},
};

/// Number of bytes that may wait for a slow client.
const HIGH_WATER_BYTES: usize = 64 * 1024;

/// Maximum size of the client info in `initialize`.
const MAX_HANDSHAKE_BYTES: usize = 64 * 1024;

/// The query parameter with the session id.
const SESSION_QUERY_PREFIX: &str = "sessionId=";

/// All sessions of this transport, and their shared limits.
pub(crate) struct HttpSseRegistry {
    options: HttpSse,
    /// Write-locked when a stream opens or ends; posting takes a read lock.
    sessions: RwLock<HashMap<SessionId, Arc<HttpSseSession>>>,
    /// One permit per running call, shared by all sessions.
    calls: Arc<Semaphore>,
    max_calls: u32,
    max_calls_per_session: usize,
}

/// The session of one client.
pub(crate) struct HttpSseSession {
    pub(crate) connection: Arc<NdjsonConnection>,
    principal: Option<Arc<Principal>>,
    /// The owner of the quota that it counts against.
    quota_owner: SessionOwner,
}

impl HttpSseRegistry {
    pub(crate) fn new(options: HttpSse, http: &HttpOptions) -> Self {
        let max_calls = http.max_in_flight.min(Semaphore::MAX_PERMITS);
        let max_calls = u32::try_from(max_calls).unwrap_or(u32::MAX);
        Self {
            options,
            sessions: RwLock::default(),
            calls: Arc::new(Semaphore::new(max_calls as usize)),
            max_calls,
            max_calls_per_session: http.max_calls_per_session,
        }
    }

    /// Returns the route of a path, if the path belongs to this transport.
    pub(crate) fn route(&self, path: &str) -> Option<HttpSseRoute> {
        self.options.all_paths().find_map(|paths| {
            if path == paths.stream {
                Some(HttpSseRoute::Stream)
            } else if path == paths.messages {
                Some(HttpSseRoute::Messages)
            } else {
                None
            }
        })
    }

    /// Opens a session for a GET on `path`, within the limits.
    pub(crate) fn open(
        self: Arc<Self>,
        server: &Server,
        head: &RequestHead,
        path: &str,
    ) -> Result<HttpSseSessionGuard, StoreError> {
        let session_id = SessionId::generate()?;
        let options = ndjson::NdjsonOptions {
            max_in_flight: self.max_calls,
            max_own_calls: self.max_calls_per_session,
            max_initialize_bytes: MAX_HANDSHAKE_BYTES,
            ..ndjson::NdjsonOptions::default()
        };
        let sink = WriteQueue::with_high_water(HIGH_WATER_BYTES);
        let session = Arc::new(HttpSseSession {
            connection: NdjsonConnection::with(server.clone(), options, self.calls.clone(), sink),
            principal: head.principal(),
            quota_owner: limits::quota_owner(head),
        });
        let mut sessions = self.write();
        if sessions.len() >= self.options.max_streams {
            return Err(StoreError::Full { what: "stream" });
        }
        let limit = self.options.max_streams_for(&session.quota_owner);
        let of_same_owner = sessions
            .values()
            .filter(|it| it.quota_owner == session.quota_owner);
        if of_same_owner.count() >= limit {
            let what = "streams of one caller";
            return Err(StoreError::TooMany { what, limit });
        }
        sessions.insert(session_id, session.clone());
        drop(sessions);
        let paths = self.options.all_paths().find(|it| it.stream == path);
        let messages = &paths.unwrap_or(&self.options.paths).messages;
        Ok(HttpSseSessionGuard {
            uri: format!("{messages}?{SESSION_QUERY_PREFIX}{session_id}"),
            registry: self,
            session_id,
            session,
        })
    }

    /// Returns whether the caller of a session may have more calls.
    pub(crate) fn allow_call(&self, shares: &CallerShares, session: &HttpSseSession) -> bool {
        let (max_calls, free) = (self.max_calls as usize, self.calls.available_permits());
        let running = max_calls.saturating_sub(free);
        if running < shares.part_of(max_calls) {
            return true;
        }
        let owner = &session.quota_owner;
        let by_caller: usize = self
            .read()
            .values()
            .filter(|it| it.quota_owner == *owner)
            .map(|it| it.connection.runtime().in_flight())
            .sum();
        let usage = LimitUsage {
            by_caller,
            by_others: running.saturating_sub(by_caller),
            free,
        };
        shares.allow(owner, &usage)
    }

    /// Finds a session by its id, if it belongs to the sender of the request.
    pub(crate) fn find(&self, id: SessionId, head: &RequestHead) -> Option<Arc<HttpSseSession>> {
        let session = self.read().get(&id).cloned()?;
        head.is_from_owner(session.principal.as_deref())
            .then_some(session)
    }

    fn read(&self) -> RwLockReadGuard<'_, HashMap<SessionId, Arc<HttpSseSession>>> {
        read(&self.sessions)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<SessionId, Arc<HttpSseSession>>> {
        write(&self.sessions)
    }
}

/// Parses the session id from a query.
pub(crate) fn session_id(query: &str) -> Option<SessionId> {
    let mut ids = query
        .split('&')
        .filter_map(|pair| pair.strip_prefix(SESSION_QUERY_PREFIX));
    match (ids.next(), ids.next()) {
        (Some(id), None) => id.parse().ok(),
        _ => None,
    }
}

/// Keeps a session open. Dropping it ends the session.
pub(crate) struct HttpSseSessionGuard {
    registry: Arc<HttpSseRegistry>,
    session_id: SessionId,
    session: Arc<HttpSseSession>,
    uri: String,
}

impl HttpSseSessionGuard {
    pub(crate) fn connection(&self) -> &Arc<NdjsonConnection> {
        &self.session.connection
    }

    /// Returns the URL for posting messages, relative to that of the stream.
    pub(crate) fn uri(&self) -> &str {
        &self.uri
    }
}

impl Drop for HttpSseSessionGuard {
    fn drop(&mut self) {
        self.registry.write().remove(&self.session_id);
        self.session.connection.end();
    }
}
