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
        self.inbox.try_lock().is_ok_and(|inbox| inbox.is_closed())
            || self.writer.try_lock().is_ok_and(|writer| writer.is_none())
    }

    /// Returns the additional time for the first response of a process that is starting.
    pub(crate) fn startup_allowance(&self) -> Duration {
        match &self.first.startup {
            Some(startup) if !self.first.received.load(Ordering::Relaxed) => 4 * startup.slowest(),
            _ => Duration::ZERO,
        }
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
        let event = match end {
            Some(why) => WireEvent::End(why),
            None => {
                first.record();
                let text = String::from_utf8_lossy(&line);
                let text = text.strip_suffix('\n').unwrap_or(&text);
                WireEvent::Message(transcript.push(TranscriptEntry {
                    invalid_utf8: str::from_utf8(&line).is_err(),
                    ..TranscriptEntry::received(channel, text)
                }))
            }
        };
        let ended = matches!(event, WireEvent::End(_));
        if sender.send(event).await.is_err() || ended {
            return;
        }
    }
}
