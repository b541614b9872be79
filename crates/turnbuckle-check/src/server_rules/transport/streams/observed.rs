//! The event streams of a transcript.

use serde_json::Value;

use crate::engine::transcript::{Direction, HttpHead, Transcript, TranscriptEntry};

/// An event stream and the request that opened it.
pub(super) struct ObservedStream {
    /// The channel of all its entries.
    pub(super) channel: usize,
    /// The entry of the request.
    pub(super) sent: usize,
    /// The entry of the response.
    pub(super) received: usize,
    /// The posted message; null for GET.
    pub(super) request: Value,
    /// The head of the response.
    pub(super) head: HttpHead,
    /// The session id of the stream.
    pub(super) session: Option<String>,
    /// Set if a GET opened the stream.
    pub(super) is_get: bool,
    /// Set if the stream resumes another.
    pub(super) resumes: bool,
    /// The events.
    pub(super) events: Vec<(usize, TranscriptEntry)>,
    /// The messages of the events.
    pub(super) messages: Vec<(usize, Value)>,
    version: Option<String>,
}

impl ObservedStream {
    /// Returns whether the stream carries the response to a request.
    pub(super) fn is_of_request(&self) -> bool {
        self.request.get("id").is_some() && self.request.get("method").is_some()
    }

    /// Returns whether the request belongs to the modern era.
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
    let request_head = request.head.as_ref()?;
    let header = |name: &str| request_head.header(name).map(str::to_owned);
    Some(ObservedStream {
        channel: entry.channel,
        sent,
        received,
        session: header("mcp-session-id"),
        is_get: request_head.start_line.starts_with("GET "),
        resumes: header("last-event-id").is_some(),
        version: header("mcp-protocol-version"),
        request: request.json().unwrap_or_default(),
        head,
        events: Vec::new(),
        messages: Vec::new(),
    })
}
