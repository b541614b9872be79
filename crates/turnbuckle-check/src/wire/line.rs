//! A line for each message.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    sync::{Mutex, mpsc},
    time::timeout,
};
use turnbuckle_client::stdio::Process;

use super::{Said, channel};
use crate::tape::{Entry, Tape};
use crate::target::{Reach, Streams, Target};

/// The longest line that is read.
const LONGEST: u64 = 64 * 1024 * 1024;

/// A connection on which each message is a line.
pub(crate) struct Line {
    channel: usize,
    tape: Tape,
    writer: Mutex<Option<Box<dyn AsyncWrite + Send + Unpin>>>,
    inbox: Mutex<mpsc::Receiver<Said>>,
    process: Option<Process>,
}

impl Line {
    /// Opens a connection, or starts the process.
    pub(crate) async fn open(target: &Target, tape: &Tape) -> Result<Self, String> {
        let (streams, process): (Streams, _) = match &target.way {
            Reach::Child(child) => {
                let started = child.start().map_err(|error| error.to_string())?;
                let streams = (Box::new(started.output) as _, Box::new(started.input) as _);
                (streams, Some(started.process))
            }
            Reach::Streams(open) => (open().await.map_err(|error| error.to_string())?, None),
            Reach::Http(_) => return Err("a server at a URL is not spoken to by lines".into()),
        };
        let (reader, writer) = streams;
        let (sender, inbox) = mpsc::channel(1024);
        let channel = channel();
        tokio::spawn(read(reader, channel, tape.clone(), sender));
        Ok(Self {
            channel,
            tape: tape.clone(),
            writer: Mutex::new(Some(writer)),
            inbox: Mutex::new(inbox),
            process,
        })
    }

    /// Writes a line; returns its entry on the tape.
    pub(crate) async fn write(&self, text: &str, deliberate: bool) -> io::Result<usize> {
        self.write_bytes(format!("{text}\n").as_bytes(), deliberate)
            .await
    }

    /// Writes bytes as they are, line end or not; returns their entry on the tape.
    pub(crate) async fn write_bytes(&self, bytes: &[u8], deliberate: bool) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let number = self.tape.push(Entry {
            deliberate,
            ..Entry::sent(self.channel, text.trim_end_matches('\n'))
        });
        let mut writer = self.writer.lock().await;
        let Some(writer) = writer.as_mut() else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        writer.write_all(bytes).await?;
        writer.flush().await?;
        Ok(number)
    }

    /// Returns what is said next; `None` if nothing is for so long.
    pub(crate) async fn next(&self, patience: Duration) -> Option<Said> {
        let mut inbox = self.inbox.lock().await;
        match timeout(patience, inbox.recv()).await {
            Ok(Some(said)) => Some(said),
            Ok(None) => Some(Said::End(None)),
            Err(_) => None,
        }
    }

    /// Says that we will write nothing more.
    pub(crate) async fn close_input(&self) {
        if let Some(mut writer) = self.writer.lock().await.take() {
            let _ = writer.shutdown().await;
        }
    }

    /// Returns the process at the other end.
    pub(crate) fn process(&self) -> Option<&Process> {
        self.process.as_ref()
    }
}

async fn read(
    reader: impl AsyncRead + Send + Unpin,
    channel: usize,
    tape: Tape,
    sender: mpsc::Sender<Said>,
) {
    let mut reader = BufReader::new(reader);
    loop {
        let mut line = Vec::new();
        let end = match (&mut reader)
            .take(LONGEST)
            .read_until(b'\n', &mut line)
            .await
        {
            Ok(0) => Some(None),
            Ok(_) => None,
            Err(error) => Some(Some(error.to_string())),
        };
        let said = match end {
            Some(why) => Said::End(why),
            None => {
                let text = String::from_utf8_lossy(&line);
                let text = text.strip_suffix('\n').unwrap_or(&text);
                Said::Message(tape.push(Entry {
                    garbled: str::from_utf8(&line).is_err(),
                    ..Entry::received(channel, text)
                }))
            }
        };
        let ended = matches!(said, Said::End(_));
        if sender.send(said).await.is_err() || ended {
            return;
        }
    }
}
