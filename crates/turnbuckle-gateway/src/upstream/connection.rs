//! A connection to an upstream server, and the calls that run on it.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;
use turnbuckle_client::{
    CallError, Client, ConnectError, Subscription,
    relay::{
        RelayCallId, RelayHandler, RelayRequest, RelayResult, ServerNotification, ServerRequest,
    },
};
use turnbuckle_protocol::{
    Revision, RpcError,
    jsonrpc::RawObject,
    types::{ClientCapabilities, Implementation, LogLevel, SubscriptionFilter},
};

use crate::{
    calls::running::{RunningCall, client_request_method},
    convert::ListKind,
    gateway::GatewayEvents,
    lock,
    upstream::{UpstreamServer, list_cache::ListCache},
};

/// Maximum time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// A connection to an upstream server.
pub(crate) struct Connection {
    pub(crate) server: Arc<UpstreamServer>,
    pub(crate) client: Client,
    shared: Arc<ConnectionState>,
    /// The stream of changes of a modern server.
    _changes: Option<Subscription>,
}

/// The state that the handler of server messages needs.
pub(crate) struct ConnectionState {
    server: Arc<UpstreamServer>,
    events: Weak<dyn GatewayEvents>,
    calls: Mutex<BTreeMap<RelayCallId, Arc<RunningCall>>>,
    /// The call that opened the connection: servers send requests as soon as they are initialized.
    opener: Mutex<Option<Arc<RunningCall>>>,
    /// Whether calls of several callers run on the connection.
    is_shared: bool,
    pub(crate) lists: ListCache,
    /// The subscribed resources.
    subscriptions: Mutex<HashMap<String, ResourceSubscription>>,
    /// The number of clients that wait for changes.
    listeners: AtomicUsize,
    /// The level of the last `logging/setLevel`.
    log_level: Mutex<Option<LogLevel>>,
    has_ended: AtomicBool,
    /// Milliseconds from `created` to the end of the last call.
    last_use: AtomicU64,
    created: Instant,
}

/// The subscribers of a resource.
#[derive(Default)]
struct ResourceSubscription {
    subscribers: HashSet<String>,
    /// The subscription at a modern server.
    stream: Option<Subscription>,
}

/// Keeps a connection open for a client that waits for changes.
pub(crate) struct ListenerGuard(Arc<Connection>);

impl Drop for ListenerGuard {
    fn drop(&mut self) {
        self.0.shared.listeners.fetch_sub(1, Ordering::Relaxed);
        self.0.shared.note_use();
    }
}

/// The settings of a new connection.
pub(crate) struct ConnectionSettings {
    pub(crate) server: Arc<UpstreamServer>,
    pub(crate) events: Weak<dyn GatewayEvents>,
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) client_info: Implementation,
    pub(crate) is_shared: bool,
    pub(crate) opener: Option<Arc<RunningCall>>,
}

impl Connection {
    /// Connects to the server.
    pub(crate) async fn open(settings: ConnectionSettings) -> Result<Arc<Self>, ConnectError> {
        let server = settings.server;
        let shared = Arc::new(ConnectionState {
            server: Arc::clone(&server),
            events: settings.events,
            calls: Mutex::default(),
            opener: Mutex::new(settings.opener),
            is_shared: settings.is_shared,
            lists: ListCache::default(),
            subscriptions: Mutex::default(),
            listeners: AtomicUsize::new(0),
            log_level: Mutex::default(),
            has_ended: AtomicBool::new(false),
            last_use: AtomicU64::new(0),
            created: Instant::now(),
        });
        let handler: Arc<dyn RelayHandler> = Arc::new(MessageHandler(Arc::downgrade(&shared)));
        let info = settings.client_info;
        let builder = Client::builder(info.name, info.version)
            .lifecycle_mode(server.settings.lifecycle_mode)
            .timeouts(server.settings.timeouts)
            .relay(handler, settings.capabilities);
        let connecting = builder.connect((server.settings.target)());
        let client = match tokio::time::timeout(CONNECT_TIMEOUT, connecting).await {
            Ok(connected) => connected?,
            Err(_) => {
                return Err(ConnectError::TimedOut {
                    method: "initialize",
                    limit: CONNECT_TIMEOUT,
                });
            }
        };
        let info = client.server();
        let changes = subscribe_to_changes(&client, &server).await;
        server.connected(info);
        Ok(Arc::new(Self {
            server,
            client,
            shared,
            _changes: changes,
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
        request: RelayRequest,
    ) -> Result<RelayResult, CallError> {
        let id = self.client.relay_id();
        let _running = self.shared.register(id, call);
        self.client.relay(id, request).await
    }

    /// Sends a request of the gateway itself.
    pub(crate) async fn request(
        &self,
        method: &'static str,
        params: String,
    ) -> Result<RelayResult, CallError> {
        let mut request = RelayRequest::new(method, params);
        request.timeouts = self.server.settings.timeouts;
        let _used = UseGuard(&self.shared);
        self.client.relay(self.client.relay_id(), request).await
    }

    /// Returns whether the connection can be used.
    pub(crate) fn is_open(&self) -> bool {
        !self.shared.has_ended.load(Ordering::Acquire)
    }

    /// Returns for how long no call has used the connection, or `None` if one does or a client is subscribed.
    pub(crate) fn idle_time(&self) -> Option<Duration> {
        let is_used = !lock(&self.shared.calls).is_empty()
            || !lock(&self.shared.subscriptions).is_empty()
            || self.shared.listeners.load(Ordering::Relaxed) > 0;
        let last_use = Duration::from_millis(self.shared.last_use.load(Ordering::Relaxed));
        (!is_used).then(|| self.shared.created.elapsed().saturating_sub(last_use))
    }

    /// The call that opened the connection has ended.
    pub(crate) fn opener_ended(&self, call: &Arc<RunningCall>) {
        lock(&self.shared.opener).take_if(|opener| Arc::ptr_eq(opener, call));
    }

    /// Adds a subscriber of a resource. The first one subscribes at the server.
    pub(crate) async fn subscribe(&self, uri: &str, subscriber: &str) -> Result<(), CallError> {
        let is_first = {
            let mut subscriptions = lock(&self.shared.subscriptions);
            let is_first = !subscriptions.contains_key(uri);
            let subscription = subscriptions.entry(uri.to_owned()).or_default();
            subscription.subscribers.insert(subscriber.to_owned());
            is_first
        };
        if !is_first {
            return Ok(());
        }
        match self.subscribe_at_server(uri).await {
            Ok(stream) => {
                if let Some(subscription) = lock(&self.shared.subscriptions).get_mut(uri) {
                    subscription.stream = stream;
                }
                Ok(())
            }
            Err(error) => {
                lock(&self.shared.subscriptions).remove(uri);
                Err(error)
            }
        }
    }

    async fn subscribe_at_server(&self, uri: &str) -> Result<Option<Subscription>, CallError> {
        if !self.server.is_stateless() {
            return self.client.subscribe(uri).await.map(|()| None);
        }
        let mut filter = SubscriptionFilter::default();
        filter.resource_subscriptions = Some(vec![uri.to_owned()]);
        self.client.listen(filter).await.map(Some)
    }

    /// Removes a subscriber of a resource. The last one unsubscribes at the server.
    pub(crate) async fn unsubscribe(&self, uri: &str, subscriber: &str) -> Result<(), CallError> {
        let ended = {
            let mut subscriptions = lock(&self.shared.subscriptions);
            let Some(subscription) = subscriptions.get_mut(uri) else {
                return Ok(());
            };
            subscription.subscribers.remove(subscriber);
            if subscription.subscribers.is_empty() {
                subscriptions.remove(uri)
            } else {
                None
            }
        };
        match ended {
            // Dropping the stream ends the subscription at a modern server.
            Some(subscription) if subscription.stream.is_none() => {
                self.client.unsubscribe(uri).await
            }
            _ => Ok(()),
        }
    }

    /// Keeps the connection open for a client that waits for changes, until the guard is dropped.
    pub(crate) fn keep_for_listener(self: &Arc<Self>) -> ListenerGuard {
        self.shared.listeners.fetch_add(1, Ordering::Relaxed);
        ListenerGuard(Arc::clone(self))
    }

    /// Sets the level of log messages, if it is more verbose than the current one.
    pub(crate) async fn set_log_level(&self, level: LogLevel) -> Result<(), CallError> {
        {
            let mut current = lock(&self.shared.log_level);
            if self.shared.is_shared && current.is_some_and(|current| current <= level) {
                return Ok(());
            }
            *current = Some(level);
        }
        self.client.set_log_level(level).await
    }

    /// Ends the connection and its child process.
    pub(crate) async fn close(&self) {
        self.shared.has_ended.store(true, Ordering::Release);
        self.client.close().await;
    }
}

/// Subscribes to all list changes of a modern server. A legacy server announces them without a request.
async fn subscribe_to_changes(client: &Client, server: &UpstreamServer) -> Option<Subscription> {
    let info = client.server();
    if !crate::lifecycle::is_stateless_server(&info) {
        return None;
    }
    let capabilities = &info.capabilities;
    let declared = |list_changed: Option<bool>| list_changed.filter(|declared| *declared);
    let mut filter = SubscriptionFilter::default();
    filter.tools_list_changed = declared(
        capabilities
            .tools
            .as_ref()
            .and_then(|list| list.list_changed),
    );
    filter.prompts_list_changed = declared(
        capabilities
            .prompts
            .as_ref()
            .and_then(|list| list.list_changed),
    );
    filter.resources_list_changed = declared(
        capabilities
            .resources
            .as_ref()
            .and_then(|list| list.list_changed),
    );
    if filter == SubscriptionFilter::default() {
        return None;
    }
    match client.listen(filter).await {
        Ok(subscription) => Some(subscription),
        Err(error) => {
            tracing::warn!(server = server.name(), %error, "changes of the server are not announced");
            None
        }
    }
}

impl ConnectionState {
    fn register<'a>(&'a self, id: RelayCallId, call: &Arc<RunningCall>) -> RunningCallGuard<'a> {
        lock(&self.calls).insert(id, Arc::clone(call));
        RunningCallGuard { state: self, id }
    }

    fn note_use(&self) {
        let now = u64::try_from(self.created.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_use.store(now, Ordering::Relaxed);
    }

    /// Returns the call that a server request belongs to.
    ///
    /// The call with the stream on which it came; else the only running call; else, if all running calls are those of one
    /// caller, the oldest that declared what the request needs and is not suspended; else the call that opened the
    /// connection.
    fn call_of_request(&self, request: &ServerRequest) -> Option<Arc<RunningCall>> {
        let calls = lock(&self.calls);
        if let Some(call) = request.call.and_then(|id| calls.get(&id)) {
            return Some(Arc::clone(call));
        }
        let call = match calls.len() {
            0 => None,
            1 => calls.values().next(),
            _ if is_one_caller(&calls) => {
                let declared = |call: &&Arc<RunningCall>| {
                    call.has_declared(&request.method, &request.params).is_ok()
                };
                let mut candidates = calls.values().filter(declared);
                // A suspended call already waits for input, so a new request is more likely of another one.
                let attached = candidates.clone().find(|call| call.is_attached());
                attached.or_else(|| candidates.next())
            }
            _ => return None,
        };
        let call = call.cloned();
        drop(calls);
        call.or_else(|| lock(&self.opener).clone())
    }

    /// Returns the call that a notification belongs to.
    fn call_of_notification(&self, id: Option<RelayCallId>) -> Option<Arc<RunningCall>> {
        let calls = lock(&self.calls);
        match id {
            Some(id) => calls.get(&id).cloned(),
            None if calls.len() == 1 || is_one_caller(&calls) => calls.values().next().cloned(),
            None => None,
        }
    }
}

/// Returns whether all calls are those of one known caller.
fn is_one_caller(calls: &BTreeMap<RelayCallId, Arc<RunningCall>>) -> bool {
    let mut callers = calls.values().map(|call| &call.caller);
    let Some(first) = callers.next() else {
        return false;
    };
    first.is_some() && callers.all(|caller| caller == first)
}

/// Keeps a call registered on its connection until it is dropped.
struct RunningCallGuard<'a> {
    state: &'a ConnectionState,
    id: RelayCallId,
}

impl Drop for RunningCallGuard<'_> {
    fn drop(&mut self) {
        lock(&self.state.calls).remove(&self.id);
        self.state.note_use();
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
        let state = self.0.upgrade();
        Box::pin(async move {
            let method = client_request_method(&request.method)
                .ok_or_else(|| RpcError::method_not_found(&request.method))?;
            let call = state
                .as_ref()
                .and_then(|state| state.call_of_request(&request));
            let Some(call) = call else {
                let server = state.as_ref().map_or("", |state| state.server.name());
                tracing::warn!(
                    server,
                    method,
                    "a client request belongs to no call; a connection per session has only calls of one client"
                );
                return Err(RpcError::internal(
                    "the request belongs to no call of a client",
                ));
            };
            call.request_client(method, &request.params).await
        })
    }

    fn on_notification(&self, notification: ServerNotification<'_>) {
        let Some(state) = self.0.upgrade() else {
            return;
        };
        let (method, params) = (notification.method, notification.params);
        let changed = |kinds: &[ListKind]| {
            for kind in kinds {
                state.lists.invalidate(*kind);
            }
            if let Some(events) = state.events.upgrade() {
                kinds.iter().for_each(|kind| events.list_changed(*kind));
            }
        };
        match method {
            "notifications/progress" => {
                let call = notification
                    .call
                    .and_then(|id| lock(&state.calls).get(&id).cloned());
                if let Some(call) = call {
                    call.progress(params);
                }
            }
            "notifications/message" => match state.call_of_notification(notification.call) {
                Some(call) => call.log(params),
                None => tracing::debug!(
                    server = state.server.name(),
                    "a log message belongs to no call"
                ),
            },
            "notifications/tools/list_changed" => changed(&[ListKind::Tools]),
            "notifications/prompts/list_changed" => changed(&[ListKind::Prompts]),
            "notifications/resources/list_changed" => {
                changed(&[ListKind::Resources, ListKind::Templates]);
            }
            "notifications/resources/updated" => {
                let uri = RawObject::parse(params).ok();
                let uri = uri.and_then(|object| object.string("uri").ok()?.map(String::from));
                if let (Some(uri), Some(events)) = (uri, state.events.upgrade()) {
                    events.resource_updated(state.server.index, &uri);
                }
            }
            "notifications/cancelled" | "notifications/subscriptions/acknowledged" => {}
            _ => {
                if let Some(call) = state.call_of_notification(notification.call) {
                    call.notify(method, params);
                }
            }
        }
    }

    fn on_gap(&self) {
        if let Some(state) = self.0.upgrade() {
            for kind in ListKind::ALL {
                state.lists.invalidate(kind);
            }
        }
    }

    fn on_end(&self) {
        if let Some(state) = self.0.upgrade() {
            state.has_ended.store(true, Ordering::Release);
        }
    }
}
