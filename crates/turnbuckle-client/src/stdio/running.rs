//! The connection to a child process, and to the one that takes its place.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Child, Process, SpawnError};
use crate::{
    answer::Answer, error::TransportError, hub::Hub, lines, lines::Connection, transport::Outgoing,
};

/// A server as a child process, connected.
///
/// Where every request stands on its own, a server that died is started again by the next request. What it was asked
/// before stays lost: nobody knows how much of it was done. One that dies before it has said anything sensible stays
/// dead, so that nothing is started in a circle.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    connection: Arc<Connection>,
    closed: bool,
}

impl State {
    fn comes_back(&self) -> bool {
        !self.closed && self.connection.was_left()
    }
}

impl Running {
    pub(crate) fn start(child: Child, hub: &Arc<Hub>) -> Result<Self, SpawnError> {
        let connection = connect(&child, hub)?;
        let closed = false;
        Ok(Self {
            child,
            state: Mutex::new(State { connection, closed }),
        })
    }

    pub(crate) async fn request(
        &self,
        outgoing: &mut Outgoing,
        hub: &Arc<Hub>,
    ) -> Result<Answer, TransportError> {
        if !outgoing.rules.session {
            self.revive(hub);
        }
        self.connection().request(outgoing, hub).await
    }

    pub(crate) async fn send(
        &self,
        message: Vec<u8>,
        hub: &Arc<Hub>,
    ) -> Result<(), TransportError> {
        self.connection().send(message, hub).await
    }

    pub(crate) async fn close(&self) {
        self.lock().closed = true;
        self.connection().close().await;
    }

    pub(crate) fn process(&self) -> Option<Process> {
        self.connection().process().cloned()
    }

    /// Says whether it died, and the next request would start it again.
    pub(crate) fn comes_back(&self) -> bool {
        self.lock().comes_back()
    }

    /// Starts the server again if it died.
    fn revive(&self, hub: &Arc<Hub>) {
        let mut state = self.lock();
        if !state.comes_back() {
            return;
        }
        match connect(&self.child, hub) {
            Ok(connection) => {
                tracing::warn!(child = ?self.child, "started a server again that died");
                state.connection = connection;
                hub.void_promises();
                hub.gap();
            }
            // Then its death is still what there is to tell.
            Err(error) => tracing::warn!(%error, "a server that died cannot be started again"),
        }
    }

    fn connection(&self) -> Arc<Connection> {
        Arc::clone(&self.lock().connection)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn connect(child: &Child, hub: &Arc<Hub>) -> Result<Arc<Connection>, SpawnError> {
    let lines = lines::Lines::of(child.start()?);
    Ok(Arc::new(Connection::start(lines, hub)))
}
