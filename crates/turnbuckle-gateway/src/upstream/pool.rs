//! The upstream connections, and which callers share them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use turnbuckle_protocol::{
    RpcError,
    types::{ClientCapabilities, Implementation, tasks::EXTENSION},
};
use turnbuckle_server::{middleware::SessionKey, relay::RelayedRequest};

use crate::{
    calls::running::{CallerKey, RunningCall},
    errors,
    gateway::GatewayEvents,
    lock,
    upstream::{
        Sharing, UpstreamServer,
        connection::{Connection, ConnectionSettings},
    },
};

/// Identifies a connection: requests with equal keys share it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ConnectionKey {
    server: usize,
    sharing: SharingKey,
    /// The declared capabilities, as JSON; empty if every request declares its own.
    capabilities: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum SharingKey {
    All,
    Session(SessionKey),
    Principal(Option<Arc<str>>),
    /// Not shared, and not found again.
    Call(u64),
}

/// The slot of a connection. Locked while it is opened, so that only one caller does it.
type Slot = Arc<tokio::sync::Mutex<Option<Arc<Connection>>>>;

/// All upstream connections.
pub(crate) struct ConnectionPool {
    slots: Mutex<HashMap<ConnectionKey, Slot>>,
    events: Weak<dyn GatewayEvents>,
    own_info: Implementation,
    max_per_server: usize,
    next_call: std::sync::atomic::AtomicU64,
}

impl ConnectionPool {
    pub(crate) fn new(
        events: Weak<dyn GatewayEvents>,
        own_info: Implementation,
        max_per_server: usize,
    ) -> Self {
        Self {
            slots: Mutex::default(),
            events,
            own_info,
            max_per_server,
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
        let sharing = self.sharing_key(server, request);
        let is_shared = sharing == SharingKey::All;
        // A modern server gets the capabilities of each request, and a shared legacy server gets none.
        let capabilities = if is_shared {
            ClientCapabilities::default()
        } else {
            relayed_capabilities(request)
        };
        let key = ConnectionKey {
            server: server.index,
            sharing,
            capabilities: serde_json::to_string(&capabilities).unwrap_or_default(),
        };
        let client_info = if is_shared {
            self.own_info.clone()
        } else {
            self.client_info(request)
        };
        let settings = ConnectionSettings {
            server: Arc::clone(server),
            events: self.events.clone(),
            capabilities,
            client_info,
            is_shared,
            opener: call.cloned(),
        };
        self.open_once(key, settings).await
    }

    /// Connects to a server without a request, to learn its capabilities.
    pub(crate) async fn probe(&self, server: &Arc<UpstreamServer>) -> Result<(), String> {
        let settings = ConnectionSettings {
            server: Arc::clone(server),
            events: self.events.clone(),
            capabilities: ClientCapabilities::default(),
            client_info: self.own_info.clone(),
            is_shared: true,
            opener: None,
        };
        let connection = Connection::open(settings).await.map_err(|error| {
            tracing::warn!(server = server.name(), %error, "a server cannot be reached");
            errors::connect_reason(&error)
        });
        let connection = connection.inspect_err(|reason| server.failed(reason.clone()))?;
        let is_kept = server.settings.sharing == Sharing::All
            || (server.settings.sharing == Sharing::Auto && server.is_stateless());
        if is_kept {
            let key = ConnectionKey {
                server: server.index,
                sharing: SharingKey::All,
                capabilities: serde_json::to_string(&ClientCapabilities::default())
                    .unwrap_or_default(),
            };
            let slot = Arc::new(tokio::sync::Mutex::new(Some(connection)));
            lock(&self.slots).insert(key, slot);
        } else {
            connection.close().await;
        }
        Ok(())
    }

    async fn open_once(
        &self,
        key: ConnectionKey,
        settings: ConnectionSettings,
    ) -> Result<Arc<Connection>, RpcError> {
        let server = Arc::clone(&settings.server);
        let slot = self.slot(&key, &server).await?;
        let mut connection = slot.lock().await;
        if let Some(open) = connection
            .as_ref()
            .filter(|connection| connection.is_open())
        {
            return Ok(Arc::clone(open));
        }
        if let Some(reason) = server.retry_later() {
            return Err(errors::unreachable(server.name(), &reason));
        }
        if let Some(ended) = connection.take() {
            ended.close().await;
        }
        match Connection::open(settings).await {
            Ok(opened) => {
                *connection = Some(Arc::clone(&opened));
                Ok(opened)
            }
            Err(error) => {
                tracing::warn!(server = server.name(), %error, "a server cannot be reached");
                let reason = errors::connect_reason(&error);
                server.failed(reason.clone());
                Err(errors::unreachable(server.name(), &reason))
            }
        }
    }

    /// Returns the slot of a key. If the server has too many connections, an idle one is closed first.
    async fn slot(&self, key: &ConnectionKey, server: &UpstreamServer) -> Result<Slot, RpcError> {
        let idle = {
            let mut slots = lock(&self.slots);
            if let Some(slot) = slots.get(key) {
                return Ok(Arc::clone(slot));
            }
            let of_server = |other: &ConnectionKey| other.server == key.server;
            let idle = if slots.keys().filter(|key| of_server(key)).count() < self.max_per_server {
                None
            } else {
                let idle = longest_idle(&slots, of_server);
                let busy = || {
                    let message = format!("server `{}` has too many connections", server.name());
                    RpcError::internal(message)
                };
                slots.remove(&idle.ok_or_else(busy)?)
            };
            let slot = Slot::default();
            slots.insert(key.clone(), Arc::clone(&slot));
            if idle.is_none() {
                return Ok(slot);
            }
            idle
        };
        if let Some(idle) = idle {
            close(idle).await;
        }
        let slots = lock(&self.slots);
        let gone = || RpcError::internal("the gateway is closing");
        slots.get(key).cloned().ok_or_else(gone)
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
            Sharing::Auto if server.is_stateless() => SharingKey::All,
            Sharing::Auto | Sharing::Session => session(),
            Sharing::Principal => principal(),
            Sharing::Call => {
                let order = std::sync::atomic::Ordering::Relaxed;
                SharingKey::Call(self.next_call.fetch_add(1, order))
            }
        }
    }

    /// Returns the name under which a client is introduced to a server that only it uses.
    pub(crate) fn client_info(&self, request: &RelayedRequest) -> Implementation {
        let own = &self.own_info;
        match request.context().client() {
            Some(client) => {
                let mut info = client.clone();
                info.name = format!("{} (via {} {})", client.name, own.name, own.version);
                info
            }
            None => own.clone(),
        }
    }

    /// Closes the connections of a session.
    pub(crate) async fn session_ended(&self, session: SessionKey) {
        self.close_all(|key| key.sharing == SharingKey::Session(session))
            .await;
    }

    /// Closes the connection of a call, if only that call uses it.
    pub(crate) async fn call_ended(&self, connection: &Arc<Connection>) {
        if connection.server.settings.sharing == Sharing::Call {
            connection.close().await;
            self.close_idle(Duration::ZERO).await;
        }
    }

    /// Closes connections that have been idle for some time, and removes those that have ended.
    pub(crate) async fn close_idle(&self, timeout: Duration) {
        let is_idle = |slot: &Slot| {
            let Ok(connection) = slot.try_lock() else {
                return false;
            };
            match &*connection {
                Some(connection) => {
                    !connection.is_open()
                        || connection.idle_time().is_some_and(|idle| idle >= timeout)
                }
                None => true,
            }
        };
        // A slot that is referenced elsewhere is about to be used.
        let removed: Vec<Slot> = lock(&self.slots)
            .extract_if(|_, slot| Arc::strong_count(slot) == 1 && is_idle(slot))
            .map(|(_, slot)| slot)
            .collect();
        for slot in removed {
            close(slot).await;
        }
    }

    /// Closes all connections.
    pub(crate) async fn close(&self) {
        self.close_all(|_| true).await;
    }

    async fn close_all(&self, matches: impl Fn(&ConnectionKey) -> bool) {
        let removed: Vec<Slot> = lock(&self.slots)
            .extract_if(|key, _| matches(key))
            .map(|(_, slot)| slot)
            .collect();
        let mut closing = tokio::task::JoinSet::new();
        for slot in removed {
            closing.spawn(close(slot));
        }
        closing.join_all().await;
    }
}

async fn close(slot: Slot) {
    let connection = slot.lock().await.take();
    if let Some(connection) = connection {
        connection.close().await;
    }
}

fn longest_idle(
    slots: &HashMap<ConnectionKey, Slot>,
    of_server: impl Fn(&ConnectionKey) -> bool,
) -> Option<ConnectionKey> {
    let idle_time = |slot: &Slot| slot.try_lock().ok()?.as_ref()?.idle_time();
    slots
        .iter()
        .filter(|(key, _)| of_server(key))
        .filter_map(|(key, slot)| Some((idle_time(slot)?, key)))
        .max_by_key(|(idle, _)| *idle)
        .map(|(_, key)| key.clone())
}

/// Identifies the principal of a request.
fn principal_key(request: &RelayedRequest) -> Option<Arc<str>> {
    let principal = request.principal()?;
    let key = (&principal.issuer, &principal.subject, &principal.client);
    Some(format!("{key:?}").into())
}

/// Identifies the caller of a request.
pub(crate) fn caller_key(request: &RelayedRequest) -> CallerKey {
    let of_session = || Some(format!("{:?}", request.session()?).into());
    principal_key(request).or_else(of_session)
}

/// Returns the capabilities of the client that the gateway can relay.
pub(crate) fn relayed_capabilities(request: &RelayedRequest) -> ClientCapabilities {
    let mut capabilities = request.context().client_capabilities().clone();
    capabilities.tasks = None;
    if let Some(extensions) = &mut capabilities.extensions {
        extensions.remove(EXTENSION);
    }
    capabilities
}
