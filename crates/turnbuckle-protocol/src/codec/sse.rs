//! Server-sent events, encoded and decoded as in the HTML standard.

use std::time::Duration;

/// An event to write; a field that is `None` is omitted.
///
/// ```
/// use turnbuckle_protocol::codec::sse::SseEvent;
///
/// let mut out = Vec::new();
/// SseEvent::message(b"{}").with_id("7").write(&mut out);
/// assert_eq!(out, b"id: 7\ndata: {}\n\n");
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct SseEvent<'a> {
    /// The id, which the client may send as `Last-Event-ID` later.
    pub id: Option<&'a str>,
    /// The event type; the default is `message`.
    pub name: Option<&'a str>,
    /// The reconnection delay in milliseconds.
    pub retry: Option<u64>,
    /// The data; the receiver gets every line end in it as `
    /// `.
    pub data: Option<&'a [u8]>,
}

impl<'a> SseEvent<'a> {
    /// Creates an event that carries a message.
    pub fn message(data: &'a [u8]) -> Self {
        Self {
            data: Some(data),
            ..Self::default()
        }
    }

    /// Sets the id.
    #[must_use]
    pub fn with_id(mut self, id: &'a str) -> Self {
        self.id = Some(id);
        self
    }

    /// Sets the type.
    #[must_use]
    pub fn with_name(mut self, name: &'a str) -> Self {
        self.name = Some(name);
        self
    }

    /// Sets the reconnection delay in milliseconds.
    #[must_use]
    pub fn with_retry(mut self, milliseconds: u64) -> Self {
        self.retry = Some(milliseconds);
        self
    }

    /// Appends the event and the blank line that ends it.
    ///
    /// An empty `out` is allocated with the exact capacity of a one-line event, so that it converts to `Bytes`
    /// without reallocation.
    pub fn write(&self, out: &mut Vec<u8>) {
        let retry = self.retry.map(|retry| retry.to_string());
        let retry = retry.as_deref();
        out.reserve(self.length(retry));
        if let Some(name) = self.name {
            write_field(out, "event", name);
        }
        if let Some(id) = self.id {
            write_field(out, "id", id);
        }
        if let Some(retry) = retry {
            write_field(out, "retry", retry);
        }
        if let Some(data) = self.data {
            write_lines(out, b"data: ", data);
        }
        out.push(b'\n');
    }

    /// Returns the encoded length if no field has more than one line.
    fn length(&self, retry: Option<&str>) -> usize {
        let field = |name: &str, value: Option<usize>| {
            value.map_or(0, |value| name.len() + value + ": \n".len())
        };
        field("event", self.name.map(str::len))
            + field("id", self.id.map(str::len))
            + field("retry", retry.map(str::len))
            + field("data", self.data.map(<[u8]>::len))
            + "\n".len()
    }
}

/// Appends a comment. Receivers ignore it; it keeps proxies from closing the connection.
pub fn write_comment(out: &mut Vec<u8>, text: &str) {
    write_lines(out, b": ", text.as_bytes());
    out.push(b'\n');
}

/// Writes a one-line field without characters that would end it or invalidate an id.
fn write_field(out: &mut Vec<u8>, name: &str, value: &str) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    let is_allowed = |byte: &u8| !matches!(byte, b'\r' | b'\n' | 0);
    if value.as_bytes().iter().all(is_allowed) {
        out.extend_from_slice(value.as_bytes());
    } else {
        out.extend(value.bytes().filter(is_allowed));
    }
    out.push(b'\n');
}

/// Writes every line of `text` after `prefix`; `\r
/// `, `\r` and `
/// ` end a line.
fn write_lines(out: &mut Vec<u8>, prefix: &[u8], text: &[u8]) {
    let mut rest = text;
    loop {
        let end = memchr::memchr2(b'\r', b'\n', rest);
        out.extend_from_slice(prefix);
        out.extend_from_slice(&rest[..end.unwrap_or(rest.len())]);
        out.push(b'\n');
        let Some(end) = end else {
            return;
        };
        let length = 1 + usize::from(rest[end..].starts_with(b"\r\n"));
        rest = &rest[end + length..];
    }
}

/// The maximum length of an id: longer ones do not fit into a header.
const MAX_ID_BYTES: usize = 8 * 1024;

/// Decodes events from chunks of bytes, split anywhere.
///
/// Follows the algorithm of the HTML standard: an unfinished event at the end of the stream is discarded. Invalid
/// UTF-8 becomes U+FFFD.
///
/// ```
/// use turnbuckle_protocol::codec::sse::{SseDecoder, SseLimits};
///
/// let mut decoder = SseDecoder::new(SseLimits::default());
/// let mut chunk = &b"id: 7\ndata: {}\n\ndata: unfinished"[..];
/// let event = decoder.next(&mut chunk).unwrap().unwrap();
/// assert_eq!((event.name.as_str(), event.data.as_str()), ("message", "{}"));
/// assert_eq!(decoder.next(&mut chunk), Ok(None));
/// assert_eq!(decoder.last_event_id(), "7");
/// ```
#[derive(Debug)]
pub struct SseDecoder {
    limits: SseLimits,
    /// The start of an incomplete line.
    line: Vec<u8>,
    /// Set if the last line ended with a carriage return; a line feed would belong to it.
    after_carriage_return: bool,
    /// Set until the first line has ended, because it may start with a byte order mark.
    at_start: bool,
    /// Set while the rest of a line or event is skipped because it is too large.
    dropping_line: bool,
    dropping_event: bool,
    data: String,
    name: String,
    id: String,
    last_event_id: String,
    retry: Option<Duration>,
}

/// Size limits of a stream, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseLimits {
    /// The maximum length of a line, including comments.
    pub line: usize,
    /// The maximum data of one event.
    pub event: usize,
}

impl Default for SseLimits {
    /// 4 MiB for an event and slightly more for its lines.
    fn default() -> Self {
        Self {
            line: 4 * 1024 * 1024 + 64,
            event: 4 * 1024 * 1024,
        }
    }
}

/// A decoded event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedEvent {
    /// The event type; the default is `message`.
    pub name: String,
    /// The data, lines joined by `
    /// `.
    pub data: String,
    /// The last event id of the stream when the event was complete.
    pub last_event_id: String,
}

/// An event exceeded the limits. It is skipped; decoding can continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stream has an event or a line that is too large")]
pub struct EventTooLarge;

impl SseDecoder {
    /// Creates a decoder for a new stream.
    pub fn new(limits: SseLimits) -> Self {
        Self {
            limits,
            line: Vec::new(),
            after_carriage_return: false,
            at_start: true,
            dropping_line: false,
            dropping_event: false,
            data: String::new(),
            name: String::new(),
            id: String::new(),
            last_event_id: String::new(),
            retry: None,
        }
    }

    /// Returns the id to send as `Last-Event-ID`; it persists over events without an id.
    pub fn last_event_id(&self) -> &str {
        &self.last_event_id
    }

    /// Returns the reconnection delay that the stream requested.
    ///
    /// The peer can choose any value: limit it before use.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Removes the next event from the front of `chunk`. Returns `None` once the chunk is used up.
    ///
    /// After an error, call it again with the same chunk.
    pub fn next(&mut self, chunk: &mut &[u8]) -> Result<Option<ParsedEvent>, EventTooLarge> {
        loop {
            if std::mem::take(&mut self.after_carriage_return) {
                if chunk.is_empty() {
                    self.after_carriage_return = true;
                    return Ok(None);
                }
                *chunk = chunk.strip_prefix(b"\n").unwrap_or(chunk);
            }
            let Some(end) = memchr::memchr2(b'\r', b'\n', chunk) else {
                self.buffer_head(std::mem::take(chunk))?;
                return Ok(None);
            };
            let head = &chunk[..end];
            self.after_carriage_return = chunk[end] == b'\r';
            *chunk = &chunk[end + 1..];
            if let Some(event) = self.end_line(head)? {
                return Ok(Some(event));
            }
        }
    }

    /// Buffers the start of a line, unless it exceeds the limit.
    fn buffer_head(&mut self, head: &[u8]) -> Result<(), EventTooLarge> {
        if self.dropping_line {
            return Ok(());
        }
        if self.line.len() + head.len() > self.limits.line {
            self.line = Vec::new();
            self.dropping_line = true;
            return self.drop_event();
        }
        self.line.extend_from_slice(head);
        Ok(())
    }

    fn end_line(&mut self, head: &[u8]) -> Result<Option<ParsedEvent>, EventTooLarge> {
        if self.line.is_empty() && !self.dropping_line && head.len() <= self.limits.line {
            return self.read_line(head);
        }
        let buffered = self.buffer_head(head);
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.dropping_line) {
            self.at_start = false;
            return buffered.map(|()| None);
        }
        self.read_line(&line)
    }

    fn read_line(&mut self, line: &[u8]) -> Result<Option<ParsedEvent>, EventTooLarge> {
        let line = if std::mem::take(&mut self.at_start) {
            line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
        } else {
            line
        };
        if line.is_empty() {
            return Ok(self.dispatch());
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => self.read_data(value)?,
            b"event" => self.name = text(value),
            // An oversized id cannot be sent in a header, and resuming from the previous one would repeat events.
            b"id" if value.len() > MAX_ID_BYTES => self.id = String::new(),
            b"id" if !value.contains(&0) => self.id = text(value),
            b"retry" => self.read_retry(value),
            _ => {}
        }
        Ok(None)
    }

    fn read_data(&mut self, value: &[u8]) -> Result<(), EventTooLarge> {
        if self.dropping_event {
            return Ok(());
        }
        let value = String::from_utf8_lossy(value);
        if self.data.len() + value.len() > self.limits.event {
            return self.drop_event();
        }
        self.data.push_str(&value);
        self.data.push('\n');
        Ok(())
    }

    fn read_retry(&mut self, value: &[u8]) {
        if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
            return;
        }
        let milliseconds = text(value).parse().unwrap_or(u64::MAX);
        self.retry = Some(Duration::from_millis(milliseconds));
    }

    /// Completes the event. Without data it is not delivered, but its id counts.
    fn dispatch(&mut self) -> Option<ParsedEvent> {
        self.last_event_id.clone_from(&self.id);
        let name = std::mem::take(&mut self.name);
        let mut data = std::mem::take(&mut self.data);
        if std::mem::take(&mut self.dropping_event) {
            return None;
        }
        data.pop()?;
        Some(ParsedEvent {
            name: if name.is_empty() {
                "message".to_owned()
            } else {
                name
            },
            data,
            last_event_id: self.last_event_id.clone(),
        })
    }

    /// Skips the current event; only the first error is reported.
    fn drop_event(&mut self) -> Result<(), EventTooLarge> {
        self.data = String::new();
        if std::mem::replace(&mut self.dropping_event, true) {
            Ok(())
        } else {
            Err(EventTooLarge)
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests;
