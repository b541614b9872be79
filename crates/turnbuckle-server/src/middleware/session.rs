//! Telling layers of sessions, which revisions with a handshake have.

use std::hash::{DefaultHasher, Hash, Hasher};

use turnbuckle_store::SessionId;

use super::undisturbed;
use crate::Server;

/// A session that a layer is told of. It tells sessions apart, and says nothing else about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionKey(u64);

impl SessionKey {
    /// The key of a session that anybody who knows its id may use.
    pub(crate) fn of(id: &SessionId) -> Self {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        Self(hasher.finish())
    }

    /// The key of the session of a connection: where the connection is in memory, which no other one is meanwhile.
    pub(crate) fn at<T>(connection: &T) -> Self {
        Self(std::ptr::from_ref(connection).addr() as u64)
    }
}

/// What is known of a session when it begins.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct SessionStart {
    /// Which one it is.
    pub key: SessionKey,
    /// The revision of the protocol that was agreed on.
    pub protocol_version: &'static str,
    /// `tcp` for HTTP, `pipe` for byte streams.
    pub transport: &'static str,
}

/// Tells layers of the end of a session when it is dropped.
pub(crate) struct Told {
    server: Server,
    key: SessionKey,
}

impl Server {
    /// Tells layers that a session began.
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
            undisturbed(|| layer.session_began(&start));
        }
    }

    /// Tells layers that a session ended.
    pub(crate) fn session_ended(&self, key: SessionKey) {
        for layer in self.layers() {
            undisturbed(|| layer.session_ended(key));
        }
    }

    /// Tells layers that a session began, and of its end when what is returned is dropped.
    pub(crate) fn session_lives(
        &self,
        key: SessionKey,
        protocol_version: &'static str,
        transport: &'static str,
    ) -> Option<Told> {
        if self.layers().is_empty() {
            return None;
        }
        self.session_began(key, protocol_version, transport);
        Some(Told {
            server: self.clone(),
            key,
        })
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.server.session_ended(self.key);
    }
}
