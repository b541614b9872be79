//! The handle of a connection that its requests share.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use turnbuckle_store::SessionId;

use crate::{
    http::{
        connection::ConnectionActivity,
        endpoint::Endpoint,
        session::{ActiveSessionGuard, ActiveSessions},
    },
    lifecycle::connection::ConnectionState,
    sync::lock,
};

/// The connection of a request. Empty for requests of an [`HttpService`](crate::http::HttpService), where the connection is
/// not known.
#[derive(Clone, Default)]
pub(crate) struct ConnectionHandle {
    state: Option<Arc<HttpConnectionState>>,
}

struct HttpConnectionState {
    peer: Option<SocketAddr>,
    connection: Arc<ConnectionState>,
    activity: Arc<ConnectionActivity>,
    /// The session of the last call. Most connections are used for one session, which then stays active between calls.
    last_session: Mutex<Option<ActiveSessionGuard>>,
}

impl ConnectionHandle {
    pub(crate) fn new(peer: Option<SocketAddr>, activity: Arc<ConnectionActivity>) -> Self {
        Self {
            state: Some(Arc::new(HttpConnectionState {
                peer,
                connection: Arc::default(),
                activity,
                last_session: Mutex::default(),
            })),
        }
    }

    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        self.state.as_ref()?.peer
    }

    pub(crate) fn connection_state(&self) -> Option<Arc<ConnectionState>> {
        Some(self.state.as_ref()?.connection.clone())
    }

    /// Activates a session, or takes it over from the last call on this connection.
    pub(crate) fn take_session(
        &self,
        endpoint: &Arc<Endpoint>,
        session_id: SessionId,
    ) -> ActiveSessionGuard {
        let last_session = self.state.as_ref().and_then(|state| {
            lock(&state.last_session).take_if(|last_session| {
                last_session.session_id == session_id && !last_session.session.is_closed()
            })
        });
        last_session.unwrap_or_else(|| ActiveSessions::activate(endpoint, session_id))
    }

    /// Keeps a session active for the next call on this connection.
    pub(crate) fn return_session(&self, active: ActiveSessionGuard) {
        let previous = match &self.state {
            Some(state) => lock(&state.last_session).replace(active),
            None => Some(active),
        };
        // Dropped after the lock is released.
        drop(previous);
    }

    /// Requests a lingering close of the connection.
    pub(crate) fn request_linger(&self) {
        if let Some(state) = &self.state {
            state.activity.request_linger();
        }
    }

    /// Ends the subscriptions of this connection, with their result.
    pub(crate) fn close(&self) {
        if let Some(state) = &self.state {
            state.connection.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use crate::{Server, http::HttpOptions};

    fn endpoint() -> Arc<Endpoint> {
        let server = Server::new("test", "1.0.0");
        Arc::new(Endpoint::new(server, HttpOptions::default(), None))
    }

    fn connection() -> ConnectionHandle {
        ConnectionHandle::new(None, Arc::new(ConnectionActivity::new(Instant::now())))
    }

    fn session_id() -> SessionId {
        SessionId::generate().unwrap()
    }

    #[test]
    fn a_session_stays_active_until_another_is_used_or_the_connection_ends() {
        let (endpoint, connection) = (endpoint(), connection());
        let (first, second) = (session_id(), session_id());

        let active = connection.take_session(&endpoint, first);
        let session = active.session.clone();
        connection.return_session(active);
        let again = connection.take_session(&endpoint, first);
        assert!(Arc::ptr_eq(&again.session, &session));
        connection.return_session(again);
        let other = connection.take_session(&endpoint, second);
        assert_eq!(endpoint.active_sessions.len(), 2);
        connection.return_session(other);
        assert_eq!(endpoint.active_sessions.len(), 1);

        drop(connection);
        assert_eq!(endpoint.active_sessions.len(), 0);
    }

    #[test]
    fn a_closed_session_is_not_reused() {
        let (endpoint, connection) = (endpoint(), connection());
        let session_id = session_id();
        connection.return_session(connection.take_session(&endpoint, session_id));

        endpoint.active_sessions.close(&session_id);
        let active = connection.take_session(&endpoint, session_id);

        assert!(!active.session.is_closed());
    }

    #[test]
    fn an_unknown_connection_keeps_no_session() {
        let (endpoint, connection) = (endpoint(), ConnectionHandle::default());

        connection.return_session(connection.take_session(&endpoint, session_id()));

        assert_eq!(endpoint.active_sessions.len(), 0);
    }
}
