//! Turns copies of relayed bytes into entries.

use std::mem;

use turnbuckle_protocol::{
    codec::sse::{ParsedEvent, SseDecoder, SseLimits},
    recording::{
        EntryKind, EventEntry, GapEntry, MAX_ENTRY_BYTES, MessageSide, OutputEntry, RecordedText,
    },
};

/// The maximum number of bytes of a body that is neither JSON nor an event stream.
const MAX_OTHER_BODY_BYTES: usize = 64 * 1024;

/// A stream of bytes that is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordedStream {
    /// Messages, one per line.
    Messages(MessageSide),
    /// Lines of stderr.
    Stderr,
    /// The body of an HTTP message.
    Body {
        /// The sender.
        from: MessageSide,
        /// The number of the exchange.
        exchange: u64,
        /// The content, according to the headers.
        content: BodyContent,
    },
}

/// The content of an HTTP body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyContent {
    /// JSON, usually a message.
    Json,
    /// Server-sent events.
    Events,
    /// A form, which usually has secrets. It is not recorded.
    Form,
    /// Compressed. It is not recorded, because its secrets cannot be redacted.
    Encoded,
    /// Anything else.
    Other,
}

impl BodyContent {
    /// Returns the content of a media type.
    pub(crate) fn from_media_type(media_type: Option<&str>) -> Self {
        let media_type = media_type.unwrap_or_default();
        let essence = media_type.split(';').next().unwrap_or_default().trim();
        match essence.to_ascii_lowercase().as_str() {
            "application/json" => Self::Json,
            "text/event-stream" => Self::Events,
            "application/x-www-form-urlencoded" | "multipart/form-data" => Self::Form,
            _ => Self::Other,
        }
    }
}

/// Decodes one stream.
pub(super) enum StreamDecoder {
    Lines(LineCollector),
    Body(BodyCollector),
    Events(Box<EventCollector>),
    /// A body that becomes a gap, and whether it has bytes.
    Encoded(bool),
    Nothing,
}

impl StreamDecoder {
    pub(super) fn new(stream: RecordedStream) -> Self {
        match stream {
            RecordedStream::Messages(_) | RecordedStream::Stderr => {
                Self::Lines(LineCollector::new(stream))
            }
            RecordedStream::Body {
                from,
                exchange,
                content,
            } => match content {
                BodyContent::Json => {
                    Self::Body(BodyCollector::new(from, exchange, MAX_ENTRY_BYTES))
                }
                BodyContent::Other => {
                    Self::Body(BodyCollector::new(from, exchange, MAX_OTHER_BODY_BYTES))
                }
                BodyContent::Events => Self::Events(Box::new(EventCollector::new(from, exchange))),
                BodyContent::Encoded => Self::Encoded(false),
                BodyContent::Form => Self::Nothing,
            },
        }
    }

    /// Continues after missing bytes: what is incomplete is dropped.
    pub(super) fn skip(&mut self) {
        match self {
            Self::Lines(lines) => lines.skip(),
            Self::Body(body) => body.skip("queue"),
            Self::Events(events) => events.skip(),
            Self::Encoded(_) | Self::Nothing => {}
        }
    }

    pub(super) fn read(&mut self, bytes: &[u8], write: &mut impl FnMut(EntryKind)) {
        match self {
            Self::Lines(lines) => lines.read(bytes, write),
            Self::Body(body) => body.read(bytes),
            Self::Events(events) => events.read(bytes, write),
            Self::Encoded(has_bytes) => *has_bytes |= !bytes.is_empty(),
            Self::Nothing => {}
        }
    }

    pub(super) fn finish(self, write: &mut impl FnMut(EntryKind)) {
        match self {
            Self::Lines(lines) => lines.finish(write),
            Self::Body(body) => body.finish(write),
            Self::Encoded(true) => write(EntryKind::Gap(GapEntry::new(1, "encoding"))),
            Self::Events(_) | Self::Encoded(false) | Self::Nothing => {}
        }
    }
}

/// Collects lines.
pub(super) struct LineCollector {
    stream: RecordedStream,
    partial: Vec<u8>,
    /// Whether everything up to the next line end is dropped.
    is_skipping: bool,
}

impl LineCollector {
    fn new(stream: RecordedStream) -> Self {
        Self {
            stream,
            partial: Vec::new(),
            is_skipping: false,
        }
    }

    fn skip(&mut self) {
        self.partial = Vec::new();
        self.is_skipping = true;
    }

    fn read(&mut self, bytes: &[u8], write: &mut impl FnMut(EntryKind)) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (line, is_complete) = match piece.strip_suffix(b"\n") {
                Some(line) => (line, true),
                None => (piece, false),
            };
            if self.partial.len() + line.len() > MAX_ENTRY_BYTES && !self.is_skipping {
                self.skip();
                write(EntryKind::Gap(GapEntry::new(1, "entry")));
            }
            if self.is_skipping {
                self.is_skipping = !is_complete;
                continue;
            }
            self.partial.extend_from_slice(line);
            if is_complete {
                self.write_line(write);
            }
        }
    }

    fn finish(mut self, write: &mut impl FnMut(EntryKind)) {
        self.write_line(write);
    }

    fn write_line(&mut self, write: &mut impl FnMut(EntryKind)) {
        let line = mem::take(&mut self.partial);
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        if line.is_empty() {
            return;
        }
        write(match self.stream {
            RecordedStream::Messages(from) => EntryKind::from_line(from, line),
            _ => EntryKind::Stderr(OutputEntry::new(MessageSide::Server, line)),
        });
    }
}

/// Collects a body.
pub(super) struct BodyCollector {
    from: MessageSide,
    exchange: u64,
    limit: usize,
    bytes: Vec<u8>,
    /// The reason why bytes are missing.
    gap: Option<&'static str>,
}

impl BodyCollector {
    fn new(from: MessageSide, exchange: u64, limit: usize) -> Self {
        Self {
            from,
            exchange,
            limit,
            bytes: Vec::new(),
            gap: None,
        }
    }

    fn read(&mut self, bytes: &[u8]) {
        if self.gap.is_some() {
            return;
        }
        if self.bytes.len() + bytes.len() > self.limit {
            let is_message = self.limit == MAX_ENTRY_BYTES;
            return self.skip(if is_message { "entry" } else { "body" });
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Drops the body.
    fn skip(&mut self, reason: &'static str) {
        self.bytes = Vec::new();
        self.gap = Some(reason);
    }

    fn finish(self, write: &mut impl FnMut(EntryKind)) {
        if let Some(reason) = self.gap {
            write(EntryKind::Gap(GapEntry::new(1, reason)));
        } else if !self.bytes.is_empty() {
            let entry = EntryKind::from_line(self.from, &self.bytes);
            write(entry.in_exchange(self.exchange));
        }
    }
}

/// Collects server-sent events.
pub(super) struct EventCollector {
    from: MessageSide,
    exchange: u64,
    decoder: SseDecoder,
    last_event_id: String,
    retry: Option<u64>,
}

impl EventCollector {
    const LIMITS: SseLimits = SseLimits {
        line: MAX_ENTRY_BYTES + 64,
        event: MAX_ENTRY_BYTES,
    };

    fn new(from: MessageSide, exchange: u64) -> Self {
        Self {
            from,
            exchange,
            decoder: SseDecoder::new(Self::LIMITS),
            last_event_id: String::new(),
            retry: None,
        }
    }

    /// Ends the current event, without its data.
    fn skip(&mut self) {
        self.decoder = SseDecoder::new(Self::LIMITS);
        // The rest of the event becomes the comment of an empty one.
        let _ = self.decoder.next(&mut &b":"[..]);
    }

    fn read(&mut self, mut bytes: &[u8], write: &mut impl FnMut(EntryKind)) {
        loop {
            match self.decoder.next(&mut bytes) {
                Ok(None) => return,
                Ok(Some(event)) => self.write_event(&event, write),
                Err(_) => write(EntryKind::Gap(GapEntry::new(1, "entry"))),
            }
        }
    }

    fn write_event(&mut self, event: &ParsedEvent, write: &mut impl FnMut(EntryKind)) {
        let mut entry = EventEntry::default();
        if event.last_event_id != self.last_event_id {
            self.last_event_id.clone_from(&event.last_event_id);
            entry.id = Some(event.last_event_id.as_str().into());
        }
        let retry = self.decoder.retry();
        let retry = retry.map(|retry| retry.as_millis().try_into().unwrap_or(u64::MAX));
        if retry != self.retry {
            self.retry = retry;
            entry.retry = retry;
        }
        let is_message = event.name == "message";
        let is_endpoint = event.name == "endpoint";
        if !is_message {
            entry.name = Some(event.name.clone());
            entry.url = is_endpoint.then(|| RecordedText::from(event.data.as_str()));
        }
        if entry != EventEntry::default() {
            write(EntryKind::Event(entry).in_exchange(self.exchange));
        }
        if !is_endpoint && !event.data.is_empty() {
            let message = EntryKind::from_line(self.from, event.data.as_bytes());
            write(message.in_exchange(self.exchange));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(stream: RecordedStream, chunks: &[&[u8]]) -> Vec<EntryKind> {
        let mut decoder = StreamDecoder::new(stream);
        let mut entries = Vec::new();
        for chunk in chunks {
            match *chunk {
                b"(gap)" => decoder.skip(),
                chunk => decoder.read(chunk, &mut |kind| entries.push(kind)),
            }
        }
        decoder.finish(&mut |kind| entries.push(kind));
        entries
    }

    const MESSAGES: RecordedStream = RecordedStream::Messages(MessageSide::Client);
    const PING: &[u8] = br#"{"jsonrpc":"2.0","method":"ping"}"#;

    fn line(bytes: &[u8]) -> EntryKind {
        EntryKind::from_line(MessageSide::Client, bytes)
    }

    #[test]
    fn lines_are_split_as_the_peers_split_them() {
        let chunks: [&[u8]; 3] = [
            b"a\r\n\n\xff\n{\"jsonrpc\":\"2.0\",",
            b"\"method\":\"ping\"}\nla",
            b"st",
        ];
        let expected = [line(b"a"), line(b"\xff"), line(PING), line(b"last")];
        assert_eq!(entries(MESSAGES, &chunks), expected);
    }

    #[test]
    fn the_rest_of_a_line_after_a_gap_is_dropped() {
        let chunks: [&[u8]; 4] = [b"a\nhalf", b"(gap)", b" rest\nb\n", b"c"];
        assert_eq!(
            entries(MESSAGES, &chunks),
            [line(b"a"), line(b"b"), line(b"c")]
        );
    }

    #[test]
    fn an_endless_line_becomes_one_gap() {
        let chunk = vec![b'x'; MAX_ENTRY_BYTES / 2];
        let chunks: [&[u8]; 4] = [&chunk, &chunk, &chunk, b"x\nb"];
        let gap = EntryKind::Gap(GapEntry::new(1, "entry"));
        assert_eq!(entries(MESSAGES, &chunks), [gap, line(b"b")]);
    }

    #[test]
    fn events_have_their_message_and_their_id() {
        let body = RecordedStream::Body {
            from: MessageSide::Client,
            exchange: 7,
            content: BodyContent::from_media_type(Some("text/event-stream; charset=utf-8")),
        };
        let ping = String::from_utf8(PING.to_vec()).unwrap();
        let text = format!(
            "event: endpoint\ndata: /messages?sessionId=1\n\nid: 5\nretry: 9\ndata: {ping}\n\n: comment\n\ndata: {ping}\n\ndata: unfinished"
        );
        let mut endpoint = EventEntry::default();
        endpoint.name = Some("endpoint".to_owned());
        endpoint.url = Some("/messages?sessionId=1".into());
        let mut position = EventEntry::default();
        (position.id, position.retry) = (Some("5".into()), Some(9));
        let expected = [
            EntryKind::Event(endpoint),
            EntryKind::Event(position),
            line(PING),
            line(PING),
        ];

        let seen = entries(body, &[text.as_bytes()]);

        assert_eq!(seen, expected.map(|kind| kind.in_exchange(7)));
    }

    #[test]
    fn a_recorded_body_that_is_compressed_becomes_a_gap() {
        let body = RecordedStream::Body {
            from: MessageSide::Server,
            exchange: 1,
            content: BodyContent::Encoded,
        };
        let gap = EntryKind::Gap(GapEntry::new(1, "encoding"));
        assert_eq!(entries(body, &[b"\x1f\x8b", b"s3cret"]), [gap]);
    }

    #[test]
    fn a_recorded_gap_has_the_reason_why_a_body_is_missing() {
        let body = |media_type| RecordedStream::Body {
            from: MessageSide::Server,
            exchange: 1,
            content: BodyContent::from_media_type(Some(media_type)),
        };
        let long = vec![b'x'; MAX_OTHER_BODY_BYTES + 1];
        let gap = |reason| [EntryKind::Gap(GapEntry::new(1, reason))];

        assert_eq!(entries(body("text/html"), &[&long]), gap("body"));
        let missing: [&[u8]; 3] = [b"{", b"(gap)", b"}"];
        assert_eq!(entries(body("application/json"), &missing), gap("queue"));
    }

    #[test]
    fn forms_are_not_recorded() {
        let body = RecordedStream::Body {
            from: MessageSide::Client,
            exchange: 1,
            content: BodyContent::from_media_type(Some("application/x-www-form-urlencoded")),
        };
        assert_eq!(entries(body, &[b"code=s3cret"]), []);
    }
}
