//! Newline-delimited JSON: finds the lines in a stream of chunks.

#[cfg(test)]
mod tests;

/// Splits chunks of bytes into lines.
///
/// A line that lies within one chunk is borrowed from it; only a line that spans chunks is copied. Line
/// ends are `\n` or `\r\n`; blank lines are passed over.
///
/// ```
/// use turnbuckle_protocol::codec::lines::{Line, Lines};
///
/// let mut lines = Lines::new(1024);
/// let mut chunk = &b"{\"id\":1}\r\n\n{\"id\""[..];
/// assert_eq!(lines.next(&mut chunk), Some(Line::Message(b"{\"id\":1}")));
/// assert_eq!(lines.next(&mut chunk), None);
///
/// let mut chunk = &b":2}"[..];
/// assert_eq!(lines.next(&mut chunk), None);
/// assert_eq!(lines.finish(), Some(Line::Message(b"{\"id\":2}")));
/// ```
#[derive(Debug)]
pub struct Lines {
    limit: usize,
    /// The beginning of a line whose end has not come yet, or the line handed out last.
    begun: Vec<u8>,
    state: State,
}

#[derive(Debug, PartialEq)]
enum State {
    /// Bytes in `begun` belong to the line being read.
    Reading,
    /// `begun` was handed out as a whole line and is to be cleared.
    Spent,
    /// The line is too long; what follows up to its end is dropped.
    Skipping,
}

/// What a line turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// The text of a line, without its end.
    Message(&'a [u8]),
    /// A line beyond the limit; said once, as soon as it is known, and the line is dropped.
    TooLong,
    /// A `Content-Length` header: the peer frames its messages as language servers do.
    LspHeader,
}

/// How much memory is kept for the next line.
const KEPT: usize = 64 * 1024;

impl Lines {
    /// Reads lines of at most `limit` bytes, not counting their ends.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            begun: Vec::new(),
            state: State::Reading,
        }
    }

    /// Takes the next line off the front of `chunk`; `None` once the chunk is used up.
    ///
    /// An iterator in all but name: its items borrow from both the chunk and the splitter.
    pub fn next<'l, 'c: 'l>(&'l mut self, chunk: &mut &'c [u8]) -> Option<Line<'l>> {
        if self.state == State::Spent {
            self.restart();
        }
        while let Some(end) = memchr::memchr(b'\n', chunk) {
            let (head, tail) = (&chunk[..end], &chunk[end + 1..]);
            *chunk = tail;
            match self.state {
                State::Skipping => self.restart(),
                _ if self.begun.is_empty() => {
                    if let Some(line) = self.judge(head) {
                        return Some(line);
                    }
                }
                _ if self.overflows(head) => {
                    self.restart();
                    return Some(Line::TooLong);
                }
                _ => {
                    self.begun.extend_from_slice(head);
                    if self.judge(&self.begun).is_some() {
                        self.state = State::Spent;
                        return self.judge(&self.begun);
                    }
                    self.restart();
                }
            }
        }
        self.keep(std::mem::take(chunk))
    }

    /// Returns what the input ended with, if it did not end with a line end.
    pub fn finish(&mut self) -> Option<Line<'_>> {
        match std::mem::replace(&mut self.state, State::Spent) {
            State::Reading => self.judge(&self.begun),
            State::Spent | State::Skipping => None,
        }
    }

    /// Stores the beginning of a line, unless that is already too much.
    fn keep(&mut self, head: &[u8]) -> Option<Line<'static>> {
        if self.state == State::Skipping {
            return None;
        }
        if self.overflows(head) {
            self.restart();
            self.state = State::Skipping;
            return Some(Line::TooLong);
        }
        self.begun.extend_from_slice(head);
        None
    }

    /// Says whether the line would exceed the limit even if its last byte belongs to the line end.
    fn overflows(&self, head: &[u8]) -> bool {
        let last = head.last().or(self.begun.last());
        let length = self.begun.len() + head.len();
        length - usize::from(last == Some(&b'\r')) > self.limit
    }

    fn judge<'l>(&self, line: &'l [u8]) -> Option<Line<'l>> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() > self.limit {
            return Some(Line::TooLong);
        }
        if line.iter().all(|byte| matches!(byte, b' ' | b'\t')) {
            return None;
        }
        if is_lsp_header(line) {
            return Some(Line::LspHeader);
        }
        Some(Line::Message(line))
    }

    fn restart(&mut self) {
        self.begun.clear();
        self.begun.shrink_to(KEPT);
        self.state = State::Reading;
    }
}

fn is_lsp_header(line: &[u8]) -> bool {
    const NAME: &[u8] = b"Content-Length:";
    line.get(..NAME.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(NAME))
}
