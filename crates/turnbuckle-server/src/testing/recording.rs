//! Recorded messages and their transcript.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard},
};

use serde_json::{Map, Value};

use crate::sync::lock;

/// A recorded message.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RecordedMessage {
    /// The direction.
    pub direction: MessageDirection,
    /// The whole message.
    pub json: Value,
}

/// The direction of a message, from the client's view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageDirection {
    /// From the client to the server.
    Sent,
    /// From the server to the client.
    Received,
}

impl RecordedMessage {
    /// The method, of a request or a notification.
    pub fn method(&self) -> Option<&str> {
        self.json.get("method").and_then(Value::as_str)
    }

    /// Returns whether it is a notification.
    pub fn is_notification(&self) -> bool {
        self.method().is_some() && self.json.get("id").is_none()
    }
}

/// All messages of one peer. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Recording {
    title: Arc<str>,
    messages: Arc<Mutex<Vec<RecordedMessage>>>,
}

impl Recording {
    pub(super) fn new(title: impl fmt::Display) -> Self {
        Self {
            title: title.to_string().into(),
            messages: Arc::default(),
        }
    }

    pub(super) fn note(&self, direction: MessageDirection, json: &Value) {
        let json = json.clone();
        self.lock().push(RecordedMessage { direction, json });
    }

    pub(super) fn messages(&self) -> Vec<RecordedMessage> {
        self.lock().clone()
    }

    /// Returns the transcript, one line per message.
    pub(super) fn transcript(&self) -> String {
        let mut transcript = Transcript::default();
        let messages = self.lock();
        let lines = messages.iter().map(|message| transcript.line(message));
        lines.collect()
    }

    /// Fails the test with the transcript.
    #[track_caller]
    pub(super) fn fail(&self, why: impl fmt::Display) -> ! {
        let transcript = self.transcript();
        let transcript_text = match transcript.as_str() {
            "" => "no messages",
            transcript_text => transcript_text,
        };
        panic!("{why}\n\n{}:\n{transcript_text}", self.title)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<RecordedMessage>> {
        lock(&self.messages)
    }
}

/// Metadata that every request and result repeats.
const OMITTED_META: [&str; 5] = [
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/logLevel",
    "io.modelcontextprotocol/serverInfo",
];

/// Members of the server's author, shown unchanged.
const VERBATIM: [&str; 3] = ["arguments", "content", "structuredContent"];

/// Members with varying values.
const VOLATILE: [&str; 5] = [
    "requestState",
    "cursor",
    "nextCursor",
    "createdAt",
    "lastUpdatedAt",
];

/// Formats messages, and numbers requests and tasks in order of appearance.
#[derive(Default)]
struct Transcript {
    client_requests: HashMap<String, usize>,
    tasks: HashMap<String, usize>,
}

impl Transcript {
    /// Formats one message.
    fn line(&mut self, message: &RecordedMessage) -> String {
        let arrow = match message.direction {
            MessageDirection::Sent => '→',
            MessageDirection::Received => '←',
        };
        let json = &message.json;
        let mut line = arrow.to_string();
        if let Some(method) = message.method() {
            line = format!("{line} {method}");
        }
        if let Some(id) = json.get("id") {
            line = format!("{line} {}", self.id(message, id));
        }
        if let Some(error) = json.get("error") {
            line = format!("{line} error {}", self.normalize(error));
        }
        for member in ["params", "result"] {
            let normalized = json.get(member).map(|value| self.normalize(value));
            if let Some(value) = normalized.filter(|value| !is_empty(value)) {
                line = format!("{line} {value}");
            } else if member == "result" && json.get(member).is_some() {
                line.push_str(" {}");
            }
        }
        if json.as_object().is_none() {
            line = format!("{line} {json}");
        }
        line.push('\n');
        line
    }

    /// Ids of server requests start at a random value, so they are numbered here.
    fn id(&mut self, message: &RecordedMessage, id: &Value) -> String {
        let is_server_request =
            message.method().is_some() == (message.direction == MessageDirection::Received);
        if is_server_request && !id.is_null() {
            let next = self.client_requests.len() + 1;
            let number = self.client_requests.entry(id.to_string()).or_insert(next);
            return format!("?{number}");
        }
        format!("#{id}")
    }

    fn normalize(&mut self, value: &Value) -> Value {
        match value {
            Value::Object(members) => {
                let normalized = members
                    .iter()
                    .filter_map(|(key, value)| Some((key.clone(), self.member(key, value)?)));
                Value::Object(normalized.collect())
            }
            Value::Array(items) => items.iter().map(|item| self.normalize(item)).collect(),
            other => other.clone(),
        }
    }

    fn member(&mut self, key: &str, value: &Value) -> Option<Value> {
        match (key, value) {
            (key, _) if VERBATIM.contains(&key) => Some(value.clone()),
            (key, Value::String(_)) if VOLATILE.contains(&key) => Some("…".into()),
            ("progressToken", token) => Some(self.token(token)),
            ("taskId", Value::String(id)) => Some(self.task(id)),
            ("taskIds", Value::Array(ids)) => Some(
                ids.iter()
                    .filter_map(Value::as_str)
                    .map(|id| self.task(id))
                    .collect(),
            ),
            ("_meta", Value::Object(meta)) => {
                let mut members: Map<_, _> = meta.clone();
                members.retain(|key, _| !OMITTED_META.contains(&key.as_str()));
                let normalized = self.normalize(&Value::Object(members));
                (!is_empty(&normalized)).then_some(normalized)
            }
            _ => Some(self.normalize(value)),
        }
    }

    /// The id of a server request is also its progress token.
    fn token(&self, token: &Value) -> Value {
        let request = self.client_requests.get(&token.to_string());
        request.map_or(token.clone(), |number| format!("?{number}").into())
    }

    fn task(&mut self, id: &str) -> Value {
        let next = self.tasks.len() + 1;
        let number = self.tasks.entry(id.to_owned()).or_insert(next);
        format!("task-{number}").into()
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty)
}
