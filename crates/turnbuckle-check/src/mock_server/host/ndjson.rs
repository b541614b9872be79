//! Serves ndjson connections of the mock server.

use std::sync::Arc;

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, BufReader, split},
    sync::Mutex,
};

use super::{
    MockHost,
    connection::{MockConnection, SharedWriter},
};
use crate::{engine::transcript::TranscriptEntry, wire};

/// The maximum length of a line.
const MAX_BODY_BYTES: u64 = 16 * 1024 * 1024;

pub(super) async fn serve(
    host: Arc<MockHost>,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) {
    let (reader, writer) = split(stream);
    let line: SharedWriter = Arc::new(Mutex::new(Box::new(writer)));
    let channel = wire::channel();
    let mut reader = BufReader::new(reader);
    let mut continues = false;
    loop {
        let mut bytes = Vec::new();
        let mut bounded = (&mut reader).take(MAX_BODY_BYTES);
        if !matches!(bounded.read_until(b'\n', &mut bytes).await, Ok(1..)) {
            return;
        }
        let was_continued = continues;
        continues = bytes.len() as u64 == MAX_BODY_BYTES && !bytes.ends_with(b"\n");
        let text = String::from_utf8_lossy(&bytes);
        let text = text.strip_suffix('\n').unwrap_or(&text);
        let Some(number) = host.record(TranscriptEntry {
            invalid_utf8: std::str::from_utf8(&bytes).is_err(),
            truncated: continues || was_continued,
            ..TranscriptEntry::received(channel, text)
        }) else {
            return;
        };
        let messages = match serde_json::from_str(text) {
            Ok(Value::Array(messages)) => messages,
            Ok(message) => vec![message],
            Err(_) => continue,
        };
        for message in messages {
            let Some(reply) = host.receive(&message, None) else {
                continue;
            };
            let connection = MockConnection::line(&host.transcript, channel, number, &line);
            let running = host.clone();
            host.spawn(async move { running.run_steps(reply.steps, connection).await });
        }
    }
}
