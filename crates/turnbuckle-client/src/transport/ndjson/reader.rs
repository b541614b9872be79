//! Reads messages from the server.

use std::{pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    select,
    sync::oneshot,
    time::timeout,
};
use turnbuckle_protocol::{
    codec::ndjson::{DecodedLine, LineDecoder as Splitter},
    jsonrpc,
    recording::MessageSide,
};

use crate::{
    error::TransportError,
    inbound::{
        InboundRouter,
        message::{self, InboundMessage},
        observers::{Anomaly, MessageDirection},
        pending_requests::PendingRequests,
        recorder::ConnectionRecorder,
    },
    transport::stdio::Process,
};

/// Size of the read buffer.
const READ_CHUNK_BYTES: usize = 64 * 1024;
/// Maximum time to read the remaining output after writing failed, and to wait for the exit of the process.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

type BoxedReader = Box<dyn AsyncRead + Send + Unpin>;

/// Reads until the stream ends, or writing fails; returns the reason.
pub(super) async fn read(
    stream: BoxedReader,
    failure: oneshot::Receiver<TransportError>,
    inbound: &NdjsonInbound<'_>,
) -> TransportError {
    let failure = async {
        match failure.await {
            Ok(error) => error,
            // The writer was closed regularly: keep reading.
            Err(_) => std::future::pending().await,
        }
    };
    let mut reading = pin!(read_all(stream, inbound));
    select! {
        reason = &mut reading => reason,
        reason = failure => {
            // The server may have sent responses before it exited.
            let _ = timeout(DRAIN_TIMEOUT, reading).await;
            reason
        }
    }
}

/// Replaces the reason by the exit status of the process, if the server closed the connection.
pub(super) async fn with_exit_status(
    reason: TransportError,
    process: Option<Process>,
) -> TransportError {
    match process.filter(|_| reason.is_server_gone()) {
        Some(process) => match timeout(DRAIN_TIMEOUT, process.wait()).await {
            Ok(died) => TransportError::ProcessExited(Arc::new(died)),
            Err(_) => reason,
        },
        None => reason,
    }
}

async fn read_all(mut stream: BoxedReader, inbound: &NdjsonInbound<'_>) -> TransportError {
    let router = inbound.router;
    let mut splitter = Splitter::new(router.limits.max_message_bytes);
    let mut buffer = vec![0; READ_CHUNK_BYTES];
    let mut multiline = MultilineMessage::default();
    let mut first = true;
    loop {
        let mut chunk = match stream.read(&mut buffer).await {
            Ok(0) => break,
            Ok(length) => &buffer[..length],
            Err(error) => return error.into(),
        };
        while let Some(line) = splitter.next(&mut chunk) {
            match line {
                DecodedLine::Message(line) => {
                    let is_message = inbound.dispatch_line(line);
                    if multiline.is_complete_after(line, is_message) {
                        return TransportError::MultilineMessage;
                    }
                }
                // Such a server is not supported; later in the stream it may be printed text.
                DecodedLine::LspHeader if first => return TransportError::LspFraming,
                DecodedLine::LspHeader => router.report_anomaly(Anomaly::LspFraming),
                // The line may have been a response: end the connection, so that no call waits for it.
                DecodedLine::TooLong => {
                    if let Some(recorder) = inbound.recorder {
                        recorder.record_too_large();
                    }
                    let limit = router.limits.max_message_bytes;
                    return TransportError::MessageTooLarge { limit };
                }
            }
            first = false;
        }
    }
    // The last line may lack a line break.
    if let Some(DecodedLine::Message(line)) = splitter.finish() {
        let is_message = inbound.dispatch_line(line);
        if multiline.is_complete_after(line, is_message) {
            return TransportError::MultilineMessage;
        }
    }
    TransportError::Closed
}

/// Where the messages of a connection go.
pub(super) struct NdjsonInbound<'c> {
    pub(super) router: &'c Arc<InboundRouter>,
    pub(super) pending: &'c PendingRequests,
    pub(super) recorder: Option<&'c ConnectionRecorder>,
}

impl NdjsonInbound<'_> {
    /// Passes responses to pending requests, and other messages to the router; returns `false` if the line is not a
    /// message.
    fn dispatch_line(&self, line: &[u8]) -> bool {
        let router = self.router;
        router.trace(MessageDirection::Received, line);
        if let Some(recorder) = self.recorder {
            recorder.record_line(MessageSide::Server, line);
        }
        let message = match line.strip_prefix(b"\xef\xbb\xbf") {
            Some(message) => {
                router.report_anomaly(Anomaly::ByteOrderMark);
                message
            }
            None => line,
        };
        if !matches!(message.trim_ascii_start().first(), Some(b'{' | b'[')) {
            router.report_anomaly(Anomaly::not_json(message));
            return false;
        }
        let bytes = Bytes::copy_from_slice(message);
        let mut is_message = true;
        message::read(&bytes, |received| match received {
            InboundMessage::Malformed { id: None, .. } => {
                router.report_anomaly(Anomaly::not_json(message));
                is_message = false;
            }
            received => self.pending.dispatch(received, router),
        });
        is_message
    }
}

/// Detects a message that was written over several lines, as pretty-printers do.
///
/// Text that a program prints by mistake may also contain brackets. So it counts only if the lines together are a valid
/// message.
#[derive(Debug, Default)]
struct MultilineMessage {
    /// The lines since the one that opened the message.
    text: Vec<u8>,
    /// The number of open brackets.
    depth: usize,
}

impl MultilineMessage {
    /// Maximum length. The first message of a pretty-printing server, its response to the handshake, is shorter.
    const MAX_BYTES: usize = 256 * 1024;

    /// Adds a line; returns whether it completes a message of several lines.
    fn is_complete_after(&mut self, line: &[u8], is_message: bool) -> bool {
        let opens = line.trim_ascii_start().starts_with(b"{");
        if is_message || (self.text.is_empty() && !opens) {
            self.clear();
            return false;
        }
        let fits = self.text.len() + line.len() < Self::MAX_BYTES;
        if !fits || !self.count_brackets(line) {
            self.clear();
            return false;
        }
        let first = self.text.is_empty();
        self.text.extend_from_slice(line);
        self.text.push(b'\n');
        if self.depth > 0 {
            return false;
        }
        let is_complete = !first && jsonrpc::parse(&self.text).is_ok();
        self.clear();
        is_complete
    }

    /// Updates the depth; returns `false` if the line has too many closing brackets, or ends inside a string.
    fn count_brackets(&mut self, line: &[u8]) -> bool {
        let (mut in_string, mut escaped) = (false, false);
        for &byte in line {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if in_string => escaped = true,
                b'"' => in_string = !in_string,
                _ if in_string => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => match self.depth.checked_sub(1) {
                    Some(depth) => self.depth = depth,
                    None => return false,
                },
                _ => {}
            }
        }
        !in_string
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}
