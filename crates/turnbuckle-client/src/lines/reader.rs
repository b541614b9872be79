//! Reads what the server writes: messages, and whatever else comes.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::select;
use tokio::sync::oneshot;
use tokio::time::timeout;
use turnbuckle_protocol::codec::lines::{Line, Lines as Splitter};

use crate::error::TransportError;
use crate::hub::Hub;
use crate::incoming::{self, Received};
use crate::oddity::Oddity;
use crate::stdio::Process;
use crate::traffic::Direction;
use crate::waiting::Waiting;

/// How much is read at once.
const CHUNK: usize = 64 * 1024;
/// How long a server that reads no more may take to say its last, and one that says no more may take to die.
const LAST: Duration = Duration::from_secs(1);

type Stream = Box<dyn AsyncRead + Send + Unpin>;

/// Reads until the stream ends, or until nothing can be written; returns why it ended.
pub(super) async fn read(
    stream: Stream,
    failure: oneshot::Receiver<TransportError>,
    hub: &Arc<Hub>,
    waiting: &Waiting,
) -> TransportError {
    let failure = async {
        match failure.await {
            Ok(error) => error,
            // The writer ended in an orderly way: what is still to be read counts.
            Err(_) => pending().await,
        }
    };
    let mut reading = pin!(read_all(stream, hub, waiting));
    select! {
        reason = &mut reading => reason,
        reason = failure => {
            // It may have answered before it went.
            let _ = timeout(LAST, reading).await;
            reason
        }
    }
}

/// Says why a connection ended in the words of the process at its other end, if that is why.
pub(super) async fn explained(reason: TransportError, process: Option<Process>) -> TransportError {
    match process.filter(|_| reason.is_leaving()) {
        Some(process) => match timeout(LAST, process.died()).await {
            Ok(died) => TransportError::Died(Arc::new(died)),
            Err(_) => reason,
        },
        None => reason,
    }
}

async fn read_all(mut stream: Stream, hub: &Arc<Hub>, waiting: &Waiting) -> TransportError {
    let mut splitter = Splitter::new(hub.limits.message);
    let mut buffer = vec![0; CHUNK];
    let mut first = true;
    loop {
        let mut chunk = match stream.read(&mut buffer).await {
            Ok(0) => break,
            Ok(length) => &buffer[..length],
            Err(error) => return error.into(),
        };
        while let Some(line) = splitter.next(&mut chunk) {
            match line {
                Line::Message(line) => take(line, hub, waiting),
                // Whoever begins so will not be understood; later it may be a stray print.
                Line::LspHeader if first => return TransportError::LspFraming,
                Line::LspHeader => hub.odd(Oddity::LspFraming),
                // It may have been anyone's answer: better an end than a call that waits for nothing.
                Line::TooLong => {
                    let limit = hub.limits.message;
                    return TransportError::TooLarge { limit };
                }
            }
            first = false;
        }
    }
    // A last line may have no end.
    if let Some(Line::Message(line)) = splitter.finish() {
        take(line, hub, waiting);
    }
    TransportError::Closed
}

/// Takes one line: answers go to whoever waits, everything else to the hub.
fn take(line: &[u8], hub: &Arc<Hub>, waiting: &Waiting) {
    hub.tap(Direction::Received, line);
    let message = match line.strip_prefix(b"\xef\xbb\xbf") {
        Some(message) => {
            hub.odd(Oddity::ByteOrderMark);
            message
        }
        None => line,
    };
    if !matches!(message.trim_ascii_start().first(), Some(b'{' | b'[')) {
        return hub.odd(Oddity::noise(message));
    }
    let bytes = Bytes::copy_from_slice(message);
    incoming::read(&bytes, |received| match received {
        Received::Malformed { id: None, .. } => hub.odd(Oddity::noise(message)),
        received => waiting.take(received, hub),
    });
}
