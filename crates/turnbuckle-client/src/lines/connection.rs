//! One connection that all requests share.

use std::mem::take;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinHandle;
use turnbuckle_protocol::RequestId;
use turnbuckle_protocol::jsonrpc::write_notification;
use turnbuckle_protocol::method;
use turnbuckle_protocol::types::CancelledParams;

use super::writer::Writer;
use super::{Lines, reader};
use crate::answer::Answer;
use crate::error::TransportError;
use crate::hub::Hub;
use crate::stdio::Process;
use crate::traffic::Direction;
use crate::transport::Outgoing;
use crate::waiting::Waiting;

/// A connection of lines.
#[derive(Debug)]
pub(crate) struct Connection {
    writer: Mutex<Option<Arc<Writer>>>,
    waiting: Arc<Waiting>,
    reading: JoinHandle<()>,
    /// Who is at the other end, if it is a child of ours.
    process: Option<Process>,
}

impl Connection {
    /// Begins to read and write.
    pub(crate) fn start(lines: Lines, hub: &Arc<Hub>) -> Self {
        let waiting = Arc::new(Waiting::default());
        let (writer, failure) = Writer::start(lines.writer);
        let (hub, everyone) = (Arc::clone(hub), Arc::clone(&waiting));
        let process = lines.process.clone();
        let reading = tokio::spawn(async move {
            let ended = reader::read(lines.reader, failure, &hub, &everyone).await;
            let reason = reader::explained(ended, process).await;
            everyone.end(reason.clone());
            hub.end(reason);
        });
        Self {
            writer: Mutex::new(Some(Arc::new(writer))),
            waiting,
            reading,
            process: lines.process,
        }
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn request(
        &self,
        outgoing: &mut Outgoing,
        hub: &Arc<Hub>,
    ) -> Result<Answer, TransportError> {
        let writer = self.writer()?;
        let mut answer = self.waiting.open(outgoing.id.clone())?;
        let mut cancel = CancelOnDrop {
            connection: self,
            hub,
            id: Some(outgoing.id.clone()),
            cancellable: outgoing.rules.cancellable(outgoing.method),
        };
        hub.tap(Direction::Sent, &outgoing.body);
        let queued = tokio::select! {
            biased;
            queued = writer.queue(take(&mut outgoing.body)) => queued,
            // There may never be room, but there may be an end.
            ended = &mut answer => {
                cancel.id = None;
                return ended.unwrap_or(Err(TransportError::Closed));
            }
        };
        if let Err(error) = queued {
            // Why the stream closed is known to whoever reads.
            return Err(self.waiting.ended().unwrap_or(error));
        }
        let answer = answer.await;
        cancel.id = None;
        answer.unwrap_or(Err(TransportError::Closed))
    }

    /// Sends a message that nobody answers.
    pub(crate) async fn send(
        &self,
        message: Vec<u8>,
        hub: &Arc<Hub>,
    ) -> Result<(), TransportError> {
        hub.tap(Direction::Sent, &message);
        self.writer()?.write(message).await
    }

    /// Ends every call that waits, and closes the stream.
    pub(crate) fn end(&self, reason: TransportError) {
        self.waiting.end(reason);
        if let Some(writer) = self.take_writer() {
            writer.end();
        }
    }

    /// Closes our side; the server is to end its own. A child of ours is waited for, and made to if need be.
    pub(crate) async fn close(&self) {
        self.end(TransportError::ClosedByUs);
        if let Some(process) = &self.process {
            process.end().await;
        }
    }

    /// Says whether the server left after it had said something sensible.
    pub(crate) fn was_left(&self) -> bool {
        let left = self.waiting.ended().is_some_and(|ended| ended.is_leaving());
        left && self.waiting.has_heard()
    }

    /// Returns the child of ours that is at the other end.
    pub(crate) fn process(&self) -> Option<&Process> {
        self.process.as_ref()
    }

    fn writer(&self) -> Result<Arc<Writer>, TransportError> {
        if let Some(ended) = self.waiting.ended() {
            return Err(ended);
        }
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.clone().ok_or(TransportError::ClosedByUs)
    }

    fn take_writer(&self) -> Option<Arc<Writer>> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.take()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.reading.abort();
        if let Some(writer) = self.take_writer() {
            writer.end();
        }
        if let Some(process) = &self.process {
            process.let_go();
        }
    }
}

/// Tells the server that nobody waits any more.
struct CancelOnDrop<'c> {
    connection: &'c Connection,
    hub: &'c Hub,
    id: Option<RequestId>,
    cancellable: bool,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else {
            return;
        };
        if !self.connection.waiting.give_up(&id) || !self.cancellable {
            return;
        }
        let mut message = Vec::new();
        let params = CancelledParams::new(id);
        if write_notification(&mut message, method::CANCELLED.name, &params).is_err() {
            return;
        }
        let Ok(writer) = self.connection.writer() else {
            return;
        };
        self.hub.tap(Direction::Sent, &message);
        if !writer.try_queue(message.clone()) {
            // The queue is full: wait for room where waiting is possible.
            tokio::spawn(async move { writer.queue(message).await });
        }
    }
}
