//! A line for each message.

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
    Said, channel,
    starter::{Ready, Warming},
};
use crate::tape::{Entry, Tape};
use crate::target::{Reach, Streams, Target};

/// The longest line that is read.
const LONGEST: u64 = 64 * 1024 * 1024;

/// How long the other side may take to read what was written.
const READING: Duration = Duration::from_secs(10);

/// A connection on which each message is a line.
pub(crate) struct Line {
    channel: usize,
    tape: Tape,
    writer: Mutex<Option<Box<dyn AsyncWrite + Send + Unpin>>>,
    inbox: Mutex<mpsc::Receiver<Said>>,
    process: Option<Process>,
    first: Arc<First>,
}

/// Whether the other side has said something, and how long it took if it had to be started.
#[derive(Default)]
struct First {
    said: AtomicBool,
    warming: Option<Warming>,
}

impl Line {
    /// Opens a connection, or starts the process.
    pub(crate) async fn open(target: &Target, tape: &Tape) -> Result<Self, String> {
        let mut first = First::default();
        let (streams, process): (Streams, _) = match &target.way {
            Reach::Child(starter) => {
                let Ready { started, warming } =
                    starter.start().map_err(|error| error.to_string())?;
                first.warming = Some(warming);
                let streams = (Box::new(started.output) as _, Box::new(started.input) as _);
                (streams, Some(started.process))
            }
            Reach::Streams(open) => (open().await.map_err(|error| error.to_string())?, None),
            Reach::Http(_) => return Err("a server at a URL is not spoken to by lines".into()),
        };
        let (reader, writer) = streams;
        let (sender, inbox) = mpsc::channel(1024);
        let (channel, first) = (channel(), Arc::new(first));
        tokio::spawn(read(
            reader,
            channel,
            tape.clone(),
            sender,
            Arc::clone(&first),
        ));
        Ok(Self {
            channel,
            tape: tape.clone(),
            writer: Mutex::new(Some(writer)),
            inbox: Mutex::new(inbox),
            process,
            first,
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
        let Some(open) = writer.as_mut() else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let writing = async {
            open.write_all(bytes).await?;
            open.flush().await
        };
        match timeout(READING, writing).await {
            Ok(written) => written.map(|()| number),
            Err(_) => {
                // What was written so far cannot be taken back: nothing can follow it.
                *writer = None;
                let why = format!("nothing was read for {READING:?}");
                Err(io::Error::new(io::ErrorKind::TimedOut, why))
            }
        }
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

    /// Says whether nothing more can come, or nothing more can be said.
    pub(crate) fn has_ended(&self) -> bool {
        self.inbox.try_lock().is_ok_and(|inbox| inbox.is_closed())
            || self.writer.try_lock().is_ok_and(|writer| writer.is_none())
    }

    /// Returns how much longer than any other the first answer may take: the server may have to start first.
    pub(crate) fn warming(&self) -> Duration {
        match &self.first.warming {
            Some(warming) if !self.first.said.load(Ordering::Relaxed) => 4 * warming.slowest(),
            _ => Duration::ZERO,
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

impl First {
    fn note(&self) {
        if !self.said.swap(true, Ordering::Relaxed)
            && let Some(warming) = &self.warming
        {
            warming.spoke();
        }
    }
}

async fn read(
    reader: impl AsyncRead + Send + Unpin,
    channel: usize,
    tape: Tape,
    sender: mpsc::Sender<Said>,
    first: Arc<First>,
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
            Ok(_) if tape.is_full() => Some(Some(Tape::too_much())),
            Ok(_) => None,
            Err(error) => Some(Some(error.to_string())),
        };
        let said = match end {
            Some(why) => Said::End(why),
            None => {
                first.note();
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
