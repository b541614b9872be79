//! The transcript of a check: all messages in both directions.

use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::Value;
use turnbuckle_protocol::revision::Revision;

use crate::{
    lock,
    options::{CheckMessage, MessageCallback},
};

/// The maximum size of what is recorded from the peer. A peer that sends more is disconnected.
const MAX_RECEIVED_BYTES: usize = 128 * 1024 * 1024;
const MAX_ENTRIES: usize = 100_000;

/// All messages in both directions, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transcript {
    entries: Arc<Mutex<Vec<TranscriptEntry>>>,
    received: Arc<AtomicUsize>,
    server_end: Arc<Mutex<Option<ServerEnd>>>,
    other_revision: bool,
    observer: Option<(Revision, MessageCallback)>,
}

/// The unexpected end of a server.
#[derive(Clone, Debug)]
pub(crate) struct ServerEnd {
    /// How it ended, after which message, and its last lines of stderr.
    pub(crate) observed: String,
    /// The entries that show it.
    pub(crate) entries: Vec<usize>,
    /// Invalid input came before it.
    pub(crate) is_provoked: bool,
    /// Another revision reports it: all use the same server.
    pub(crate) is_known: bool,
}

/// One message, HTTP head or stream event.
#[derive(Clone, Debug)]
pub(crate) struct TranscriptEntry {
    /// The direction.
    pub(crate) direction: Direction,
    /// The number of the connection, HTTP exchange or stream that the entry belongs to.
    pub(crate) channel: usize,
    /// The HTTP head, if this is the start of a request or response.
    pub(crate) head: Option<HttpHead>,
    /// The body, the line, or the data of an event.
    pub(crate) text: String,
    /// The id and the type of a stream event.
    pub(crate) event: Option<SseEventHead>,
    /// The number of the entry that this one responds to, if known.
    pub(crate) response_to: Option<usize>,
    /// The message is invalid on purpose.
    pub(crate) deliberately_invalid: bool,
    /// The bytes were not valid UTF-8, so the text is not exact.
    pub(crate) invalid_utf8: bool,
    /// The text was cut off at the size limit.
    pub(crate) truncated: bool,
    /// The message belongs to another revision than the one under test.
    pub(crate) other_revision: bool,
    /// The entry of the message, if this is one of its lines.
    pub(crate) part_of: Option<usize>,
    /// The event was received before and is sent again because its stream was resumed.
    pub(crate) replayed: bool,
    /// The parsed message, cached because many rules read it.
    pub(crate) parsed: Arc<OnceLock<Option<Value>>>,
}

/// The direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From the checker.
    Sent,
    /// To the checker.
    Received,
}

/// The head of an HTTP request or response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HttpHead {
    /// `POST /mcp` or `200`.
    pub(crate) start_line: String,
    /// The headers, with lower-case names.
    pub(crate) headers: Vec<(String, String)>,
}

/// The fields of a stream event other than its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SseEventHead {
    pub(crate) id: String,
    pub(crate) name: String,
}

impl TranscriptEntry {
    /// Creates an entry for something sent.
    pub(crate) fn sent(channel: usize, text: impl Into<String>) -> Self {
        Self::new(Direction::Sent, channel, text.into())
    }

    /// Creates an entry for something received.
    pub(crate) fn received(channel: usize, text: impl Into<String>) -> Self {
        Self::new(Direction::Received, channel, text.into())
    }

    fn new(direction: Direction, channel: usize, text: String) -> Self {
        Self {
            direction,
            channel,
            head: None,
            text,
            event: None,
            response_to: None,
            deliberately_invalid: false,
            parsed: Arc::default(),
            invalid_utf8: false,
            truncated: false,
            other_revision: false,
            part_of: None,
            replayed: false,
        }
    }

    /// Returns the message, if the text is JSON and not only a line of a message.
    pub(crate) fn json(&self) -> Option<Value> {
        if self.part_of.is_some() {
            return None;
        }
        let parsed = || serde_json::from_str(&self.text).ok();
        self.parsed.get_or_init(parsed).clone()
    }

    /// Names a message of the checker, with the tool, prompt or resource that it is about.
    pub(crate) fn describe_call(&self) -> String {
        let message = self.json().unwrap_or_default();
        let Some(method) = message["method"].as_str() else {
            return "a response of the client".to_owned();
        };
        let params = &message["params"];
        let subject = match method {
            "tools/call" => params["name"].as_str().map(|name| ("tool", name)),
            "prompts/get" => params["name"].as_str().map(|name| ("prompt", name)),
            "resources/read" => params["uri"].as_str().map(|uri| ("resource", uri)),
            _ => None,
        };
        match subject {
            Some((kind, name)) => format!("`{method}` of the {kind} `{name}`"),
            None => format!("`{method}`"),
        }
    }
}

impl ServerEnd {
    /// Returns how the server ended, without the last lines of stderr.
    pub(crate) fn summary(&self) -> &str {
        let line = self.observed.lines().next().unwrap_or_default();
        let mut parts = line.split("; last lines of stderr");
        parts.next().unwrap_or_default()
    }
}

impl HttpHead {
    /// Returns the value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

impl Transcript {
    /// Creates a transcript that passes every message on to a callback.
    pub(crate) fn observed(revision: Revision, callback: MessageCallback) -> Self {
        Self {
            observer: Some((revision, callback)),
            ..Self::default()
        }
    }

    fn report(&self, entry: &TranscriptEntry) {
        if let Some((revision, callback)) = &self.observer {
            callback.call(CheckMessage {
                revision: *revision,
                from_peer: entry.direction == Direction::Received,
                start_line: entry.head.as_ref().map(|head| head.start_line.as_str()),
                text: &entry.text,
            });
        }
    }

    /// Returns a handle to the same transcript for messages of another revision, which passive
    /// rules skip.
    pub(crate) fn for_other_revision(&self) -> Self {
        Self {
            other_revision: true,
            ..self.clone()
        }
    }

    /// Appends an entry; returns its number.
    pub(crate) fn push(&self, entry: TranscriptEntry) -> usize {
        self.count_received(&entry);
        self.report(&entry);
        let mut entries = self.entries();
        entries.push(TranscriptEntry {
            other_revision: self.other_revision,
            ..entry
        });
        entries.len() - 1
    }

    /// Changes an entry, for example to add the body of a response.
    pub(crate) fn update(&self, number: usize, change: impl FnOnce(&mut TranscriptEntry)) {
        if let Some(entry) = self.entries().get_mut(number) {
            let before = entry.text.len();
            change(entry);
            entry.parsed = Arc::default();
            let more = entry.text.len().saturating_sub(before);
            self.received.fetch_add(more, Ordering::Relaxed);
            if before == 0 && more > 0 {
                // The body of a response, after its head was reported.
                self.report(&TranscriptEntry {
                    head: None,
                    ..entry.clone()
                });
            }
        }
    }

    /// Returns whether the peer has exceeded the size limit.
    pub(crate) fn is_full(&self) -> bool {
        self.received.load(Ordering::Relaxed) > MAX_RECEIVED_BYTES || self.len() > MAX_ENTRIES
    }

    /// Returns the message for an exceeded size limit.
    pub(crate) fn overflow_message() -> String {
        format!(
            "the server has sent more than {} MiB or {MAX_ENTRIES} messages",
            MAX_RECEIVED_BYTES >> 20
        )
    }

    fn count_received(&self, entry: &TranscriptEntry) {
        if entry.direction == Direction::Received {
            self.received.fetch_add(entry.text.len(), Ordering::Relaxed);
        }
    }

    /// Records the first end of the server. One in normal use replaces one after invalid input.
    pub(crate) fn record_server_end(&self, end: ServerEnd) {
        // Messages of another revision are unusual input.
        let is_provoked = end.is_provoked || self.other_revision;
        let end = ServerEnd { is_provoked, ..end };
        let mut slot = self.server_end_slot();
        if slot
            .as_ref()
            .is_none_or(|first| first.is_provoked && !end.is_provoked)
        {
            *slot = Some(end);
        }
    }

    /// Returns the first end of the server.
    pub(crate) fn server_end(&self) -> Option<ServerEnd> {
        self.server_end_slot().clone()
    }

    /// Forgets the end of the server, because a rule reports it.
    pub(crate) fn clear_server_end(&self) {
        *self.server_end_slot() = None;
    }

    fn server_end_slot(&self) -> MutexGuard<'_, Option<ServerEnd>> {
        lock(&self.server_end)
    }

    /// Returns the entry of the message sent before an entry.
    pub(crate) fn sent_before(&self, number: usize) -> Option<usize> {
        let entries = self.entries();
        let before = entries.get(..number)?;
        before
            .iter()
            .rposition(|entry| entry.direction == Direction::Sent)
    }

    /// Returns the entry of the last message sent on a channel.
    pub(crate) fn last_sent(&self, channel: usize) -> Option<usize> {
        let is_sent = |entry: &TranscriptEntry| {
            entry.channel == channel && entry.direction == Direction::Sent
        };
        self.entries().iter().rposition(is_sent)
    }

    /// Returns whether invalid input was sent on a channel.
    pub(crate) fn has_invalid_input(&self, channel: usize) -> bool {
        let is_invalid =
            |entry: &TranscriptEntry| entry.channel == channel && entry.deliberately_invalid;
        self.entries().iter().any(is_invalid)
    }

    /// Returns a copy of an entry.
    pub(crate) fn entry(&self, number: usize) -> TranscriptEntry {
        self.entries()[number].clone()
    }

    /// Returns whether an event with this id and text was received.
    pub(crate) fn has_event(&self, id: &str, text: &str) -> bool {
        let same = |entry: &TranscriptEntry| {
            let event = entry.event.as_ref();
            event.is_some_and(|event| event.id == id) && entry.text == text
        };
        self.entries().iter().any(same)
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        self.entries().len()
    }

    /// Returns all entries of the revision, with their numbers.
    pub(crate) fn all(&self) -> Vec<(usize, TranscriptEntry)> {
        let entries = self.entries();
        let numbered = entries.iter().enumerate();
        let of_revision = numbered.filter(|(_, entry)| !entry.other_revision);
        of_revision
            .map(|(number, entry)| (number, entry.clone()))
            .collect()
    }

    fn entries(&self) -> MutexGuard<'_, Vec<TranscriptEntry>> {
        lock(&self.entries)
    }
}
