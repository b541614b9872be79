//! The streams that a tape has on it.

use serde_json::Value;

use crate::engine::transcript::{Direction, HttpHead, Transcript, TranscriptEntry};

/// A stream of events, and the request that opened it.
pub(super) struct ObservedStream {
    /// The number that all its entries have.
    pub(super) channel: usize,
    /// The entry of the request.
    pub(super) sent: usize,
    /// The entry of the response.
    pub(super) received: usize,
    /// The message that was posted; null for GET.
    pub(super) request: Value,
    /// What the response said before its body.
    pub(super) head: HttpHead,
    /// The session that it belongs to.
    pub(super) session: Option<String>,
    /// Whether it was opened by GET.
    pub(super) is_get: bool,
    /// Whether it continues another.
    pub(super) resumes: bool,
    /// Its events.
    pub(super) events: Vec<(usize, TranscriptEntry)>,
    /// The messages in them.
    pub(super) messages: Vec<(usize, Value)>,
    version: Option<String>,
}

impl ObservedStream {
    /// Says whether it was opened for the answer to one request.
    pub(super) fn answers_request(&self) -> bool {
        self.request.get("id").is_some() && self.request.get("method").is_some()
    }

    /// Says whether the request is of a revision without sessions.
    pub(super) fn is_modern(&self) -> bool {
        let meta = &self.request["params"]["_meta"];
        self.version.is_some() && !meta["io.modelcontextprotocol/protocolVersion"].is_null()
    }

    /// Returns the entries of the request and of the response.
    pub(super) fn entries(&self) -> [usize; 2] {
        [self.sent, self.received]
    }
}

/// Finds all streams.
pub(super) fn streams(transcript: &Transcript) -> Vec<ObservedStream> {
    let entries = transcript.all();
    let opened = entries
        .iter()
        .filter_map(|(number, entry)| open(transcript, *number, entry));
    let mut all: Vec<_> = opened.collect();
    for (number, entry) in &entries {
        if entry.event.is_some()
            && entry.direction == Direction::Received
            && let Some(stream) = all
                .iter_mut()
                .find(|stream| stream.channel == entry.channel)
        {
            stream.events.push((*number, entry.clone()));
            let message = entry.json().filter(Value::is_object);
            stream
                .messages
                .extend(message.map(|message| (*number, message)));
        }
    }
    all
}

fn open(
    transcript: &Transcript,
    received: usize,
    entry: &TranscriptEntry,
) -> Option<ObservedStream> {
    let head = entry.head.clone().filter(|head| head.start_line == "200")?;
    let kind = head.header("content-type")?.split(';').next()?.trim();
    if !kind.eq_ignore_ascii_case("text/event-stream") {
        return None;
    }
    let sent = entry.response_to?;
    let request = transcript.entry(sent);
    let asked = request.head.as_ref()?;
    let header = |name: &str| asked.header(name).map(str::to_owned);
    Some(ObservedStream {
        channel: entry.channel,
        sent,
        received,
        session: header("mcp-session-id"),
        is_get: asked.start_line.starts_with("GET "),
        resumes: header("last-event-id").is_some(),
        version: header("mcp-protocol-version"),
        request: request.json().unwrap_or_default(),
        head,
        events: Vec::new(),
        messages: Vec::new(),
    })
}
