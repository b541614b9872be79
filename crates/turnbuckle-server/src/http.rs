//! Streamable HTTP: one endpoint for clients of every revision.
//!
//! [`serve`] answers on any listener; [`Http`] has the options, and turns a server into a tower [`Service`] that
//! fits into other web frameworks. Safe unless told otherwise: `Host` and `Origin` are checked, and everything a
//! client can make the server hold has a limit.
//!
//! Clients that know only the transport of 2024-11-05 are served beside it, with [`HttpSse`], if you say so.
//!
//! What tools, resources and prompts do is not known here.

#![expect(
    clippy::result_large_err,
    reason = "a refusal is a whole response, and too seldom to be worth a box"
)]

mod activity;
mod allowed;
mod audience;
mod batch;
mod bell;
mod body;
mod connections;
mod cors;
mod delivery;
#[cfg(unix)]
mod descriptors;
#[cfg(not(unix))]
#[path = "http/no_descriptors.rs"]
mod descriptors;
mod discard;
mod endpoint;
mod feed;
mod gate;
mod general;
mod guard_layer;
mod guarded;
mod head_timer;
mod heartbeat;
#[cfg(not(feature = "http2"))]
mod http1;
#[cfg(feature = "http2")]
mod http2;
mod http_sse;
mod incoming;
mod keeper;
mod known;
mod linger;
mod link;
mod listener;
mod memory;
mod mirror;
mod post;
mod presence;
mod pump;
mod quota;
mod reader;
mod refusal;
mod room;
mod serving;
mod session;
mod stall;
mod stateless;
mod sweep;
#[cfg(unix)]
mod unix;
mod unremembered;
mod work;

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};

pub use body::Body;
pub use endpoint::Service;
pub use guard_layer::{GuardLayer, Guarded};
pub use http_sse::HttpSse;
pub(crate) use keeper::Keeper;
pub use listener::Listener;
pub use memory::{Connector, MemoryListener, memory};

use crate::Server;
use allowed::{Host, Origin};
use endpoint::Endpoint;
#[cfg(not(feature = "http2"))]
use http1 as connection;
#[cfg(feature = "http2")]
use http2 as connection;

/// Serves on a listener with the default options, for as long as the future is polled.
///
/// It does not return: connections that cannot be accepted are logged, and the next one is waited for. To end in
/// order, use [`Http::serve_until`].
///
/// ```no_run
/// # async fn run() -> std::io::Result<()> {
/// # let server = turnbuckle_server::Server::new("clock", "1.0.0");
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
/// turnbuckle_server::http::serve(listener, server).await
/// # }
/// ```
pub async fn serve(listener: impl Listener, server: Server) -> io::Result<()> {
    Http::new(server).serve(listener).await
}

/// A server on HTTP, and how it behaves there.
///
/// # One caller and all others
///
/// Sessions count against a caller: its principal (issuer and subject) or, without one, the address that it connects from,
/// which for IPv6 is the network of 64 bits. A caller may have 1,000 of the 10,000 sessions, as
/// [`SessionLimits`](turnbuckle_store::SessionLimits) of the server's store say. If it begins another, the idle one that it
/// used longest ago ends; where the table is full, the caller with most sessions loses an idle one, unless that would leave
/// it with fewer than the caller that gets the place. Large client profiles and subscriptions have limits of bytes, and
/// idle sessions make room for them in the same way. A session is idle without an open stream, a running request, a
/// running task and a connection that used it last; one that is not is never ended. If nothing can be ended, `initialize`
/// is answered with status 429, or 503 where the table is full, and `Retry-After`. Sessions that ended are answered with
/// 404, on which clients begin anew.
///
/// Addresses of this machine and of private networks, and unknown ones, may stand for all callers behind a reverse proxy.
/// Together they may have as many sessions as there are, and lose theirs first to callers with fewer. No header is trusted
/// to say who is behind a proxy. Where one can be, let a layer before the [service](Self::into_service) put the
/// `SocketAddr` of the client into the extensions of a request; or know callers by [a guard](Self::guard).
///
/// ```
/// use turnbuckle_server::{Server, http::Http};
///
/// let service = Http::new(Server::new("clock", "1.0.0"))
///     .path("/tools/clock")
///     .allow_host("clock.example")
///     .into_service();
/// ```
#[derive(Clone, Debug)]
pub struct Http {
    server: Server,
    options: Options,
}

/// Whether clients of revisions with a handshake get a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sessions {
    /// They do: the server remembers them, can ask them, and lets them resume a broken stream.
    On,
    /// They do not: every request is judged by its version header alone, and nothing is remembered.
    Off,
}

/// As good as for ever, and no clock overflows.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// What is fixed once the server runs.
#[derive(Clone, Debug)]
struct Options {
    path: String,
    health_path: String,
    hosts: Vec<Host>,
    origins: Vec<Origin>,
    any_host: bool,
    any_origin: bool,
    sessions: Sessions,
    http_sse: Option<HttpSse>,
    trailing_slash: bool,
    guard: Option<Keeper>,
    body_limit: usize,
    body_budget: usize,
    max_in_flight: usize,
    max_calls_per_session: usize,
    max_connections: usize,
    header_timeout: Duration,
    keep_alive_timeout: Duration,
    body_timeout: Duration,
    write_timeout: Duration,
    shutdown_timeout: Duration,
    stream_heartbeat: Duration,
    stream_after: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            path: "/mcp".to_owned(),
            health_path: "/health".to_owned(),
            hosts: Vec::new(),
            origins: Vec::new(),
            any_host: false,
            any_origin: false,
            sessions: Sessions::On,
            http_sse: None,
            trailing_slash: false,
            guard: None,
            body_limit: 4 * 1024 * 1024,
            body_budget: 256 * 1024 * 1024,
            max_in_flight: 10_000,
            max_calls_per_session: 256,
            max_connections: 16_384,
            header_timeout: Duration::from_secs(10),
            keep_alive_timeout: Duration::from_secs(60),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(60),
            shutdown_timeout: Duration::from_secs(10),
            stream_heartbeat: Duration::from_secs(15),
            stream_after: Duration::from_secs(10),
        }
    }
}

impl Http {
    /// Puts a server on HTTP.
    pub fn new(server: Server) -> Self {
        Self {
            server,
            options: Options::default(),
        }
    }

    /// Sets the path of the endpoint; `/mcp` unless set.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.options.path = path.into();
        self
    }

    /// Also answers at the path with a slash at its end, `/mcp/`.
    #[must_use]
    pub fn trailing_slash(mut self) -> Self {
        self.options.trailing_slash = true;
        self
    }

    /// Sets the path that answers `ok` to load balancers; `/health` unless set.
    ///
    /// It answers whatever `Host` says, since probes often name an address: there is nothing to learn there.
    #[must_use]
    pub fn health_path(mut self, path: impl Into<String>) -> Self {
        self.options.health_path = path.into();
        self
    }

    /// Also answers to this name or address in `Host`; without a port, on every port.
    ///
    /// Unless told otherwise, a server answers to the address it is bound to and, as `localhost`, to this machine.
    ///
    /// # Panics
    ///
    /// If it is no host, as `http://example.com` or `example.com/mcp`.
    #[must_use]
    pub fn allow_host(mut self, host: &str) -> Self {
        let host = host.parse().unwrap_or_else(|_| {
            panic!("`{host}` is no host; write a name or an address, perhaps with a port")
        });
        self.options.hosts.push(host);
        self
    }

    /// Also answers to web pages of this origin, as `https://app.example.com`.
    ///
    /// Unless told otherwise, pages of the hosts that the server answers to may use it, and no others.
    ///
    /// # Panics
    ///
    /// If it is no origin.
    #[must_use]
    pub fn allow_origin(mut self, origin: &str) -> Self {
        let origin = origin.parse().unwrap_or_else(|_| {
            panic!(
                "`{origin}` is no origin; write `https://` or `http://`, a host, and perhaps a port"
            )
        });
        self.options.origins.push(origin);
        self
    }

    /// Answers whatever `Host` says. Any web page that a user visits may then reach a local server through DNS.
    #[must_use]
    pub fn danger_accept_any_host(mut self) -> Self {
        self.options.any_host = true;
        self
    }

    /// Answers web pages of every origin, with all that the server may do for the user who visits them.
    #[must_use]
    pub fn danger_accept_any_origin(mut self) -> Self {
        self.options.any_origin = true;
        self
    }

    /// Says whether clients of revisions with a handshake get a session.
    #[must_use]
    pub fn sessions(mut self, sessions: Sessions) -> Self {
        self.options.sessions = sessions;
        self
    }

    /// Also offers HTTP+SSE, the transport of 2024-11-05, on paths of its own. It is not offered unless set.
    ///
    /// ```
    /// use turnbuckle_server::{Server, http::{Http, HttpSse}};
    ///
    /// // Older clients are given the URL that ends in `/sse`, all others the one that ends in `/mcp`.
    /// let http = Http::new(Server::new("clock", "1.0.0")).http_sse(HttpSse::new());
    /// ```
    #[must_use]
    pub fn http_sse(mut self, http_sse: HttpSse) -> Self {
        self.options.http_sse = Some(http_sse);
        self
    }

    /// Limits the bytes of one message; 4 MiB unless set.
    #[must_use]
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.options.body_limit = bytes;
        self
    }

    /// Limits the bytes of all messages together that have come only in part; 256 MiB unless set. Beyond, clients are
    /// asked to come later.
    #[must_use]
    pub fn body_budget(mut self, bytes: usize) -> Self {
        self.options.body_budget = bytes;
        self
    }

    /// Limits the requests and streams at one time; 10,000 unless set. Beyond, clients are asked to come later.
    #[must_use]
    pub fn max_in_flight(mut self, requests: usize) -> Self {
        self.options.max_in_flight = requests;
        self
    }

    /// Limits the calls of one session that are running at one time; 256 unless set. Beyond, they are answered with
    /// an error and status 429.
    ///
    /// Calls that are answered without waiting for anything do not count.
    #[must_use]
    pub fn max_calls_per_session(mut self, calls: usize) -> Self {
        self.options.max_calls_per_session = calls;
        self
    }

    /// Limits the connections at one time; 16,384 unless set, and never more than the limit of open files of this process
    /// leaves after a quarter of it, but at least 32 and at most 256 descriptors, is kept back for files.
    ///
    /// Beyond, the connection that has waited for a request for longest is closed to make room. If all have one, a new
    /// connection is answered with status 503 and closed.
    #[must_use]
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.options.max_connections = connections.max(1);
        self
    }

    /// Sets how long a new connection may take until it has sent its first head; 10 seconds unless set.
    #[must_use]
    pub fn header_timeout(mut self, timeout: Duration) -> Self {
        self.options.header_timeout = timeout.min(LONGEST);
        self
    }

    /// Sets how long a connection may take after a request until it has sent the next head; a minute unless set.
    ///
    /// In HTTP/2 the connection ends if it had no request for so long.
    #[must_use]
    pub fn keep_alive_timeout(mut self, timeout: Duration) -> Self {
        self.options.keep_alive_timeout = timeout.min(LONGEST);
        self
    }

    /// Sets how long a body may take; 30 seconds unless set.
    #[must_use]
    pub fn body_timeout(mut self, timeout: Duration) -> Self {
        self.options.body_timeout = timeout.min(LONGEST);
        self
    }

    /// Sets how long a connection may take nothing of what is written to it; a minute unless set.
    ///
    /// A client that reads nothing for so long is taken for gone: its connection is closed, and calls that end with
    /// their connection are dropped. In HTTP/2 this counts for the connection, not for each of its streams. The
    /// connections of a [`Service`] belong to whoever accepts them, and have no such limit from here.
    #[must_use]
    pub fn write_timeout(mut self, timeout: Duration) -> Self {
        self.options.write_timeout = timeout.min(LONGEST);
        self
    }

    /// Sets how long running requests may go on after a shutdown began; 10 seconds unless set.
    #[must_use]
    pub fn shutdown_timeout(mut self, timeout: Duration) -> Self {
        self.options.shutdown_timeout = timeout.min(LONGEST);
        self
    }

    /// Sets how often a silent stream shows that it lives; 15 seconds unless set.
    #[must_use]
    pub fn stream_heartbeat(mut self, period: Duration) -> Self {
        self.options.stream_heartbeat = period.min(LONGEST);
        self
    }

    /// Sets after how long an answer that is not ready becomes a stream; 10 seconds unless set.
    #[must_use]
    pub fn stream_after(mut self, wait: Duration) -> Self {
        self.options.stream_after = wait.min(LONGEST);
        self
    }

    /// Serves on a listener for as long as the future is polled; see [`serve`].
    pub async fn serve(self, listener: impl Listener) -> io::Result<()> {
        self.serve_until(listener, std::future::pending()).await
    }

    /// Serves on a listener until `shutdown` resolves, then lets running requests finish.
    ///
    /// No connection is accepted from then on, and subscriptions end with their result. What still runs after the
    /// shutdown timeout is dropped. Whatever else serves the same server goes on.
    pub async fn serve_until(
        self,
        listener: impl Listener,
        shutdown: impl Future<Output = ()> + Send,
    ) -> io::Result<()> {
        let endpoint = self.endpoint(listener.local_addr());
        serving::serve(endpoint, listener, shutdown).await
    }

    /// Makes a tower service, for a server or a web framework of your own.
    ///
    /// It cannot know what it is bound to, so it answers to this machine's own names and to
    /// [allowed hosts](Self::allow_host). What a layer put into the extensions of a request reaches handlers through
    /// [`Context::get`](crate::Context::get); a `Principal`, or an `Arc` of one, becomes the caller. Set
    /// `TCP_NODELAY` on your sockets, or streams are slow.
    pub fn into_service(self) -> Service {
        Service::new(self.endpoint(None))
    }

    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    pub(crate) fn endpoint_path(&self) -> &str {
        &self.options.path
    }

    fn endpoint(self, bound: Option<SocketAddr>) -> Arc<Endpoint> {
        let users = self.server.session_users().clone();
        let endpoint = Arc::new(Endpoint::new(self.server, self.options, bound));
        endpoint.join(&users);
        endpoint
    }
}

impl From<Server> for Http {
    fn from(server: Server) -> Self {
        Self::new(server)
    }
}

/// What cannot fail.
type Always<T> = Result<T, Infallible>;
