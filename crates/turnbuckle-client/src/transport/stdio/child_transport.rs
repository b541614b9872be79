//! The connection to a child process, which is restarted if it exits.

use std::sync::{Arc, Mutex};

use crate::{
    error::TransportError,
    inbound::{InboundRouter, message::RawResponse},
    sync::lock,
    transport::{
        OutgoingRequest,
        ndjson::{self, NdjsonConnection},
        stdio::{Process, ServerCommand, SpawnError},
    },
};

/// A connected child process.
///
/// In the stateless lifecycle, a server that exited is started again by the next request. Pending requests are not
/// repeated, because they may have taken effect. A server that exits before it has sent a valid message is not
/// restarted, to avoid a restart loop.
#[derive(Debug)]
pub(crate) struct ChildTransport {
    command: ServerCommand,
    state: Mutex<ChildState>,
}

#[derive(Debug)]
struct ChildState {
    connection: Arc<NdjsonConnection>,
    closed: bool,
}

impl ChildState {
    fn can_reconnect(&self) -> bool {
        !self.closed && self.connection.is_server_gone()
    }
}

impl ChildTransport {
    pub(crate) fn start(
        command: ServerCommand,
        router: &Arc<InboundRouter>,
    ) -> Result<Self, SpawnError> {
        let connection = connect(&command, router)?;
        let closed = false;
        Ok(Self {
            command,
            state: Mutex::new(ChildState { connection, closed }),
        })
    }

    pub(crate) async fn send_request(
        &self,
        outgoing: &OutgoingRequest<'_>,
        body: Vec<u8>,
        router: &Arc<InboundRouter>,
    ) -> Result<RawResponse, TransportError> {
        if !outgoing.rules.session {
            self.respawn(router);
        }
        self.connection().send_request(outgoing, body, router).await
    }

    pub(crate) async fn send(
        &self,
        message: Vec<u8>,
        router: &Arc<InboundRouter>,
    ) -> Result<(), TransportError> {
        self.connection().send(message, router).await
    }

    pub(crate) fn cancel_listen_requests(&self, router: &InboundRouter) {
        self.connection().cancel_listen_requests(router);
    }

    pub(crate) async fn close(&self) {
        lock(&self.state).closed = true;
        self.connection().close().await;
    }

    pub(crate) fn process(&self) -> Option<Process> {
        self.connection().process().cloned()
    }

    /// Returns whether the server exited and the next request would restart it.
    pub(crate) fn can_reconnect(&self) -> bool {
        lock(&self.state).can_reconnect()
    }

    /// Returns the reason why the connection has ended, if it has.
    pub(crate) fn ended(&self) -> Option<TransportError> {
        self.connection().ended()
    }

    /// Restarts the server if it exited.
    fn respawn(&self, router: &Arc<InboundRouter>) {
        let mut state = lock(&self.state);
        if !state.can_reconnect() {
            return;
        }
        match connect(&self.command, router) {
            Ok(connection) => {
                tracing::warn!(command = ?self.command, "restarted a server that exited");
                state.connection = connection;
                router.invalidate_output_schemas();
                router.notify_gap();
            }
            // The request reports that the process exited.
            Err(error) => tracing::warn!(%error, "a server that exited could not be restarted"),
        }
    }

    fn connection(&self) -> Arc<NdjsonConnection> {
        Arc::clone(&lock(&self.state).connection)
    }
}

fn connect(
    command: &ServerCommand,
    router: &Arc<InboundRouter>,
) -> Result<Arc<NdjsonConnection>, SpawnError> {
    let recorder = router.recorder();
    let recorder = recorder.map(|recorder| recorder.open(command.open_entry()));
    let started = command.start_recorded(recorder.as_ref())?;
    let streams = ndjson::NdjsonClient::from_process(started, recorder);
    Ok(Arc::new(NdjsonConnection::start(streams, router)))
}
