//! The gateway: its upstream servers, and the relay that the server in front of them uses.

use std::{
    collections::HashSet,
    fmt,
    sync::{
        Arc, Mutex, OnceLock, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use tokio::task::JoinSet;
use turnbuckle_protocol::{
    RpcError,
    jsonrpc::{RawObject, code},
    types::{
        Implementation, JsonObject, ListCapability, ResourcesCapability, ServerCapabilities,
        SubscriptionFilter, tasks::EXTENSION,
    },
};
use turnbuckle_server::{
    Server,
    middleware::SessionKey,
    relay::{Relay, RelayFuture, RelayedRequest},
};

use crate::{
    calls::TargetName,
    connection::Connection,
    convert::{self, ListKind},
    errors,
    lifecycle::{RevisionPair, is_stateless},
    lists::ListItem,
    names::{NameTable, ResolvedName, own_uri, parse_own_uri},
    pool::{ConnectionPool, caller_key},
    raw_json::{ObjectWriter, edit, quote},
    running_call::{RunningCall, lock},
    suspended_calls::SuspendedCalls,
    upstream::{Upstream, UpstreamServer, UpstreamStatus},
};

/// Maximum time that the start, or a list of several servers, waits for one of them.
const SERVER_TIMEOUT: Duration = Duration::from_secs(5);
/// Time in which changes of a list are announced as one.
const CHANGE_DELAY: Duration = Duration::from_millis(100);
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
    upstreams: Vec<Upstream>,
    prefix: PrefixMode,
    idle_timeout: Duration,
    max_connections: usize,
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
        Self {
            info: Implementation::new(name, version),
            upstreams: Vec::new(),
            prefix: PrefixMode::Auto,
            idle_timeout: Duration::from_secs(300),
            max_connections: 64,
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

    /// Connects to all servers at the same time.
    ///
    /// A server that cannot be reached is an error if it is the only one or required; otherwise it is left out and tried
    /// again.
    pub async fn start(self) -> Result<RunningGateway, StartError> {
        let servers = self.servers()?;
        let has_prefix = match self.prefix {
            PrefixMode::Auto => servers.len() > 1,
            PrefixMode::Always => true,
            PrefixMode::Never => false,
        };
        let state = Arc::new_cyclic(|weak: &Weak<GatewayState>| {
            let events: Weak<dyn GatewayEvents> = weak.clone();
            GatewayState {
                identity: convert::identity(&self.info),
                pool: ConnectionPool::new(events, self.info.clone(), self.max_connections),
                suspended: Arc::default(),
                servers,
                has_prefix,
                names: Mutex::default(),
                server: OnceLock::new(),
                announced: Default::default(),
                watched: Mutex::default(),
                this: weak.clone(),
            }
        });
        state.probe_all().await?;
        let relay = Arc::new(GatewayRelay(Arc::clone(&state)));
        let server = Server::new(self.info.name, self.info.version).relay(relay);
        let _ = state.server.set(server.clone());
        tokio::spawn(maintain(Arc::downgrade(&state), self.idle_timeout));
        Ok(RunningGateway { state, server })
    }

    fn servers(&self) -> Result<Vec<Arc<UpstreamServer>>, StartError> {
        if self.upstreams.is_empty() {
            return Err(StartError::NoUpstream);
        }
        let mut names = HashSet::new();
        let mut servers = Vec::new();
        for (index, upstream) in self.upstreams.iter().enumerate() {
            if !names.insert(&upstream.name) {
                return Err(StartError::DuplicateName(upstream.name.to_string()));
            }
            let server = UpstreamServer::new(index, upstream.clone());
            servers.push(Arc::new(server.map_err(|error| StartError::Pattern {
                server: upstream.name.to_string(),
                source: error.into(),
            })?));
        }
        Ok(servers)
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
        self.state
            .servers
            .iter()
            .map(|server| server.status())
            .collect()
    }

    /// Returns whether every required server is up; without required ones, whether any server is.
    pub fn is_ready(&self) -> bool {
        let servers = &self.state.servers;
        let mut required = servers
            .iter()
            .filter(|server| server.settings.required)
            .peekable();
        if required.peek().is_none() {
            return servers.iter().any(|server| server.is_up());
        }
        required.all(|server| server.is_up())
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
    /// A server announced that a list has changed.
    fn list_changed(&self, kind: ListKind);
    /// A server announced that a resource has changed.
    fn resource_updated(&self, server: usize, uri: &str);
}

/// The state of a running gateway.
pub(crate) struct GatewayState {
    pub(crate) servers: Vec<Arc<UpstreamServer>>,
    pub(crate) pool: ConnectionPool,
    pub(crate) suspended: Arc<SuspendedCalls>,
    /// The `_meta` object that names this server.
    pub(crate) identity: String,
    has_prefix: bool,
    /// The names of the last list of each kind.
    names: Mutex<[NameTable; 4]>,
    server: OnceLock<Server>,
    /// The lists with a change that will be announced shortly.
    announced: [AtomicBool; 4],
    /// The connections of clients that are watched for their end.
    watched: Mutex<HashSet<SessionKey>>,
    this: Weak<GatewayState>,
}

impl GatewayEvents for GatewayState {
    fn list_changed(&self, kind: ListKind) {
        let Some(state) = self.this.upgrade() else {
            return;
        };
        if self.announced[kind as usize].swap(true, Ordering::AcqRel) {
            return;
        }
        tokio::spawn(async move {
            tokio::time::sleep(CHANGE_DELAY).await;
            state.announced[kind as usize].store(false, Ordering::Release);
            state.announce(kind);
        });
    }

    fn resource_updated(&self, server: usize, uri: &str) {
        let seen = self.seen_uri(server, uri);
        if let Some(front) = self.server.get() {
            front.resource_updated(seen);
        }
    }
}

/// Closes idle connections and tries servers that are down, until the gateway is dropped.
async fn maintain(state: Weak<GatewayState>, idle_timeout: Duration) {
    let interval = (idle_timeout / 4).clamp(Duration::from_millis(100), MAINTENANCE_INTERVAL);
    loop {
        tokio::time::sleep(interval).await;
        let Some(state) = state.upgrade() else {
            return;
        };
        state.pool.close_idle(idle_timeout).await;
        for server in &state.servers {
            if !server.is_up()
                && server.retry_later().is_none()
                && state.pool.probe(server).await.is_ok()
            {
                ListKind::ALL
                    .into_iter()
                    .for_each(|kind| state.announce(kind));
            }
        }
    }
}

impl GatewayState {
    /// Connects to all servers, to learn their capabilities.
    async fn probe_all(self: &Arc<Self>) -> Result<(), StartError> {
        let mut probes = JoinSet::new();
        for server in &self.servers {
            let (state, server) = (Arc::clone(self), Arc::clone(server));
            let limit = if self.servers.len() == 1 {
                Duration::MAX
            } else {
                SERVER_TIMEOUT
            };
            probes.spawn(async move {
                let probed = tokio::time::timeout(limit, state.pool.probe(&server)).await;
                let reason = match probed {
                    Ok(Ok(())) => return Ok(()),
                    Ok(Err(reason)) => reason,
                    Err(_) => "timeout".to_owned(),
                };
                server.failed(reason.clone());
                Err((server, reason))
            });
        }
        for outcome in probes.join_all().await {
            if let Err((server, reason)) = outcome
                && (self.servers.len() == 1 || server.settings.required)
            {
                return Err(StartError::Unreachable {
                    server: server.name().to_owned(),
                    reason,
                });
            }
        }
        Ok(())
    }

    /// Tells clients that a list has changed.
    fn announce(&self, kind: ListKind) {
        let Some(front) = self.server.get() else {
            return;
        };
        match kind {
            ListKind::Tools => front.tools_changed(),
            ListKind::Prompts => front.prompts_changed(),
            ListKind::Resources | ListKind::Templates => front.resources_changed(),
        }
    }

    /// Returns the only server, if there is one.
    fn only_server(&self) -> Option<&Arc<UpstreamServer>> {
        match &*self.servers {
            [server] => Some(server),
            _ => None,
        }
    }

    /// Returns the URI under which clients know a resource of a server.
    fn seen_uri(&self, server: usize, uri: &str) -> String {
        let names = lock(&self.names);
        match names[ListKind::Resources as usize].get(uri) {
            Some(resolved) if resolved.server != server => {
                own_uri(self.servers[server].name(), uri)
            }
            _ => uri.to_owned(),
        }
    }

    /// Relays one request.
    async fn handle(self: &Arc<Self>, request: &RelayedRequest) -> Result<String, RpcError> {
        self.watch_connection(request);
        if let Some(kind) = ListKind::from_method(request.method()) {
            return self.list(kind, request).await;
        }
        match request.method() {
            "tools/call" => self.relay_named(ListKind::Tools, "name", request).await,
            "prompts/get" => self.relay_named(ListKind::Prompts, "name", request).await,
            "resources/read" => self.relay_named(ListKind::Resources, "uri", request).await,
            "resources/subscribe" | "resources/unsubscribe" => self.subscribe(request).await,
            "completion/complete" => self.complete(request).await,
            "logging/setLevel" => self.set_log_level(request).await,
            method if method.starts_with("tasks/") => Err(RpcError::method_not_found(method)),
            method => match self.only_server() {
                Some(server) => self.relay_call(server, request, None).await,
                None => Err(RpcError::method_not_found(method)),
            },
        }
    }

    /// Closes the upstream connections of a client when its connection closes. Sessions end by themselves.
    fn watch_connection(self: &Arc<Self>, request: &RelayedRequest) {
        let Some(session) = request.session().filter(|_| request.has_connection()) else {
            return;
        };
        if !lock(&self.watched).insert(session) {
            return;
        }
        let (state, request) = (Arc::downgrade(self), request.clone());
        tokio::spawn(async move {
            request.connection_closed().await;
            if let Some(state) = state.upgrade() {
                lock(&state.watched).remove(&session);
                state.pool.session_ended(session).await;
            }
        });
    }

    /// Relays a request that names a tool, prompt or resource.
    async fn relay_named(
        self: &Arc<Self>,
        kind: ListKind,
        member: &'static str,
        request: &RelayedRequest,
    ) -> Result<String, RpcError> {
        let params = RawObject::parse(request.params())?;
        let missing = || RpcError::invalid_params(format!("`{member}` is missing"));
        let name = params.string(member)?.ok_or_else(missing)?;
        let resolved = self.resolve(kind, &name, request).await?;
        let target = TargetName {
            member,
            value: quote(&resolved.original),
            original: resolved.original,
        };
        let server = &self.servers[resolved.server];
        self.relay_call(server, request, Some(&target)).await
    }

    /// Finds the server of a name or URI. The policy of the server applies to its own name.
    async fn resolve(
        self: &Arc<Self>,
        kind: ListKind,
        name: &str,
        request: &RelayedRequest,
    ) -> Result<ResolvedName, RpcError> {
        let resolved = match self.find(kind, name) {
            Some(resolved) => Some(resolved),
            None => {
                // The lists may have changed, or were never requested.
                self.refresh_names(kind, request).await;
                self.find(kind, name)
            }
        };
        let permitted = |resolved: &ResolvedName| {
            self.servers[resolved.server]
                .policy
                .permits(&resolved.original)
        };
        resolved
            .filter(permitted)
            .ok_or_else(|| self.unknown(kind, name, request))
    }

    fn find(&self, kind: ListKind, name: &str) -> Option<ResolvedName> {
        let of_server = |server| ResolvedName {
            server,
            original: name.to_owned(),
        };
        if kind == ListKind::Resources
            && let Some((server, original)) = parse_own_uri(name)
        {
            let server = self
                .servers
                .iter()
                .position(|known| known.name() == server)?;
            return Some(ResolvedName { server, original });
        }
        let is_single = self.servers.len() == 1;
        if is_single && (kind == ListKind::Resources || !self.has_prefix) {
            return Some(of_server(0));
        }
        let names = lock(&self.names);
        let found = names[kind as usize].get(name).cloned();
        if kind != ListKind::Resources {
            return found;
        }
        let by_scheme = || {
            let templates = &names[ListKind::Templates as usize];
            let by_resources = names[kind as usize].only_server_of_scheme(name);
            match (by_resources, templates.only_server_of_scheme(name)) {
                (Some(server), None) | (None, Some(server)) => Some(of_server(server)),
                (Some(first), Some(second)) if first == second => Some(of_server(first)),
                _ => None,
            }
        };
        found.or_else(by_scheme)
    }

    async fn refresh_names(self: &Arc<Self>, kind: ListKind, request: &RelayedRequest) {
        self.collect(kind, request).await;
        if kind == ListKind::Resources {
            self.collect(ListKind::Templates, request).await;
        }
    }

    /// Returns the error for a name that no server has.
    fn unknown(&self, kind: ListKind, name: &str, request: &RelayedRequest) -> RpcError {
        let down: Vec<_> = self
            .servers
            .iter()
            .filter(|server| !server.is_up())
            .map(|server| server.name())
            .collect();
        let item = match kind {
            ListKind::Tools => "tool",
            ListKind::Prompts => "prompt",
            ListKind::Resources | ListKind::Templates => "resource",
        };
        let mut message = format!("unknown {item} `{name}`");
        if !down.is_empty() {
            message.push_str(&format!("; these servers are down: {}", down.join(", ")));
        }
        let code = match kind {
            ListKind::Resources if !is_stateless(request.revision()) => code::RESOURCE_NOT_FOUND,
            _ => code::INVALID_PARAMS,
        };
        RpcError::new(code, message)
    }

    /// Returns a list of all servers as one page.
    async fn list(
        self: &Arc<Self>,
        kind: ListKind,
        request: &RelayedRequest,
    ) -> Result<String, RpcError> {
        let params = RawObject::parse(request.params())?;
        if params.get("cursor").is_some_and(|cursor| cursor != "null") {
            return Err(RpcError::invalid_params(
                "unknown `cursor`: this list has one page",
            ));
        }
        let collected = self.collect(kind, request).await;
        if let (Some(_), Some(error)) = (self.only_server(), collected.error) {
            return Err(error);
        }
        let mut result = ObjectWriter::new();
        result.member(
            kind.items_member(),
            &format!("[{}]", collected.items.join(",")),
        );
        if self.servers.len() > 1 {
            let meta = json!({ "dev.turnbuckle/servers": self.server_states() });
            result.member("_meta", &meta.to_string());
        }
        let pair = RevisionPair::of_own_result(request.revision());
        convert::result(kind.method(), &result.finish(), pair, &self.identity)
    }

    /// Requests a list from all servers at the same time, and names its items for clients.
    async fn collect(self: &Arc<Self>, kind: ListKind, request: &RelayedRequest) -> CollectedList {
        let mut requests = JoinSet::new();
        for server in &self.servers {
            let (state, server, request) = (Arc::clone(self), Arc::clone(server), request.clone());
            requests.spawn(async move {
                let index = server.index;
                let limit = if state.servers.len() == 1 {
                    Duration::MAX
                } else {
                    SERVER_TIMEOUT
                };
                let listed = tokio::time::timeout(limit, state.list_of(&server, kind, &request));
                let timeout = |_| Err(errors::unreachable(server.name(), "timeout"));
                (index, listed.await.unwrap_or_else(timeout))
            });
        }
        let mut lists = requests.join_all().await;
        lists.sort_by_key(|(index, _)| *index);
        let mut collected = CollectedList::default();
        let mut names = NameTable::default();
        for (index, listed) in lists {
            match listed {
                Ok((items, pair)) => {
                    self.add_items(kind, index, &items, pair, &mut names, &mut collected.items);
                }
                Err(error) => collected.error = Some(error),
            }
        }
        lock(&self.names)[kind as usize] = names;
        collected
    }

    async fn list_of(
        self: &Arc<Self>,
        server: &Arc<UpstreamServer>,
        kind: ListKind,
        request: &RelayedRequest,
    ) -> Result<(Arc<Vec<ListItem>>, RevisionPair), RpcError> {
        let downstream = request.revision();
        let opening = RevisionPair {
            downstream,
            upstream: downstream,
        };
        let opener = RunningCall::new(request, caller_key(request), opening);
        let connection = self.pool.get(server, request, Some(&opener)).await?;
        let items = connection.list(kind).await;
        connection.opener_ended(&opener);
        self.pool.call_ended(&connection).await;
        let upstream = connection.revision();
        Ok((
            items?,
            RevisionPair {
                downstream,
                upstream,
            },
        ))
    }

    /// Adds the items of a server under the names that clients see. Invalid ones are left out.
    fn add_items(
        &self,
        kind: ListKind,
        index: usize,
        items: &[ListItem],
        pair: RevisionPair,
        names: &mut NameTable,
        out: &mut Vec<String>,
    ) {
        let server = &self.servers[index];
        for item in items
            .iter()
            .filter(|item| server.policy.permits(&item.name))
        {
            let seen = match kind {
                ListKind::Resources => names.add_uri(index, server.name(), &item.name),
                ListKind::Templates => names.add_uri(index, server.name(), &item.name),
                ListKind::Tools | ListKind::Prompts if self.has_prefix => {
                    names.add_prefixed(index, server.name(), &item.name)
                }
                ListKind::Tools | ListKind::Prompts => {
                    if !names.add_first(index, &item.name) {
                        continue;
                    }
                    item.name.clone()
                }
            };
            let converted = kind.item(&item.json, pair).and_then(|json| {
                if seen == item.name {
                    return Ok(json);
                }
                edit(&json, &[], &[(kind.name_member(), quote(&seen))])
            });
            match converted {
                Ok(json) => out.push(json),
                Err(error) => tracing::warn!(
                    server = server.name(),
                    item = item.name,
                    error = %error.message,
                    "an invalid item is left out"
                ),
            }
        }
    }

    /// Completes an argument of a prompt or a variable of a template.
    async fn complete(self: &Arc<Self>, request: &RelayedRequest) -> Result<String, RpcError> {
        let params = RawObject::parse(request.params())?;
        let missing = || RpcError::invalid_params("`ref` is missing");
        let reference = params.get("ref").ok_or_else(missing)?;
        let object = RawObject::parse(reference)?;
        let (kind, member) = match object.string("type")?.as_deref() {
            Some("ref/prompt") => (ListKind::Prompts, "name"),
            Some("ref/resource") => (ListKind::Templates, "uri"),
            _ => {
                return Err(RpcError::invalid_params(
                    "`ref.type` must be ref/prompt or ref/resource",
                ));
            }
        };
        let missing = || RpcError::invalid_params(format!("`ref.{member}` is missing"));
        let name = object.string(member)?.ok_or_else(missing)?;
        let resolved = match (self.only_server(), kind) {
            (Some(_), ListKind::Templates) => ResolvedName {
                server: 0,
                original: name.into_owned(),
            },
            _ => self.resolve(kind, &name, request).await?,
        };
        let target = TargetName {
            member: "ref",
            value: edit(reference, &[], &[(member, quote(&resolved.original))])?,
            original: resolved.original,
        };
        let server = &self.servers[resolved.server];
        self.relay_call(server, request, Some(&target)).await
    }

    /// Subscribes to a resource, or unsubscribes. The session of the client is already updated.
    async fn subscribe(self: &Arc<Self>, request: &RelayedRequest) -> Result<String, RpcError> {
        let params = RawObject::parse(request.params())?;
        let missing = || RpcError::invalid_params("`uri` is missing");
        let uri = params.string("uri")?.ok_or_else(missing)?;
        let resolved = self.resolve(ListKind::Resources, &uri, request).await?;
        let server = &self.servers[resolved.server];
        let connection = self.pool.get(server, request, None).await?;
        let subscriber = format!("{:?}", request.session());
        let changed = if request.method() == "resources/subscribe" {
            connection.subscribe(&resolved.original, &subscriber).await
        } else {
            connection
                .unsubscribe(&resolved.original, &subscriber)
                .await
        };
        changed.map_err(|error| errors::call_failure(server.name(), error))?;
        Ok("{}".to_owned())
    }

    /// Sets the log level of all servers that have one. The session of the client is already updated.
    async fn set_log_level(self: &Arc<Self>, request: &RelayedRequest) -> Result<String, RpcError> {
        let params = RawObject::parse(request.params())?;
        let level = params.string("level")?.and_then(|level| level.parse().ok());
        let level = level.ok_or_else(|| RpcError::invalid_params("`level` is not a log level"))?;
        for server in &self.servers {
            let Ok(connection) = self.pool.get(server, request, None).await else {
                continue;
            };
            if connection.client.server().capabilities.logging.is_some()
                && let Err(error) = connection.set_log_level(level).await
            {
                tracing::debug!(server = server.name(), %error, "the log level was not set");
            }
        }
        Ok("{}".to_owned())
    }

    /// Opens the connections that announce what a client listens to.
    async fn listen(
        self: &Arc<Self>,
        request: &RelayedRequest,
        filter: &SubscriptionFilter,
    ) -> Listener {
        let mut listener = Listener::default();
        let mut id = [0; 8];
        let _ = getrandom::fill(&mut id);
        listener.subscriber = format!("{id:?}");
        for server in &self.servers {
            if let Ok(connection) = self.pool.get(server, request, None).await {
                listener.kept.push(connection.keep_for_listener());
            }
        }
        for uri in filter.resource_subscriptions.iter().flatten() {
            let Ok(resolved) = self.resolve(ListKind::Resources, uri, request).await else {
                continue;
            };
            let server = &self.servers[resolved.server];
            let Ok(connection) = self.pool.get(server, request, None).await else {
                continue;
            };
            let subscribed = connection
                .subscribe(&resolved.original, &listener.subscriber)
                .await;
            match subscribed {
                Ok(()) => listener.resources.push((connection, resolved.original)),
                Err(error) => {
                    tracing::debug!(server = server.name(), %error, "a resource was not subscribed to");
                }
            }
        }
        listener
    }

    fn server_states(&self) -> serde_json::Value {
        let states = self.servers.iter().map(|server| {
            let status = server.status();
            json!({
                "name": status.name,
                "state": status.state.to_string(),
                "revision": status.revision,
                "reason": status.reason,
            })
        });
        states.collect()
    }

    fn capabilities(&self) -> ServerCapabilities {
        let mut union = ServerCapabilities::new().logging(JsonObject::new());
        for server in &self.servers {
            let info = server.info.load();
            let Some(info) = info.as_ref() else {
                continue;
            };
            let capabilities = &info.capabilities;
            if capabilities.tools.is_some() {
                union.tools = Some(ListCapability::default().list_changed(true));
            }
            if capabilities.prompts.is_some() {
                union.prompts = Some(ListCapability::default().list_changed(true));
            }
            if capabilities.resources.is_some() {
                let resources = ResourcesCapability::default();
                union.resources = Some(resources.subscribe(true).list_changed(true));
            }
            if capabilities.completions.is_some() {
                union.completions = Some(JsonObject::new());
            }
            if self.servers.len() == 1 {
                union.extensions = capabilities.extensions.clone();
                if let Some(extensions) = &mut union.extensions {
                    extensions.remove(EXTENSION);
                }
            }
        }
        union
    }

    fn instructions(&self) -> Option<String> {
        let of_server = |server: &UpstreamServer| {
            let info = server.info.load();
            info.as_ref().and_then(|info| info.instructions.clone())
        };
        if let Some(server) = self.only_server() {
            return of_server(server);
        }
        let mut texts = Vec::new();
        for server in &self.servers {
            let name = server.name();
            if !server.is_up() {
                texts.push(format!("Server `{name}` is down now."));
            } else if let Some(text) = of_server(server) {
                texts.push(format!("Server `{name}`: {text}"));
            }
        }
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }
}

/// A list of several servers.
#[derive(Default)]
struct CollectedList {
    /// The items, as JSON.
    items: Vec<String>,
    /// The error of a server that did not return its list.
    error: Option<RpcError>,
}

/// The upstream connections and subscriptions of a client that listens for changes.
#[derive(Default)]
struct Listener {
    subscriber: String,
    kept: Vec<crate::connection::ListenerGuard>,
    resources: Vec<(Arc<Connection>, String)>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        let (resources, subscriber) =
            (std::mem::take(&mut self.resources), self.subscriber.clone());
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            for (connection, uri) in resources {
                let _ = connection.unsubscribe(&uri, &subscriber).await;
            }
        });
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

    fn handle(&self, request: RelayedRequest) -> RelayFuture<'_, Result<String, RpcError>> {
        Box::pin(async move { self.0.handle(&request).await })
    }

    fn subscribe<'a>(
        &'a self,
        request: RelayedRequest,
        filter: &'a SubscriptionFilter,
    ) -> RelayFuture<'a, Option<Box<dyn Send + Sync>>> {
        Box::pin(async move {
            let listener: Box<dyn Send + Sync> = Box::new(self.0.listen(&request, filter).await);
            Some(listener)
        })
    }

    fn session_ended(&self, session: SessionKey) {
        let state = Arc::clone(&self.0);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { state.pool.session_ended(session).await });
        }
    }
}
