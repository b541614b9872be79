//! The reading side.

use std::time::Duration;

/// The longest id that is kept: none that is longer fits into a header, and each event repeats it.
const MAX_ID: usize = 8 * 1024;

/// Reads events from chunks of bytes, cut anywhere.
///
/// Follows the algorithm of the HTML standard; an event that is unfinished at the end of the stream is
/// thus never seen. Bytes that are not UTF-8 become U+FFFD.
///
/// ```
/// use turnbuckle_protocol::codec::sse::{Decoder, Limits};
///
/// let mut decoder = Decoder::new(Limits::default());
/// let mut chunk = &b"id: 7\ndata: {}\n\ndata: unfinished"[..];
/// let event = decoder.next(&mut chunk).unwrap().unwrap();
/// assert_eq!((event.name.as_str(), event.data.as_str()), ("message", "{}"));
/// assert_eq!(decoder.next(&mut chunk), Ok(None));
/// assert_eq!(decoder.last_event_id(), "7");
/// ```
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    /// The beginning of a line whose end has not come yet.
    line: Vec<u8>,
    /// The last line ended with a carriage return, so a line feed would belong to it.
    after_carriage_return: bool,
    /// No line has ended yet: it may begin with a byte order mark.
    at_start: bool,
    /// The rest of the line, or of the event, is dropped because it is too large.
    dropping_line: bool,
    dropping_event: bool,
    data: String,
    name: String,
    id: String,
    last_event_id: String,
    retry: Option<Duration>,
}

/// How large a stream's parts may be, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest line, comments included.
    pub line: usize,
    /// The most data of one event.
    pub event: usize,
}

impl Default for Limits {
    /// Allows 4 MiB for an event and a little more for its lines.
    fn default() -> Self {
        Self {
            line: 4 * 1024 * 1024 + 64,
            event: 4 * 1024 * 1024,
        }
    }
}

/// An event that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The type, `message` unless the stream said otherwise.
    pub name: String,
    /// The content, lines joined by `\n`.
    pub data: String,
    /// The last id that the stream had named when the event was complete.
    pub last_event_id: String,
}

/// An event exceeded the limits; it is dropped and reading can go on with the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stream has an event or a line that is too large")]
pub struct TooLarge;

impl Decoder {
    /// Starts at the beginning of a stream.
    pub fn new(limits: Limits) -> Self {
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

    /// Returns the id to send as `Last-Event-ID`; it outlives events that have none.
    pub fn last_event_id(&self) -> &str {
        &self.last_event_id
    }

    /// Returns how long the stream asked to wait before connecting again.
    ///
    /// The peer chooses it freely, from nothing to ages: bound it before use.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Takes the next event off the front of `chunk`; `None` once the chunk is used up.
    ///
    /// After an error the same chunk may be read on.
    pub fn next(&mut self, chunk: &mut &[u8]) -> Result<Option<Received>, TooLarge> {
        loop {
            if std::mem::take(&mut self.after_carriage_return) {
                if chunk.is_empty() {
                    self.after_carriage_return = true;
                    return Ok(None);
                }
                *chunk = chunk.strip_prefix(b"\n").unwrap_or(chunk);
            }
            let Some(end) = memchr::memchr2(b'\r', b'\n', chunk) else {
                self.keep(std::mem::take(chunk))?;
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

    /// Stores the beginning of a line, unless that is already too much.
    fn keep(&mut self, head: &[u8]) -> Result<(), TooLarge> {
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

    fn end_line(&mut self, head: &[u8]) -> Result<Option<Received>, TooLarge> {
        if self.line.is_empty() && !self.dropping_line && head.len() <= self.limits.line {
            return self.read_line(head);
        }
        let kept = self.keep(head);
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.dropping_line) {
            self.at_start = false;
            return kept.map(|()| None);
        }
        self.read_line(&line)
    }

    fn read_line(&mut self, line: &[u8]) -> Result<Option<Received>, TooLarge> {
        let line = match std::mem::take(&mut self.at_start) {
            true => line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line),
            false => line,
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
            // Nobody can come back by an id that is too long; coming back by the one before would repeat events.
            b"id" if value.len() > MAX_ID => self.id = String::new(),
            b"id" if !value.contains(&0) => self.id = text(value),
            b"retry" => self.read_retry(value),
            _ => {}
        }
        Ok(None)
    }

    fn read_data(&mut self, value: &[u8]) -> Result<(), TooLarge> {
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

    /// Ends the event; one without data is not delivered but still sets the id.
    fn dispatch(&mut self) -> Option<Received> {
        self.last_event_id.clone_from(&self.id);
        let name = std::mem::take(&mut self.name);
        let mut data = std::mem::take(&mut self.data);
        if std::mem::take(&mut self.dropping_event) {
            return None;
        }
        data.pop()?;
        Some(Received {
            name: if name.is_empty() {
                "message".to_owned()
            } else {
                name
            },
            data,
            last_event_id: self.last_event_id.clone(),
        })
    }

    /// Gives up the event at hand; only the first reason is reported.
    fn drop_event(&mut self) -> Result<(), TooLarge> {
        self.data = String::new();
        match std::mem::replace(&mut self.dropping_event, true) {
            true => Ok(()),
            false => Err(TooLarge),
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
