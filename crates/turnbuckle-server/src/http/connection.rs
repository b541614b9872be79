//! HTTP connections: accepting them, their timeouts, and the state that the requests of one connection share.

mod accept_loop;
mod header_deadline;
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
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

pub(super) use accept_loop::serve;
#[cfg(not(feature = "http2"))]
use http1::serve_connection;
#[cfg(feature = "http2")]
use http2::serve_connection;
pub use listener::{Listener, MemoryConnector, MemoryListener, memory};
use tokio::time::Instant;

use super::{caller_shares::CallerUsage, session::ActiveSessionGuard};
use crate::lifecycle::connection::ConnectionState;

/// The idle state that the parts of one connection share.
///
/// A request of HTTP/1.1 costs three writes here and reads the clock once, when its response has been passed to hyper.
pub(super) struct ConnectionActivity {
    pub(super) started: Instant,
    /// The number of open requests, above [`REQUEST`]; without any, the milliseconds from `started` until the connection
    /// became idle, or [`CLOSING`]. It is one value, so that a connection cannot be closed when a request has just begun.
    state: AtomicU64,
    /// Set while response bytes wait for the client to read.
    write_blocked: AtomicBool,
    /// Set once an HTTP/1.1 connection has received a request.
    had_request: AtomicBool,
    linger_requested: AtomicBool,
}

/// Shortest time between two checks of the timeouts of a connection.
const MIN_CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// Whether a connection may still run a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestAdmission {
    Accepted,
    /// The connection is closed in favor of another one, so the request must not run.
    ConnectionClosing,
}

/// One open request. The bits below are enough for 500 years in milliseconds.
const REQUEST: u64 = 1 << 44;

/// The state of a connection that is closed in favor of another one. It accepts no request any more.
const CLOSING: u64 = REQUEST - 1;

impl ConnectionActivity {
    /// Creates the state of a connection that was just accepted. `started` must be the same for all connections that are
    /// compared.
    pub(super) fn new(started: Instant) -> Self {
        let activity = Self {
            started,
            state: AtomicU64::new(0),
            write_blocked: AtomicBool::new(false),
            had_request: AtomicBool::new(false),
            linger_requested: AtomicBool::new(false),
        };
        activity.mark_idle(Instant::now());
        activity
    }

    /// Marks an HTTP/1.1 connection as busy, unless it is closing: a request has arrived.
    pub(super) fn request_started(&self) -> RequestAdmission {
        self.had_request.store(true, Ordering::Relaxed);
        if self.state.swap(REQUEST, Ordering::Relaxed) != CLOSING {
            return RequestAdmission::Accepted;
        }
        self.state.store(CLOSING, Ordering::Relaxed);
        RequestAdmission::ConnectionClosing
    }

    /// Marks an HTTP/1.1 connection as idle, unless it is closing: a response has been passed to hyper.
    pub(super) fn request_ended(&self) {
        // While a request is open, the connection cannot start to close.
        if self.state.load(Ordering::Relaxed) != CLOSING {
            self.mark_idle(Instant::now());
        }
    }

    /// Returns whether the HTTP/1.1 connection has received a request.
    pub(super) fn had_request(&self) -> bool {
        self.had_request.load(Ordering::Relaxed)
    }

    /// Marks an HTTP/1.1 connection as idle since the given time.
    pub(super) fn mark_idle(&self, since: Instant) {
        self.state
            .store(self.millis_since_start(since), Ordering::Relaxed);
    }

    /// Closes the connection if it has been idle since the given time. From then on it accepts no request.
    pub(super) fn try_close(&self, idle_since: u64) -> bool {
        self.idle_since() == Some(idle_since)
            && self
                .state
                .compare_exchange(idle_since, CLOSING, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    /// Marks a write as blocked because the client does not read.
    pub(super) fn set_write_blocked(&self) {
        self.write_blocked.store(true, Ordering::Relaxed);
    }

    /// Marks writes as unblocked. Idle time counts from now, since the connection was not idle before.
    pub(super) fn clear_write_blocked(&self, now: Instant) {
        let now = self.millis_since_start(now);
        let _ = self.update(|state| (state < CLOSING).then_some(now));
        self.write_blocked.store(false, Ordering::Relaxed);
    }

    fn update(&self, change: impl FnMut(u64) -> Option<u64>) -> Result<u64, u64> {
        self.state
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, change)
    }

    /// Returns the milliseconds from `started` to the given time.
    pub(super) fn millis_since_start(&self, at: Instant) -> u64 {
        let elapsed = at.saturating_duration_since(self.started).as_millis();
        u64::try_from(elapsed).map_or(CLOSING - 1, |millis| millis.min(CLOSING - 1))
    }

    /// Returns since when the connection is idle, in milliseconds. Returns `None` while it has a request and while its client
    /// does not read.
    pub(super) fn idle_since(&self) -> Option<u64> {
        let since = self.state.load(Ordering::Relaxed);
        let write_blocked = self.write_blocked.load(Ordering::Relaxed);
        (since < CLOSING && !write_blocked).then_some(since)
    }

    /// Returns how long the connection has waited for a request. Returns `None` while it has one, while its client does not
    /// read, and during a lingering close, which has its own limits.
    pub(super) fn idle_for(&self, now: Instant) -> Option<Duration> {
        let since = self.idle_since().filter(|_| !self.should_linger())?;
        Some(now.saturating_duration_since(self.started + Duration::from_millis(since)))
    }

    /// Requests that the connection reads and discards input for a while before it is closed.
    pub(super) fn request_linger(&self) {
        self.linger_requested.store(true, Ordering::Relaxed);
    }

    pub(super) fn should_linger(&self) -> bool {
        self.linger_requested.load(Ordering::Relaxed)
    }
}

/// An open request of an HTTP/1.1 connection, which is idle once this is dropped.
pub(super) struct OpenRequestGuard {
    activity: Arc<ConnectionActivity>,
}

impl OpenRequestGuard {
    pub(super) fn new(activity: Arc<ConnectionActivity>) -> Self {
        Self { activity }
    }
}

impl Drop for OpenRequestGuard {
    fn drop(&mut self) {
        self.activity.request_ended();
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
    /// The usage of the address, once a request has waited.
    caller: OnceLock<Arc<CallerUsage>>,
}

impl ConnectionHandle {
    pub(super) fn new(peer: Option<SocketAddr>, activity: Arc<ConnectionActivity>) -> Self {
        Self {
            state: Some(Arc::new(HttpConnectionState {
                peer,
                connection: Arc::default(),
                activity,
                last_session: Mutex::default(),
                caller: OnceLock::new(),
            })),
        }
    }

    pub(super) fn peer(&self) -> Option<SocketAddr> {
        self.state.as_ref()?.peer
    }

    /// Returns the usage of the address, if the connection is known.
    pub(super) fn caller(&self) -> Option<&OnceLock<Arc<CallerUsage>>> {
        Some(&self.state.as_ref()?.caller)
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

#[cfg(test)]
mod tests {
    use std::{sync::Barrier, thread};

    use bytes::Bytes;
    use http_body_util::Full;

    use super::*;
    use crate::{
        Server, Tool,
        http::{HttpOptions, endpoint::Endpoint},
    };

    #[test]
    fn a_connection_is_closed_or_runs_its_request_but_never_both() {
        for _ in 0..1_000 {
            let activity = ConnectionActivity::new(Instant::now());
            let since = activity.idle_since().unwrap();
            let barrier = Barrier::new(2);

            let (closed, admission) = thread::scope(|scope| {
                let closing = scope.spawn(|| {
                    barrier.wait();
                    activity.try_close(since)
                });
                barrier.wait();
                let admission = activity.request_started();
                (closing.join().unwrap(), admission)
            });

            assert_ne!(closed, admission == RequestAdmission::Accepted);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_while_it_waits_for_a_request() {
        let activity = Arc::new(ConnectionActivity::new(Instant::now()));
        assert_eq!(activity.idle_since(), Some(0));
        activity.request_started();
        let guard = OpenRequestGuard::new(activity.clone());
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(activity.idle_since(), None);

        drop(guard);

        assert_eq!(activity.idle_since(), Some(3000));
    }

    #[tokio::test]
    async fn a_rejected_request_leaves_its_connection_closing() {
        let activity = Arc::new(ConnectionActivity::new(Instant::now()));
        assert!(activity.try_close(0));
        activity.request_started();

        drop(OpenRequestGuard::new(activity.clone()));

        assert_eq!(activity.idle_since(), None);
        assert_eq!(
            activity.request_started(),
            RequestAdmission::ConnectionClosing
        );
    }

    #[tokio::test]
    async fn a_request_on_a_closing_connection_does_not_run() {
        let activity = Arc::new(ConnectionActivity::new(Instant::now()));
        assert!(activity.try_close(0));
        let fail = Tool::new("fail", async || -> Result<String, crate::ToolError> {
            panic!("the request runs")
        });
        let server = Server::new("test", "1.0.0").tool(fail);
        let endpoint = Arc::new(Endpoint::new(server, HttpOptions::default(), None));
        let handle = ConnectionHandle::new(None, activity.clone());

        for _ in 0..2 {
            let admission = activity.request_started();
            let message =
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fail"}}"#;
            let request = ::http::Request::post("/mcp")
                .header("host", "localhost")
                .header("content-type", "application/json")
                .header("accept", "application/json, text/event-stream")
                .body(Full::new(Bytes::from_static(message.as_bytes())))
                .unwrap();
            let endpoint = endpoint.clone();
            let Ok(response) = endpoint.respond(request, handle.clone(), admission).await;

            assert_eq!(response.status(), 503);
            assert_eq!(response.headers()["connection"], "close");
        }
    }
}
