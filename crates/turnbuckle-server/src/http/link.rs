//! The connection that a request came over.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use turnbuckle_store::SessionId;

use super::{
    endpoint::Endpoint,
    presence::{Presences, Present, lock},
};
use crate::lifecycle::connected::Connected;

/// The connection that a request came over, as far as it is known.
#[derive(Clone, Default)]
pub(super) struct Link {
    wire: Option<Arc<Wire>>,
}

struct Wire {
    peer: Option<SocketAddr>,
    connected: Arc<Connected>,
    /// The session of the last call. Most connections are used for one session, and it need not go and come between
    /// its calls.
    last: Mutex<Option<Present>>,
}

impl Link {
    pub(super) fn new(peer: Option<SocketAddr>) -> Self {
        Self {
            wire: Some(Arc::new(Wire {
                peer,
                connected: Arc::default(),
                last: Mutex::default(),
            })),
        }
    }

    pub(super) fn peer(&self) -> Option<SocketAddr> {
        self.wire.as_ref()?.peer
    }

    pub(super) fn connected(&self) -> Option<Arc<Connected>> {
        Some(self.wire.as_ref()?.connected.clone())
    }

    /// Makes a session present, or finds it where the last call left it.
    pub(super) fn enter(&self, endpoint: &Arc<Endpoint>, session: SessionId) -> Present {
        let last = self.wire.as_ref().and_then(|wire| {
            lock(&wire.last).take_if(|last| last.session == session && !last.presence.is_closed())
        });
        last.unwrap_or_else(|| Presences::enter(endpoint, session))
    }

    /// Leaves a session where the next call finds it.
    pub(super) fn leave(&self, present: Present) {
        let before = match &self.wire {
            Some(wire) => lock(&wire.last).replace(present),
            None => Some(present),
        };
        // Not under the lock.
        drop(before);
    }

    /// The connection ends: subscriptions on it end too, with their result.
    pub(super) fn close(&self) {
        if let Some(wire) = &self.wire {
            wire.connected.close();
        }
    }
}
