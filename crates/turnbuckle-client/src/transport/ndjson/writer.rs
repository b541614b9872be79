//! Writes messages as lines, several per write.

use std::{pin::pin, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    select,
    sync::{Notify, mpsc, oneshot},
    time::timeout,
};

use crate::error::TransportError;

/// Maximum number of queued messages; senders wait for capacity.
const MAX_QUEUED_MESSAGES: usize = 64;

/// Maximum time to write the queued messages when the connection is closed.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The sending half of a connection.
#[derive(Debug)]
pub(super) struct NdjsonWriter {
    queue: mpsc::Sender<QueuedLine>,
    ending: Arc<Notify>,
}

/// A message, and a channel to report that it was written.
#[derive(Debug)]
struct QueuedLine {
    message: Vec<u8>,
    written: Option<oneshot::Sender<()>>,
}

impl NdjsonWriter {
    /// Starts the writer task; the stream is closed when the last sender is dropped. Also returns the receiver of a
    /// write error.
    pub(super) fn start(
        stream: Box<dyn AsyncWrite + Send + Unpin>,
    ) -> (Self, oneshot::Receiver<TransportError>) {
        let (sender, receiver) = mpsc::channel(MAX_QUEUED_MESSAGES);
        let (failed, failure) = oneshot::channel();
        let ending = Arc::<Notify>::default();
        let ended = Arc::clone(&ending);
        tokio::spawn(async move {
            let mut writing = pin!(write_all(stream, receiver));
            let written = select! {
                biased;
                written = &mut writing => written,
                // A server that does not read must not block the end of the connection.
                () = ended.notified() => timeout(FLUSH_TIMEOUT, writing).await.unwrap_or(Ok(())),
            };
            if let Err(error) = written {
                let _ = failed.send(error.into());
            }
        });
        let queue = sender;
        (Self { queue, ending }, failure)
    }

    /// Writes the queued messages, within a time limit, and closes the stream.
    pub(super) fn end(&self) {
        self.ending.notify_one();
    }

    /// Queues a message; an error means that the stream is closed.
    pub(super) async fn queue(&self, message: Vec<u8>) -> Result<(), TransportError> {
        let line = QueuedLine {
            message,
            written: None,
        };
        self.queue
            .send(line)
            .await
            .map_err(|_| TransportError::Closed)
    }

    /// Queues a message without waiting for capacity.
    pub(super) fn try_queue(&self, message: Vec<u8>) -> bool {
        let line = QueuedLine {
            message,
            written: None,
        };
        self.queue.try_send(line).is_ok()
    }

    /// Writes a message, and waits until it is written.
    pub(super) async fn write(&self, message: Vec<u8>) -> Result<(), TransportError> {
        let (sender, written) = oneshot::channel();
        let line = QueuedLine {
            message,
            written: Some(sender),
        };
        self.queue
            .send(line)
            .await
            .map_err(|_| TransportError::Closed)?;
        written.await.map_err(|_| TransportError::Closed)
    }
}

async fn write_all(
    mut stream: Box<dyn AsyncWrite + Send + Unpin>,
    mut queue: mpsc::Receiver<QueuedLine>,
) -> std::io::Result<()> {
    let mut buffer = Vec::new();
    let mut written = Vec::new();
    while let Some(line) = queue.recv().await {
        let mut next = Some(line);
        // All queued messages are written at once, up to a limit.
        while let Some(line) = next {
            buffer.extend_from_slice(&line.message);
            buffer.push(b'\n');
            written.extend(line.written);
            next = (buffer.len() < 64 * 1024)
                .then(|| queue.try_recv().ok())
                .flatten();
        }
        stream.write_all(&buffer).await?;
        stream.flush().await?;
        buffer.clear();
        buffer.shrink_to(64 * 1024);
        for sender in written.drain(..) {
            let _: Result<(), ()> = sender.send(());
        }
    }
    stream.shutdown().await
}
