//! State shared by the requests of one connection.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

use turnbuckle_protocol::{RpcError, json};
use turnbuckle_store::{ClientProfile, SessionId};

use super::GeneralChannel;
use crate::sync::{ShutdownSignal, lock};

/// The state of a connection that carries all requests of one client.
#[derive(Default)]
pub(crate) struct ConnectionState {
    closing: ShutdownSignal,
    client_info_cache: ClientInfoCache,
    id: OnceLock<SessionId>,
    peer: OnceLock<Weak<dyn ConnectionPeer>>,
}

/// The client of a connection.
pub(crate) trait ConnectionPeer: Send + Sync {
    /// Returns the way to the client outside of its requests, if it has a session.
    fn general_channel(self: Arc<Self>) -> Option<Box<dyn GeneralChannel>>;
}

impl ConnectionState {
    /// Sets the client of the connection, once.
    pub(crate) fn set_peer(&self, peer: Weak<dyn ConnectionPeer>) {
        let _ = self.peer.set(peer);
    }

    /// Returns the client of the connection.
    pub(crate) fn peer(&self) -> Option<Weak<dyn ConnectionPeer>> {
        self.peer.get().cloned()
    }

    /// The unique id of the connection.
    pub(crate) fn id(&self) -> SessionId {
        *self
            .id
            .get_or_init(|| SessionId::generate().expect("random bytes are available"))
    }

    /// Closes the connection, and everything bound to its lifetime.
    pub(crate) fn close(&self) {
        self.closing.trigger();
    }

    /// Returns whether the connection is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.closing.is_triggered()
    }

    /// Resolves when the connection closes.
    pub(crate) async fn closed(&self) {
        self.closing.triggered().await;
    }

    /// Returns the client that a request describes.
    pub(super) fn client(
        &self,
        client_info: RawClientInfo<'_>,
    ) -> Result<Arc<ClientProfile>, RpcError> {
        self.client_info_cache.get_or_read(client_info)
    }
}

/// The client information of a request, as raw JSON.
#[derive(Clone, Copy)]
pub(super) struct RawClientInfo<'a> {
    pub(super) info: Option<&'a str>,
    pub(super) capabilities: &'a str,
}

impl RawClientInfo<'_> {
    /// Parses it.
    pub(super) fn read(self) -> Result<Arc<ClientProfile>, RpcError> {
        let info = self.info.map(json::from_str).transpose();
        let capabilities = json::from_str(self.capabilities);
        Ok(Arc::new(ClientProfile {
            info: info.map_err(|error| error.within("clientInfo"))?,
            capabilities: capabilities.map_err(|error| error.within("clientCapabilities"))?,
        }))
    }
}

/// Larger descriptions are parsed each time, to keep idle connections small.
const MAX_CACHED_BYTES: usize = 4 * 1024;

/// The last parsed client information. Clients repeat it with every request; identical bytes are not parsed again.
#[derive(Default)]
struct ClientInfoCache(Mutex<Option<CachedClientInfo>>);

struct CachedClientInfo {
    info: Option<Box<str>>,
    capabilities: Box<str>,
    client: Arc<ClientProfile>,
}

impl ClientInfoCache {
    fn get_or_read(&self, client_info: RawClientInfo<'_>) -> Result<Arc<ClientProfile>, RpcError> {
        if let Some(cached) = &*self.lock()
            && cached.info.as_deref() == client_info.info
            && *cached.capabilities == *client_info.capabilities
        {
            return Ok(cached.client.clone());
        }
        // Parsed without the lock, so concurrent requests on one connection do not wait for each other.
        let client = client_info.read()?;
        if client_info.info.map_or(0, str::len) + client_info.capabilities.len() <= MAX_CACHED_BYTES
        {
            let cached = CachedClientInfo {
                info: client_info.info.map(Into::into),
                capabilities: client_info.capabilities.into(),
                client: client.clone(),
            };
            // The previous value is dropped after the lock is released.
            let _before = self.lock().replace(cached);
        }
        Ok(client)
    }

    fn lock(&self) -> MutexGuard<'_, Option<CachedClientInfo>> {
        // A panic cannot leave the value in an invalid state.
        lock(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_client_info_is_parsed_once() {
        let connection = ConnectionState::default();
        let client_info = |info, capabilities| {
            let client_info = RawClientInfo { info, capabilities };
            connection.client(client_info).expect("a good description")
        };
        let ada = r#"{"name":"ada","version":"1"}"#;

        let first = client_info(Some(ada), "{}");
        assert!(Arc::ptr_eq(&first, &client_info(Some(ada), "{}")));
        assert!(client_info(None, "{}").info.is_none());
        assert!(
            client_info(Some(ada), r#"{"roots":{}}"#)
                .capabilities
                .roots
                .is_some()
        );
        assert!(client_info(Some(ada), "{}").capabilities.roots.is_none());
    }

    #[test]
    fn invalid_client_info_is_not_cached() {
        let connection = ConnectionState::default();
        let bad = RawClientInfo {
            info: None,
            capabilities: "7",
        };

        assert!(connection.client(bad).is_err());
        assert!(connection.client(bad).is_err());
    }
}
