//! The upstream connections, and which callers share them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use tokio::{task::JoinSet, time::Instant};
use turnbuckle_protocol::{
    RpcError,
    types::{ClientCapabilities, Implementation, tasks::EXTENSION},
};
use turnbuckle_server::{
    middleware::SessionKey,
    relay::{ChangeTarget, RelayedRequest},
};

use crate::{
    calls::running::{Caller, CallerKey, RunningCall},
    errors,
    gateway::GatewayEvents,
    lock,
    upstream::{
        Sharing, UpstreamCaller, UpstreamServer,
        connection::{Connection, ConnectionSettings},
        server_set::ServerId,
        session_client::SessionClient,
        slot::{Slot, SlotError},
    },
};

/// The interval in which a removed server is checked for running calls.
const DRAIN_INTERVAL: Duration = Duration::from_millis(100);

/// Identifies a connection: requests with equal keys share it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ConnectionKey {
    server: ServerId,
    sharing: SharingKey,
    /// The caller, if the server is used with the credentials of each caller.
    caller: Option<Arc<str>>,
    /// The declared capabilities, as JSON; empty if every request declares its own.
    capabilities: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum SharingKey {
    All,
    Session(SessionKey),
    Principal(Option<Arc<str>>),
    /// The connection of one call.
    Call(u64),
}

/// The maximum numbers of connections to one server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionLimits {
    pub(crate) per_server: usize,
    /// Connections of one principal.
    pub(crate) per_principal: usize,
}

/// The first client of a gateway, as it is known at the start.
#[derive(Clone, Debug)]
pub(crate) struct FirstClient {
    pub(crate) info: Implementation,
    pub(crate) capabilities: ClientCapabilities,
}

/// All upstream connections.
pub(crate) struct ConnectionPool {
    slots: Mutex<HashMap<ConnectionKey, Arc<Slot>>>,
    /// The connections that are being closed.
    closing: Mutex<JoinSet<()>>,
    events: Weak<dyn GatewayEvents>,
    own_info: Implementation,
    limits: ConnectionLimits,
    first_client: Option<FirstClient>,
    /// Connections that were opened for the first client, until a request of any client needs one.
    preopened: Mutex<HashMap<ServerId, PreopenedConnection>>,
    next_call: std::sync::atomic::AtomicU64,
}

impl ConnectionPool {
    pub(crate) fn new(
        events: Weak<dyn GatewayEvents>,
        own_info: Implementation,
        limits: ConnectionLimits,
        first_client: Option<FirstClient>,
    ) -> Self {
        Self {
            slots: Mutex::default(),
            closing: Mutex::default(),
            events,
            own_info,
            limits,
            first_client,
            preopened: Mutex::default(),
            next_call: std::sync::atomic::AtomicU64::new(0),
        }
    }

    /// Returns the connection to a server for a request, and opens it if necessary. `call` gets the requests that the
    /// server sends while the connection is opened.
    pub(crate) async fn get(
        &self,
        server: &Arc<UpstreamServer>,
        request: &RelayedRequest,
        call: Option<&Arc<RunningCall>>,
    ) -> Result<Arc<Connection>, RpcError> {
        let caller = server.caller_of(request)?;
        let key = self.key(server, request, caller.as_ref());
        // A slot may be removed just before it is used, because it was idle.
        for _ in 0..3 {
            let slot = self.slot(&key, server, request, caller.as_ref())?;
            if let Some(caller) = &caller {
                slot.renew_token(caller);
            }
            match slot.connection(call).await {
                Ok(connection) => return Ok(connection),
                Err(SlotError::Failed(error)) => return Err(error),
                Err(SlotError::Removed) => {}
            }
        }
        Err(errors::closing(server.name()))
    }

    /// Lets the next request of a caller to a server try again at once, because the caller has logged in.
    pub(crate) fn forget_failures(&self, server: &UpstreamServer, caller: &UpstreamCaller) {
        let slots = lock(&self.slots);
        let slots = slots.iter().filter(|(key, _)| key.server == server.id);
        slots.for_each(|(_, slot)| slot.forget_failures(caller));
    }

    /// Connects to a server without a request, to learn its capabilities. A server that is used with the
    /// credentials of each caller needs a request.
    pub(crate) async fn probe(&self, server: &Arc<UpstreamServer>) -> Result<(), String> {
        if server.settings.is_per_caller() {
            server.assume_up();
            return Ok(());
        }
        let first = self.first_connection(server);
        let settings = (first.as_ref()).map_or_else(
            || self.shared_settings(server),
            |first| first.settings.clone(),
        );
        let began = Instant::now();
        let opened = Connection::open(settings, None).await;
        let connection = opened.map_err(|error| {
            tracing::warn!(server = server.name(), %error, "a server cannot be reached");
            let reason = errors::connect_reason(&error);
            server.failed(&reason, began);
            reason
        })?;
        connection.check_definitions().await;
        if server.is_shared_by_all() && !declares_caller_capabilities(server) {
            let key = ConnectionKey {
                server: server.id,
                sharing: SharingKey::All,
                caller: None,
                capabilities: String::new(),
            };
            let slot = self.slot_with(&key, || (self.shared_settings(server), None, true));
            if slot.is_ok_and(|slot| slot.try_adopt(&connection)) {
                connection.restore().await;
                return Ok(());
            }
        } else if let Some(first) = first {
            self.keep_preopened(PreopenedConnection {
                connection,
                capabilities: first.capabilities,
                client_info: first.settings.client_info,
            });
            return Ok(());
        }
        self.close_later(connection);
        Ok(())
    }

    /// Returns the settings of a connection for the first client, if the server may need one.
    fn first_connection(&self, server: &Arc<UpstreamServer>) -> Option<FirstConnection> {
        let client = self.first_client.as_ref()?;
        if matches!(server.settings.sharing, Sharing::All | Sharing::Call) {
            return None;
        }
        let capabilities = without_own_extensions(client.capabilities.clone());
        Some(FirstConnection {
            capabilities: serde_json::to_string(&capabilities).ok()?,
            settings: ConnectionSettings {
                server: Arc::clone(server),
                events: self.events.clone(),
                capabilities,
                client_info: self.info_with_gateway_name(&client.info),
                is_shared: false,
                caller: None,
                session_client: None,
                change_target: None,
            },
        })
    }

    /// Keeps a connection until a request needs one of this server, unless requests have used the server already.
    fn keep_preopened(&self, preopened: PreopenedConnection) {
        let id = preopened.connection.server.id;
        let slots = lock(&self.slots);
        let closed = if slots.keys().any(|key| key.server == id) {
            Some(preopened)
        } else {
            lock(&self.preopened).insert(id, preopened)
        };
        drop(slots);
        if let Some(closed) = closed {
            self.close_later(closed.connection);
        }
    }

    /// Uses the connection that was opened for the first client in a new slot, or closes it if it does not fit.
    fn use_preopened(&self, key: &ConnectionKey, slot: &Arc<Slot>) {
        let Some(preopened) = lock(&self.preopened).remove(&key.server) else {
            return;
        };
        let is_fitting = matches!(
            key.sharing,
            SharingKey::Session(_) | SharingKey::Principal(_)
        ) && key.capabilities == preopened.capabilities
            && slot.client_info() == &preopened.client_info
            && preopened.connection.is_open()
            && !preopened.connection.has_refused_requests();
        if !(is_fitting && slot.try_adopt(&preopened.connection)) {
            self.close_later(preopened.connection);
        }
    }

    /// Closes connections that no client has used.
    fn close_preopened(&self, matches: impl Fn(ServerId, &Connection) -> bool) {
        let closed: Vec<_> = lock(&self.preopened)
            .extract_if(|id, preopened| matches(*id, &preopened.connection))
            .collect();
        for (_, preopened) in closed {
            self.close_later(preopened.connection);
        }
    }

    /// Identifies the connection for a request.
    fn key(
        &self,
        server: &UpstreamServer,
        request: &RelayedRequest,
        caller: Option<&UpstreamCaller>,
    ) -> ConnectionKey {
        let sharing = self.sharing_key(server, request);
        // A shared modern server gets the capabilities of each request, and a shared legacy server gets none.
        let capabilities = match sharing {
            SharingKey::All if !declares_caller_capabilities(server) => String::new(),
            _ => capabilities_json(&sharing, request),
        };
        ConnectionKey {
            server: server.id,
            sharing,
            caller: caller.map(|caller| Arc::clone(caller.key())),
            capabilities,
        }
    }

    /// Returns the slot for a request.
    fn slot(
        &self,
        key: &ConnectionKey,
        server: &Arc<UpstreamServer>,
        request: &RelayedRequest,
        caller: Option<&UpstreamCaller>,
    ) -> Result<Arc<Slot>, RpcError> {
        self.slot_with(key, || {
            if key.sharing == SharingKey::All {
                let mut settings = self.shared_settings(server);
                if declares_caller_capabilities(server) {
                    settings.capabilities = relayed_capabilities(request);
                }
                return (settings, None, true);
            }
            let capabilities = capabilities_with_tasks(&key.sharing, request);
            let is_of_session = matches!(key.sharing, SharingKey::Session(_) | SharingKey::Call(_));
            let session_client = is_of_session
                .then(|| SessionClient::of_request(request, &capabilities))
                .flatten()
                .map(Arc::new);
            let settings = ConnectionSettings {
                server: Arc::clone(server),
                events: self.events.clone(),
                capabilities,
                client_info: self.unshared_info(request),
                is_shared: false,
                caller: caller.cloned(),
                session_client,
                change_target: change_target(server, &key.sharing, request),
            };
            let is_kept = !matches!(key.sharing, SharingKey::Call(_));
            (settings, principal_key(request), is_kept)
        })
    }

    fn shared_settings(&self, server: &Arc<UpstreamServer>) -> ConnectionSettings {
        ConnectionSettings {
            server: Arc::clone(server),
            events: self.events.clone(),
            capabilities: ClientCapabilities::default(),
            client_info: self.own_info.clone(),
            is_shared: true,
            caller: None,
            session_client: None,
            change_target: Some(ChangeTarget::Everyone),
        }
    }

    /// Returns the slot of a key, or creates it. If a limit is reached, the connection that is idle for longest is closed.
    fn slot_with(
        &self,
        key: &ConnectionKey,
        create: impl FnOnce() -> (ConnectionSettings, Option<Arc<str>>, bool),
    ) -> Result<Arc<Slot>, RpcError> {
        let mut slots = lock(&self.slots);
        if let Some(slot) = slots.get(key) {
            return Ok(Arc::clone(slot));
        }
        let (settings, owner, is_kept) = create();
        // Under the lock: `retire` removes the slots afterwards.
        if settings.server.is_retired() {
            return Err(errors::closing(settings.server.name()));
        }
        let name = settings.server.name().to_owned();
        let slot = Slot::new(settings, owner, is_kept);
        let of_server = |other: &ConnectionKey, _: &Slot| other.server == key.server;
        let of_owner = |other: &ConnectionKey, slot_of_other: &Slot| {
            other.server == key.server && slot_of_other.owner == slot.owner
        };
        let mut removed = Vec::new();
        if slot.owner.is_some() {
            removed.extend(make_room(&mut slots, self.limits.per_principal, of_owner));
        }
        removed.extend(make_room(&mut slots, self.limits.per_server, of_server));
        let is_free = |limit, of: &dyn Fn(&ConnectionKey, &Slot) -> bool| {
            let used = slots.iter().filter(|(key, slot)| of(key, slot));
            used.count() < limit
        };
        let has_room = is_free(self.limits.per_server, &of_server)
            && (slot.owner.is_none() || is_free(self.limits.per_principal, &of_owner));
        let created = if has_room {
            slots.insert(key.clone(), Arc::clone(&slot));
            Ok(slot)
        } else {
            Err(errors::busy(&name))
        };
        if let Ok(slot) = &created {
            self.use_preopened(key, slot);
        }
        drop(slots);
        removed.iter().for_each(|slot| self.close_slot(slot));
        created
    }

    fn sharing_key(&self, server: &UpstreamServer, request: &RelayedRequest) -> SharingKey {
        let principal = || SharingKey::Principal(principal_key(request));
        let session = || {
            request
                .session()
                .map_or_else(principal, SharingKey::Session)
        };
        match server.settings.sharing {
            Sharing::All => SharingKey::All,
            Sharing::Auto if server.is_stateless() && server.settings.is_per_caller() => {
                principal()
            }
            Sharing::Auto if server.is_stateless() => SharingKey::All,
            Sharing::Auto | Sharing::Session => session(),
            Sharing::Principal => principal(),
            Sharing::Call => {
                let order = std::sync::atomic::Ordering::Relaxed;
                SharingKey::Call(self.next_call.fetch_add(1, order))
            }
        }
    }

    /// Returns the name under which a client is introduced to a server: ours if others use the connection too.
    pub(crate) fn client_info(
        &self,
        connection: &Connection,
        request: &RelayedRequest,
    ) -> Implementation {
        if connection.is_shared() {
            return self.own_info.clone();
        }
        self.unshared_info(request)
    }

    fn unshared_info(&self, request: &RelayedRequest) -> Implementation {
        let own = &self.own_info;
        match request.context().client() {
            Some(client) => self.info_with_gateway_name(client),
            None => own.clone(),
        }
    }

    /// Returns the name of a client, with ours.
    fn info_with_gateway_name(&self, client: &Implementation) -> Implementation {
        let own = &self.own_info;
        let mut info = client.clone();
        info.name = format!("{} (via {} {})", client.name, own.name, own.version);
        info
    }

    /// Closes the connections of a session, and ends its subscriptions on others.
    pub(crate) fn session_ended(&self, session: SessionKey) {
        self.remove(|key, _| key.sharing == SharingKey::Session(session));
        let shared: Vec<_> = lock(&self.slots).values().cloned().collect();
        for slot in shared {
            slot.forget_session(session);
        }
    }

    /// Passes a notification of the client of a session on to the servers.
    pub(crate) fn client_notified(&self, session: SessionKey, method: &str, params: &str) {
        let slots = lock(&self.slots);
        let of_session = slots
            .iter()
            .filter(|(key, _)| key.sharing == SharingKey::Session(session));
        for connection in of_session.filter_map(|(_, slot)| slot.kept_connection()) {
            connection.notify_server(method, params);
        }
    }

    /// Closes connections that have been idle for some time, and forgets those that have ended.
    pub(crate) fn close_idle(&self, timeout: Duration) {
        self.remove(|_, slot| slot.idle_time().is_some_and(|idle| idle >= timeout));
        self.close_preopened(|_, preopened| {
            preopened
                .unused_time()
                .is_some_and(|unused| unused >= timeout)
        });
        let mut closing = lock(&self.closing);
        while closing.try_join_next().is_some() {}
    }

    /// Returns the open connections to a server.
    pub(crate) fn open_connections(&self, server: &UpstreamServer) -> Vec<Arc<Connection>> {
        let slots = lock(&self.slots);
        let of_server = slots
            .values()
            .filter(|slot| std::ptr::eq(slot.server(), server));
        of_server
            .filter_map(|slot| slot.kept_connection())
            .collect()
    }

    /// Opens connections again that have ended although clients wait for changes.
    pub(crate) fn reopen_awaited(&self) {
        let missed: Vec<_> = lock(&self.slots)
            .values()
            .filter(|slot| slot.needs_reopening())
            .cloned()
            .collect();
        for slot in missed {
            tokio::spawn(async move { slot.connection(None).await.is_ok() });
        }
    }

    /// Closes the connections of a server that is not used anymore: each when its calls have ended, all after `timeout`.
    pub(crate) async fn retire(&self, server: &UpstreamServer, timeout: Duration) {
        server.retire();
        self.close_preopened(|id, _| id == server.id);
        let of_server = |key: &ConnectionKey| key.server == server.id;
        let deadline = Instant::now() + timeout;
        loop {
            self.remove(|key, slot| of_server(key) && slot.is_unused_for(DRAIN_INTERVAL));
            let is_closed = !lock(&self.slots).keys().any(of_server);
            if is_closed || Instant::now() >= deadline {
                break;
            }
            tokio::time::sleep(DRAIN_INTERVAL).await;
        }
        self.remove(|key, _| of_server(key));
    }

    /// Closes all connections, and waits until their child processes have ended.
    pub(crate) async fn close(&self) {
        self.remove(|_, _| true);
        self.close_preopened(|_, _| true);
        let mut closing = std::mem::take(&mut *lock(&self.closing));
        while closing.join_next().await.is_some() {}
    }

    fn remove(&self, matches: impl Fn(&ConnectionKey, &Slot) -> bool) {
        let removed: Vec<_> = lock(&self.slots)
            .extract_if(|key, slot| matches(key, slot))
            .map(|(_, slot)| slot)
            .collect();
        removed.iter().for_each(|slot| self.close_slot(slot));
    }

    fn close_slot(&self, slot: &Slot) {
        if let Some(connection) = slot.remove() {
            self.close_later(connection);
        }
    }

    /// Closes a connection in a task, because its child process may take seconds to end.
    fn close_later(&self, connection: Arc<Connection>) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let mut closing = lock(&self.closing);
            closing.spawn_on(async move { connection.close().await }, &runtime);
        }
    }
}

/// A connection that was opened before the first request of the first client.
struct PreopenedConnection {
    connection: Arc<Connection>,
    /// The declared capabilities, as in a [`ConnectionKey`].
    capabilities: String,
    client_info: Implementation,
}

/// How to connect for the first client.
struct FirstConnection {
    settings: ConnectionSettings,
    capabilities: String,
}

/// Makes room if there are `limit` slots: removes one without a connection, or else the one that is idle for longest.
fn make_room(
    slots: &mut HashMap<ConnectionKey, Arc<Slot>>,
    limit: usize,
    counts: impl Fn(&ConnectionKey, &Slot) -> bool,
) -> Vec<Arc<Slot>> {
    let count = |slots: &HashMap<ConnectionKey, Arc<Slot>>| {
        slots.iter().filter(|(key, slot)| counts(key, slot)).count()
    };
    if count(slots) < limit {
        return Vec::new();
    }
    let idle = slots
        .iter()
        .filter(|(key, slot)| counts(key, slot))
        .filter_map(|(key, slot)| Some(((!slot.is_occupied(), slot.idle_time()?), key)))
        .max_by_key(|(idle, _)| *idle)
        .map(|(_, key)| key.clone());
    idle.and_then(|key| slots.remove(&key))
        .into_iter()
        .collect()
}

/// Returns the clients that use a connection, which get what it announces. `None` for a connection of one call.
fn change_target(
    server: &UpstreamServer,
    sharing: &SharingKey,
    request: &RelayedRequest,
) -> Option<ChangeTarget> {
    match sharing {
        SharingKey::All => Some(ChangeTarget::Everyone),
        SharingKey::Principal(_)
            if server.settings.sharing == Sharing::Principal || server.is_stateless() =>
        {
            Some(request.principal_target())
        }
        // Clients of the principal with a session have connections of their own to a legacy server.
        SharingKey::Session(_) | SharingKey::Principal(_) => Some(request.session_target()),
        SharingKey::Call(_) => None,
    }
}

/// Returns whether connections of all callers declare the capabilities of their callers.
fn declares_caller_capabilities(server: &UpstreamServer) -> bool {
    server.settings.one_at_a_time && !server.is_stateless()
}

/// Identifies the principal of a request.
fn principal_key(request: &RelayedRequest) -> Option<Arc<str>> {
    let principal = request.principal()?;
    let key = (&principal.issuer, &principal.subject, &principal.client);
    Some(format!("{key:?}").into())
}

/// Identifies the caller of a request.
pub(crate) fn caller_key(request: &RelayedRequest) -> CallerKey {
    match principal_key(request) {
        Some(principal) => Some(Caller::Principal(principal)),
        None => request.session().map(Caller::Session),
    }
}

/// Returns the capabilities for a connection as JSON.
fn capabilities_json(sharing: &SharingKey, request: &RelayedRequest) -> String {
    let context = request.context();
    let declared = context.client_capabilities();
    let json = if declared.tasks.is_none() && !declared.has_extension(EXTENSION) {
        // Nothing of them is left out, so they need not be copied.
        serde_json::to_string(declared)
    } else {
        serde_json::to_string(&capabilities_with_tasks(sharing, request))
    };
    json.unwrap_or_default()
}

/// Returns the capabilities for a connection. Tasks of the client need a connection of its session.
fn capabilities_with_tasks(sharing: &SharingKey, request: &RelayedRequest) -> ClientCapabilities {
    let mut capabilities = relayed_capabilities(request);
    if matches!(sharing, SharingKey::Session(_)) && request.sends_client_requests() {
        capabilities.tasks = request.context().client_capabilities().tasks.clone();
    }
    capabilities
}

/// Returns the capabilities of the client that the gateway can relay.
pub(crate) fn relayed_capabilities(request: &RelayedRequest) -> ClientCapabilities {
    let mut capabilities = request.context().client_capabilities().clone();
    capabilities.tasks = None;
    without_own_extensions(capabilities)
}

/// Removes the extensions that the gateway declares itself.
fn without_own_extensions(mut capabilities: ClientCapabilities) -> ClientCapabilities {
    if let Some(extensions) = &mut capabilities.extensions {
        extensions.remove(EXTENSION);
    }
    capabilities
}
