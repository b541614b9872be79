//! The bounded queue between a relay and the thread that writes the recording.

use std::{
    collections::HashMap,
    io::{self, BufWriter, Write},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use turnbuckle_protocol::recording::{EntryKind, GapEntry, RecordingHeader, RecordingWriter};

use super::streams::{RecordedStream, StreamDecoder};
use crate::lock;

/// The maximum number of queued items.
const MAX_QUEUED_ITEMS: usize = 16 * 1024;
/// The maximum size of queued copies.
const MAX_QUEUED_BYTES: usize = 64 * 1024 * 1024;
/// The time that the thread has at the end to write what is queued.
const FINISH_TIMEOUT: Duration = Duration::from_secs(5);
/// The time after which written lines are visible to readers of the file.
const FLUSH_INTERVAL: Duration = Duration::from_millis(50);

/// Receives copies of traffic. Never blocks; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct RecordingSink(Arc<SinkState>);

#[derive(Debug)]
struct SinkState {
    /// `None` once the recording is finished.
    sender: Mutex<Option<SyncSender<QueuedItem>>>,
    queued: Arc<AtomicUsize>,
    /// The items that did not fit since the last one that did.
    dropped: Arc<AtomicU64>,
    /// The streams with an end that did not fit.
    ended: Arc<Mutex<Vec<u64>>>,
    started_at: Instant,
    finished: Mutex<Option<Receiver<io::Result<()>>>>,
    streams: AtomicU64,
}

#[derive(Debug)]
struct QueuedItem {
    t: u64,
    conn: u64,
    /// How many items before this one did not fit.
    dropped: u64,
    content: QueuedContent,
}

#[derive(Debug)]
enum QueuedContent {
    Entry(Box<EntryKind>),
    OpenStream(u64, RecordedStream),
    Chunk(u64, Vec<u8>),
    EndStream(u64),
}

impl QueuedContent {
    fn size(&self) -> usize {
        match self {
            Self::Chunk(_, bytes) => bytes.len(),
            Self::Entry(_) | Self::OpenStream(..) | Self::EndStream(_) => 0,
        }
    }
}

impl RecordingSink {
    /// Starts the thread that writes the recording.
    pub(crate) fn start(
        output: impl Write + Send + 'static,
        header: RecordingHeader,
        writer: RecordingWriter,
    ) -> io::Result<Self> {
        let (sender, items) = sync_channel(MAX_QUEUED_ITEMS);
        let (done, finished) = sync_channel(1);
        let (queued, dropped, ended) = (Arc::default(), Arc::default(), Arc::default());
        let mut recording = RecordingThread {
            output: BufWriter::new(output),
            writer,
            decoders: HashMap::new(),
            line: Vec::new(),
            queued: Arc::clone(&queued),
            dropped: Arc::clone(&dropped),
            ended: Arc::clone(&ended),
        };
        thread::Builder::new()
            .name("recording".to_owned())
            .spawn(move || {
                let written = recording.run(header, &items);
                let _ = done.send(written);
            })?;
        Ok(Self(Arc::new(SinkState {
            sender: Mutex::new(Some(sender)),
            queued,
            dropped,
            ended,
            started_at: Instant::now(),
            finished: Mutex::new(Some(finished)),
            streams: AtomicU64::new(0),
        })))
    }

    /// Records an entry of a connection.
    pub(crate) fn entry(&self, conn: u64, kind: EntryKind) {
        self.queue(conn, QueuedContent::Entry(Box::new(kind)));
    }

    /// Begins a stream of bytes, which become entries later.
    pub(crate) fn stream(&self, conn: u64, stream: RecordedStream) -> StreamSink {
        let number = self.0.streams.fetch_add(1, Ordering::Relaxed);
        self.queue(conn, QueuedContent::OpenStream(number, stream));
        StreamSink {
            sink: self.clone(),
            conn,
            number,
        }
    }

    /// Waits until everything is written, but not longer than a few seconds. Returns the error of the first write that
    /// failed.
    pub(crate) fn finish(&self) -> io::Result<()> {
        drop(lock(&self.0.sender).take());
        let Some(finished) = lock(&self.0.finished).take() else {
            return Ok(());
        };
        let written = finished.recv_timeout(FINISH_TIMEOUT);
        written.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    fn queue(&self, conn: u64, content: QueuedContent) {
        let state = &self.0;
        let size = content.size();
        let ended = match &content {
            QueuedContent::EndStream(number) => Some(*number),
            _ => None,
        };
        let is_room = state.queued.fetch_add(size, Ordering::Relaxed) + size <= MAX_QUEUED_BYTES;
        let item = QueuedItem {
            t: state
                .started_at
                .elapsed()
                .as_micros()
                .try_into()
                .unwrap_or(u64::MAX),
            conn,
            dropped: state.dropped.swap(0, Ordering::Relaxed),
            content,
        };
        let dropped = item.dropped;
        let sender = lock(&state.sender);
        let is_queued = is_room
            && sender
                .as_ref()
                .is_some_and(|sender| sender.try_send(item).is_ok());
        if !is_queued {
            // Before the drop is counted, so that the thread sees both.
            lock(&state.ended).extend(ended);
            state.queued.fetch_sub(size, Ordering::Relaxed);
            state.dropped.fetch_add(dropped + 1, Ordering::Relaxed);
        }
    }
}

/// A stream of bytes of a recording. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct StreamSink {
    sink: RecordingSink,
    conn: u64,
    number: u64,
}

impl StreamSink {
    /// Records a copy of some bytes.
    pub(crate) fn write(&self, bytes: &[u8]) {
        let content = QueuedContent::Chunk(self.number, bytes.to_vec());
        self.sink.queue(self.conn, content);
    }
}

impl Drop for StreamSink {
    fn drop(&mut self) {
        let content = QueuedContent::EndStream(self.number);
        self.sink.queue(self.conn, content);
    }
}

/// The thread that writes the recording.
struct RecordingThread<W: Write> {
    output: BufWriter<W>,
    writer: RecordingWriter,
    decoders: HashMap<u64, StreamDecoder>,
    line: Vec<u8>,
    queued: Arc<AtomicUsize>,
    dropped: Arc<AtomicU64>,
    ended: Arc<Mutex<Vec<u64>>>,
}

impl<W: Write> RecordingThread<W> {
    /// Writes until the queue ends. After an error, items are only discarded.
    fn run(&mut self, header: RecordingHeader, items: &Receiver<QueuedItem>) -> io::Result<()> {
        self.writer.write_header(&mut self.line, header);
        let mut written = self.write_lines().and_then(|()| self.output.flush());
        let mut last_t = 0;
        let mut is_flushed = true;
        loop {
            let item = match items.recv_timeout(FLUSH_INTERVAL) {
                Ok(item) => item,
                Err(RecvTimeoutError::Timeout) => {
                    if !is_flushed && written.is_ok() {
                        written = self.output.flush();
                    }
                    is_flushed = true;
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            };
            last_t = item.t;
            self.queued
                .fetch_sub(item.content.size(), Ordering::Relaxed);
            if written.is_ok() {
                self.add(item);
                written = self.write_lines();
                is_flushed = false;
            }
        }
        self.write_gap(last_t, self.dropped.swap(0, Ordering::Relaxed));
        self.writer.finish(&mut self.line, last_t);
        written?;
        self.write_lines()?;
        self.output.flush()
    }

    fn add(&mut self, item: QueuedItem) {
        let QueuedItem {
            t,
            conn,
            dropped,
            content,
        } = item;
        if dropped > 0 {
            self.write_gap(t, dropped);
            // It is not known which streams the dropped items belonged to.
            self.decoders.values_mut().for_each(StreamDecoder::skip);
            for number in lock(&self.ended).drain(..) {
                self.decoders.remove(&number);
            }
        }
        let (writer, line) = (&mut self.writer, &mut self.line);
        let mut write = |kind| writer.write(line, t, conn, kind);
        match content {
            QueuedContent::Entry(kind) => write(*kind),
            QueuedContent::OpenStream(number, stream) => {
                self.decoders.insert(number, StreamDecoder::new(stream));
            }
            QueuedContent::Chunk(number, bytes) => {
                if let Some(decoder) = self.decoders.get_mut(&number) {
                    decoder.read(&bytes, &mut write);
                }
            }
            QueuedContent::EndStream(number) => {
                if let Some(decoder) = self.decoders.remove(&number) {
                    decoder.finish(&mut write);
                }
            }
        }
    }

    fn write_gap(&mut self, t: u64, dropped: u64) {
        if dropped > 0 {
            let gap = EntryKind::Gap(GapEntry::new(dropped, "queue"));
            self.writer.write(&mut self.line, t, 0, gap);
        }
    }

    fn write_lines(&mut self) -> io::Result<()> {
        self.output.write_all(&self.line)?;
        self.line.clear();
        self.line.shrink_to(64 * 1024);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use turnbuckle_protocol::recording::{MessageSide, Recording};

    use super::*;

    /// Blocks each write until the test allows it, as a full disk may.
    struct BlockedDisk {
        allowed: mpsc::Receiver<()>,
        written: mpsc::Sender<Vec<u8>>,
    }

    impl Write for BlockedDisk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Fails once the test allows everything.
            let _ = self.allowed.recv();
            let _ = self.written.send(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_blocked_disk_does_not_block_the_relay_and_leaves_a_gap() {
        let (allow, allowed) = mpsc::channel();
        let (written, bytes) = mpsc::channel();
        let disk = BlockedDisk { allowed, written };
        let sink = RecordingSink::start(
            disk,
            RecordingHeader::new("", ""),
            RecordingWriter::default(),
        )
        .unwrap();
        let stream = sink.stream(1, RecordedStream::Messages(MessageSide::Server));

        // Returns only because nothing waits for the disk.
        let total = MAX_QUEUED_ITEMS as u64 + 1000;
        for _ in 0..total {
            stream.write(b"half a line\nhalf");
        }
        drop(allow);
        drop(stream);
        sink.finish().unwrap();

        let file: Vec<u8> = bytes.try_iter().flatten().collect();
        let recording = Recording::from_slice(&file);
        assert_eq!(recording.errors, []);
        let gaps = recording
            .entries
            .iter()
            .filter_map(|entry| match &entry.kind {
                EntryKind::Gap(gap) => Some(gap.dropped),
                _ => None,
            });
        assert!(gaps.sum::<u64>() >= 900, "{:?}", recording.entries.last());
    }

    #[test]
    fn a_recorded_stream_is_released_even_if_its_end_was_dropped() {
        let mut thread = RecordingThread {
            output: BufWriter::new(Vec::new()),
            writer: RecordingWriter::default(),
            decoders: HashMap::new(),
            line: Vec::new(),
            queued: Arc::default(),
            dropped: Arc::default(),
            ended: Arc::default(),
        };
        let (sender, _items) = sync_channel(0);
        // No item fits, because nothing receives.
        let sink = RecordingSink(Arc::new(SinkState {
            sender: Mutex::new(Some(sender)),
            queued: Arc::default(),
            dropped: Arc::default(),
            ended: Arc::clone(&thread.ended),
            started_at: Instant::now(),
            finished: Mutex::new(None),
            streams: AtomicU64::new(0),
        }));
        let stream = RecordedStream::Messages(MessageSide::Server);
        let item = |dropped, content| QueuedItem {
            t: 0,
            conn: 1,
            dropped,
            content,
        };
        let opened = sink.stream(1, stream);
        let other = opened.number + 1;
        thread.add(item(0, QueuedContent::OpenStream(opened.number, stream)));

        drop(opened);
        thread.add(item(2, QueuedContent::OpenStream(other, stream)));

        assert!(thread.decoders.keys().eq([&other]));
    }

    #[test]
    fn a_failed_write_is_reported_at_the_end() {
        struct BrokenDisk;
        impl Write for BrokenDisk {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let header = RecordingHeader::new("", "");
        let sink = RecordingSink::start(BrokenDisk, header, RecordingWriter::default()).unwrap();

        sink.entry(1, EntryKind::Gap(GapEntry::new(1, "entry")));

        assert_eq!(
            sink.finish().unwrap_err().kind(),
            io::ErrorKind::StorageFull
        );
    }
}
