//! One connection that all requests share.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use turnbuckle_protocol::RequestId;
use turnbuckle_protocol::codec::lines::{Line, Lines as Splitter};
use turnbuckle_protocol::jsonrpc::write_notification;
use turnbuckle_protocol::method;
use turnbuckle_protocol::types::CancelledParams;

use super::Lines;
use super::writer::Writer;
use crate::answer::Answer;
use crate::error::TransportError;
use crate::hub::Hub;
use crate::incoming;
use crate::oddity::Oddity;
use crate::traffic::Direction;
use crate::transport::Outgoing;
use crate::waiting::Waiting;

/// A connection of lines.
#[derive(Debug)]
pub(crate) struct Connection {
    writer: Mutex<Option<Arc<Writer>>>,
    waiting: Arc<Waiting>,
    reading: JoinHandle<()>,
}

impl Connection {
    /// Begins to read and write.
    pub(crate) fn start(lines: Lines, hub: &Arc<Hub>) -> Self {
        let waiting = Arc::new(Waiting::default());
        let (writer, failure) = Writer::start(lines.writer);
        let reading = tokio::spawn(read(
            lines.reader,
            failure,
            Arc::clone(hub),
            Arc::clone(&waiting),
        ));
        Self {
            writer: Mutex::new(Some(Arc::new(writer))),
            waiting,
            reading,
        }
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn request(
        &self,
        outgoing: Outgoing,
        hub: &Arc<Hub>,
    ) -> Result<Answer, TransportError> {
        let writer = self.writer()?;
        let answer = self.waiting.open(outgoing.id.clone())?;
        let mut cancel = CancelOnDrop {
            connection: self,
            hub,
            id: Some(outgoing.id),
            cancellable: outgoing.rules.cancellable(outgoing.method),
        };
        hub.tap(Direction::Sent, &outgoing.body);
        if let Err(error) = writer.queue(outgoing.body).await {
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
        drop(self.take_writer());
    }

    /// Closes our side; the server is to end its own.
    pub(crate) async fn close(&self) {
        self.end(TransportError::ClosedByUs);
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

/// Reads until the stream ends, and then tells everyone who waits.
async fn read(
    mut stream: Box<dyn AsyncRead + Send + Unpin>,
    failure: oneshot::Receiver<TransportError>,
    hub: Arc<Hub>,
    waiting: Arc<Waiting>,
) {
    let mut splitter = Splitter::new(hub.limits.message);
    let mut buffer = vec![0; 64 * 1024];
    let mut failure = std::pin::pin!(async {
        match failure.await {
            Ok(error) => error,
            // The writer ended in an orderly way: what is still to be read counts.
            Err(_) => std::future::pending().await,
        }
    });
    let reason = loop {
        let read = tokio::select! {
            read = stream.read(&mut buffer) => read,
            error = &mut failure => break error,
        };
        let mut chunk = match read {
            Ok(0) => break finish(&mut splitter, &hub, &waiting),
            Ok(length) => &buffer[..length],
            Err(error) => break error.into(),
        };
        if let Err(error) = take_lines(&mut splitter, &mut chunk, &hub, &waiting) {
            break error;
        }
    };
    waiting.end(reason);
}

/// Takes what stands after the last line end.
fn finish(splitter: &mut Splitter, hub: &Arc<Hub>, waiting: &Waiting) -> TransportError {
    if let Some(Line::Message(line)) = splitter.finish() {
        take(line, hub, waiting);
    }
    TransportError::Closed
}

fn take_lines(
    splitter: &mut Splitter,
    chunk: &mut &[u8],
    hub: &Arc<Hub>,
    waiting: &Waiting,
) -> Result<(), TransportError> {
    while let Some(line) = splitter.next(chunk) {
        match line {
            Line::Message(line) => take(line, hub, waiting),
            Line::LspHeader => hub.odd(Oddity::LspFraming),
            // It may have been anyone's answer: better an end than a call that waits for nothing.
            Line::TooLong => {
                let limit = hub.limits.message;
                return Err(TransportError::TooLarge { limit });
            }
        }
    }
    Ok(())
}

/// Takes one line: answers go to whoever waits, everything else to the hub.
fn take(line: &[u8], hub: &Arc<Hub>, waiting: &Waiting) {
    hub.tap(Direction::Received, line);
    if !matches!(line.trim_ascii_start().first(), Some(b'{' | b'[')) {
        return hub.odd(Oddity::noise(line));
    }
    let bytes = Bytes::copy_from_slice(line);
    incoming::read(&bytes, |received| waiting.take(received, hub));
}
