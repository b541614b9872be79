//! Session events for layers.

use std::hash::{DefaultHasher, Hash, Hasher};

use turnbuckle_store::{ChangeTarget, SessionId};

use super::catch_panic;
use crate::Server;

/// Identifies a session for layers. It reveals nothing else about the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionKey(u64);

impl std::fmt::Display for SessionKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl SessionKey {
    /// The key of a session with an id.
    pub(crate) fn from_id(id: &SessionId) -> Self {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        Self(hasher.finish())
    }

    /// The key of a connection's session: the address of the connection in memory, unique during its lifetime.
    pub(crate) fn from_connection<T>(connection: &T) -> Self {
        Self(std::ptr::from_ref(connection).addr() as u64)
    }
}

impl From<SessionKey> for ChangeTarget {
    fn from(key: SessionKey) -> Self {
        Self::Session(key.0)
    }
}

/// Facts about a session at its start.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct SessionStart {
    /// The key of the session.
    pub key: SessionKey,
    /// The negotiated revision.
    pub protocol_version: &'static str,
    /// `tcp` for HTTP, `pipe` for byte streams.
    pub transport: &'static str,
}

/// Notifies layers of the session's end when dropped.
pub(crate) struct SessionEndGuard {
    server: Server,
    key: SessionKey,
}

impl Server {
    /// Notifies layers of the start of a session.
    pub(crate) fn session_began(
        &self,
        key: SessionKey,
        protocol_version: &'static str,
        transport: &'static str,
    ) {
        let start = SessionStart {
            key,
            protocol_version,
            transport,
        };
        for layer in self.layers() {
            catch_panic(|| layer.session_began(&start));
        }
    }

    /// Notifies the relay and the layers of the end of a session.
    pub(crate) fn session_ended(&self, key: SessionKey) {
        if let Some(relay) = self.relay_ref() {
            relay.session_ended(key);
        }
        for layer in self.layers() {
            catch_panic(|| layer.session_ended(key));
        }
    }

    /// Notifies layers of the start of a session, and of its end when the returned guard is dropped.
    pub(crate) fn session_guard(
        &self,
        key: SessionKey,
        protocol_version: &'static str,
        transport: &'static str,
    ) -> Option<SessionEndGuard> {
        if self.layers().is_empty() {
            return None;
        }
        self.session_began(key, protocol_version, transport);
        Some(SessionEndGuard {
            server: self.clone(),
            key,
        })
    }
}

impl Drop for SessionEndGuard {
    fn drop(&mut self) {
        self.server.session_ended(self.key);
    }
}
