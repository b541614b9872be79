//! HTTP connections: accepting them, their timeouts, and the state that the requests of one connection share.

mod accept_loop;
mod header_timer;
#[cfg(not(feature = "http2"))]
mod http1;
#[cfg(feature = "http2")]
mod http2;
mod lingering_close;
mod listener;
mod write_timeout;

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

pub(super) use accept_loop::serve;
#[cfg(not(feature = "http2"))]
use http1::serve_connection;
#[cfg(feature = "http2")]
use http2::serve_connection;
pub use listener::{Listener, MemoryConnector, MemoryListener, memory};
use tokio::time::Instant;

use super::session::ActiveSessionGuard;
use crate::lifecycle::connection::ConnectionState;

/// The idle state that the parts of one connection share.
///
/// A request costs two stores here and does not read the clock: HTTP/1.1 reads it anyway when it starts to wait for a
/// header.
pub(super) struct ConnectionActivity {
    pub(super) started: Instant,
    /// Milliseconds from `started` until the connection became idle, or [`BUSY`].
    idle_since_ms: AtomicU64,
    /// Number of open HTTP/2 streams.
    pub(super) streams: AtomicUsize,
    /// Set while response bytes wait for the client to read.
    write_blocked: AtomicBool,
    linger_requested: AtomicBool,
}

/// The value of `idle_since_ms` while a request is being read or handled.
const BUSY: u64 = u64::MAX;

impl ConnectionActivity {
    /// Creates the state of a connection that was just accepted. `started` must be the same for all connections that are
    /// compared.
    pub(super) fn new(started: Instant) -> Self {
        let activity = Self {
            started,
            idle_since_ms: AtomicU64::new(BUSY),
            streams: AtomicUsize::new(0),
            write_blocked: AtomicBool::new(false),
            linger_requested: AtomicBool::new(false),
        };
        activity.mark_idle(Instant::now());
        activity
    }

    /// Marks the connection as busy: a request has arrived.
    pub(super) fn request_started(&self) {
        self.idle_since_ms.store(BUSY, Ordering::Relaxed);
    }

    /// Marks the connection as idle since the given time.
    pub(super) fn mark_idle(&self, since: Instant) {
        let elapsed = self.millis_since_start(since);
        self.idle_since_ms.store(elapsed, Ordering::Relaxed);
    }

    /// Marks a write as blocked because the client does not read.
    pub(super) fn set_write_blocked(&self) {
        self.write_blocked.store(true, Ordering::Relaxed);
    }

    /// Marks writes as unblocked. Idle time counts from now, since the connection was not idle before.
    pub(super) fn clear_write_blocked(&self, now: Instant) {
        let now = self.millis_since_start(now);
        let idle_from_now = |since| (since != BUSY).then_some(now);
        let _ =
            self.idle_since_ms
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, idle_from_now);
        self.write_blocked.store(false, Ordering::Relaxed);
    }

    fn millis_since_start(&self, at: Instant) -> u64 {
        let elapsed = at.saturating_duration_since(self.started).as_millis();
        u64::try_from(elapsed).unwrap_or(BUSY - 1)
    }

    /// Returns since when the connection is idle, in milliseconds. Returns `None` while it has a request and while its client
    /// does not read.
    pub(super) fn idle_since(&self) -> Option<u64> {
        let since = self.idle_since_ms.load(Ordering::Relaxed);
        let has_streams = self.streams.load(Ordering::Relaxed) > 0;
        let write_blocked = self.write_blocked.load(Ordering::Relaxed);
        (since != BUSY && !has_streams && !write_blocked).then_some(since)
    }

    /// Requests that the connection reads and discards input for a while before it is closed.
    pub(super) fn request_linger(&self) {
        self.linger_requested.store(true, Ordering::Relaxed);
    }

    pub(super) fn should_linger(&self) -> bool {
        self.linger_requested.load(Ordering::Relaxed)
    }
}

/// The connection of a request. Empty for requests of an [`HttpService`](crate::http::HttpService), where the connection is
/// not known.
#[derive(Clone, Default)]
pub(super) struct ConnectionHandle {
    state: Option<Arc<HttpConnectionState>>,
}

struct HttpConnectionState {
    peer: Option<SocketAddr>,
    connection: Arc<ConnectionState>,
    activity: Arc<ConnectionActivity>,
    /// The session of the last call. Most connections are used for one session, which then stays active between calls.
    last_session: Mutex<Option<ActiveSessionGuard>>,
}

impl ConnectionHandle {
    pub(super) fn new(peer: Option<SocketAddr>, activity: Arc<ConnectionActivity>) -> Self {
        Self {
            state: Some(Arc::new(HttpConnectionState {
                peer,
                connection: Arc::default(),
                activity,
                last_session: Mutex::default(),
            })),
        }
    }

    pub(super) fn peer(&self) -> Option<SocketAddr> {
        self.state.as_ref()?.peer
    }

    /// Returns the session that stays active between calls, if the connection is known.
    pub(super) fn last_session(&self) -> Option<&Mutex<Option<ActiveSessionGuard>>> {
        Some(&self.state.as_ref()?.last_session)
    }

    pub(super) fn connection_state(&self) -> Option<Arc<ConnectionState>> {
        Some(self.state.as_ref()?.connection.clone())
    }

    /// Requests a lingering close of the connection.
    pub(super) fn request_linger(&self) {
        if let Some(state) = &self.state {
            state.activity.request_linger();
        }
    }

    /// Ends the subscriptions of this connection, with their result.
    pub(super) fn close(&self) {
        if let Some(state) = &self.state {
            state.connection.close();
        }
    }
}
