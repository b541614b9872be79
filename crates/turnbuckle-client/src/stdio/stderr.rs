//! A child's standard error: read all the time, so that the child never waits for us, and its end is kept.

use std::{
    collections::VecDeque,
    fmt, mem,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{io::AsyncReadExt, process::ChildStderr};

use crate::callbacks::guard;

/// How much of the end is kept, and how long a line may be before it is shown in pieces.
const KEPT: usize = 64 * 1024;
/// How much is read at once.
const CHUNK: usize = 16 * 1024;

/// The last of what came.
#[derive(Debug, Default)]
pub(super) struct Tail(Mutex<VecDeque<u8>>);

impl Tail {
    /// Reads standard error to its end; `tap` sees each line.
    pub(super) async fn read(self: Arc<Self>, mut stderr: ChildStderr, tap: Option<Tap>) {
        let mut lines = tap.map(Lines::new);
        let mut chunk = vec![0; CHUNK];
        while let Ok(length @ 1..) = stderr.read(&mut chunk).await {
            self.keep(&chunk[..length]);
            if let Some(lines) = &mut lines {
                lines.take(&chunk[..length]);
            }
        }
        if let Some(mut lines) = lines {
            lines.finish();
        }
    }

    /// Returns the last 64 KiB; what is not UTF-8 is replaced.
    pub(super) fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (front, back) = kept.as_slices();
        String::from_utf8_lossy(&[front, back].concat()).into_owned()
    }

    fn keep(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let excess = (kept.len() + bytes.len()).saturating_sub(KEPT);
        kept.drain(..excess);
        kept.extend(bytes);
    }
}

/// Who is shown each line of standard error.
#[derive(Clone)]
pub(super) struct Tap(Arc<dyn Fn(&str) + Send + Sync>);

impl Tap {
    pub(super) fn new(show: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(show))
    }
}

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tap")
    }
}

/// Cuts what comes into lines for the tap.
struct Lines {
    tap: Tap,
    begun: Vec<u8>,
}

impl Lines {
    fn new(tap: Tap) -> Self {
        let begun = Vec::new();
        Self { tap, begun }
    }

    fn take(&mut self, chunk: &[u8]) {
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            self.begun.extend_from_slice(piece);
            if self.begun.ends_with(b"\n") || self.begun.len() >= KEPT {
                self.show();
            }
        }
    }

    fn finish(&mut self) {
        if !self.begun.is_empty() {
            self.show();
        }
    }

    fn show(&mut self) {
        let line = mem::take(&mut self.begun);
        let text = String::from_utf8_lossy(&line);
        let text = text.strip_suffix('\n').unwrap_or(&text);
        let text = text.strip_suffix('\r').unwrap_or(text);
        // Whatever it does: a pipe that nobody empties stops the server.
        guard::tell(|| (self.tap.0)(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_is_kept() {
        let tail = Tail::default();

        for number in 0..100_000 {
            tail.keep(format!("{number}\n").as_bytes());
        }

        assert_eq!(tail.text().len(), KEPT);
        assert!(tail.text().ends_with("99998\n99999\n"));
    }

    #[test]
    fn lines_are_shown_whole_however_they_come() {
        let (tap, shown) = shown();
        let mut lines = Lines::new(tap);

        for chunk in ["one\r\ntw", "", "o\n\nthr", "ee"] {
            lines.take(chunk.as_bytes());
        }
        lines.take(b"\xff");
        lines.finish();

        assert_eq!(*shown.lock().unwrap(), ["one", "two", "", "three\u{fffd}"]);
    }

    #[test]
    fn a_line_without_end_takes_no_more_than_its_share() {
        let (tap, shown) = shown();
        let mut lines = Lines::new(tap);

        for _ in 0..64 {
            lines.take(&[b'x'; CHUNK]);
            assert!(lines.begun.len() < KEPT);
        }

        assert_eq!(shown.lock().unwrap().len(), 64 * CHUNK / KEPT);
    }

    fn shown() -> (Tap, Arc<Mutex<Vec<String>>>) {
        let shown = Arc::<Mutex<Vec<String>>>::default();
        let seen = shown.clone();
        let tap = Tap::new(move |line| seen.lock().unwrap().push(line.to_owned()));
        (tap, shown)
    }
}
