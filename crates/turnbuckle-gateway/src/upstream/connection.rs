//! A connection to an upstream server, and the calls that run on it.

use std::{
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Semaphore, time::Instant};
use turnbuckle_client::{
    CallError, Client, ConnectError, Target, TransportError,
    relay::{
        RelayCallId, RelayHandler, RelayRequest, RelayResult, ServerNotification, ServerRequest,
    },
};
use turnbuckle_protocol::{
    Revision, RpcError,
    jsonrpc::RawObject,
    types::{
        ClientCapabilities, Implementation, JsonObject, LogLevel, SubscriptionFilter,
        tasks::EXTENSION,
    },
};
use turnbuckle_server::{
    middleware::SessionKey,
    relay::{ChangeTarget, RelayedRequest},
};

use crate::{
    calls::{inputs::PendingInput, running::RunningCall, url_elicitation::SentElicitations},
    convert::ListKind,
    errors,
    gateway::{GatewayEvents, SERVER_TIMEOUT},
    hops::Hops,
    lifecycle::{HANDSHAKE_REVISION, is_stateless_server},
    upstream::{
        UpstreamCaller, UpstreamServer,
        attribution::{Attribution, CallRegistry, ElicitationGuard, OpenerGuard},
        client_tasks::ConnectionTasks,
        interest::Interest,
        list_cache::ListCache,
        listen_stream::{GrantedChanges, ListenStream},
        log_levels::{CallLevelGuard, LogUser},
        relayed_clients::RelayedClients,
        roots::{KeptRoots, RootsStep},
        session_client::SessionClient,
        slot::Slot,
    },
};

const OPENING: u8 = 0;
const OPEN: u8 = 1;
const ENDED: u8 = 2;

/// Maximum time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum time that a call waits for the response to a ping before it.
const PING_TIMEOUT: Duration = Duration::from_secs(1);

const ROOTS_LIST: &str = "roots/list";

/// A connection to an upstream server.
pub(crate) struct Connection {
    pub(crate) server: Arc<UpstreamServer>,
    pub(crate) client: Client,
    /// The clients of the last requests to a modern server.
    pub(crate) relayed_clients: RelayedClients,
    shared: Arc<ConnectionState>,
    /// The listen request at a modern server.
    listen: tokio::sync::Mutex<Option<ListenStream>>,
}

/// The state that the handler of server messages needs.
pub(crate) struct ConnectionState {
    pub(super) server: Arc<UpstreamServer>,
    events: Weak<dyn GatewayEvents>,
    pub(super) calls: CallRegistry,
    pub(super) roots: KeptRoots,
    /// Set if calls are sent one after the other.
    turn: Option<Semaphore>,
    /// Whether calls of several callers run on the connection.
    is_shared: AtomicBool,
    session_client: OnceLock<Arc<SessionClient>>,
    /// The clients that get what the server announces. Not set for a connection of one call.
    change_target: OnceLock<ChangeTarget>,
    /// Whether client requests were refused.
    pub(super) has_refused_requests: AtomicBool,
    /// The URL elicitations that clients wait for.
    pub(super) elicitations: SentElicitations,
    pub(super) tasks: ConnectionTasks,
    pub(crate) lists: ListCache,
    /// What a modern server announces.
    pub(super) granted: GrantedChanges,
    /// Whether the server is a child process.
    is_child: bool,
    /// The client, once it is connected.
    pub(super) client: OnceLock<Client>,
    /// The place of the connection, once it has one.
    pub(super) slot: OnceLock<Weak<Slot>>,
    interest: OnceLock<Arc<Interest>>,
    /// One of `OPENING`, `OPEN` and `ENDED`.
    stage: AtomicU8,
    /// The number of client requests without a response.
    pub(super) open_requests: AtomicUsize,
    /// Milliseconds from `created` to the end of the last call or client request.
    last_use: AtomicU64,
    created: Instant,
}

/// The settings of a new connection.
#[derive(Clone)]
pub(crate) struct ConnectionSettings {
    pub(crate) server: Arc<UpstreamServer>,
    pub(crate) events: Weak<dyn GatewayEvents>,
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) client_info: Implementation,
    pub(crate) is_shared: bool,
    /// The caller, if the server is used with the credentials of each caller.
    pub(crate) caller: Option<UpstreamCaller>,
    /// The client, if the connection is that of one session.
    pub(crate) session_client: Option<Arc<SessionClient>>,
    /// The clients that get what the server announces. `None` for a connection of one call.
    pub(crate) change_target: Option<ChangeTarget>,
}

/// The reason that a connection cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// Requests to the server would come back to this gateway.
    #[error("requests to the server come back to this gateway")]
    Ring,
}

impl Connection {
    /// Connects to the server.
    pub(crate) async fn open(
        settings: ConnectionSettings,
        opener: Option<Arc<RunningCall>>,
    ) -> Result<Arc<Self>, OpenError> {
        let server = settings.server;
        let target = server.settings.target.create(settings.caller.as_ref());
        // A slot for callers has one.
        let target = target.ok_or(ConnectError::Unreachable(TransportError::Closed))?;
        let shared = Arc::new(ConnectionState {
            server: Arc::clone(&server),
            events: settings.events,
            calls: CallRegistry::new(opener),
            roots: KeptRoots::default(),
            turn: server.settings.one_at_a_time.then(|| Semaphore::new(1)),
            is_shared: AtomicBool::new(settings.is_shared),
            session_client: once(settings.session_client),
            change_target: once(settings.change_target),
            has_refused_requests: AtomicBool::new(false),
            elicitations: SentElicitations::default(),
            tasks: ConnectionTasks::default(),
            lists: ListCache::default(),
            granted: GrantedChanges::default(),
            is_child: matches!(target, Target::Command(_)),
            client: OnceLock::new(),
            slot: OnceLock::new(),
            interest: OnceLock::new(),
            stage: AtomicU8::new(OPENING),
            open_requests: AtomicUsize::new(0),
            last_use: AtomicU64::new(0),
            created: Instant::now(),
        });
        let handler: Arc<dyn RelayHandler> = Arc::new(MessageHandler(Arc::downgrade(&shared)));
        let info = settings.client_info;
        let builder = Client::builder(info.name, info.version)
            .lifecycle_mode(server.settings.lifecycle_mode)
            .timeouts(server.settings.timeouts)
            .relay(handler, with_tasks(settings.capabilities));
        let connecting = builder.connect(target);
        let client = match tokio::time::timeout(CONNECT_TIMEOUT, connecting).await {
            Ok(connected) => connected?,
            Err(_) => {
                let (method, limit) = ("initialize", CONNECT_TIMEOUT);
                return Err(ConnectError::TimedOut { method, limit }.into());
            }
        };
        let info = client.server();
        let own = shared.events.upgrade().map(|events| events.id());
        if own.is_some_and(|own| own.is_behind(&info.meta)) {
            client.close().await;
            return Err(OpenError::Ring);
        }
        let _ = shared.client.set(client.clone());
        // Counted before it can end.
        server.connected(info);
        server.counters.opened(shared.is_child);
        if !shared.has_opened() {
            server.disconnected(None);
            server.counters.closed(shared.is_child);
            let ended = client.ended().unwrap_or(TransportError::Closed);
            return Err(ConnectError::Unreachable(ended).into());
        }
        Ok(Arc::new(Self {
            server,
            client,
            relayed_clients: RelayedClients::default(),
            shared,
            listen: tokio::sync::Mutex::default(),
        }))
    }

    pub(crate) fn revision(&self) -> Revision {
        self.client.server().revision
    }

    pub(crate) fn lists(&self) -> &ListCache {
        &self.shared.lists
    }

    /// Sends a request, and routes what the server sends for it to `call`.
    pub(crate) async fn relay(
        &self,
        call: &Arc<RunningCall>,
        request: &RelayRequest,
    ) -> Result<RelayResult, CallError> {
        let id = self.client.relay_id();
        let _used = UseGuard(&self.shared);
        let _turn = match self
            .shared
            .turn
            .as_ref()
            .filter(|_| !self.server.is_stateless())
        {
            Some(turn) => turn.acquire().await.ok(),
            None => None,
        };
        let _level = self.set_log_level_of_call(id, call).await;
        let _running = self.shared.calls.register(id, call);
        self.update_roots(call).await;
        let result = self.send(id, request).await?;
        if call.is_task
            && let Some(task) = task_id(result.json())
        {
            self.shared.calls.register_task(task, call);
        }
        Ok(result)
    }

    /// Lets a legacy server learn the roots of a modern client before the call, if it requests them.
    async fn update_roots(&self, call: &Arc<RunningCall>) {
        let roots = &self.shared.roots;
        if !call.is_suspendable()
            || is_stateless_server(&self.client.server())
            || call.has_declared(ROOTS_LIST, "{}").is_err()
        {
            return;
        }
        match roots.next_step() {
            RootsStep::Send => {}
            // Boxed, so that the future of a call stays small.
            step => Box::pin(self.await_roots(step, call)).await,
        }
    }

    /// Waits until a legacy server has the roots of a modern client.
    async fn await_roots(&self, step: RootsStep, call: &Arc<RunningCall>) {
        let roots = &self.shared.roots;
        let is_changed = match step {
            RootsStep::Send | RootsStep::Await => false,
            RootsStep::Notify => true,
            RootsStep::Renew => self.renew_roots(call).await,
        };
        if is_changed {
            let changed = "notifications/roots/list_changed";
            let _ = self.client.relay_notification(changed, "{}").await;
        }
        // A server that requests the roots now does so before it responds to this.
        self.ping().await;
        loop {
            let mut responded = std::pin::pin!(roots.responded.notified());
            responded.as_mut().enable();
            if !call.inputs().has_open(ROOTS_LIST) {
                return;
            }
            responded.await;
            // The server has received the response when it responds to this.
            self.ping().await;
        }
    }

    /// Requests the roots from the client in a round trip of a call. Returns whether they have changed.
    async fn renew_roots(&self, call: &Arc<RunningCall>) -> bool {
        let _renewing = RenewalGuard(&self.shared.roots);
        let Ok(mut input) = PendingInput::add(call, ROOTS_LIST, "{}") else {
            return false;
        };
        match input.response().await {
            Ok(response) => self.shared.roots.keep(&response),
            // The server keeps the roots that it has.
            Err(_) => false,
        }
    }

    async fn ping(&self) {
        let ping = self.request("ping", "{}".to_owned(), None);
        let _ = tokio::time::timeout(PING_TIMEOUT, ping).await;
    }

    /// Keeps a call known as the one that opened the connection, while the guard exists.
    pub(crate) fn opener_guard<'a>(&'a self, call: &'a Arc<RunningCall>) -> OpenerGuard<'a> {
        self.shared.calls.opener_guard(call)
    }

    /// The server has created a task for a client, which knows it under another id.
    pub(crate) fn note_task(&self, id: String, client_id: String, request: &RelayedRequest) {
        let owner = request.general_stream();
        self.shared.tasks.created(id, client_id, owner);
    }

    /// Passes the completion of a URL elicitation on to the session of a request, once the server reports it.
    pub(crate) fn expect_elicitation_complete(&self, id: &str, request: &RelayedRequest) {
        request.expect_elicitation_complete(id);
        self.shared.elicitations.sent(id, request.session());
    }

    /// The clients that get what the server announces. `None` for a connection of one call.
    pub(crate) fn change_target(&self) -> Option<&ChangeTarget> {
        self.shared.change_target.get()
    }

    /// Waits for the completion of URL elicitations of a call, while the guard exists.
    pub(crate) fn expect_elicitations<'a>(
        &'a self,
        ids: &'a [String],
        call: &'a Arc<RunningCall>,
    ) -> ElicitationGuard<'a> {
        self.shared.calls.expect_elicitations(ids, call)
    }

    /// Sends a request of the gateway itself. `hops` are those of the request of a client, if there is one.
    pub(crate) async fn request(
        &self,
        method: &'static str,
        params: String,
        hops: Option<&Hops>,
    ) -> Result<RelayResult, CallError> {
        let mut request = RelayRequest::new(method, params);
        let own = || Some(Hops::first(&self.shared.events.upgrade()?.id()));
        if let Some(hops) = hops.cloned().or_else(own) {
            request.meta = hops.members().to_owned();
        }
        request.timeouts = self.server.settings.timeouts;
        let _used = UseGuard(&self.shared);
        self.send(self.client.relay_id(), &request).await
    }

    /// Sends a request, and records its duration.
    async fn send(
        &self,
        id: RelayCallId,
        request: &RelayRequest,
    ) -> Result<RelayResult, CallError> {
        let started = Instant::now();
        let result = self.client.relay(id, request).await;
        if let Some(events) = self.shared.events.upgrade() {
            events.server_responded(&self.server, &request.method, &result, started.elapsed());
        }
        result
    }

    /// Returns whether the connection can be used.
    pub(crate) fn is_open(&self) -> bool {
        self.shared.stage.load(Ordering::Acquire) == OPEN && self.client.ended().is_none()
    }

    /// Sends a notification of the client of the session to the server.
    pub(super) fn notify_server(&self, method: &str, params: &str) {
        let is_of_server = match method {
            "notifications/roots/list_changed" => true,
            "notifications/tasks/status" => self.shared.tasks.is_of_client(params),
            _ => false,
        };
        let is_passed = is_of_server
            && self.shared.session_client().is_some()
            && !is_stateless_server(&self.client.server());
        let (true, Ok(runtime)) = (is_passed, tokio::runtime::Handle::try_current()) else {
            return;
        };
        let client = self.client.clone();
        let (method, params) = (method.to_owned(), params.to_owned());
        runtime.spawn(async move { client.relay_notification(&method, &params).await });
    }

    /// Returns whether a call runs on the connection.
    pub(crate) fn is_busy(&self) -> bool {
        !self.shared.calls.is_empty()
    }

    /// Returns whether calls of several callers run on the connection.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared.is_shared.load(Ordering::Relaxed)
    }

    /// Restarts the idle time.
    pub(super) fn note_use(&self) {
        self.shared.note_use();
    }

    /// Returns whether the server sent client requests that belonged to no call and no client.
    pub(super) fn has_refused_requests(&self) -> bool {
        self.shared.has_refused_requests.load(Ordering::Acquire)
    }

    /// Sets the place of the connection, which knows its users and gets its end.
    pub(super) fn set_slot(&self, slot: &Arc<Slot>) {
        let users = slot.users();
        self.shared
            .is_shared
            .store(users.is_shared, Ordering::Relaxed);
        if let Some(client) = users.session_client {
            let _ = self.shared.session_client.set(Arc::clone(client));
        }
        if let Some(target) = users.change_target {
            let _ = self.shared.change_target.set(target.clone());
        }
        let _ = self.shared.slot.set(Arc::downgrade(slot));
        let _ = self.shared.interest.set(Arc::clone(slot.interest()));
    }

    /// Returns for how long no call or client request has used the connection, or `None` if one does.
    pub(crate) fn unused_time(&self) -> Option<Duration> {
        let last_use = Duration::from_millis(self.shared.last_use.load(Ordering::Relaxed));
        let is_used = self.is_busy() || self.shared.open_requests.load(Ordering::Relaxed) > 0;
        (!is_used).then(|| self.shared.created.elapsed().saturating_sub(last_use))
    }

    /// Returns what the callers want to be told. `None` for a connection without a slot.
    pub(crate) fn interest(&self) -> Option<&Arc<Interest>> {
        self.shared.interest.get()
    }

    /// Replaces the listen request at a modern server, and returns what the server granted. The one before ends when the
    /// new one is acknowledged.
    pub(super) async fn listen_to(
        &self,
        filter: SubscriptionFilter,
    ) -> Result<SubscriptionFilter, CallError> {
        let mut listen = self.listen.lock().await;
        if filter == SubscriptionFilter::default() {
            *listen = None;
            self.shared.granted.clear();
            return Ok(filter);
        }
        let (stream, granted) = ListenStream::open(&self.shared, &self.client, filter).await?;
        *listen = Some(stream);
        Ok(granted)
    }

    /// Sends the first listen request to a modern server. If it fails, it is sent again in the background.
    pub(super) async fn start_listening(&self, filter: SubscriptionFilter) {
        let opened = tokio::time::timeout(SERVER_TIMEOUT, self.listen_to(filter.clone())).await;
        if matches!(opened, Ok(Ok(_))) {
            return;
        }
        tracing::warn!(
            server = self.server.name(),
            "changes of the server are not announced"
        );
        let stream = ListenStream::open_later(&self.shared, &self.client, filter);
        *self.listen.lock().await = Some(stream);
    }

    /// Returns whether a modern server announces changes of a list at the moment.
    pub(super) fn is_granted(&self, kind: ListKind) -> bool {
        self.shared.granted.has(kind)
    }

    /// Sets the level of log messages for a user of the connection. `hops` are those of its request.
    pub(crate) async fn set_log_level(
        &self,
        user: LogUser,
        level: LogLevel,
        hops: &Hops,
    ) -> Result<(), CallError> {
        let changed = match self.interest() {
            Some(interest) => interest.log_levels().set(user, level),
            None => Some(level),
        };
        match changed {
            Some(level) => self.client.set_log_level(level).meta(hops.to_meta()).await,
            None => Ok(()),
        }
    }

    /// Sets the level of log messages for a call of a modern client, until the guard is dropped.
    async fn set_log_level_of_call(
        &self,
        id: RelayCallId,
        call: &RunningCall,
    ) -> Option<CallLevelGuard> {
        let info = self.client.server();
        if !call.is_stateless() || is_stateless_server(&info) || info.capabilities.logging.is_none()
        {
            return None;
        }
        let (guard, changed) = self
            .interest()?
            .log_levels()
            .set_of_call(id, call.log_level()?);
        if let Some(level) = changed {
            // Boxed, so that the future of a call stays small.
            Box::pin(self.send_log_level(level)).await;
        }
        Some(guard)
    }

    async fn send_log_level(&self, level: LogLevel) {
        if let Err(error) = self.client.set_log_level(level).await {
            tracing::debug!(server = self.server.name(), %error, "the log level was not set");
        }
    }

    /// A session has ended: the server can get a less verbose level.
    pub(super) fn forget_log_level(self: &Arc<Self>, session: SessionKey) {
        let changed = self
            .interest()
            .and_then(|interest| interest.log_levels().remove_session(session));
        let connection = Arc::clone(self);
        if let (Some(level), Ok(runtime)) = (changed, tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move { connection.send_log_level(level).await });
        }
    }

    /// Subscribes again, and sets the log level again, as on the connection before. Errors are only logged.
    pub(super) async fn restore(self: &Arc<Self>) {
        if let Some(interest) = self.interest() {
            interest.restore(self).await;
        }
    }

    /// Ends the connection and its child process.
    pub(crate) async fn close(&self) {
        self.shared.ended(None);
        *self.listen.lock().await = None;
        self.client.close().await;
    }

    /// Ends the connection in a task.
    pub(super) fn close_in_background(&self) {
        self.shared.ended(None);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let client = self.client.clone();
            runtime.spawn(async move { client.close().await });
        }
    }
}

/// A connection that is not kept ends with the last call that uses it.
impl Drop for Connection {
    fn drop(&mut self) {
        if self.is_open() {
            self.close_in_background();
        }
    }
}

/// Adds the tasks of modern servers, which subscriptions need; calls declare their own capabilities.
fn with_tasks(mut capabilities: ClientCapabilities) -> ClientCapabilities {
    let extensions = capabilities.extensions.get_or_insert_default();
    extensions.insert(EXTENSION.to_owned(), JsonObject::new().into());
    capabilities
}

impl ConnectionState {
    /// Records that the connection is open. Returns `false` if it has ended already.
    fn has_opened(&self) -> bool {
        let (acquire, release) = (Ordering::Acquire, Ordering::AcqRel);
        (self.stage.compare_exchange(OPENING, OPEN, release, acquire)).is_ok()
    }

    /// Records the end of the connection: by itself, for a reason, or because it was closed.
    fn ended(&self, reason: Option<&TransportError>) {
        if self.stage.swap(ENDED, Ordering::AcqRel) != OPEN {
            return;
        }
        if let Some(events) = self.events.upgrade() {
            events.connection_ended();
        }
        self.server.counters.closed(self.is_child);
        self.server.tool_lock.connection_ended();
        let slot = self.slot.get().and_then(Weak::upgrade);
        match (reason, slot) {
            (Some(reason), Some(slot)) => slot.connection_died(&errors::transport_reason(reason)),
            _ => self.server.disconnected(None),
        }
    }

    /// Notes that lists may have changed. `is_announced`: the server said so.
    pub(super) fn lists_changed(&self, kinds: &[ListKind], is_announced: bool) {
        for kind in kinds {
            self.lists.invalidate(*kind);
            self.server.tool_lock.expire(*kind);
        }
        if let Some(events) = self.events.upgrade() {
            let server = &self.server;
            let target = self.change_target.get();
            kinds
                .iter()
                .for_each(|kind| events.list_changed(server, *kind, is_announced, target));
        }
    }

    pub(super) fn note_use(&self) {
        let now = u64::try_from(self.created.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_use.store(now, Ordering::Relaxed);
    }

    /// The client that gets what belongs to no call. `None` if several sessions use the connection, or a modern client.
    pub(super) fn session_client(&self) -> Option<&Arc<SessionClient>> {
        self.session_client.get()
    }

    /// Returns the name of the server if clients see several servers as one.
    pub(super) fn server_label(&self) -> Option<Arc<str>> {
        if self
            .session_client()
            .is_some_and(|client| client.is_of_view())
        {
            return None;
        }
        self.events.upgrade()?.server_label(&self.server)
    }

    /// The negotiated revision. Before the end of the handshake the server sends no requests that depend on it.
    pub(super) fn revision(&self) -> Revision {
        self.client
            .get()
            .map_or(HANDSHAKE_REVISION, |client| client.server().revision)
    }
}

/// Returns the id of the task that a result has created.
fn task_id(result: &str) -> Option<String> {
    let result = RawObject::parse(result).ok()?;
    let task = RawObject::parse(result.get("task")?).ok()?;
    task.string("taskId").ok()?.map(String::from)
}

/// Lets another call request the roots again, when dropped.
struct RenewalGuard<'a>(&'a KeptRoots);

impl Drop for RenewalGuard<'_> {
    fn drop(&mut self) {
        self.0.end_renewal();
    }
}

/// Records the use of the connection when dropped.
struct UseGuard<'a>(&'a ConnectionState);

impl Drop for UseGuard<'_> {
    fn drop(&mut self) {
        self.0.note_use();
    }
}

/// Receives what the server sends outside of responses.
struct MessageHandler(Weak<ConnectionState>);

impl RelayHandler for MessageHandler {
    fn on_request(
        &self,
        request: ServerRequest,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<String, RpcError>> + Send>> {
        // Not in the future, so that requests keep their order.
        let started = match self.0.upgrade() {
            Some(state) => state
                .start_client_request(&request)
                .map(|started| (state, started)),
            None => Err(RpcError::internal("the connection has ended")),
        };
        Box::pin(async move {
            let (state, started) = started?;
            state.finish_client_request(started).await
        })
    }

    fn on_notification(&self, notification: ServerNotification<'_>) {
        let Some(state) = self.0.upgrade() else {
            return;
        };
        let (method, params) = (notification.method, notification.params);
        let changed = |kinds: &[ListKind]| state.lists_changed(kinds, true);
        match method {
            "notifications/progress" => {
                // An unknown token is dropped: widespread clients close the connection on one.
                match notification.call.and_then(|id| state.calls.get(id)) {
                    Some(call) => call.progress(params),
                    None => state.server.counters.dropped_notifications.increment(),
                }
            }
            "notifications/message" => match state.calls.call_of_notification(notification.call) {
                Attribution::Call(call) => call.log(params),
                Attribution::OutsideOfCalls | Attribution::Unknown => {
                    if let Some(client) = state.session_client() {
                        return client.log(params);
                    }
                    state.server.counters.dropped_notifications.increment();
                    tracing::debug!(
                        server = state.server.name(),
                        "a log message belongs to no known call"
                    );
                }
            },
            "notifications/elicitation/complete" => {
                let id = RawObject::parse(params).ok();
                let id =
                    id.and_then(|object| object.string("elicitationId").ok()?.map(String::from));
                if let Some(id) = id {
                    state.calls.elicitation_completed(&id);
                    let sessions = state.elicitations.complete(&id);
                    if let Some(events) = state.events.upgrade() {
                        sessions.for_each(|session| events.elicitation_completed(&id, session));
                    }
                }
            }
            "notifications/tools/list_changed" => changed(&[ListKind::Tools]),
            "notifications/prompts/list_changed" => changed(&[ListKind::Prompts]),
            "notifications/resources/list_changed" => {
                changed(&[ListKind::Resources, ListKind::Templates]);
            }
            "notifications/resources/updated" => {
                let uri = RawObject::parse(params).ok();
                let uri = uri.and_then(|object| object.string("uri").ok()?.map(String::from));
                if let (Some(uri), Some(events), Some(target)) =
                    (uri, state.events.upgrade(), state.change_target.get())
                {
                    events.resource_updated(&state.server, &uri, target);
                }
            }
            "notifications/tasks/status" => {
                if !state.calls.task_status(params) {
                    state.tasks.pass_status(params);
                }
            }
            // Listeners get it from their subscriptions.
            "notifications/tasks" => {}
            "notifications/cancelled" | "notifications/subscriptions/acknowledged" => {}
            _ => match state.calls.call_of_notification(notification.call) {
                Attribution::Call(call) => call.notify(method, params),
                Attribution::OutsideOfCalls | Attribution::Unknown => {
                    if let Some(client) = state.session_client() {
                        client.notify(method, params);
                    }
                }
            },
        }
    }

    fn on_gap(&self) {
        let Some(state) = self.0.upgrade() else {
            return;
        };
        state.lists_changed(&ListKind::ALL, false);
        // A renewed session at a legacy server lacks the subscriptions. Streams of a modern server renew themselves.
        let interest = state
            .interest
            .get()
            .filter(|_| !state.server.is_stateless());
        if let (Some(interest), Some(client)) = (interest.cloned(), state.client.get().cloned()) {
            tokio::spawn(async move { interest.restore_session(&client, &state.server).await });
        }
    }

    fn on_end(&self, reason: &TransportError) {
        let Some(state) = self.0.upgrade() else {
            return;
        };
        if matches!(reason, TransportError::ClientClosed) {
            return state.ended(None);
        }
        tracing::warn!(server = state.server.name(), %reason, "the connection to a server has ended");
        state.ended(Some(reason));
    }
}

/// Returns a cell that is empty, or has this value.
fn once<T>(value: Option<T>) -> OnceLock<T> {
    value.map_or_else(OnceLock::new, OnceLock::from)
}
