//! Streamable HTTP: one endpoint for clients of every protocol revision.
//!
//! [`serve`] runs a server on any listener. [`Http`] has the options, and turns a server into a tower
//! [`HttpService`] that can be mounted in other web frameworks. The defaults are safe: `Host` and `Origin` are
//! checked, and everything that a client can make the server store or run has a limit.
//!
//! [`HttpSse`] additionally serves clients that only implement the HTTP+SSE transport of 2024-11-05.
//!
//! This module does not deal with tools, resources or prompts.

#![expect(
    clippy::result_large_err,
    reason = "the error is a complete response, and too rare to be worth a box"
)]

mod auth;
mod body;
mod caller_shares;
mod changes;
mod connection;
mod endpoint;
mod http_sse;
mod log_limiter;
mod mcp_headers;
mod path_servers;
mod post;
mod responses;
mod session;
mod stream;
mod unread_body;
mod web_pages;

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

pub(crate) use auth::SharedAuthenticator;
use auth::WebOrigin;
pub use auth::{AuthLayer, AuthService, CallerToken};
pub use body::ResponseBody;
pub use connection::{Listener, MemoryConnector, MemoryListener, memory};
use endpoint::Endpoint;
pub use endpoint::HttpService;
pub use http_sse::HttpSse;
pub use path_servers::PathServers;
use turnbuckle_text::url::HostPort;
use web_pages::SharedPages;
pub use web_pages::WebPages;

use crate::Server;

/// Serves on a listener with the default options until the future is dropped.
///
/// It does not return: failures to accept a connection are logged, and accepting continues. For a graceful shutdown,
/// use [`Http::serve_until`].
///
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

/// A server on HTTP, with its options.
///
///
/// # One caller and all others
///
/// Sessions count against the quota of a caller. A caller is a principal (issuer and subject) or, without
/// authentication, the address that it connects from; for IPv6, the /64 network. A caller may have 1,000 of the 10,000
/// sessions; [`SessionLimits`](turnbuckle_store::SessionLimits) of the server's store sets both. If a caller at its limit
/// sends `initialize`, its least recently used idle session ends. If the table is full, the caller with the most sessions
/// loses an idle one, unless that would leave it with fewer than the caller that gets the new session. Large client
/// profiles and subscriptions have limits in bytes, and idle sessions are ended for them in the same way. A session is
/// idle without an open stream, a running request or a running task, unless it is the last session used on an open
/// connection. Sessions that are not idle are never ended. If no session can be ended, the response to `initialize` has
/// status 429, or 503 if the table is full, and `Retry-After`. Requests for an ended session get 404, after which clients
/// send `initialize` again.
///
/// Concurrent requests, partially received bodies and connections are divided as well; connections by address, because the
/// principal is not known yet. A caller may use three quarters of what it uses and what is free
/// ([`max_caller_share`](Self::max_caller_share)): a single caller gets three quarters of the whole, further callers three
/// quarters of the rest, and a caller without requests gets what is free. Beyond the share the status is 429. Responses that
/// are ready at once do not count as requests; while the client reads them, they count as connections. When the log of
/// resumable streams is full, the caller with the largest part of it loses its oldest events.
///
/// Loopback addresses, private addresses and unknown addresses may be shared by all callers behind a reverse proxy.
/// Together they may use the whole session table, and they lose sessions first to callers with fewer. They may use
/// everything that is free while no other caller uses any of it. No forwarding header is trusted. Behind a proxy, let a layer before the [service](Self::into_service) insert the client's
/// `SocketAddr` into the request extensions, or identify callers with [an authenticator](Self::authenticator).
///
///
/// ```
/// use turnbuckle_server::{Server, http::Http};
///
/// let service = Http::new(Server::new("clock", "1.0.0"))
///     .allow_host("clock.example")
///     .into_service();
/// ```
#[derive(Clone, Debug)]
pub struct Http {
    server: Server,
    options: HttpOptions,
}

/// The query of the URL of a request, without `?`.
///
/// [`Context::get`](crate::Context::get) and [`Server::tool_view`] have it, if the URL has a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlQuery(Arc<str>);

impl UrlQuery {
    /// The query as it was sent, percent-encoded.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the value of a parameter, percent-encoded: `core` for `tools` in `a=b&tools=core`.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let parameters = self.0.split('&');
        let mut values = parameters.filter_map(|parameter| {
            let (key, value) = parameter.split_once('=')?;
            (key == name).then_some(value)
        });
        values.next()
    }
}

/// The error for text that is not a host, as in a `Host` header.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid host `{host}`: expected a name or IP address with an optional port")]
#[non_exhaustive]
pub struct InvalidHost {
    /// The text.
    pub host: String,
}

/// The error for text that is not the origin of a web page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid origin `{origin}`: expected `https://` or `http://`, a host, and an optional port"
)]
#[non_exhaustive]
pub struct InvalidOrigin {
    /// The text.
    pub origin: String,
}

/// Selects whether clients that send `initialize` get a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionMode {
    /// Clients get a session: the server stores their state, can send them requests, and lets them resume streams.
    On,
    /// Clients get no session: every request is handled by its version header alone, and no state is stored.
    Off,
}

/// Upper bound for all timeouts (10 years), so that adding one to an `Instant` cannot overflow.
const MAX_TIMEOUT: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// The options, which do not change while the server runs.
#[derive(Clone, Debug)]
struct HttpOptions {
    path: String,
    /// True for a service that another router mounts: the paths are that router's.
    is_mounted: bool,
    health_paths: Vec<String>,
    readiness_path: String,
    readiness: Option<ReadinessCheck>,
    hosts: Vec<HostPort>,
    origins: Vec<WebOrigin>,
    /// The name of the program's setting that allows a host.
    host_setting: Option<String>,
    any_host: bool,
    any_origin: bool,
    session_mode: SessionMode,
    http_sse: Option<HttpSse>,
    path_servers: Option<PathServers>,
    web_pages: Option<SharedPages>,
    trailing_slash: bool,
    authenticator: Option<SharedAuthenticator>,
    body_limit: usize,
    partial_body_budget: usize,
    max_in_flight: usize,
    max_caller_percent: usize,
    max_calls_per_session: usize,
    max_connections: usize,
    header_timeout: Duration,
    keep_alive_timeout: Duration,
    body_timeout: Duration,
    write_timeout: Duration,
    shutdown_timeout: Duration,
    stream_heartbeat: Duration,
    sse_upgrade_after: Duration,
}

/// A check of the program in addition to that of the server.
#[derive(Clone)]
struct ReadinessCheck {
    is_ready: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl std::fmt::Debug for ReadinessCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadinessCheck").finish_non_exhaustive()
    }
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            path: "/mcp".to_owned(),
            is_mounted: false,
            health_paths: vec!["/healthz".to_owned(), "/health".to_owned()],
            readiness_path: "/readyz".to_owned(),
            readiness: None,
            hosts: Vec::new(),
            origins: Vec::new(),
            host_setting: None,
            any_host: false,
            any_origin: false,
            session_mode: SessionMode::On,
            http_sse: None,
            path_servers: None,
            web_pages: None,
            trailing_slash: false,
            authenticator: None,
            body_limit: 4 * 1024 * 1024,
            partial_body_budget: 256 * 1024 * 1024,
            max_in_flight: 10_000,
            max_caller_percent: 75,
            max_calls_per_session: 256,
            max_connections: 16_384,
            header_timeout: Duration::from_secs(10),
            keep_alive_timeout: Duration::from_secs(60),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(60),
            shutdown_timeout: Duration::from_secs(10),
            stream_heartbeat: Duration::from_secs(15),
            sse_upgrade_after: Duration::from_secs(10),
        }
    }
}

impl Http {
    /// Creates an HTTP server with the default options.
    pub fn new(server: Server) -> Self {
        Self {
            server,
            options: HttpOptions::default(),
        }
    }

    /// Sets the path of the endpoint for [`serve`](Self::serve). The default is `/mcp`.
    ///
    /// A mounted [service](Self::into_service) ignores it: the router that mounts it selects the path.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.options.path = path.into();
        self
    }

    /// Also accepts the endpoint path with a trailing slash, `/mcp/`.
    #[must_use]
    pub fn trailing_slash(mut self) -> Self {
        self.options.trailing_slash = true;
        self
    }

    /// Sets the path of the health check for [`serve`](Self::serve), which responds with `ok`. The defaults are `/healthz`
    /// and `/health`.
    ///
    /// A mounted [service](Self::into_service) ignores it.
    ///
    /// `Host` is not checked on this path, since probes often use an IP address and the response reveals nothing.
    #[must_use]
    pub fn health_path(mut self, path: impl Into<String>) -> Self {
        self.options.health_paths = vec![path.into()];
        self
    }

    /// Sets the path of the readiness check for [`serve`](Self::serve), and adds a condition: status 200 while `is_ready`
    /// returns true, else 503. The default path is `/readyz`.
    ///
    /// On a [shared store](turnbuckle_store::Store::is_shared) the status is also 503 while the server cannot renew its lease
    /// as an instance: it rejects requests of sessions then. A load balancer should use this path.
    ///
    /// As on the [health path](Self::health_path), `Host` is not checked and no token is needed.
    #[must_use]
    pub fn readiness_path(
        mut self,
        path: impl Into<String>,
        is_ready: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        self.options.readiness_path = path.into();
        self.options.readiness = Some(ReadinessCheck {
            is_ready: Arc::new(is_ready),
        });
        self
    }

    /// Also accepts this name or address in `Host`. Without a port it is accepted on every port.
    ///
    /// By default a server accepts the address that it is bound to and, if that is local, `localhost`, `127.0.0.1` and `[::1]`.
    ///
    ///
    /// # Panics
    ///
    /// If the value is not a host, for example `http://example.com` or `example.com/mcp`.
    #[must_use]
    pub fn allow_host(self, host: &str) -> Self {
        self.try_allow_host(host)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// Like [`allow_host`](Self::allow_host), with an error instead of a panic.
    pub fn try_allow_host(mut self, host: &str) -> Result<Self, InvalidHost> {
        let host = host.parse().map_err(|_| InvalidHost {
            host: host.to_owned(),
        })?;
        self.options.hosts.push(host);
        Ok(self)
    }

    /// Sets the name of your program's setting that allows a host, for example `--allow-host`.
    ///
    /// The error for a rejected `Host` or `Origin` mentions it instead of the methods of this type.
    #[must_use]
    pub fn host_setting(mut self, name: impl Into<String>) -> Self {
        self.options.host_setting = Some(name.into());
        self
    }

    /// Also accepts requests from web pages of this origin, for example `https://app.example.com`.
    ///
    /// By default only pages of the accepted hosts may use the server.
    ///
    ///
    /// # Panics
    ///
    /// If the value is not an origin.
    #[must_use]
    pub fn allow_origin(self, origin: &str) -> Self {
        self.try_allow_origin(origin)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// Like [`allow_origin`](Self::allow_origin), with an error instead of a panic.
    pub fn try_allow_origin(mut self, origin: &str) -> Result<Self, InvalidOrigin> {
        let origin = origin.parse().map_err(|_| InvalidOrigin {
            origin: origin.to_owned(),
        })?;
        self.options.origins.push(origin);
        Ok(self)
    }

    /// Disables the `Host` check. Any web page that a user opens can then reach a local server by DNS rebinding.
    #[must_use]
    pub fn danger_accept_any_host(mut self) -> Self {
        self.options.any_host = true;
        self
    }

    /// Disables the `Origin` check. Any web page that a user opens can then do everything that the server allows.
    #[must_use]
    pub fn danger_accept_any_origin(mut self) -> Self {
        self.options.any_origin = true;
        self
    }

    /// Selects whether clients that send `initialize` get a session. The default is [`SessionMode::On`].
    #[must_use]
    pub fn sessions(mut self, mode: SessionMode) -> Self {
        self.options.session_mode = mode;
        self
    }

    /// Enables HTTP+SSE, the transport of 2024-11-05, on separate paths. It is disabled by default.
    ///
    ///
    /// ```
    /// use turnbuckle_server::{Server, http::{Http, HttpSse}};
    ///
    /// // Configure older clients with the URL that ends in `/sse`, all others with the one that ends in `/mcp`.
    /// let http = Http::new(Server::new("clock", "1.0.0")).http_sse(HttpSse::new());
    /// ```
    #[must_use]
    pub fn http_sse(mut self, http_sse: HttpSse) -> Self {
        self.options.http_sse = Some(http_sse);
        self
    }

    /// Limits the size of one message in bytes. The default is 4 MiB.
    #[must_use]
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.options.body_limit = bytes;
        self
    }

    /// Limits the total size of all partially received bodies in bytes. The default is 256 MiB. Beyond the limit, requests
    /// get status 503.
    #[must_use]
    pub fn partial_body_budget(mut self, bytes: usize) -> Self {
        self.options.partial_body_budget = bytes;
        self
    }

    /// Limits the number of concurrent requests and streams. The default is 10,000. Beyond the limit, requests get status 503.
    #[must_use]
    pub fn max_in_flight(mut self, requests: usize) -> Self {
        self.options.max_in_flight = requests;
        self
    }

    /// Limits the share of one caller in [`max_in_flight`](Self::max_in_flight) and in
    /// [`partial_body_budget`](Self::partial_body_budget), and that of one address in
    /// [`max_connections`](Self::max_connections), in percent of what the caller uses and what is free. The default is
    /// 75; 100 disables the limit. Beyond it, requests get status 429. See [above](Self#one-caller-and-all-others).
    #[must_use]
    pub fn max_caller_share(mut self, percent: u8) -> Self {
        self.options.max_caller_percent = percent.into();
        self
    }

    /// Limits the number of running calls of one session. The default is 256. Beyond the limit, calls get an error with
    /// status 429.
    ///
    /// Calls that finish without waiting do not count.
    #[must_use]
    pub fn max_calls_per_session(mut self, calls: usize) -> Self {
        self.options.max_calls_per_session = calls;
        self
    }

    /// Limits the number of open connections. The default is 16,384.
    ///
    /// The limit is lowered if the process may not open enough files: a quarter of its descriptors, at least 32 and at most
    /// 256, are reserved for other files.
    ///
    /// At the limit, a new connection replaces the one that has been idle for longest. If none is idle, the new connection
    /// gets status 503 and is closed. An address that uses its [share](Self::max_caller_share) of all connections loses an
    /// idle one of its own, or gets status 429.
    #[must_use]
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.options.max_connections = connections.max(1);
        self
    }

    /// Sets the timeout for the first request header of a new connection. The default is 10 seconds.
    #[must_use]
    pub fn header_timeout(mut self, timeout: Duration) -> Self {
        self.options.header_timeout = timeout.min(MAX_TIMEOUT);
        self
    }

    /// Sets the timeout for the next request header after a request. The default is one minute.
    ///
    /// An HTTP/2 connection is closed after this time without a request.
    #[must_use]
    pub fn keep_alive_timeout(mut self, timeout: Duration) -> Self {
        self.options.keep_alive_timeout = timeout.min(MAX_TIMEOUT);
        self
    }

    /// Sets the timeout for receiving a request body. The default is 30 seconds.
    #[must_use]
    pub fn body_timeout(mut self, timeout: Duration) -> Self {
        self.options.body_timeout = timeout.min(MAX_TIMEOUT);
        self
    }

    /// Sets how long a connection may accept no bytes while a write is pending. The default is one minute.
    ///
    /// A client that reads nothing for this long is considered disconnected: its connection is closed, and calls that are bound to the
    /// connection are dropped. In HTTP/2, bytes that wait for the flow-control window are pending as well; reading something of
    /// any response on the connection is enough. The timeout does not apply to an [`HttpService`]: its connections are
    /// accepted elsewhere.
    #[must_use]
    pub fn write_timeout(mut self, timeout: Duration) -> Self {
        self.options.write_timeout = timeout.min(MAX_TIMEOUT);
        self
    }

    /// Sets how long running requests may continue after a shutdown started. The default is 10 seconds.
    #[must_use]
    pub fn shutdown_timeout(mut self, timeout: Duration) -> Self {
        self.options.shutdown_timeout = timeout.min(MAX_TIMEOUT);
        self
    }

    /// Sets the interval of heartbeat comments on idle SSE streams. The default is 15 seconds.
    #[must_use]
    pub fn stream_heartbeat(mut self, period: Duration) -> Self {
        self.options.stream_heartbeat = period.min(MAX_TIMEOUT);
        self
    }

    /// Sets how long a call may run before its response becomes an SSE stream. The default is 10 seconds.
    #[must_use]
    pub fn sse_upgrade_after(mut self, wait: Duration) -> Self {
        self.options.sse_upgrade_after = wait.min(MAX_TIMEOUT);
        self
    }

    /// Serves on a listener until the future is dropped; see [`serve`].
    pub async fn serve(self, listener: impl Listener) -> io::Result<()> {
        self.serve_until(listener, std::future::pending()).await
    }

    /// Serves on a listener until `shutdown` resolves, then lets running requests finish.
    ///
    /// From then on no connection is accepted, and subscriptions end with their result. Requests that still run after the
    /// shutdown timeout are dropped. Other transports of the same server are not affected.
    ///
    /// # Errors
    ///
    /// If the store is [shared](turnbuckle_store::Store::is_shared) and the server has no [`state_keys`](Server::state_keys):
    /// the other instances could not read what it encrypts.
    pub async fn serve_until(
        self,
        listener: impl Listener,
        shutdown: impl Future<Output = ()> + Send,
    ) -> io::Result<()> {
        if self.server.store_ref().is_shared() && self.server.sealing_keys().is_random() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a server on a shared store needs the keys of all instances: set `Server::state_keys`",
            ));
        }
        let endpoint = self.endpoint(listener.local_addr());
        connection::serve(endpoint, listener, shutdown).await
    }

    /// Converts into a tower service, for another HTTP server or a web framework.
    ///
    /// The service is the endpoint on whatever path it is mounted. The exceptions are the paths of
    /// [HTTP+SSE](Self::http_sse), if it is enabled, and those below `/.well-known/`, where only the metadata documents
    /// of an [authenticator](Self::authenticator) exist.
    ///
    /// The service does not know the address that it is bound to, so it accepts loopback names and
    /// [allowed hosts](Self::allow_host). Values in the request extensions reach handlers through
    /// [`Context::get`](crate::Context::get); a `Principal` or `Arc<Principal>` becomes the caller. Set `TCP_NODELAY` on
    /// the sockets, otherwise streams are slow.
    pub fn into_service(mut self) -> HttpService {
        self.options.is_mounted = true;
        self.into_unmounted_service()
    }

    /// Converts into a service with the paths of [`serve`](Self::serve).
    pub(crate) fn into_unmounted_service(self) -> HttpService {
        HttpService::new(self.endpoint(None))
    }

    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    /// Serves another server with the same options.
    pub(crate) fn with_server(mut self, server: Server) -> Self {
        self.server = server;
        self
    }

    pub(crate) fn endpoint_path(&self) -> &str {
        &self.options.path
    }

    fn endpoint(self, bound_addr: Option<SocketAddr>) -> Arc<Endpoint> {
        let users = self.server.session_users().clone();
        let endpoint = Arc::new(Endpoint::new(self.server, self.options, bound_addr));
        endpoint.register_with(&users);
        endpoint
    }
}

impl From<Server> for Http {
    fn from(server: Server) -> Self {
        Self::new(server)
    }
}
