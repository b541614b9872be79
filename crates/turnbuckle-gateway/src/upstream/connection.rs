//! A connection to an upstream server, and the calls that run on it.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, OnceLock, Weak,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;
use turnbuckle_client::{
    CallError, Client, ConnectError, TransportError,
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
    errors,
    gateway::GatewayEvents,
    lock,
    upstream::{
        UpstreamServer,
        interest::{Interest, ListenStream},
        list_cache::ListCache,
        slot::Slot,
    },
};

const OPENING: u8 = 0;
const OPEN: u8 = 1;
const ENDED: u8 = 2;

/// Maximum time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// A connection to an upstream server.
pub(crate) struct Connection {
    pub(crate) server: Arc<UpstreamServer>,
    pub(crate) client: Client,
    shared: Arc<ConnectionState>,
    /// The listen request at a modern server.
    listen: tokio::sync::Mutex<Option<ListenStream>>,
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
    /// The client, once it is connected.
    client: OnceLock<Client>,
    /// The place of the connection, once it has one.
    slot: OnceLock<Weak<Slot>>,
    interest: OnceLock<Arc<Interest>>,
    /// One of `OPENING`, `OPEN` and `ENDED`.
    stage: AtomicU8,
    /// Milliseconds from `created` to the end of the last call.
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
}

impl Connection {
    /// Connects to the server.
    pub(crate) async fn open(
        settings: ConnectionSettings,
        opener: Option<Arc<RunningCall>>,
    ) -> Result<Arc<Self>, ConnectError> {
        let server = settings.server;
        let shared = Arc::new(ConnectionState {
            server: Arc::clone(&server),
            events: settings.events,
            calls: Mutex::default(),
            opener: Mutex::new(opener),
            is_shared: settings.is_shared,
            lists: ListCache::default(),
            client: OnceLock::new(),
            slot: OnceLock::new(),
            interest: OnceLock::new(),
            stage: AtomicU8::new(OPENING),
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
        let _ = shared.client.set(client.clone());
        // Counted before it can end.
        server.connected(info);
        if !shared.has_opened() {
            server.disconnected(None);
            let ended = client.ended().unwrap_or(TransportError::Closed);
            return Err(ConnectError::Unreachable(ended));
        }
        Ok(Arc::new(Self {
            server,
            client,
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
        self.shared.stage.load(Ordering::Acquire) == OPEN && self.client.ended().is_none()
    }

    /// Returns whether a call runs on the connection.
    pub(crate) fn is_busy(&self) -> bool {
        !lock(&self.shared.calls).is_empty()
    }

    /// Returns whether calls of several callers run on the connection.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared.is_shared
    }

    /// Restarts the idle time.
    pub(super) fn note_use(&self) {
        self.shared.note_use();
    }

    /// Reports the end of the connection to its place.
    pub(super) fn set_slot(&self, slot: &Arc<Slot>) {
        let _ = self.shared.slot.set(Arc::downgrade(slot));
        let _ = self.shared.interest.set(Arc::clone(slot.interest()));
    }

    /// Returns for how long no call has used the connection, or `None` if one does or a client waits for changes.
    pub(crate) fn idle_time(&self) -> Option<Duration> {
        let is_awaited = self.interest().is_some_and(|interest| interest.is_any());
        self.unused_time().filter(|_| !is_awaited)
    }

    /// Returns for how long no call has used the connection, or `None` if one does.
    pub(crate) fn unused_time(&self) -> Option<Duration> {
        let last_use = Duration::from_millis(self.shared.last_use.load(Ordering::Relaxed));
        (!self.is_busy()).then(|| self.shared.created.elapsed().saturating_sub(last_use))
    }

    /// The call that opened the connection has ended.
    pub(crate) fn opener_ended(&self, call: &Arc<RunningCall>) {
        lock(&self.shared.opener).take_if(|opener| Arc::ptr_eq(opener, call));
    }

    /// Returns what the callers want to be told. A connection without a slot has nobody to tell.
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
            return Ok(filter);
        }
        let events = &self.shared.events;
        let (stream, granted) =
            ListenStream::open(&self.client, filter, &self.server, events).await?;
        *listen = Some(stream);
        Ok(granted)
    }

    /// Sets the level of log messages, if it is more verbose than the current one.
    pub(crate) async fn set_log_level(&self, level: LogLevel) -> Result<(), CallError> {
        if let Some(interest) = self.interest()
            && !interest.raise_log_level(level, self.shared.is_shared)
        {
            return Ok(());
        }
        self.client.set_log_level(level).await
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

impl ConnectionState {
    fn register<'a>(&'a self, id: RelayCallId, call: &Arc<RunningCall>) -> RunningCallGuard<'a> {
        lock(&self.calls).insert(id, Arc::clone(call));
        RunningCallGuard { state: self, id }
    }

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
        let slot = self.slot.get().and_then(Weak::upgrade);
        match (reason, slot) {
            (Some(reason), Some(slot)) => slot.connection_died(&errors::transport_reason(reason)),
            _ => self.server.disconnected(None),
        }
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
                let server = &state.server;
                kinds
                    .iter()
                    .for_each(|kind| events.list_changed(server, *kind, true));
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
                    events.resource_updated(&state.server, &uri);
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
        let Some(state) = self.0.upgrade() else {
            return;
        };
        for kind in ListKind::ALL {
            state.lists.invalidate(kind);
            if let Some(events) = state.events.upgrade() {
                events.list_changed(&state.server, kind, false);
            }
        }
        // A renewed session at a legacy server has no subscriptions. Streams of a modern server renew themselves.
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
