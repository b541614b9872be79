//! The gateway: its upstream servers, and the relay that the server in front of them uses.

use std::{
    collections::HashSet,
    fmt,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use arc_swap::ArcSwap;
use tokio::task::{JoinHandle, JoinSet};
use turnbuckle_client::{CallError, relay::RelayResult, tool_lock::ServerLock};
use turnbuckle_protocol::{
    RpcError,
    types::{
        ClientCapabilities, Implementation, JsonObject, ServerCapabilities, SubscriptionFilter,
    },
};
use turnbuckle_server::{
    InvalidStateKeys, ServedEras, Server,
    middleware::SessionKey,
    relay::{
        ChangeTarget, Relay, RelayFuture, RelayedNotification, RelayedRequest, RelayedResult,
        ServerChange, WatchedTasks,
    },
};

use crate::{
    audit::{AuditSink, SharedSink},
    calls::suspended::SuspendedCalls,
    catalog::{
        Catalog, CatalogSettings,
        uris::own_uri,
        views::{ViewTable, view_servers},
    },
    convert::{ListKind, ResultIdentity},
    hops::GatewayId,
    lock,
    metrics::{GatewayMetrics, Operations},
    observation::{Outcome, result_outcome},
    policy::RateLimits,
    upstream::{
        Upstream, UpstreamServer, UpstreamState, UpstreamStatus,
        pool::{ConnectionLimits, ConnectionPool, FirstClient},
        server_set::ServerSet,
    },
};

/// Maximum time that the start, or a list of several servers, waits for one of them.
pub(crate) const SERVER_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum interval of maintenance: idle connections are closed, and servers that are down are tried again.
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(5);

/// Whether names of tools and prompts begin with the name of their server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrefixMode {
    /// If there are several servers.
    #[default]
    Auto,
    /// Also with one server.
    Always,
    /// Never. Of equal names, the first server's is used.
    Never,
}

impl PrefixMode {
    /// Returns whether names of this many servers begin with the name of their server.
    pub(crate) fn applies_to(self, servers: usize) -> bool {
        match self {
            Self::Auto => servers > 1,
            Self::Always => true,
            Self::Never => false,
        }
    }
}

/// A gateway that has not been started.
///
/// ```no_run
/// use turnbuckle_client::stdio::ServerCommand;
/// use turnbuckle_gateway::{Gateway, Upstream};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let gateway = Gateway::new("gateway", "1.0.0")
///     .upstream(Upstream::new("files", || ServerCommand::new("file-server").into()))
///     .start()
///     .await?;
/// turnbuckle_server::stdio::serve(gateway.server()).await?;
/// gateway.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Gateway {
    info: Implementation,
    /// The server in front, without its relay.
    server: Server,
    upstreams: Vec<Upstream>,
    prefix: PrefixMode,
    catalog: CatalogSettings,
    idle_timeout: Duration,
    max_connections: usize,
    rate_limit: Option<(u32, Duration)>,
    has_authenticated_callers: bool,
    audit: Option<SharedSink>,
    max_per_principal: usize,
    first_client: Option<FirstClient>,
}

/// The reason that a gateway cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// No upstream server was added.
    #[error("a gateway needs at least one server")]
    NoUpstream,
    /// Two upstream servers have the same name.
    #[error("two servers have the name `{0}`")]
    DuplicateName(String),
    /// A pattern of an upstream server is invalid.
    #[error("a pattern of server `{server}` is invalid: {source}")]
    Pattern {
        /// The name of the server.
        server: String,
        /// The violation.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A scope of an upstream server is not a `scope-token` (RFC 6749, section 3.3).
    #[error("`{scope}` of server `{server}` is not a scope")]
    Scope {
        /// The name of the server.
        server: String,
        /// The invalid scope.
        scope: String,
    },
    /// An upstream server requires scopes, but callers are not authenticated.
    #[error("server `{0}` requires scopes, but callers are not authenticated")]
    UnauthenticatedScopes(String),
    /// An upstream server is used with the credentials of each caller, but callers are not authenticated.
    #[error(
        "server `{0}` is used with the credentials of each caller, but callers are not authenticated"
    )]
    UnauthenticatedCallers(String),
    /// An upstream server is used with the credentials of each caller, but all callers share its connections.
    #[error(
        "server `{0}` is used with the credentials of each caller, so that callers cannot share a connection"
    )]
    SharedCredentials(String),
    /// The only upstream server, or a required one, cannot be reached.
    #[error("server `{server}` cannot be reached: {reason}")]
    Unreachable {
        /// The name of the server.
        server: String,
        /// The class of the failure.
        reason: String,
    },
}

impl Gateway {
    /// Creates a gateway without servers. Name and version are those that clients and servers see.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        let info = Implementation::new(name, version);
        Self {
            server: Server::new(&info.name, &info.version),
            info,
            upstreams: Vec::new(),
            prefix: PrefixMode::Auto,
            catalog: CatalogSettings::default(),
            idle_timeout: Duration::from_secs(300),
            max_connections: 64,
            rate_limit: None,
            has_authenticated_callers: false,
            audit: None,
            max_per_principal: 8,
            first_client: None,
        }
    }

    /// Adds an upstream server.
    #[must_use]
    pub fn upstream(mut self, upstream: Upstream) -> Self {
        self.upstreams.push(upstream);
        self
    }

    /// Sets whether names begin with the name of their server.
    #[must_use]
    pub fn prefix(mut self, mode: PrefixMode) -> Self {
        self.prefix = mode;
        self
    }

    /// Sets the maximum length of the names of tools and prompts of several servers, in bytes. 128 by default; 16 or more.
    ///
    /// A longer name is replaced by its prefix, its end, and a digest.
    #[must_use]
    pub fn max_name_length(mut self, bytes: usize) -> Self {
        self.catalog.set_max_name_length(bytes);
        self
    }

    /// Sets the maximum number of tools or prompts on a page of their list. 5,000 by default.
    #[must_use]
    pub fn page_size(mut self, items: usize) -> Self {
        self.catalog.page_size = items.max(1);
        self
    }

    /// Sets whether clients get four tools to search, describe and call the tools of the servers, instead of the tools
    /// themselves. `false` by default.
    #[must_use]
    pub fn search_mode(mut self, search_mode: bool) -> Self {
        self.catalog.search_mode = search_mode;
        self
    }

    /// Sets the time after which an unused connection is closed, and its child process ended. Five minutes by default.
    #[must_use]
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// Sets the maximum number of connections per server. 64 by default.
    #[must_use]
    pub fn max_connections(mut self, per_server: usize) -> Self {
        self.max_connections = per_server.max(1);
        self
    }

    /// Limits the calls of each caller to each server: `calls` per `per`, in one burst if there were none before.
    ///
    /// A caller is a principal; without authorization an IP address, or the connection on byte streams. Requests that
    /// name a tool, prompt or resource count, and those of extensions; lists do not.
    ///
    /// # Panics
    ///
    /// If either is zero.
    #[must_use]
    pub fn rate_limit(mut self, calls: u32, per: Duration) -> Self {
        assert!(calls > 0 && !per.is_zero(), "the rate must not be zero");
        self.rate_limit = Some((calls, per));
        self
    }

    /// Sets whether the server in front authenticates its callers, which [scopes](Upstream::scope) require. `false` by
    /// default.
    #[must_use]
    pub fn authenticated_callers(mut self, authenticated: bool) -> Self {
        self.has_authenticated_callers = authenticated;
        self
    }

    /// Sets the maximum number of connections to each server for one authenticated caller. 8 by default.
    #[must_use]
    pub fn max_connections_per_principal(mut self, per_server: usize) -> Self {
        self.max_per_principal = per_server.max(1);
        self
    }

    /// Sets the eras that clients can use. Both by default.
    #[must_use]
    pub fn served_eras(mut self, eras: ServedEras) -> Self {
        self.server = self.server.served_eras(eras);
        self
    }

    /// Sets the secrets that encrypt request states, cursors and ids of tasks: gateways with the same secrets accept those
    /// of each other, and after a restart. The first encrypts and all of them decrypt. A random key by default.
    ///
    /// A call that is suspended waits in one gateway. Any other one rejects its retry, and never starts the call again.
    pub fn state_keys<S: AsRef<[u8]>>(
        mut self,
        secrets: impl IntoIterator<Item = S>,
    ) -> Result<Self, InvalidStateKeys> {
        self.server = self.server.try_state_keys(secrets)?;
        Ok(self)
    }

    /// Names the client that comes first, for a gateway with one client, such as on stdio.
    ///
    /// A legacy server with connections that are not shared is connected to at the start as for this client, so that its
    /// first request needs no second connection.
    #[must_use]
    pub fn first_client(mut self, info: Implementation, capabilities: ClientCapabilities) -> Self {
        self.first_client = Some(FirstClient { info, capabilities });
        self
    }

    /// Sends a record of every request to a sink, also of refused ones. Records have digests instead of arguments.
    #[must_use]
    pub fn audit(mut self, sink: impl AuditSink) -> Self {
        self.audit = Some(SharedSink(Arc::new(sink)));
        self
    }

    /// Connects to all servers at the same time.
    ///
    /// A server that cannot be reached is an error if it is the only one or required; otherwise it is left out and tried
    /// again.
    pub async fn start(self) -> Result<RunningGateway, StartError> {
        let servers = UpstreamServer::all(self.upstreams, self.has_authenticated_callers)?;
        let has_prefix = self.prefix.applies_to(servers.len());
        let state = Arc::new_cyclic(|weak: &Weak<GatewayState>| {
            let events: Weak<dyn GatewayEvents> = weak.clone();
            let limits = ConnectionLimits {
                per_server: self.max_connections,
                per_principal: self.max_per_principal,
            };
            GatewayState {
                id: GatewayId::new(),
                identity: ResultIdentity::new(&self.info),
                pool: Arc::new(ConnectionPool::new(
                    events,
                    self.info,
                    limits,
                    self.first_client,
                )),
                base: self.server,
                suspended: Arc::default(),
                servers: ArcSwap::from_pointee(ServerSet::new(servers, has_prefix)),
                prefix: self.prefix,
                has_authenticated_callers: self.has_authenticated_callers,
                reloading: tokio::sync::Mutex::default(),
                catalog: Catalog::new(self.catalog),
                front: Mutex::default(),
                views: ViewTable::default(),
                is_view: false,
                watched: Mutex::default(),
                rates: Arc::new(RateLimits::new(self.rate_limit)),
                audit: self.audit,
                operations: Arc::default(),
                this: weak.clone(),
            }
        });
        state.observe_servers();
        state.probe_all().await?;
        let server = state.create_front("");
        tokio::spawn(maintain(Arc::downgrade(&state), self.idle_timeout));
        Ok(RunningGateway { state, server })
    }
}

/// A gateway that relays requests. Clones share it.
#[derive(Clone)]
pub struct RunningGateway {
    state: Arc<GatewayState>,
    server: Server,
}

impl RunningGateway {
    /// Returns the server in front of the upstream servers, to be served on any transport.
    pub fn server(&self) -> Server {
        self.server.clone()
    }

    /// Returns the status of all upstream servers.
    pub fn status(&self) -> Vec<UpstreamStatus> {
        let servers = self.state.servers();
        servers.iter().map(|server| server.status()).collect()
    }

    /// Returns the accepted definitions of the servers with a tool lock: the configured ones, or those that were
    /// [listed first](Upstream::lock_as_listed). `None` if a server has not listed all of its definitions yet.
    pub fn locks(&self) -> Vec<(String, Option<ServerLock>)> {
        let servers = self.state.servers();
        let locked = servers.iter().filter(|server| server.tool_lock.is_set());
        locked
            .map(|server| (server.name().to_owned(), server.accepted_definitions()))
            .collect()
    }

    /// Returns numbers about requests, connections and calls.
    pub fn metrics(&self) -> GatewayMetrics {
        let state = &self.state;
        let servers = state.servers();
        let numbers = servers.iter().map(|server| {
            (
                server.name().to_owned(),
                server
                    .counters
                    .numbers(server.status().refused_client_requests),
            )
        });
        GatewayMetrics {
            server_operations: state.operations.server.totals(),
            client_operations: state.operations.client.totals(),
            servers: numbers.collect(),
            suspended_calls: state.suspended.len(),
        }
    }

    /// Returns whether every required server is up; without required ones, whether any server is.
    pub fn is_ready(&self) -> bool {
        let servers = self.state.servers();
        let mut required = servers
            .iter()
            .filter(|server| server.settings.required)
            .peekable();
        if required.peek().is_none() {
            return servers.iter().any(|server| server.is_available());
        }
        required.all(|server| server.is_available())
    }

    pub(crate) fn state(&self) -> &Arc<GatewayState> {
        &self.state
    }

    /// Returns the number of calls of modern clients that wait for input, while the call at the server is open.
    pub fn suspended_calls(&self) -> usize {
        self.state.suspended.len()
    }

    /// Limits the calls of each caller to each server as [`Gateway::rate_limit`] does, or with `None` not any more.
    /// Returns whether that is another limit than before; the same one goes on counting.
    ///
    /// # Panics
    ///
    /// If the number of calls or the time is zero.
    pub fn set_rate_limit(&self, limit: Option<(u32, Duration)>) -> bool {
        self.state.rates.set(limit)
    }

    /// Ends all calls, upstream connections and child processes.
    pub async fn close(&self) {
        self.state.suspended.clear();
        self.state.pool.close().await;
    }
}

impl fmt::Debug for RunningGateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningGateway")
            .field("servers", &self.status())
            .finish_non_exhaustive()
    }
}

/// Events of upstream connections.
pub(crate) trait GatewayEvents: Send + Sync {
    /// A list of a server may have changed for some clients; `None` for that of a connection of one call.
    /// `is_announced`: the server said so.
    fn list_changed(
        &self,
        server: &Arc<UpstreamServer>,
        kind: ListKind,
        is_announced: bool,
        target: Option<&ChangeTarget>,
    );
    /// A server announced to some clients that a resource has changed.
    fn resource_updated(&self, server: &Arc<UpstreamServer>, uri: &str, target: &ChangeTarget);
    /// The state of a server has changed.
    fn state_changed(&self, server: &UpstreamServer, state: UpstreamState);
    /// A connection has ended, so that its lists are not known anymore.
    fn connection_ended(&self);
    /// A server reported that the user has completed a URL elicitation that it has sent to the client of a session.
    fn elicitation_completed(&self, id: &str, session: SessionKey);
    /// Returns the name of a server if clients see several servers as one.
    fn server_label(&self, server: &UpstreamServer) -> Option<Arc<str>>;
    /// Returns the id of the gateway.
    fn id(&self) -> GatewayId;
    /// A server responded to a request, or failed to.
    fn server_responded(
        &self,
        server: &UpstreamServer,
        method: &str,
        result: &Result<RelayResult, CallError>,
        elapsed: Duration,
    );
}

/// The state of a running gateway.
pub(crate) struct GatewayState {
    pub(crate) id: GatewayId,
    servers: ArcSwap<ServerSet>,
    pub(crate) pool: Arc<ConnectionPool>,
    pub(crate) suspended: Arc<SuspendedCalls>,
    /// The settings of the servers in front.
    base: Server,
    /// Names this server in results.
    pub(crate) identity: ResultIdentity,
    pub(crate) prefix: PrefixMode,
    pub(crate) has_authenticated_callers: bool,
    /// Locked during a reload.
    pub(crate) reloading: tokio::sync::Mutex<()>,
    pub(crate) catalog: Catalog,
    /// The server that clients use, once it has started.
    front: Mutex<Option<Server>>,
    /// The servers in front of one upstream server each. Empty for a view.
    pub(crate) views: ViewTable,
    pub(crate) is_view: bool,
    /// The connections of clients that are watched for their end.
    pub(crate) watched: Mutex<HashSet<SessionKey>>,
    /// The rates of callers at each server.
    pub(crate) rates: Arc<RateLimits>,
    pub(crate) audit: Option<SharedSink>,
    pub(crate) operations: Arc<Operations>,
    this: Weak<GatewayState>,
}

impl GatewayEvents for GatewayState {
    fn list_changed(
        &self,
        server: &Arc<UpstreamServer>,
        kind: ListKind,
        is_announced: bool,
        target: Option<&ChangeTarget>,
    ) {
        match (self.this(), target) {
            (Some(state), Some(target)) => state.note_change(server, kind, is_announced, target),
            _ => self.invalidate(server, kind),
        }
    }

    fn resource_updated(&self, server: &Arc<UpstreamServer>, uri: &str, target: &ChangeTarget) {
        self.announce_update(server, uri, target);
        for view in self.views.of_server(server) {
            view.announce_update(server, uri, target);
        }
    }

    fn server_responded(
        &self,
        server: &UpstreamServer,
        method: &str,
        result: &Result<RelayResult, CallError>,
        elapsed: Duration,
    ) {
        let (outcome, error) = match result {
            Ok(result) => (result_outcome(result.json()), None),
            Err(CallError::Rejected { source, .. }) => (Outcome::Error, Some(&**source)),
            Err(_) => (Outcome::Error, None),
        };
        let (server, operations) = (&server.settings.name, &self.operations.client);
        operations.record(Some(server), method, outcome, error, elapsed);
    }

    fn server_label(&self, server: &UpstreamServer) -> Option<Arc<str>> {
        Self::server_label(self, server)
    }

    fn id(&self) -> GatewayId {
        self.id.clone()
    }

    fn state_changed(&self, server: &UpstreamServer, state: UpstreamState) {
        self.note_state(server, state);
    }

    fn connection_ended(&self) {
        for kind in ListKind::ALL {
            self.catalog.invalidate(kind);
        }
        for view in self.views.all() {
            view.connection_ended();
        }
    }

    fn elicitation_completed(&self, id: &str, session: SessionKey) {
        if let Some(front) = self.front() {
            let completed = ServerChange::ElicitationCompleted { id: id.into() };
            front.publish_to(session.into(), completed);
        }
        // The session may be that of a view.
        for view in self.views.all() {
            view.elicitation_completed(id, session);
        }
    }
}

fn updated(uri: String) -> ServerChange {
    ServerChange::ResourceUpdated { uri: uri.into() }
}

/// Closes idle connections and tries servers that are down, until the gateway is dropped.
async fn maintain(state: Weak<GatewayState>, idle_timeout: Duration) {
    let interval = (idle_timeout / 4).clamp(Duration::from_millis(100), MAINTENANCE_INTERVAL);
    loop {
        tokio::time::sleep(interval).await;
        let Some(state) = state.upgrade() else {
            return;
        };
        state.pool.close_idle(idle_timeout);
        state.pool.reopen_awaited();
        for server in state.servers().iter() {
            if !server.is_up() && server.retry_later().is_none() {
                state.probe(server);
            }
        }
    }
}

impl GatewayState {
    /// Connects to all servers, to learn their capabilities.
    async fn probe_all(self: &Arc<Self>) -> Result<(), StartError> {
        let servers = self.servers();
        let is_single = servers.only().is_some();
        let mut probes = JoinSet::new();
        for server in servers.iter() {
            let (probe, server) = (self.probe(server), Arc::clone(server));
            probes.spawn(async move {
                let probed = match probe {
                    Some(probe) if is_single => probe.await.ok(),
                    // The attempt goes on, and the server is starting.
                    Some(probe) => tokio::time::timeout(SERVER_TIMEOUT, probe)
                        .await
                        .map_or(None, Result::ok),
                    None => None,
                };
                (server, probed.unwrap_or_else(|| Err("timeout".to_owned())))
            });
        }
        for (server, outcome) in probes.join_all().await {
            if let Err(reason) = outcome
                && (is_single || server.settings.required)
            {
                let server = server.name().to_owned();
                return Err(StartError::Unreachable { server, reason });
            }
        }
        Ok(())
    }

    /// Connects to a server in the background, unless an attempt is running: a server that is slow to start does not delay
    /// the others.
    pub(crate) fn probe(
        self: &Arc<Self>,
        server: &Arc<UpstreamServer>,
    ) -> Option<JoinHandle<Result<(), String>>> {
        if !server.begin_probe() {
            return None;
        }
        let (state, server) = (Arc::clone(self), Arc::clone(server));
        Some(tokio::spawn(async move {
            let probed = state.pool.probe(&server).await;
            server.end_probe();
            probed
        }))
    }

    /// Returns a view of a server: its own server in front, and everything else of this gateway.
    pub(crate) fn view_of(&self, server: &Arc<UpstreamServer>) -> Arc<Self> {
        let view = Arc::new_cyclic(|weak| Self {
            servers: ArcSwap::from_pointee(view_servers(server)),
            pool: Arc::clone(&self.pool),
            suspended: Arc::clone(&self.suspended),
            id: self.id.clone(),
            base: self.base.clone(),
            identity: self.identity.clone(),
            prefix: PrefixMode::Never,
            has_authenticated_callers: self.has_authenticated_callers,
            reloading: tokio::sync::Mutex::default(),
            catalog: Catalog::new(self.catalog.settings),
            front: Mutex::default(),
            views: ViewTable::default(),
            is_view: true,
            watched: Mutex::default(),
            rates: Arc::clone(&self.rates),
            audit: self.audit.clone(),
            operations: Arc::clone(&self.operations),
            this: weak.clone(),
        });
        view.create_front(server.name());
        view
    }

    /// Creates the server that clients use. The states that it encrypts are for this scope.
    fn create_front(self: &Arc<Self>, scope: &str) -> Server {
        let relay = Arc::new(GatewayRelay(Arc::clone(self)));
        let front = self.base.with_own_state(scope).relay(relay);
        *lock(&self.front) = Some(front.clone());
        front
    }

    /// Gets the changes of the states of the servers from now on.
    fn observe_servers(&self) {
        for server in self.servers().iter() {
            let events: Weak<dyn GatewayEvents> = self.this.clone();
            server.observe(events);
        }
    }

    /// Tells clients that a resource has changed.
    fn announce_update(&self, server: &UpstreamServer, uri: &str, target: &ChangeTarget) {
        let Some(front) = self.front() else {
            return;
        };
        let shown = self.shown_uri(ListKind::Resources, server, uri);
        // Clients can subscribe to this form of every URI.
        let own = own_uri(server.name(), uri);
        if self.servers().len() > 1 && own != shown {
            front.publish_to(target.clone(), updated(own));
        }
        front.publish_to(target.clone(), updated(shown));
    }

    /// Notes that a list of a server may have changed.
    pub(crate) fn invalidate(&self, server: &UpstreamServer, kind: ListKind) {
        self.catalog.invalidate(kind);
        for view in self.views.of_server(server) {
            view.catalog.invalidate(kind);
        }
    }

    /// Tells clients that a list has changed.
    pub(crate) fn announce(&self, kind: ListKind, target: ChangeTarget) {
        let Some(front) = self.front() else {
            return;
        };
        let change = match kind {
            ListKind::Tools => ServerChange::ToolsChanged,
            ListKind::Prompts => ServerChange::PromptsChanged,
            ListKind::Resources | ListKind::Templates => ServerChange::ResourcesChanged,
        };
        front.publish_to(target, change);
    }

    /// Returns the upstream servers of now.
    pub(crate) fn servers(&self) -> Arc<ServerSet> {
        self.servers.load_full()
    }

    /// Returns the only server, if there is one.
    pub(crate) fn only_server(&self) -> Option<Arc<UpstreamServer>> {
        self.servers.load().only().cloned()
    }

    /// Returns the server with a name.
    pub(crate) fn server_named(&self, name: &str) -> Option<Arc<UpstreamServer>> {
        self.servers.load().by_name(name).cloned()
    }

    /// Uses other servers from now on, and tells clients that all lists have changed.
    pub(crate) fn replace_servers(&self, servers: ServerSet) {
        let servers = Arc::new(servers);
        self.servers.store(Arc::clone(&servers));
        if !self.is_view {
            self.observe_servers();
            self.views.replace_servers(&servers);
        }
        self.catalog.clear();
        for kind in [ListKind::Tools, ListKind::Prompts, ListKind::Resources] {
            self.announce(kind, ChangeTarget::Everyone);
        }
    }

    /// Returns the server in front, once it has started.
    pub(crate) fn front(&self) -> Option<Server> {
        lock(&self.front).clone()
    }

    /// Announces nothing from now on, so that nothing but its users keeps the server.
    pub(crate) fn forget_front(&self) {
        *lock(&self.front) = None;
    }

    pub(crate) fn this(&self) -> Option<Arc<Self>> {
        self.this.upgrade()
    }
}

/// The gateway as the relay of its server.
struct GatewayRelay(Arc<GatewayState>);

impl Relay for GatewayRelay {
    fn capabilities(&self) -> ServerCapabilities {
        self.0.capabilities()
    }

    fn instructions(&self) -> Option<String> {
        self.0.instructions()
    }

    fn meta(&self) -> JsonObject {
        self.0.discovery_meta()
    }

    fn check_available(&self) -> Result<(), RpcError> {
        self.0.check_required()
    }

    fn handle(&self, request: RelayedRequest) -> RelayFuture<'_, Result<RelayedResult, RpcError>> {
        Box::pin(self.0.handle_observed(request))
    }

    fn subscribe<'a>(
        &'a self,
        request: RelayedRequest,
        filter: &'a mut SubscriptionFilter,
    ) -> RelayFuture<'a, Option<Box<dyn Send + Sync>>> {
        Box::pin(async move {
            let listener: Box<dyn Send + Sync> = Box::new(self.0.listen(&request, filter).await);
            Some(listener)
        })
    }

    fn watch_tasks(
        &self,
        request: RelayedRequest,
        ids: Vec<String>,
    ) -> RelayFuture<'_, Option<WatchedTasks>> {
        Box::pin(self.0.watch_tasks(request, ids))
    }

    fn session_ended(&self, session: SessionKey) {
        self.0.pool.session_ended(session);
    }

    fn on_notification(&self, notification: RelayedNotification<'_>) {
        let RelayedNotification {
            session,
            method,
            params,
            ..
        } = notification;
        self.0.pool.client_notified(session, method, params);
    }
}
