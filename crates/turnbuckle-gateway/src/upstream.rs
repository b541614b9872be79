//! An upstream server: its settings and its state.

pub(crate) mod attribution;
mod caller;
mod caller_login;
mod client_requests;
mod client_tasks;
pub(crate) mod connection;
pub(crate) mod forward_headers;
mod health;
pub(crate) mod interest;
pub(crate) mod list_cache;
mod listen_stream;
pub(crate) mod log_levels;
pub(crate) mod pool;
pub(crate) mod relayed_clients;
pub(crate) mod roots;
pub(crate) mod server_set;
pub(crate) mod session_client;
mod slot;
mod task_table;
pub(crate) mod tool_index;

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use arc_swap::ArcSwapOption;
use http::HeaderName;
use tokio::time::Instant;
use turnbuckle_client::{LifecycleMode, ServerInfo, Target, Timeouts, tool_lock::ServerLock};
use turnbuckle_protocol::RpcError;
use turnbuckle_server::relay::RelayedRequest;

pub use self::{
    caller::UpstreamCaller,
    caller_login::{CallerLogin, CallerLogins, LoginCompletion},
    forward_headers::is_forwardable_header,
    health::UpstreamState,
};
use self::{
    health::{Backoff, UpstreamHealth},
    server_set::ServerId,
};
use crate::{
    StartError,
    convert::ListKind,
    errors,
    gateway::GatewayEvents,
    lifecycle::is_stateless_server,
    lock,
    metrics::ServerCounters,
    policy::Policy,
    tool_lock::{LockMode, ToolLock},
    upstream::list_cache::{CurrentList, ListItem, ServerLists},
};

/// Callers that share one connection to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sharing {
    /// A modern server: all callers. A legacy server: one connection per session of a legacy client, and per principal
    /// of modern clients.
    #[default]
    Auto,
    /// All callers. A legacy server then cannot send client requests.
    All,
    /// The requests of one principal.
    Principal,
    /// The requests of one session, or of one connection without sessions.
    Session,
    /// One connection per call.
    Call,
}

/// The status of an upstream server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UpstreamStatus {
    /// The name of the server.
    pub name: String,
    /// Whether it can be reached.
    pub state: UpstreamState,
    /// Whether the gateway is ready only if this server is up.
    pub required: bool,
    /// The negotiated revision, after the first connection.
    pub revision: Option<String>,
    /// The time of the last change of the state.
    pub since: SystemTime,
    /// The class of the last failure, if the server is down: `refused`, `exited 3`, `timeout` and so on.
    pub reason: Option<String>,
    /// The number of client requests that were rejected because they belonged to no known call.
    pub refused_client_requests: u64,
}

/// Creates the target of each connection.
#[derive(Clone)]
pub(crate) enum TargetFactory {
    /// With the same credentials for all callers.
    Shared(Arc<dyn Fn() -> Target + Send + Sync>),
    /// With the credentials of the caller.
    PerCaller(Arc<dyn Fn(&UpstreamCaller) -> Target + Send + Sync>),
}

impl TargetFactory {
    /// Returns a target; `None` if it needs a caller, and there is none.
    pub(crate) fn create(&self, caller: Option<&UpstreamCaller>) -> Option<Target> {
        match self {
            Self::Shared(create) => Some(create()),
            Self::PerCaller(create) => caller.map(|caller| create(caller)),
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Shared(own), Self::Shared(other)) => Arc::ptr_eq(own, other),
            (Self::PerCaller(own), Self::PerCaller(other)) => Arc::ptr_eq(own, other),
            _ => false,
        }
    }
}

/// An upstream server.
///
/// ```
/// use turnbuckle_client::stdio::ServerCommand;
/// use turnbuckle_gateway::{Sharing, Upstream};
///
/// let files = Upstream::new("files", || ServerCommand::new("file-server").into())
///     .sharing(Sharing::Session)
///     .deny(["delete_*"]);
/// ```
#[derive(Clone)]
pub struct Upstream {
    pub(crate) name: Arc<str>,
    pub(crate) target: TargetFactory,
    pub(crate) sharing: Sharing,
    pub(crate) required: bool,
    pub(crate) one_at_a_time: bool,
    pub(crate) timeouts: Timeouts,
    pub(crate) lifecycle_mode: LifecycleMode,
    pub(crate) allow: Vec<String>,
    pub(crate) deny: Vec<String>,
    pub(crate) scopes: Vec<(String, String)>,
    pub(crate) lock: LockMode,
    pub(crate) allows_added: bool,
    fingerprint: Option<Arc<str>>,
    pub(crate) forward_headers: Vec<HeaderName>,
    pub(crate) login_hint: Option<Arc<str>>,
    pub(crate) caller_logins: Option<Arc<dyn CallerLogins>>,
    pub(crate) has_local_user: bool,
}

impl Upstream {
    /// Creates an upstream server. `target` creates the target of each new connection.
    pub fn new(
        name: impl Into<String>,
        target: impl Fn() -> Target + Send + Sync + 'static,
    ) -> Self {
        Self::with_target(name.into(), TargetFactory::Shared(Arc::new(target)))
    }

    /// Creates an upstream server that is used with the credentials of each caller. `target` creates the target of each new
    /// connection of a caller.
    ///
    /// No connection is shared between callers, or between tokens of a caller with different scopes, whatever the
    /// [`sharing`](Self::sharing). If the server rejects the credentials of one caller, others are not affected. The server is
    /// not connected to before its first request, and counts as up until a connection fails.
    ///
    /// The gateway starts only with [`Gateway::authenticated_callers`](crate::Gateway::authenticated_callers) or a
    /// [`local_user`](Self::local_user), and not with [`Sharing::All`].
    pub fn per_caller(
        name: impl Into<String>,
        target: impl Fn(&UpstreamCaller) -> Target + Send + Sync + 'static,
    ) -> Self {
        Self::with_target(name.into(), TargetFactory::PerCaller(Arc::new(target)))
    }

    fn with_target(name: String, target: TargetFactory) -> Self {
        Self {
            name: name.into(),
            target,
            sharing: Sharing::Auto,
            required: false,
            one_at_a_time: false,
            timeouts: Timeouts::default(),
            lifecycle_mode: LifecycleMode::Auto,
            allow: Vec::new(),
            deny: Vec::new(),
            scopes: Vec::new(),
            lock: LockMode::Unlocked,
            allows_added: false,
            fingerprint: None,
            forward_headers: Vec::new(),
            login_hint: None,
            caller_logins: None,
            has_local_user: false,
        }
    }

    /// Sets which callers share a connection.
    #[must_use]
    pub fn sharing(mut self, sharing: Sharing) -> Self {
        self.sharing = sharing;
        self
    }

    /// Sends calls one after the other on each connection to a legacy server. `false` by default.
    ///
    /// A client request of the server then always belongs to the running call, so that a connection of
    /// [all callers](Sharing::All) can declare elicitation, sampling and roots: there is one connection for each set of
    /// declared capabilities. A call that waits for its client delays all others.
    #[must_use]
    pub fn one_at_a_time(mut self, one_at_a_time: bool) -> Self {
        self.one_at_a_time = one_at_a_time;
        self
    }

    /// Makes the gateway ready only if this server is up. `false` by default.
    #[must_use]
    pub fn required(mut self, required: bool) -> Self {
        self.required = required;
        self
    }

    /// Lists and calls only what one of these patterns matches: names of tools and prompts, URIs of resources. `*`
    /// matches any characters. Everything by default.
    #[must_use]
    pub fn allow<S: Into<String>>(mut self, globs: impl IntoIterator<Item = S>) -> Self {
        self.allow.extend(globs.into_iter().map(Into::into));
        self
    }

    /// Hides and rejects what one of these patterns matches, even if it is allowed.
    #[must_use]
    pub fn deny<S: Into<String>>(mut self, globs: impl IntoIterator<Item = S>) -> Self {
        self.deny.extend(globs.into_iter().map(Into::into));
        self
    }

    /// Requires a scope of the callers of what matches a pattern: names of tools and prompts, URIs of resources. A caller
    /// without it gets a challenge with status 403. Lists are the same for all callers.
    ///
    /// The gateway starts only with [`Gateway::authenticated_callers`](crate::Gateway::authenticated_callers).
    #[must_use]
    pub fn scope(mut self, glob: impl Into<String>, scope: impl Into<String>) -> Self {
        self.scopes.push((glob.into(), scope.into()));
        self
    }

    /// Locks the tools, prompts and resource templates to accepted definitions. One that differs, or is not in the lock, is
    /// left out of lists; a call of such a tool has the result `isError`. Other instructions for models are not shown.
    #[must_use]
    pub fn lock(mut self, lock: ServerLock) -> Self {
        self.lock = LockMode::Locked(Arc::new(lock));
        self
    }

    /// Locks the tools, prompts and resource templates to those that the server lists first.
    /// [`RunningGateway::locks`](crate::RunningGateway::locks) returns them.
    #[must_use]
    pub fn lock_as_listed(mut self) -> Self {
        self.lock = LockMode::AsListed;
        self
    }

    /// Sets whether definitions that are not in the [lock](Self::lock) can be used. `false` by default.
    #[must_use]
    pub fn allow_added(mut self, allowed: bool) -> Self {
        self.allows_added = allowed;
        self
    }

    /// Sets the timeouts of relayed requests. One minute without progress and ten minutes in total by default.
    #[must_use]
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Sets the lifecycle to use with the server. Detected by default.
    #[must_use]
    pub fn lifecycle_mode(mut self, mode: LifecycleMode) -> Self {
        self.lifecycle_mode = mode;
        self
    }

    /// Identifies the server and all its settings for a [reload](crate::RunningGateway::reload): a server with the name
    /// and fingerprint of a running one is the same. Without a fingerprint, only clones of this value are.
    #[must_use]
    pub fn fingerprint(mut self, text: impl Into<String>) -> Self {
        self.fingerprint = Some(text.into().into());
        self
    }

    /// Sends these headers of clients to the server, with the requests that it gets from them. No header by default.
    ///
    /// Headers that are not [forwardable](crate::is_forwardable_header) are ignored.
    #[must_use]
    pub fn forward_headers(mut self, names: impl IntoIterator<Item = HeaderName>) -> Self {
        let names = names.into_iter().filter(is_forwardable_header);
        self.forward_headers.extend(names);
        self
    }

    /// Sets what clients read if the server requires a login, such as a command for the user. It must not have secrets.
    #[must_use]
    pub fn login_hint(mut self, text: impl Into<String>) -> Self {
        self.login_hint = Some(text.into().into());
        self
    }

    /// Lets each caller of a [`per_caller`](Self::per_caller) server log in with an account of its own, if the server requires
    /// a login. Clients that can open URLs are asked to; others get the URL as text. Until then, the only tool of the
    /// server that the caller sees is one that asks for the login.
    #[must_use]
    pub fn caller_logins(mut self, logins: Arc<dyn CallerLogins>) -> Self {
        self.caller_logins = Some(logins);
        self
    }

    /// Uses a [`per_caller`](Self::per_caller) server also for callers that are not authenticated, as one caller. `false` by
    /// default. Only for a gateway that no other user can reach.
    #[must_use]
    pub fn local_user(mut self, is_used: bool) -> Self {
        self.has_local_user = is_used;
        self
    }

    /// Returns whether the server is used with the credentials of each caller.
    pub(crate) fn is_per_caller(&self) -> bool {
        matches!(self.target, TargetFactory::PerCaller(_))
    }

    /// Returns whether a reload keeps the connections of this server for `other`, which has the same name.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (&self.fingerprint, &other.fingerprint) {
            (Some(known), Some(new)) => known == new,
            (None, None) => self.target.is_same(&other.target),
            _ => false,
        }
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream")
            .field("name", &self.name)
            .field("sharing", &self.sharing)
            .finish_non_exhaustive()
    }
}

/// An upstream server that the gateway uses.
pub(crate) struct UpstreamServer {
    pub(crate) id: ServerId,
    pub(crate) settings: Upstream,
    pub(crate) policy: Policy,
    pub(crate) tool_lock: ToolLock,
    pub(crate) counters: ServerCounters,
    /// What the server said about itself in the last handshake.
    pub(crate) info: ArcSwapOption<ServerInfo>,
    /// The lists of all connections.
    pub(crate) lists: ServerLists,
    /// Gets the changes of the state.
    events: OnceLock<Weak<dyn GatewayEvents>>,
    health: Mutex<UpstreamHealth>,
    /// The number of client requests that belonged to no known call.
    refused_requests: AtomicU64,
    /// Whether a connection is being opened without a request.
    is_probed: AtomicBool,
    is_retired: AtomicBool,
}

impl UpstreamServer {
    /// Creates the servers of a gateway, in order.
    pub(crate) fn all(
        upstreams: impl IntoIterator<Item = Upstream>,
        has_authenticated_callers: bool,
    ) -> Result<Vec<Arc<Self>>, StartError> {
        let mut servers: Vec<Arc<Self>> = Vec::new();
        for upstream in upstreams {
            if servers
                .iter()
                .any(|server| server.name() == &*upstream.name)
            {
                return Err(StartError::DuplicateName(upstream.name.to_string()));
            }
            if !upstream.scopes.is_empty() && !has_authenticated_callers {
                return Err(StartError::UnauthenticatedScopes(upstream.name.to_string()));
            }
            if upstream.is_per_caller() && !upstream.has_local_user && !has_authenticated_callers {
                return Err(StartError::UnauthenticatedCallers(
                    upstream.name.to_string(),
                ));
            }
            if upstream.is_per_caller() && upstream.sharing == Sharing::All {
                return Err(StartError::SharedCredentials(upstream.name.to_string()));
            }
            servers.push(Arc::new(Self::new(upstream)?));
        }
        if servers.is_empty() {
            return Err(StartError::NoUpstream);
        }
        Ok(servers)
    }

    pub(crate) fn new(settings: Upstream) -> Result<Self, StartError> {
        Ok(Self {
            id: server_set::next_id(),
            policy: Policy::new(&settings)?,
            tool_lock: ToolLock::new(&settings),
            counters: ServerCounters::default(),
            settings,
            refused_requests: AtomicU64::new(0),
            info: ArcSwapOption::empty(),
            lists: ServerLists::default(),
            events: OnceLock::new(),
            health: Mutex::new(UpstreamHealth::new()),
            is_probed: AtomicBool::new(false),
            is_retired: AtomicBool::new(false),
        })
    }

    /// Ends the opening of connections: a reload has removed the server.
    pub(crate) fn retire(&self) {
        self.is_retired.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.is_retired.load(Ordering::SeqCst)
    }

    pub(crate) fn name(&self) -> &str {
        &self.settings.name
    }

    /// Returns the definitions of the tool lock, if all of them are known.
    pub(crate) fn accepted_definitions(&self) -> Option<ServerLock> {
        let (mut lock, is_complete) = self.tool_lock.current();
        if matches!(self.settings.lock, LockMode::AsListed) {
            let info = self.info.load();
            let info = info.as_ref()?;
            lock.revision = Some(info.revision.to_string());
            lock.set_instructions(info.instructions.as_deref());
        }
        is_complete.then_some(lock)
    }

    /// Returns whether the server is known to keep no session.
    pub(crate) fn is_stateless(&self) -> bool {
        let info = self.info.load();
        info.as_ref().is_some_and(|info| is_stateless_server(info))
    }

    pub(crate) fn status(&self) -> UpstreamStatus {
        let health = self.health();
        let (mut state, mut reason) = (health.state, health.reason.clone());
        let differing = self.tool_lock.differing();
        if state == UpstreamState::Up && differing > 0 {
            state = UpstreamState::Locked;
            let noun = if differing == 1 {
                "definition differs"
            } else {
                "definitions differ"
            };
            reason = Some(format!("{differing} {noun} from the tool lock"));
        }
        UpstreamStatus {
            name: self.name().to_owned(),
            state,
            required: self.settings.required,
            revision: self
                .info
                .load()
                .as_ref()
                .map(|info| info.revision.to_string()),
            since: health.since,
            reason,
            refused_client_requests: self.refused_requests.load(Ordering::Relaxed),
        }
    }

    /// Counts a client request that belonged to no known call. Returns their number.
    pub(crate) fn count_refused_request(&self) -> u64 {
        self.refused_requests.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn is_up(&self) -> bool {
        self.health().state == UpstreamState::Up
    }

    /// Returns whether requests may be sent to the server: it is up, or only a request can show whether it is.
    pub(crate) fn is_available(&self) -> bool {
        self.is_up() || (self.settings.is_per_caller() && self.retry_later().is_none())
    }

    /// Counts the server as up, because only a request of a caller can show whether it is.
    pub(crate) fn assume_up(&self) {
        self.change_health(UpstreamHealth::assume_up);
    }

    /// Returns the caller of a request, if the server is used with the credentials of each caller.
    pub(crate) fn caller_of(
        &self,
        request: &RelayedRequest,
    ) -> Result<Option<UpstreamCaller>, RpcError> {
        if !self.settings.is_per_caller() {
            return Ok(None);
        }
        let local_user = || {
            self.settings
                .has_local_user
                .then(UpstreamCaller::local_user)
        };
        let caller = UpstreamCaller::of_request(request).or_else(local_user);
        caller.map(Some).ok_or_else(|| self.login_error())
    }

    /// Returns the last list of any connection, if the server has the same credentials for all callers.
    pub(crate) fn last_list(&self, kind: ListKind) -> Option<CurrentList> {
        let list = self.lists.last(kind);
        list.filter(|_| !self.settings.is_per_caller())
    }

    /// Returns the reason of the last failure if it is too early for another attempt.
    pub(crate) fn retry_later(&self) -> Option<String> {
        self.health().retry_later()
    }

    /// Reserves the server for an attempt without a request. Returns `false` if there is one already.
    pub(crate) fn begin_probe(&self) -> bool {
        !self.is_probed.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn end_probe(&self) {
        self.is_probed.store(false, Ordering::Release);
    }

    /// Returns the error for a request if it is too early for another attempt.
    pub(crate) fn rejects_attempt(&self) -> Option<RpcError> {
        let reason = self.retry_later()?;
        Some(self.down_error(&reason))
    }

    /// Returns the error for a request because of a failed connection.
    pub(crate) fn down_error(&self, reason: &str) -> RpcError {
        if reason == errors::LOGIN_REQUIRED {
            return self.login_error();
        }
        let health = self.health();
        let is_down = health.down_at.is_some();
        let since = is_down.then(|| humantime::format_rfc3339_seconds(health.since).to_string());
        errors::down(self.name(), reason, since.as_deref())
    }

    pub(crate) fn needs_login(&self) -> bool {
        self.health().state == UpstreamState::Login
    }

    /// Returns the error for a request because of a missing login.
    pub(crate) fn login_error(&self) -> RpcError {
        errors::login_required(self.name(), self.settings.login_hint.as_deref())
    }

    /// Records an open connection.
    pub(crate) fn connected(&self, info: Arc<ServerInfo>) {
        self.info.store(Some(info));
        self.change_health(UpstreamHealth::connected);
    }

    /// Records the end of an open connection. The server is down if it was the only one, and `exhausted` says that
    /// connections end again and again.
    fn disconnected(&self, exhausted: Option<&Backoff>) {
        // What happens with the credentials of one caller says nothing about others.
        let exhausted = exhausted.filter(|_| !self.settings.is_per_caller());
        self.change_health(|health| health.disconnected(exhausted));
    }

    /// Records a failed attempt that began at this time. Returns whether the server is down: if it has other connections,
    /// it is not.
    pub(crate) fn failed(&self, reason: &str, began: Instant) -> bool {
        if self.settings.is_per_caller() && reason == errors::LOGIN_REQUIRED {
            // Only the credentials of one caller were rejected.
            return false;
        }
        self.change_health(|health| health.failed(began, reason))
    }

    /// Sends changes of the state to the gateway.
    pub(crate) fn observe(&self, events: Weak<dyn GatewayEvents>) {
        let _ = self.events.set(events);
    }

    fn change_health<T>(&self, change: impl FnOnce(&mut UpstreamHealth) -> T) -> T {
        let (before, after, changed) = {
            let mut health = self.health();
            let before = health.state;
            let changed = change(&mut health);
            (before, health.state, changed)
        };
        if before != after
            && let Some(events) = self.events.get().and_then(Weak::upgrade)
        {
            events.state_changed(self, after);
        }
        changed
    }

    /// Returns for how long the server has been down.
    pub(crate) fn down_time(&self) -> Option<Duration> {
        Some(self.health().down_at?.elapsed())
    }

    /// Returns whether all callers share a connection, and so its lists.
    pub(crate) fn is_shared_by_all(&self) -> bool {
        match self.settings.sharing {
            Sharing::All => true,
            Sharing::Auto => self.is_stateless() && !self.settings.is_per_caller(),
            _ => false,
        }
    }

    /// Returns whether connections outlive the call that opened them, so that the server can announce changes on them.
    pub(crate) fn keeps_connections(&self) -> bool {
        self.settings.sharing != Sharing::Call
    }

    /// Returns whether clients see an item of a list.
    pub(crate) fn permits(&self, kind: ListKind, item: &ListItem) -> bool {
        self.policy.permits(kind, &item.name)
    }

    fn health(&self) -> MutexGuard<'_, UpstreamHealth> {
        lock(&self.health)
    }
}
