//! Plays a server on a line.

use std::sync::Arc;

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, BufReader, split},
    sync::Mutex,
};

use super::Stage;
use super::voice::{Line, Voice};
use crate::tape::Entry;
use crate::wire;

/// The longest line that is read.
const LONGEST: u64 = 16 * 1024 * 1024;

pub(super) async fn serve(
    stage: Arc<Stage>,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) {
    let (reader, writer) = split(stream);
    let line: Line = Arc::new(Mutex::new(Box::new(writer)));
    let channel = wire::channel();
    let mut reader = BufReader::new(reader);
    let mut goes_on = false;
    loop {
        let mut bytes = Vec::new();
        let mut bounded = (&mut reader).take(LONGEST);
        if !matches!(bounded.read_until(b'\n', &mut bytes).await, Ok(1..)) {
            return;
        }
        let went_on = goes_on;
        goes_on = bytes.len() as u64 == LONGEST && !bytes.ends_with(b"\n");
        let text = String::from_utf8_lossy(&bytes);
        let text = text.strip_suffix('\n').unwrap_or(&text);
        let Some(number) = stage.take_down(Entry {
            garbled: std::str::from_utf8(&bytes).is_err(),
            cut: goes_on || went_on,
            ..Entry::received(channel, text)
        }) else {
            return;
        };
        let messages = match serde_json::from_str(text) {
            Ok(Value::Array(messages)) => messages,
            Ok(message) => vec![message],
            Err(_) => continue,
        };
        for message in messages {
            let Some(reply) = stage.hear(&message, None) else {
                continue;
            };
            let voice = Voice::line(&stage.tape, channel, number, &line);
            let performing = stage.clone();
            stage.spawn(async move { performing.perform(reply.cues, voice).await });
        }
    }
}
