//! The lines of a recording: the header and the entries.

use serde::{Deserialize, Serialize};

use super::{
    FORMAT_VERSION,
    content::{
        AnomalyEntry, AuthEntry, CloseEntry, EndEntry, EventEntry, GapEntry, MessageEntry,
        OpenEntry, OutputEntry, RecordedMessage, RequestEntry, ResponseEntry, UnknownEntry,
    },
};

/// The first line of a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecordingHeader {
    /// The version of the format.
    pub recording: u32,
    /// The time of the start, as in RFC 3339.
    #[serde(default)]
    pub started: String,
    /// The program that wrote the recording.
    #[serde(default)]
    pub by: String,
    /// What was redacted: `headers`, and the rules of the user.
    #[serde(default)]
    pub redacted: Vec<String>,
    /// The server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<RecordedTarget>,
}

impl RecordingHeader {
    /// Creates a header of the current version.
    pub fn new(started: impl Into<String>, by: impl Into<String>) -> Self {
        Self {
            recording: FORMAT_VERSION,
            started: started.into(),
            by: by.into(),
            redacted: Vec::new(),
            target: None,
        }
    }

    /// Sets the server.
    #[must_use]
    pub fn target(mut self, name: impl Into<String>, transport: impl Into<String>) -> Self {
        self.target = Some(RecordedTarget {
            name: name.into(),
            transport: transport.into(),
        });
        self
    }
}

/// The server of a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecordedTarget {
    /// The name of the server or program.
    #[serde(default)]
    pub name: String,
    /// `stdio`, `unix` or `http`.
    #[serde(default)]
    pub transport: String,
}

/// One line after the header.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedEntry {
    /// The number of the entry, counted from 1.
    pub seq: u64,
    /// The time in microseconds since the start of the recording.
    pub t: u64,
    /// The connection, counted from 1: a process, a socket, or a TCP connection of the client.
    pub conn: u64,
    /// The content.
    pub kind: EntryKind,
}

/// The peer that sent something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageSide {
    /// The client.
    Client,
    /// The server.
    Server,
}

impl MessageSide {
    /// Returns the other side.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// The content of an entry.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum EntryKind {
    /// A connection was opened, or a program started.
    Open(OpenEntry),
    /// A connection was closed, or a program exited.
    Close(CloseEntry),
    /// A message, or a batch.
    Message(MessageEntry),
    /// Bytes in the place of a message.
    Noise(OutputEntry),
    /// A line that a program wrote to stderr.
    Stderr(OutputEntry),
    /// The head of an HTTP request.
    Request(RequestEntry),
    /// The head of an HTTP response.
    Response(ResponseEntry),
    /// The end of an HTTP exchange.
    End(EndEntry),
    /// A server-sent event: its fields apart from the message.
    Event(EventEntry),
    /// A step of an authorization.
    Auth(AuthEntry),
    /// A violation of the protocol that was tolerated.
    Anomaly(AnomalyEntry),
    /// Entries are missing here.
    Gap(GapEntry),
    /// A kind that this version does not know.
    Unknown(UnknownEntry),
}

impl EntryKind {
    /// Creates a message, or noise if the line is not a JSON-RPC message.
    pub fn from_line(from: MessageSide, line: &[u8]) -> Self {
        match RecordedMessage::from_bytes(line) {
            Some(message) => Self::Message(MessageEntry::new(from, message)),
            None => Self::Noise(OutputEntry::new(from, line)),
        }
    }

    /// Sets the HTTP exchange that the entry belongs to, if entries of its kind have one.
    #[must_use]
    pub fn in_exchange(mut self, number: u64) -> Self {
        match &mut self {
            Self::Message(entry) => entry.exchange = Some(number),
            Self::Noise(entry) | Self::Stderr(entry) => entry.exchange = Some(number),
            Self::Request(entry) => entry.exchange = number,
            Self::Response(entry) => entry.exchange = number,
            Self::End(entry) => entry.exchange = number,
            Self::Event(entry) => entry.exchange = Some(number),
            _ => {}
        }
        self
    }

    /// Returns the name of the kind in a recording.
    pub fn name(&self) -> &str {
        match self {
            Self::Open(_) => "open",
            Self::Close(_) => "close",
            Self::Message(_) => "message",
            Self::Noise(_) => "noise",
            Self::Stderr(_) => "stderr",
            Self::Request(_) => "request",
            Self::Response(_) => "response",
            Self::End(_) => "end",
            Self::Event(_) => "event",
            Self::Auth(_) => "auth",
            Self::Anomaly(_) => "anomaly",
            Self::Gap(_) => "gap",
            Self::Unknown(entry) => &entry.kind,
        }
    }
}

impl RecordedEntry {
    /// Appends the entry as one line.
    pub fn write(&self, out: &mut Vec<u8>) {
        let Self { seq, t, conn, kind } = self;
        out.extend_from_slice(format!(r#"{{"seq":{seq},"t":{t},"conn":{conn},"kind":"#).as_bytes());
        append_json(out, kind.name());
        match kind {
            EntryKind::Open(content) => append_members(out, content),
            EntryKind::Close(content) => append_members(out, content),
            EntryKind::Message(content) => append_members(out, content),
            EntryKind::Noise(content) | EntryKind::Stderr(content) => append_members(out, content),
            EntryKind::Request(content) => append_members(out, content),
            EntryKind::Response(content) => append_members(out, content),
            EntryKind::End(content) => append_members(out, content),
            EntryKind::Event(content) => append_members(out, content),
            EntryKind::Auth(content) => append_members(out, content),
            EntryKind::Anomaly(content) => append_members(out, content),
            EntryKind::Gap(content) => append_members(out, content),
            EntryKind::Unknown(content) => join_members(out, content.members().as_bytes()),
        }
        out.push(b'\n');
    }
}

/// Appends a value as JSON.
pub(super) fn append_json(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    serde_json::to_writer(out, value)
        .expect("the types of this module have string keys, and writing to a vector cannot fail");
}

/// Appends the members of a struct to an open object, and closes it.
fn append_members(out: &mut Vec<u8>, content: &impl Serialize) {
    let mut object = Vec::new();
    append_json(&mut object, content);
    join_members(out, &object);
}

/// Appends the members of an object to an open object, and closes it.
fn join_members(out: &mut Vec<u8>, object: &[u8]) {
    let members = object.strip_prefix(b"{").unwrap_or(b"}");
    if members != b"}" {
        out.push(b',');
    }
    out.extend_from_slice(members);
}
