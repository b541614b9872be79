//! The connection that a request came over.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use turnbuckle_store::SessionId;

use super::{
    activity::Activity,
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
    activity: Arc<Activity>,
    /// The session of the last call. Most connections are used for one session, and it need not go and come between
    /// its calls.
    last: Mutex<Option<Present>>,
}

impl Link {
    pub(super) fn new(peer: Option<SocketAddr>, activity: Arc<Activity>) -> Self {
        Self {
            wire: Some(Arc::new(Wire {
                peer,
                connected: Arc::default(),
                activity,
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

    /// Lets the connection read on for a while before it is closed.
    pub(super) fn linger(&self) {
        if let Some(wire) = &self.wire {
            wire.activity.linger();
        }
    }

    /// The connection ends: subscriptions on it end too, with their result.
    pub(super) fn close(&self) {
        if let Some(wire) = &self.wire {
            wire.connected.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use crate::{Server, http::Options};

    fn endpoint() -> Arc<Endpoint> {
        let server = Server::new("test", "1.0.0");
        Arc::new(Endpoint::new(server, Options::default(), None))
    }

    fn link() -> Link {
        Link::new(None, Arc::new(Activity::new(Instant::now())))
    }

    fn session() -> SessionId {
        SessionId::generate().unwrap()
    }

    #[test]
    fn a_session_stays_present_until_another_is_called_or_the_connection_ends() {
        let (endpoint, link) = (endpoint(), link());
        let (first, second) = (session(), session());

        let present = link.enter(&endpoint, first);
        let presence = present.presence.clone();
        link.leave(present);
        let again = link.enter(&endpoint, first);
        assert!(Arc::ptr_eq(&again.presence, &presence));
        link.leave(again);
        let other = link.enter(&endpoint, second);
        assert_eq!(endpoint.presences.len(), 2);
        link.leave(other);
        assert_eq!(endpoint.presences.len(), 1);

        drop(link);
        assert_eq!(endpoint.presences.len(), 0);
    }

    #[test]
    fn what_is_over_is_not_found_again() {
        let (endpoint, link) = (endpoint(), link());
        let session = session();
        link.leave(link.enter(&endpoint, session));

        endpoint.presences.close(&session);
        let present = link.enter(&endpoint, session);

        assert!(!present.presence.is_closed());
    }

    #[test]
    fn where_the_connection_is_not_known_nothing_stays() {
        let (endpoint, link) = (endpoint(), Link::default());

        link.leave(link.enter(&endpoint, session()));

        assert_eq!(endpoint.presences.len(), 0);
    }
}
