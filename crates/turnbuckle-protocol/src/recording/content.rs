//! The content of each kind of entry.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    jsonrpc::{self, Incoming, RawObject},
    recording::MessageSide,
};

/// A text, or the number of a redacted one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RecordedText {
    /// The text.
    Text(String),
    /// The place of a redacted text.
    Redacted(RedactedValue),
}

impl RecordedText {
    /// Returns the text, unless it was redacted.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Redacted(_) => None,
        }
    }
}

impl From<&str> for RecordedText {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for RecordedText {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// The place of a redacted value: `{"$redacted":1}`. Equal values of one recording have equal numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedactedValue {
    /// The number of the value.
    #[serde(rename = "$redacted")]
    pub number: u64,
}

/// A JSON-RPC message or batch as it was received, on one line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RecordedMessage(Box<RawValue>);

impl RecordedMessage {
    /// Copies a message. Returns `None` if the bytes are not a JSON-RPC message.
    ///
    /// Line ends between tokens become spaces. A malformed message, or a batch with one, is not a message: it may be
    /// other JSON, in which secrets are redacted by their names.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        match jsonrpc::parse(bytes).ok()? {
            Incoming::One(_) => {}
            Incoming::Batch(entries) if entries.iter().all(Result::is_ok) => {}
            Incoming::Batch(_) => return None,
        }
        Self::from_json(std::str::from_utf8(bytes).ok()?)
    }

    /// Copies any JSON value. Returns `None` if the text is not JSON.
    pub(super) fn from_json(json: &str) -> Option<Self> {
        let json = json.trim_ascii();
        // In JSON, line ends occur only between tokens.
        let line = match memchr::memchr2(b'\n', b'\r', json.as_bytes()) {
            Some(_) => json.replace(['\n', '\r'], " "),
            None => json.to_owned(),
        };
        RawValue::from_string(line).ok().map(Self)
    }

    /// Returns the JSON text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for RecordedMessage {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for RecordedMessage {}

/// A connection was opened, or a program started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OpenEntry {
    /// The program and its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<RecordedText>,
    /// The names of the environment variables that are set for the program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// The URL of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<RecordedText>,
}

impl OpenEntry {
    /// Creates the entry for a program.
    pub fn program<T: Into<RecordedText>>(command: impl IntoIterator<Item = T>) -> Self {
        Self {
            command: command.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// Creates the entry for a connection to a URL.
    pub fn url(url: impl Into<RecordedText>) -> Self {
        Self {
            url: Some(url.into()),
            ..Self::default()
        }
    }

    /// Sets the names of the environment variables.
    #[must_use]
    pub fn env(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.env = names.into_iter().map(Into::into).collect();
        self
    }
}

/// A connection was closed, or a program exited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CloseEntry {
    /// The exit code of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal that ended the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
}

impl CloseEntry {
    /// Creates the entry for a program that exited with a code.
    pub fn code(code: i32) -> Self {
        Self {
            code: Some(code),
            signal: None,
        }
    }

    /// Creates the entry for a program that a signal ended.
    pub fn signal(signal: i32) -> Self {
        Self {
            code: None,
            signal: Some(signal),
        }
    }
}

/// A message, or a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MessageEntry {
    /// The sender.
    pub from: MessageSide,
    /// The HTTP exchange that carried the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchange: Option<u64>,
    /// The message.
    pub message: RecordedMessage,
}

impl MessageEntry {
    /// Creates the entry for a message.
    pub fn new(from: MessageSide, message: RecordedMessage) -> Self {
        Self {
            from,
            exchange: None,
            message,
        }
    }
}

/// Output that is not a message: text, or Base64 if it is not UTF-8.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OutputEntry {
    /// The sender.
    pub from: MessageSide,
    /// The HTTP exchange that carried the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchange: Option<u64>,
    /// The text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<RecordedText>,
    /// The bytes in Base64, if they are not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
}

impl OutputEntry {
    /// Creates the entry for some bytes.
    pub fn new(from: MessageSide, bytes: &[u8]) -> Self {
        let text = std::str::from_utf8(bytes).ok();
        Self {
            from,
            exchange: None,
            text: text.map(RecordedText::from),
            base64: text.is_none().then(|| STANDARD.encode(bytes)),
        }
    }

    /// Returns the bytes, unless they were redacted.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        match (&self.text, &self.base64) {
            (Some(text), _) => text.as_str().map(|text| text.as_bytes().to_vec()),
            (None, Some(base64)) => STANDARD.decode(base64).ok(),
            (None, None) => None,
        }
    }
}

/// The head of an HTTP request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RequestEntry {
    /// The number of the exchange.
    pub exchange: u64,
    /// The method.
    pub method: String,
    /// The URL, or path and query.
    pub url: RecordedText,
    /// The headers in the order of the message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, RecordedText)>,
}

impl RequestEntry {
    /// Creates the entry for a request.
    pub fn new(exchange: u64, method: impl Into<String>, url: impl Into<RecordedText>) -> Self {
        Self {
            exchange,
            method: method.into(),
            url: url.into(),
            headers: Vec::new(),
        }
    }

    /// Adds a header.
    pub fn add_header(&mut self, name: impl Into<String>, value: impl Into<RecordedText>) {
        self.headers.push((name.into(), value.into()));
    }
}

/// The head of an HTTP response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResponseEntry {
    /// The number of the exchange.
    pub exchange: u64,
    /// The status code.
    pub status: u16,
    /// The headers in the order of the message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, RecordedText)>,
    /// The duration of each phase, as far as it is known.
    #[serde(default, skip_serializing_if = "HttpPhases::is_empty")]
    pub phases: HttpPhases,
}

impl ResponseEntry {
    /// Creates the entry for a response.
    pub fn new(exchange: u64, status: u16) -> Self {
        Self {
            exchange,
            status,
            headers: Vec::new(),
            phases: HttpPhases::default(),
        }
    }

    /// Adds a header.
    pub fn add_header(&mut self, name: impl Into<String>, value: impl Into<RecordedText>) {
        self.headers.push((name.into(), value.into()));
    }
}

/// The phases of an HTTP exchange, in microseconds. A phase that was not needed or measured is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HttpPhases {
    /// The time to resolve the name of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns: Option<u64>,
    /// The time to connect; includes `dns` and `tls` where these are absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect: Option<u64>,
    /// The time of the TLS handshake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<u64>,
    /// The time from the request to the head of the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte: Option<u64>,
}

impl HttpPhases {
    /// Returns whether no phase is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The end of an HTTP exchange.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EndEntry {
    /// The number of the exchange.
    pub exchange: u64,
    /// The reason, if the exchange did not end regularly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RecordedText>,
}

impl EndEntry {
    /// Creates the entry for an exchange that ended regularly.
    pub fn new(exchange: u64) -> Self {
        Self {
            exchange,
            error: None,
        }
    }

    /// Creates the entry for an exchange that failed.
    pub fn failed(exchange: u64, error: impl Into<RecordedText>) -> Self {
        Self {
            exchange,
            error: Some(error.into()),
        }
    }
}

/// The fields of a server-sent event, apart from a message in its data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EventEntry {
    /// The HTTP exchange of the stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchange: Option<u64>,
    /// The type, if it is not `message`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<RecordedText>,
    /// The delay before reconnecting, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<u64>,
    /// A comment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<RecordedText>,
    /// A URL in the data, as in the event `endpoint` of HTTP+SSE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<RecordedText>,
}

/// A step of an authorization. The bodies of token requests are never recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AuthEntry {
    /// The name of the step.
    pub step: String,
    /// The URL of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<RecordedText>,
    /// The status of the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

impl AuthEntry {
    /// Creates the entry for a step.
    pub fn new(step: impl Into<String>) -> Self {
        Self {
            step: step.into(),
            url: None,
            status: None,
        }
    }
}

/// A violation of the protocol that was tolerated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AnomalyEntry {
    /// The id of the rule.
    pub rule: String,
    /// The description.
    pub text: RecordedText,
}

impl AnomalyEntry {
    /// Creates the entry for a violation.
    pub fn new(rule: impl Into<String>, text: impl Into<RecordedText>) -> Self {
        Self {
            rule: rule.into(),
            text: text.into(),
        }
    }
}

/// Entries are missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GapEntry {
    /// The number of missing entries, as far as it is known.
    pub dropped: u64,
    /// The reason: `queue`, `entry`, `body`, `encoding`, `file` or `memory`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl GapEntry {
    /// Creates the entry for missing entries.
    pub fn new(dropped: u64, reason: impl Into<String>) -> Self {
        Self {
            dropped,
            reason: Some(reason.into()),
        }
    }
}

/// An entry of a kind that this version does not know. It is written again as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownEntry {
    /// The kind.
    pub kind: String,
    /// A JSON object with the members that not every entry has.
    members: String,
}

impl UnknownEntry {
    pub(super) fn new(kind: String, line: &RawObject<'_>) -> Self {
        let mut members = Vec::from(b"{");
        for (name, value) in line.members() {
            if matches!(&*name, "seq" | "t" | "conn" | "kind") {
                continue;
            }
            if members.len() > 1 {
                members.push(b',');
            }
            super::entry::append_json(&mut members, &*name);
            members.push(b':');
            members.extend_from_slice(value.as_bytes());
        }
        members.push(b'}');
        let members = String::from_utf8_lossy(&members).into_owned();
        Self { kind, members }
    }

    /// Returns a JSON object with the members that not every entry has.
    pub fn members(&self) -> &str {
        &self.members
    }

    pub(super) fn set_members(&mut self, members: String) {
        self.members = members;
    }
}
