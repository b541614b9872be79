//! Newline-delimited JSON over stdio or byte streams.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    sync::{Mutex, mpsc},
    time::timeout,
};
use turnbuckle_client::stdio::Process;

use super::{
    WireEvent, channel,
    prewarm::{PrewarmedProcess, StartupTimer},
};
use crate::{
    engine::transcript::{Transcript, TranscriptEntry},
    target::{ByteStreams, ServerTarget, TargetTransport},
};

/// The maximum length of a line.
const MAX_LINE_BYTES: u64 = 64 * 1024 * 1024;

/// The maximum size of a message in several lines.
const MAX_JOINED_LINES: usize = 1000;
const MAX_JOINED_BYTES: usize = 4 * 1024 * 1024;

/// The time limit for a write.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// An ndjson connection.
pub(crate) struct NdjsonConnection {
    channel: usize,
    transcript: Transcript,
    writer: Mutex<Option<Box<dyn AsyncWrite + Send + Unpin>>>,
    inbox: Mutex<mpsc::Receiver<WireEvent>>,
    process: Option<Process>,
    first: Arc<FirstMessage>,
}

/// Records whether a first message was received, and the startup time of the process.
#[derive(Default)]
struct FirstMessage {
    received: AtomicBool,
    startup: Option<StartupTimer>,
}

impl NdjsonConnection {
    /// Opens the streams, or starts the process.
    pub(crate) async fn open(
        target: &ServerTarget,
        transcript: &Transcript,
    ) -> Result<Self, String> {
        let mut first = FirstMessage::default();
        let (streams, process): (ByteStreams, _) = match &target.transport {
            TargetTransport::ServerCommand(prewarmer) => {
                let PrewarmedProcess { started, startup } =
                    prewarmer.start().map_err(|error| error.to_string())?;
                first.startup = Some(startup);
                let streams = (Box::new(started.output) as _, Box::new(started.input) as _);
                (streams, Some(started.process))
            }
            TargetTransport::Streams(open) => {
                (open().await.map_err(|error| error.to_string())?, None)
            }
            TargetTransport::Http(_) => {
                return Err("an HTTP server cannot be reached over ndjson".into());
            }
        };
        let (reader, writer) = streams;
        let (sender, inbox) = mpsc::channel(1024);
        let (channel, first) = (channel(), Arc::new(first));
        tokio::spawn(read(
            reader,
            channel,
            transcript.clone(),
            sender,
            Arc::clone(&first),
        ));
        Ok(Self {
            channel,
            transcript: transcript.clone(),
            writer: Mutex::new(Some(writer)),
            inbox: Mutex::new(inbox),
            process,
            first,
        })
    }

    /// Writes a line; returns its entry.
    pub(crate) async fn write(&self, text: &str, deliberately_invalid: bool) -> io::Result<usize> {
        self.write_bytes(format!("{text}\n").as_bytes(), deliberately_invalid)
            .await
    }

    /// Writes bytes without adding a newline; returns their entry.
    pub(crate) async fn write_bytes(
        &self,
        bytes: &[u8],
        deliberately_invalid: bool,
    ) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let number = self.transcript.push(TranscriptEntry {
            deliberately_invalid,
            ..TranscriptEntry::sent(self.channel, text.trim_end_matches('\n'))
        });
        let mut writer = self.writer.lock().await;
        let Some(open) = writer.as_mut() else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let writing = async {
            open.write_all(bytes).await?;
            open.flush().await
        };
        match timeout(WRITE_TIMEOUT, writing).await {
            Ok(written) => written.map(|()| number),
            Err(_) => {
                // A partial line was written: nothing can follow it.
                *writer = None;
                let why = format!("the server did not read for {WRITE_TIMEOUT:?}");
                Err(io::Error::new(io::ErrorKind::TimedOut, why))
            }
        }
    }

    /// Returns the next event; `None` after the timeout.
    pub(crate) async fn next(&self, response_timeout: Duration) -> Option<WireEvent> {
        let mut inbox = self.inbox.lock().await;
        match timeout(response_timeout, inbox.recv()).await {
            Ok(Some(event)) => Some(event),
            Ok(None) => Some(WireEvent::End(None)),
            Err(_) => None,
        }
    }

    /// Returns whether either direction is closed.
    pub(crate) fn has_ended(&self) -> bool {
        self.inbox.try_lock().is_ok_and(|inbox| inbox.is_closed()) || self.is_input_closed()
    }

    /// Returns whether nothing was received from a process yet.
    pub(crate) fn is_starting(&self) -> bool {
        self.first.startup.is_some() && !self.first.received.load(Ordering::Relaxed)
    }

    /// Returns whether the input of the server was closed.
    pub(crate) fn is_input_closed(&self) -> bool {
        self.writer.try_lock().is_ok_and(|writer| writer.is_none())
    }

    /// Returns the number of the connection.
    pub(crate) fn channel(&self) -> usize {
        self.channel
    }

    /// Closes the input of the server.
    pub(crate) async fn close_input(&self) {
        if let Some(mut writer) = self.writer.lock().await.take() {
            let _ = writer.shutdown().await;
        }
    }

    /// Returns the process, if there is one.
    pub(crate) fn process(&self) -> Option<&Process> {
        self.process.as_ref()
    }
}

impl FirstMessage {
    fn record(&self) {
        if !self.received.swap(true, Ordering::Relaxed)
            && let Some(startup) = &self.startup
        {
            startup.record_first_message();
        }
    }
}

async fn read(
    reader: impl AsyncRead + Send + Unpin,
    channel: usize,
    transcript: Transcript,
    sender: mpsc::Sender<WireEvent>,
    first: Arc<FirstMessage>,
) {
    let mut reader = BufReader::new(reader);
    let mut joiner = LineJoiner::default();
    loop {
        let mut line = Vec::new();
        let end = match (&mut reader)
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut line)
            .await
        {
            Ok(0) => Some(None),
            Ok(_) if transcript.is_full() => Some(Some(Transcript::overflow_message())),
            Ok(_) => None,
            Err(error) => Some(Some(error.to_string())),
        };
        let events = match end {
            Some(why) => {
                let mut events = joiner.give_up();
                events.push(WireEvent::End(why));
                events
            }
            None => {
                first.record();
                let text = String::from_utf8_lossy(&line);
                let text = text.strip_suffix('\n').unwrap_or(&text);
                let entry = TranscriptEntry {
                    invalid_utf8: str::from_utf8(&line).is_err(),
                    ..TranscriptEntry::received(channel, text)
                };
                joiner.add(&transcript, entry)
            }
        };
        for event in events {
            let has_ended = matches!(event, WireEvent::End(_));
            if sender.send(event).await.is_err() || has_ended {
                return;
            }
        }
    }
}

/// Joins the lines of a message that the server wrote as several lines, so that a rule can report it and the others are
/// tested.
#[derive(Default)]
struct LineJoiner {
    /// The entries of the lines so far.
    parts: Vec<usize>,
    text: String,
    depth: JsonDepth,
}

impl LineJoiner {
    /// Records a line; returns the events for the messages that are complete now.
    fn add(&mut self, transcript: &Transcript, entry: TranscriptEntry) -> Vec<WireEvent> {
        let starts = self.parts.is_empty() && entry.text.trim_start().starts_with(['{', '[']);
        let value = entry.json();
        let is_message = value.is_some_and(|value| value.get("jsonrpc").is_some());
        let is_part = if self.parts.is_empty() {
            starts && entry.json().is_none()
        } else {
            !is_message
        };
        let (channel, text) = (entry.channel, entry.text.clone());
        let number = transcript.push(entry);
        if !is_part {
            let mut events = self.give_up();
            events.push(WireEvent::Message(number));
            return events;
        }
        self.parts.push(number);
        self.depth.advance(&text);
        self.text.push_str(&text);
        self.text.push('\n');
        if self.depth.is_closed() {
            let joined = TranscriptEntry::received(channel, self.text.trim_end());
            if joined.json().is_some() {
                let message = transcript.push(joined);
                for part in std::mem::take(self).parts {
                    transcript.update(part, |entry| entry.part_of = Some(message));
                }
                return vec![WireEvent::Message(message)];
            }
            return self.give_up();
        }
        if self.parts.len() == MAX_JOINED_LINES || self.text.len() > MAX_JOINED_BYTES {
            return self.give_up();
        }
        Vec::new()
    }

    /// Returns the lines so far as separate messages.
    fn give_up(&mut self) -> Vec<WireEvent> {
        let parts = std::mem::take(self).parts;
        parts.into_iter().map(WireEvent::Message).collect()
    }
}

/// The nesting depth of JSON text that arrives in lines.
#[derive(Default)]
struct JsonDepth {
    depth: usize,
    is_in_string: bool,
    is_escaped: bool,
}

impl JsonDepth {
    fn advance(&mut self, text: &str) {
        for byte in text.bytes() {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.is_in_string => self.is_escaped = true,
                b'"' => self.is_in_string = !self.is_in_string,
                _ if self.is_in_string => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    fn is_closed(&self) -> bool {
        self.depth == 0 && !self.is_in_string
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the texts of the messages that arrive for these lines.
    fn messages(lines: &[&str]) -> Vec<String> {
        let (transcript, mut joiner) = (Transcript::default(), LineJoiner::default());
        let mut events = Vec::new();
        for line in lines {
            events.extend(joiner.add(&transcript, TranscriptEntry::received(1, *line)));
        }
        events.extend(joiner.give_up());
        let text = |event: WireEvent| match event {
            WireEvent::Message(number) => transcript.entry(number).text,
            other => panic!("{other:?}"),
        };
        events.into_iter().map(text).collect()
    }

    #[test]
    fn message_in_several_lines_arrives_once() {
        let lines = [
            r#"{"id": 1}"#,
            "{",
            r#"  "a": "}\"","#,
            r#"  "b": []"#,
            "}",
            "{}",
        ];

        assert_eq!(
            messages(&lines),
            [
                r#"{"id": 1}"#,
                "{\n  \"a\": \"}\\\"\",\n  \"b\": []\n}",
                "{}"
            ]
        );
    }

    #[test]
    fn line_that_starts_like_json_does_not_swallow_the_next_message() {
        let message = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

        assert_eq!(
            messages(&["{starting", message, "[1"]),
            ["{starting", message, "[1"]
        );
        assert_eq!(messages(&["{a}", "log"]), ["{a}", "log"]);
    }

    #[test]
    fn number_of_joined_lines_is_limited() {
        let lines = vec!["{"; MAX_JOINED_LINES + 1];

        assert_eq!(messages(&lines).len(), lines.len());
    }
}
