//! The streams that are open, by the ids that their clients post with.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use tokio::sync::Semaphore;
use turnbuckle_protocol::Principal;
use turnbuckle_store::{SessionId, SessionOwner, StoreError};

use super::{HttpSse, Place};
use crate::{
    Server,
    http::{endpoint::Head, quota},
    lines::{self, Connection, Sink},
};

/// Bytes that may wait for a client that is slow to read its stream.
const HIGH_WATER: usize = 64 * 1024;

/// Bytes that a client may say about itself in its handshake.
const HANDSHAKE: usize = 64 * 1024;

/// The name of the id in the query.
const SESSION: &str = "sessionId=";

/// All clients of this transport, and what they share.
pub(in crate::http) struct Streams {
    options: HttpSse,
    /// Written when a stream opens or ends; posting only reads.
    open: RwLock<HashMap<SessionId, Arc<Stream>>>,
    /// One permit for each call that may be running, whoever asked for it.
    calls: Arc<Semaphore>,
    max_calls: u32,
}

/// One client.
pub(super) struct Stream {
    pub(super) connection: Arc<Connection>,
    owner: Option<Arc<Principal>>,
    /// Whose quota it counts against.
    holder: SessionOwner,
}

impl Streams {
    pub(in crate::http) fn new(options: HttpSse, max_calls: usize) -> Self {
        let max_calls = u32::try_from(max_calls.min(Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        Self {
            options,
            open: RwLock::default(),
            calls: Arc::new(Semaphore::new(max_calls as usize)),
            max_calls,
        }
    }

    /// What a path is for, if it is one of ours.
    pub(in crate::http) fn place(&self, path: &str) -> Option<Place> {
        self.options.all_paths().find_map(|paths| {
            if path == paths.stream {
                Some(Place::Stream)
            } else if path == paths.messages {
                Some(Place::Messages)
            } else {
                None
            }
        })
    }

    /// Opens a stream for the client that asked for `path`, if there is room for another.
    pub(super) fn open(
        self: Arc<Self>,
        server: &Server,
        head: &Head,
        path: &str,
    ) -> Result<Opened, StoreError> {
        let session = SessionId::generate()?;
        let options = lines::Options {
            max_in_flight: self.max_calls,
            handshake_limit: HANDSHAKE,
            ..lines::Options::default()
        };
        let sink = Sink::holding(HIGH_WATER);
        let stream = Arc::new(Stream {
            connection: Connection::with(server.clone(), options, self.calls.clone(), sink),
            owner: head.principal(),
            holder: quota::owner(head),
        });
        let mut open = self.write();
        if open.len() >= self.options.max_streams {
            return Err(StoreError::Full { what: "stream" });
        }
        let limit = self.options.streams_of(&stream.holder);
        let held = open.values().filter(|it| it.holder == stream.holder);
        if held.count() >= limit {
            let what = "streams of one caller";
            return Err(StoreError::TooMany { what, limit });
        }
        open.insert(session, stream.clone());
        drop(open);
        let paths = self.options.all_paths().find(|it| it.stream == path);
        let messages = &paths.unwrap_or(&self.options.paths).messages;
        Ok(Opened {
            uri: format!("{messages}?{SESSION}{session}"),
            streams: self,
            session,
            stream,
        })
    }

    /// Finds the stream with an id, if it belongs to whoever sent the request.
    pub(super) fn find(&self, session: SessionId, head: &Head) -> Option<Arc<Stream>> {
        let stream = self.read().get(&session).cloned()?;
        head.is_from(stream.owner.as_deref()).then_some(stream)
    }

    // Nothing that runs under this lock stops halfway, so a poisoned one holds a sound table.

    fn read(&self) -> RwLockReadGuard<'_, HashMap<SessionId, Arc<Stream>>> {
        self.open.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<SessionId, Arc<Stream>>> {
        self.open.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the id from a query.
pub(super) fn session(query: &str) -> Option<SessionId> {
    let mut named = query
        .split('&')
        .filter_map(|pair| pair.strip_prefix(SESSION));
    match (named.next(), named.next()) {
        (Some(id), None) => id.parse().ok(),
        _ => None,
    }
}

/// Keeps a stream open; all that belongs to it ends with this.
pub(super) struct Opened {
    streams: Arc<Streams>,
    session: SessionId,
    stream: Arc<Stream>,
    uri: String,
}

impl Opened {
    pub(super) fn connection(&self) -> &Arc<Connection> {
        &self.stream.connection
    }

    /// Where the client is to post, seen from where it opened the stream.
    pub(super) fn uri(&self) -> &str {
        &self.uri
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.streams.write().remove(&self.session);
        self.stream.connection.end();
    }
}
