//! Writes messages to a client: as lines or as stream events.

use std::{fmt::Write as _, io, sync::Arc, time::Duration};

use bytes::Bytes;
use serde_json::Value;
use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    sync::{Mutex, mpsc},
};

use crate::engine::transcript::{SseEventHead, Transcript, TranscriptEntry};

/// Sends messages to a client and records them.
pub(crate) struct MockConnection {
    transcript: Transcript,
    channel: usize,
    /// The entry that is responded to.
    responses: usize,
    /// The prefix and the count of event ids.
    ids: Option<(&'static str, usize)>,
    sink: MockSink,
}

/// A writer that several connections share.
pub(crate) type SharedWriter = Arc<Mutex<Box<dyn AsyncWrite + Send + Unpin>>>;

/// The sender of the chunks of a body.
pub(crate) type BodyChunks = mpsc::Sender<io::Result<Bytes>>;

enum MockSink {
    Ndjson(SharedWriter),
    Sse(BodyChunks),
}

impl MockConnection {
    /// Sends lines.
    pub(crate) fn line(
        transcript: &Transcript,
        channel: usize,
        responses: usize,
        line: &SharedWriter,
    ) -> Self {
        Self::new(
            transcript,
            channel,
            responses,
            MockSink::Ndjson(line.clone()),
        )
    }

    /// Sends stream events.
    pub(crate) fn events(
        transcript: &Transcript,
        channel: usize,
        responses: usize,
        chunks: BodyChunks,
    ) -> Self {
        Self::new(transcript, channel, responses, MockSink::Sse(chunks))
    }

    fn new(transcript: &Transcript, channel: usize, responses: usize, sink: MockSink) -> Self {
        Self {
            transcript: transcript.clone(),
            channel,
            responses,
            ids: None,
            sink,
        }
    }

    /// Sends a message; returns whether the client still reads.
    pub(crate) async fn send(&mut self, message: &Value) -> bool {
        let text = message.to_string();
        let id = self.next_id();
        self.transcript.push(TranscriptEntry {
            response_to: Some(self.responses),
            event: matches!(self.sink, MockSink::Sse(_)).then(|| SseEventHead {
                id: id.clone().unwrap_or_default(),
                name: "message".to_owned(),
            }),
            ..TranscriptEntry::sent(self.channel, text.as_str())
        });
        match &self.sink {
            MockSink::Ndjson(line) => {
                let mut line = line.lock().await;
                let written = line.write_all(format!("{text}\n").as_bytes()).await;
                written.is_ok() && line.flush().await.is_ok()
            }
            MockSink::Sse(_) => self.event(id.as_deref(), &text).await,
        }
    }

    /// Adds ids to the following events, starting with an event without data.
    pub(crate) async fn start_event_ids(&mut self, ids: &'static str) -> bool {
        self.ids = Some((ids, 0));
        match &self.sink {
            MockSink::Ndjson(_) => true,
            MockSink::Sse(_) => {
                let id = self.next_id();
                self.event(id.as_deref(), "").await
            }
        }
    }

    /// Sends the `retry` delay.
    pub(crate) async fn retry(&mut self, pause: Duration) -> bool {
        let text = format!("retry: {}\n\n", pause.as_millis());
        self.chunk(text).await
    }

    /// Sends a comment on an event stream.
    pub(crate) async fn comment(&mut self) -> bool {
        self.chunk(": still here\n\n".to_owned()).await
    }

    /// Interrupts an event stream.
    pub(crate) async fn interrupt(self) {
        if let MockSink::Sse(chunks) = self.sink {
            let _ = chunks
                .send(Err(io::ErrorKind::ConnectionReset.into()))
                .await;
        }
    }

    /// Keeps an event stream open until the client closes it. Returns at once on ndjson, where the
    /// connection is shared.
    pub(crate) async fn keep_open(self) {
        if let MockSink::Sse(chunks) = self.sink {
            chunks.closed().await;
        }
    }

    fn next_id(&mut self) -> Option<String> {
        let (ids, count) = self.ids.as_mut()?;
        *count += 1;
        Some(format!("{ids}-{count}"))
    }

    async fn event(&self, id: Option<&str>, data: &str) -> bool {
        let mut text = String::new();
        if let Some(id) = id {
            let _ = writeln!(text, "id: {id}");
        }
        self.chunk(format!("event: message\n{text}data: {data}\n\n"))
            .await
    }

    async fn chunk(&self, text: String) -> bool {
        match &self.sink {
            MockSink::Ndjson(_) => true,
            MockSink::Sse(chunks) => chunks.send(Ok(text.into())).await.is_ok(),
        }
    }
}
