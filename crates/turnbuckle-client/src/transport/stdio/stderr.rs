//! The stderr of a child: read continuously, so that the child does not block; the tail is stored.

use std::{
    collections::VecDeque,
    fmt, mem,
    sync::{Arc, Mutex},
};

use tokio::{io::AsyncReadExt, process::ChildStderr};

use crate::{callbacks, sync::lock};

/// Maximum size of the tail, and of a line before it is split.
const MAX_TAIL_BYTES: usize = 64 * 1024;
/// Size of the read buffer.
const READ_CHUNK_BYTES: usize = 16 * 1024;

/// The tail of stderr.
#[derive(Debug, Default)]
pub(super) struct StderrTail(Mutex<VecDeque<u8>>);

impl StderrTail {
    /// Reads stderr to its end; calls each of `taps` with each line.
    pub(super) async fn read(self: Arc<Self>, mut stderr: ChildStderr, taps: Vec<StderrCallback>) {
        let mut lines = (!taps.is_empty()).then(|| LineSplitter::new(taps));
        let mut chunk = vec![0; READ_CHUNK_BYTES];
        while let Ok(length @ 1..) = stderr.read(&mut chunk).await {
            self.append(&chunk[..length]);
            if let Some(lines) = &mut lines {
                lines.push(&chunk[..length]);
            }
        }
        if let Some(mut lines) = lines {
            lines.finish();
        }
    }

    /// Returns the last 64 KiB; invalid UTF-8 is replaced.
    pub(super) fn text(&self) -> String {
        let tail = lock(&self.0);
        let (front, back) = tail.as_slices();
        String::from_utf8_lossy(&[front, back].concat()).into_owned()
    }

    fn append(&self, bytes: &[u8]) {
        let mut tail = lock(&self.0);
        let excess = (tail.len() + bytes.len()).saturating_sub(MAX_TAIL_BYTES);
        tail.drain(..excess);
        tail.extend(bytes);
    }
}

/// What happens to the stderr of a process.
pub(super) enum StderrOutput {
    /// It is read, and each callback is called with each line.
    Lines(Vec<StderrCallback>),
    /// The caller reads the pipe.
    Piped,
}

/// The callback for lines of stderr.
#[derive(Clone)]
pub(super) struct StderrCallback(Arc<dyn Fn(&str) + Send + Sync>);

impl StderrCallback {
    pub(super) fn new(show: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(show))
    }
}

impl fmt::Debug for StderrCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StderrCallback")
    }
}

/// Splits the output into lines for the callback.
struct LineSplitter {
    taps: Vec<StderrCallback>,
    partial: Vec<u8>,
}

impl LineSplitter {
    fn new(taps: Vec<StderrCallback>) -> Self {
        let partial = Vec::new();
        Self { taps, partial }
    }

    fn push(&mut self, chunk: &[u8]) {
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            self.partial.extend_from_slice(piece);
            if self.partial.ends_with(b"\n") || self.partial.len() >= MAX_TAIL_BYTES {
                self.show();
            }
        }
    }

    fn finish(&mut self) {
        if !self.partial.is_empty() {
            self.show();
        }
    }

    fn show(&mut self) {
        let line = mem::take(&mut self.partial);
        let text = String::from_utf8_lossy(&line);
        let text = text.strip_suffix('\n').unwrap_or(&text);
        let text = text.strip_suffix('\r').unwrap_or(text);
        // A panic must not end the reader: the server blocks if the pipe is full.
        for tap in &self.taps {
            callbacks::notify_observer(|| (tap.0)(text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_tail_is_stored() {
        let tail = StderrTail::default();

        for number in 0..100_000 {
            tail.append(format!("{number}\n").as_bytes());
        }

        assert_eq!(tail.text().len(), MAX_TAIL_BYTES);
        assert!(tail.text().ends_with("99998\n99999\n"));
    }

    #[test]
    fn lines_are_reported_whole() {
        let (tap, shown) = shown();
        let mut lines = LineSplitter::new(vec![tap]);

        for chunk in ["one\r\ntw", "", "o\n\nthr", "ee"] {
            lines.push(chunk.as_bytes());
        }
        lines.push(b"\xff");
        lines.finish();

        assert_eq!(*shown.lock().unwrap(), ["one", "two", "", "three\u{fffd}"]);
    }

    #[test]
    fn an_endless_line_is_split() {
        let (tap, shown) = shown();
        let mut lines = LineSplitter::new(vec![tap]);

        for _ in 0..64 {
            lines.push(&[b'x'; READ_CHUNK_BYTES]);
            assert!(lines.partial.len() < MAX_TAIL_BYTES);
        }

        assert_eq!(
            shown.lock().unwrap().len(),
            64 * READ_CHUNK_BYTES / MAX_TAIL_BYTES
        );
    }

    fn shown() -> (StderrCallback, Arc<Mutex<Vec<String>>>) {
        let shown = Arc::<Mutex<Vec<String>>>::default();
        let seen = shown.clone();
        let tap = StderrCallback::new(move |line| seen.lock().unwrap().push(line.to_owned()));
        (tap, shown)
    }
}
