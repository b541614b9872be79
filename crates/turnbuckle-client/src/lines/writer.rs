//! Writes messages as lines, as many at a time as are there.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::select;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::timeout;

use crate::error::TransportError;

/// How many messages may wait to be written; whoever sends more waits.
const QUEUED: usize = 64;

/// How long a server may take to read what was queued before the end.
const LAST: Duration = Duration::from_secs(1);

/// The sending end of a connection.
#[derive(Debug)]
pub(super) struct Writer {
    queue: mpsc::Sender<Line>,
    ending: Arc<Notify>,
}

/// A message, and whom to tell once it is written.
#[derive(Debug)]
struct Line {
    message: Vec<u8>,
    written: Option<oneshot::Sender<()>>,
}

impl Writer {
    /// Starts to write; the stream is closed when the last sender is gone. Returns why writing stopped, too.
    pub(super) fn start(
        stream: Box<dyn AsyncWrite + Send + Unpin>,
    ) -> (Self, oneshot::Receiver<TransportError>) {
        let (sender, receiver) = mpsc::channel(QUEUED);
        let (failed, failure) = oneshot::channel();
        let ending = Arc::<Notify>::default();
        let ended = Arc::clone(&ending);
        tokio::spawn(async move {
            let mut writing = pin!(write_all(stream, receiver));
            let written = select! {
                biased;
                written = &mut writing => written,
                // A server that reads no more must not hold the stream for ever.
                () = ended.notified() => timeout(LAST, writing).await.unwrap_or(Ok(())),
            };
            if let Err(error) = written {
                let _ = failed.send(error.into());
            }
        });
        let queue = sender;
        (Self { queue, ending }, failure)
    }

    /// Writes what is queued, as far as the server still reads it, and closes the stream.
    pub(super) fn end(&self) {
        self.ending.notify_one();
    }

    /// Queues a message; an error means that the stream is closed.
    pub(super) async fn queue(&self, message: Vec<u8>) -> Result<(), TransportError> {
        let line = Line {
            message,
            written: None,
        };
        self.queue
            .send(line)
            .await
            .map_err(|_| TransportError::Closed)
    }

    /// Queues a message without waiting for room; from where nobody can wait.
    pub(super) fn try_queue(&self, message: Vec<u8>) -> bool {
        let line = Line {
            message,
            written: None,
        };
        self.queue.try_send(line).is_ok()
    }

    /// Writes a message and waits until it is out.
    pub(super) async fn write(&self, message: Vec<u8>) -> Result<(), TransportError> {
        let (sender, written) = oneshot::channel();
        let line = Line {
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
    mut queue: mpsc::Receiver<Line>,
) -> std::io::Result<()> {
    let mut buffer = Vec::new();
    let mut told = Vec::new();
    while let Some(line) = queue.recv().await {
        let mut next = Some(line);
        // Whatever is there goes out in one write, but not without bound.
        while let Some(line) = next {
            buffer.extend_from_slice(&line.message);
            buffer.push(b'\n');
            told.extend(line.written);
            next = (buffer.len() < 64 * 1024)
                .then(|| queue.try_recv().ok())
                .flatten();
        }
        stream.write_all(&buffer).await?;
        stream.flush().await?;
        buffer.clear();
        buffer.shrink_to(64 * 1024);
        for sender in told.drain(..) {
            let _: Result<(), ()> = sender.send(());
        }
    }
    stream.shutdown().await
}
