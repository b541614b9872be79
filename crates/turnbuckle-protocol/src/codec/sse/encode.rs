//! The writing side.

/// An event to write; a field that is `None` is left out.
///
/// ```
/// use turnbuckle_protocol::codec::sse::Event;
///
/// let mut out = Vec::new();
/// Event::message(b"{}").with_id("7").write(&mut out);
/// assert_eq!(out, b"id: 7\ndata: {}\n\n");
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Event<'a> {
    /// The id that `Last-Event-ID` may name later.
    pub id: Option<&'a str>,
    /// The type; without one the reader takes `message`.
    pub name: Option<&'a str>,
    /// How many milliseconds to wait before connecting again.
    pub retry: Option<u64>,
    /// The content; every line end in it reaches the reader as `\n`.
    pub data: Option<&'a [u8]>,
}

impl<'a> Event<'a> {
    /// Makes an event that carries a message.
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

    /// Sets the pause before connecting again, in milliseconds.
    #[must_use]
    pub fn with_retry(mut self, milliseconds: u64) -> Self {
        self.retry = Some(milliseconds);
        self
    }

    /// Appends the event and the blank line that ends it.
    ///
    /// An empty `out` gets just the room that an event of one line takes: it becomes
    /// `Bytes` without another place on the heap.
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

    /// How many bytes it takes, if no field has more than one line.
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

/// Appends a comment, which readers ignore and proxies take as a sign of life.
pub fn write_comment(out: &mut Vec<u8>, text: &str) {
    write_lines(out, b": ", text.as_bytes());
    out.push(b'\n');
}

/// Writes a field that has one line; what would end it, or void an id, is left out.
fn write_field(out: &mut Vec<u8>, name: &str, value: &str) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    let is_kept = |byte: &u8| !matches!(byte, b'\r' | b'\n' | 0);
    if value.as_bytes().iter().all(is_kept) {
        out.extend_from_slice(value.as_bytes());
    } else {
        out.extend(value.bytes().filter(is_kept));
    }
    out.push(b'\n');
}

/// Writes every line of `text` behind `prefix`; `\r\n`, `\r` and `\n` end a line.
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
