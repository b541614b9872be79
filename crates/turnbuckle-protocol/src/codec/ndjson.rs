//! Newline-delimited JSON: splits a stream of chunks into lines.

#[cfg(test)]
mod tests;

/// Splits chunks of bytes into lines.
///
/// A line within one chunk is borrowed from it; only a line that spans chunks is copied. Lines end with `
/// ` or `\r
/// `; blank lines are skipped.
///
/// ```
/// use turnbuckle_protocol::codec::ndjson::{DecodedLine, LineDecoder};
///
/// let mut lines = LineDecoder::new(1024);
/// let mut chunk = &b"{\"id\":1}\r\n\n{\"id\""[..];
/// assert_eq!(lines.next(&mut chunk), Some(DecodedLine::Message(b"{\"id\":1}")));
/// assert_eq!(lines.next(&mut chunk), None);
///
/// let mut chunk = &b":2}"[..];
/// assert_eq!(lines.next(&mut chunk), None);
/// assert_eq!(lines.finish(), Some(DecodedLine::Message(b"{\"id\":2}")));
/// ```
#[derive(Debug)]
pub struct LineDecoder {
    limit: usize,
    /// The start of an incomplete line, or the line returned last.
    buffer: Vec<u8>,
    state: LineState,
}

#[derive(Debug, PartialEq)]
enum LineState {
    /// Bytes in `buffer` belong to the line being read.
    Reading,
    /// `buffer` was returned as a whole line; clear it first.
    Returned,
    /// The line is too long; skip up to its end.
    Skipping,
}

/// A decoded line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodedLine<'a> {
    /// The text of a line, without its end.
    Message(&'a [u8]),
    /// A line above the limit. Returned once, as soon as the limit is exceeded; the line is skipped.
    TooLong,
    /// A `Content-Length` header: the peer frames messages like the Language Server Protocol.
    LspHeader,
}

/// The maximum buffer capacity to retain for the next line.
const MAX_RETAINED_BYTES: usize = 64 * 1024;

impl LineDecoder {
    /// Creates a decoder for lines of at most `limit` bytes, not counting line ends.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            buffer: Vec::new(),
            state: LineState::Reading,
        }
    }

    /// Removes the next line from the front of `chunk`. Returns `None` once the chunk is used up.
    ///
    /// Not an `Iterator`, because its items borrow from both the chunk and the decoder.
    pub fn next<'l, 'c: 'l>(&'l mut self, chunk: &mut &'c [u8]) -> Option<DecodedLine<'l>> {
        if self.state == LineState::Returned {
            self.restart();
        }
        while let Some(end) = memchr::memchr(b'\n', chunk) {
            let (head, tail) = (&chunk[..end], &chunk[end + 1..]);
            *chunk = tail;
            match self.state {
                LineState::Skipping => self.restart(),
                _ if self.buffer.is_empty() => {
                    if let Some(line) = self.classify(head) {
                        return Some(line);
                    }
                }
                _ if self.overflows(head) => {
                    self.restart();
                    return Some(DecodedLine::TooLong);
                }
                _ => {
                    self.buffer.extend_from_slice(head);
                    if self.classify(&self.buffer).is_some() {
                        self.state = LineState::Returned;
                        return self.classify(&self.buffer);
                    }
                    self.restart();
                }
            }
        }
        self.buffer_head(std::mem::take(chunk))
    }

    /// Returns the last line if the input did not end with a line end.
    pub fn finish(&mut self) -> Option<DecodedLine<'_>> {
        match std::mem::replace(&mut self.state, LineState::Returned) {
            LineState::Reading => self.classify(&self.buffer),
            LineState::Returned | LineState::Skipping => None,
        }
    }

    /// Buffers the start of a line, unless it exceeds the limit.
    fn buffer_head(&mut self, head: &[u8]) -> Option<DecodedLine<'static>> {
        if self.state == LineState::Skipping {
            return None;
        }
        if self.overflows(head) {
            self.restart();
            self.state = LineState::Skipping;
            return Some(DecodedLine::TooLong);
        }
        self.buffer.extend_from_slice(head);
        None
    }

    /// Returns whether the line would exceed the limit even if its last byte belongs to the line end.
    fn overflows(&self, head: &[u8]) -> bool {
        let last = head.last().or(self.buffer.last());
        let length = self.buffer.len() + head.len();
        length - usize::from(last == Some(&b'\r')) > self.limit
    }

    fn classify<'l>(&self, line: &'l [u8]) -> Option<DecodedLine<'l>> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() > self.limit {
            return Some(DecodedLine::TooLong);
        }
        if line.iter().all(|byte| matches!(byte, b' ' | b'\t')) {
            return None;
        }
        if is_lsp_header(line) {
            return Some(DecodedLine::LspHeader);
        }
        Some(DecodedLine::Message(line))
    }

    fn restart(&mut self) {
        self.buffer.clear();
        self.buffer.shrink_to(MAX_RETAINED_BYTES);
        self.state = LineState::Reading;
    }
}

fn is_lsp_header(line: &[u8]) -> bool {
    const NAME: &[u8] = b"Content-Length:";
    line.get(..NAME.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(NAME))
}
