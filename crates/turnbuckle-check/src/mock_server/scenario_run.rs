//! The messages of a client in a scenario.

use serde_json::Value;
use tokio::time::Instant;
use turnbuckle_client::stdio::ProcessExited;
use turnbuckle_protocol::revision::Revision;

use super::scenario::Scenario;
use crate::engine::{
    outcome::{Evidence, NotPassed, ObservedViolation, Outcome},
    transcript::{Direction, HttpHead, TranscriptEntry},
};

/// The maximum number of evidence entries for a passed rule.
const MAX_EVIDENCE: usize = 3;

/// A run of the client in a scenario.
pub(crate) struct ScenarioRun {
    pub(crate) scenario: Scenario,
    /// The revision of the mock server.
    pub(crate) server_revision: Revision,
    /// The transcript entries, with their numbers.
    pub(crate) entries: Vec<(usize, TranscriptEntry)>,
    /// The end of the run.
    pub(crate) end: ScenarioEnd,
    /// Timestamps of events.
    pub(crate) notes: Vec<(&'static str, Instant)>,
    client_messages: Vec<ClientMessage>,
    server_messages: Vec<ServerMessage>,
}

/// A message of the mock server.
struct ServerMessage {
    number: usize,
    response_to: Option<usize>,
    value: Value,
}

/// The end of a client run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ScenarioEnd {
    /// The client finished.
    Finished,
    /// The process exited.
    Exited(ProcessExited),
    /// The client was idle.
    Idle,
    /// The time was over.
    TimedOut,
    /// The client exceeded the message limit.
    OverLimit,
    /// The client could not be started.
    NotStarted(String),
}

/// A message of the client.
#[derive(Clone, Debug)]
pub(crate) struct ClientMessage {
    /// The number of its entry; messages of a batch share one.
    pub(crate) number: usize,
    pub(crate) value: Value,
    /// The HTTP head.
    pub(crate) head: Option<HttpHead>,
    pub(crate) channel: usize,
}

/// The runs of a client in one revision on one transport.
pub(crate) struct ScenarioRuns {
    pub(crate) revision: Revision,
    runs: Vec<ScenarioRun>,
}

impl ScenarioRun {
    pub(crate) fn new(
        scenario: Scenario,
        server_revision: Revision,
        entries: Vec<(usize, TranscriptEntry)>,
        end: ScenarioEnd,
        notes: Vec<(&'static str, Instant)>,
    ) -> Self {
        let received = entries
            .iter()
            .filter(|(_, entry)| entry.direction == Direction::Received);
        let client_messages = received
            .flat_map(|(number, entry)| ClientMessage::parse(*number, entry))
            .collect();
        let sent = entries
            .iter()
            .filter(|(_, entry)| entry.direction == Direction::Sent);
        let server_messages = sent
            .flat_map(|(number, entry)| ServerMessage::parse(*number, entry))
            .collect();
        Self {
            scenario,
            server_revision,
            entries,
            end,
            notes,
            client_messages,
            server_messages,
        }
    }

    /// Returns the messages of the client.
    pub(crate) fn messages(&self) -> &[ClientMessage] {
        &self.client_messages
    }

    /// Returns the requests of the client.
    pub(crate) fn requests(&self) -> impl Iterator<Item = &ClientMessage> {
        self.client_messages
            .iter()
            .filter(|message| message.is_request())
    }

    /// Returns the requests for a method.
    pub(crate) fn requests_for<'a>(
        &'a self,
        method: &'a str,
    ) -> impl Iterator<Item = &'a ClientMessage> {
        self.requests()
            .filter(move |message| message.method() == Some(method))
    }

    /// Returns the response to a request: its entry and the message.
    pub(crate) fn response_to(&self, request: &ClientMessage) -> Option<(usize, &Value)> {
        let mut messages = self.server_messages.iter();
        let found = messages.find(|message| {
            message.response_to == Some(request.number)
                && message.value.get("method").is_none()
                && message.value.get("id") == request.id()
        });
        found.map(|message| (message.number, &message.value))
    }

    /// Returns whether a request was rejected with an HTTP error, so that it was not processed.
    pub(crate) fn is_http_rejected(&self, request: &ClientMessage) -> bool {
        self.entries.iter().any(|(_, entry)| {
            let responses =
                entry.direction == Direction::Sent && entry.response_to == Some(request.number);
            let head = entry.head.as_ref().filter(|_| responses);
            head.is_some_and(|head| head.start_line.starts_with('4'))
        })
    }

    /// Returns a header of the response to a request.
    pub(crate) fn response_header(&self, request: &ClientMessage, name: &str) -> Option<&str> {
        self.entries.iter().find_map(|(_, entry)| {
            let responses =
                entry.direction == Direction::Sent && entry.response_to == Some(request.number);
            entry.head.as_ref().filter(|_| responses)?.header(name)
        })
    }

    /// Returns whether an entry probes for the modern era and thus is outside of any session.
    pub(crate) fn is_version_probe(&self, number: usize) -> bool {
        self.client_messages.iter().any(|message| {
            let modern = message.method() == Some("server/discover")
                || message.meta("protocolVersion").is_some();
            message.number == number && modern
        })
    }

    /// Returns the entry of a server request.
    pub(crate) fn request_entry(&self, id: &Value) -> Option<usize> {
        let mut messages = self.server_messages.iter();
        let is_request = |message: &&ServerMessage| {
            message.value.get("method").is_some() && message.value.get("id") == Some(id)
        };
        messages.find(is_request).map(|message| message.number)
    }

    /// Returns the response of the client to a server request.
    pub(crate) fn client_response(&self, id: &Value) -> Option<&ClientMessage> {
        let mut message = self.client_messages.iter();
        message.find(|message| message.is_response() && message.id() == Some(id))
    }

    /// Returns the HTTP requests of the client.
    pub(crate) fn http_requests(
        &self,
    ) -> impl Iterator<Item = (usize, &HttpHead, &TranscriptEntry)> {
        self.entries.iter().filter_map(|(number, entry)| {
            let head = entry.head.as_ref()?;
            (entry.direction == Direction::Received).then_some((*number, head, entry))
        })
    }

    /// Returns the distinct methods of the requests, in order.
    pub(crate) fn methods(&self) -> Vec<&str> {
        let mut methods = Vec::new();
        for method in self.requests().filter_map(ClientMessage::method) {
            if !methods.contains(&method) {
                methods.push(method);
            }
        }
        methods
    }
}

impl ScenarioRuns {
    pub(crate) fn new(revision: Revision) -> Self {
        Self {
            revision,
            runs: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, run: ScenarioRun) {
        self.runs.push(run);
    }

    /// Returns the run of a scenario.
    pub(crate) fn get(&self, scenario: Scenario) -> Result<&ScenarioRun, NotPassed> {
        let found = self.runs.iter().find(|run| run.scenario == scenario);
        found.ok_or_else(|| {
            NotPassed::not_applicable("the scenario does not exist in this revision")
        })
    }

    /// Returns the runs in the revision under test.
    pub(crate) fn all(&self) -> impl Iterator<Item = &ScenarioRun> {
        let runs = self.runs.iter();
        runs.filter(|run| run.server_revision == self.revision)
    }

    /// Returns the messages that belong to the revision.
    pub(crate) fn messages(&self) -> impl Iterator<Item = &ClientMessage> {
        let modern = self.revision.is_stateless();
        self.all()
            .flat_map(ScenarioRun::messages)
            .filter(move |message| {
                message.is_modern_only() == Some(modern) || message.is_modern_only().is_none()
            })
    }

    /// Returns the requests that belong to the revision.
    pub(crate) fn requests(&self) -> impl Iterator<Item = &ClientMessage> {
        self.messages().filter(|message| message.is_request())
    }
}

impl ServerMessage {
    fn parse(number: usize, entry: &TranscriptEntry) -> Vec<Self> {
        let messages = match entry.json() {
            Some(Value::Array(messages)) => messages,
            Some(message) => vec![message],
            None => Vec::new(),
        };
        let server_message = |value| Self {
            number,
            response_to: entry.response_to,
            value,
        };
        messages.into_iter().map(server_message).collect()
    }
}

impl ClientMessage {
    fn parse(number: usize, entry: &TranscriptEntry) -> Vec<Self> {
        let client_message = |value| Self {
            number,
            value,
            head: entry.head.clone(),
            channel: entry.channel,
        };
        // Other POSTs belong to authorization.
        let is_other_path = entry.head.as_ref().is_some_and(|head| {
            let locations = ["POST /mcp", "POST /messages"];
            !locations
                .iter()
                .any(|path| head.start_line.starts_with(path))
        });
        match entry.json().filter(|_| !is_other_path) {
            Some(Value::Array(messages)) => messages.into_iter().map(client_message).collect(),
            Some(message @ Value::Object(_)) => vec![client_message(message)],
            _ => Vec::new(),
        }
    }

    pub(crate) fn method(&self) -> Option<&str> {
        self.value.get("method").and_then(Value::as_str)
    }

    pub(crate) fn id(&self) -> Option<&Value> {
        self.value.get("id")
    }

    pub(crate) fn params(&self) -> &Value {
        &self.value["params"]
    }

    /// Returns a `_meta` member of the protocol.
    pub(crate) fn meta(&self, name: &str) -> Option<&Value> {
        let meta = self.params().get("_meta")?;
        meta.get(format!("io.modelcontextprotocol/{name}"))
    }

    pub(crate) fn is_request(&self) -> bool {
        self.value.get("method").is_some() && !self.is_notification()
    }

    /// Returns whether this is a notification, even if it wrongly has an id.
    pub(crate) fn is_notification(&self) -> bool {
        match self.method() {
            Some(method) => self.id().is_none() || method.starts_with("notifications/"),
            None => false,
        }
    }

    pub(crate) fn is_response(&self) -> bool {
        self.value.get("method").is_none()
            && (self.value.get("result").is_some() || self.value.get("error").is_some())
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.as_ref()?.header(name)
    }

    /// Returns whether both messages were sent to the same server; on ndjson each connection is a
    /// separate process.
    pub(crate) fn is_same_server(&self, other: &Self) -> bool {
        self.head.is_some() || self.channel == other.channel
    }

    /// Returns the era of a method that exists in one only; a client may try both eras.
    fn is_modern_only(&self) -> Option<bool> {
        match self.method()? {
            "server/discover" => Some(true),
            "initialize" | "notifications/initialized" => Some(false),
            _ => None,
        }
    }
}

/// Checks each message; `find_violation` returns the violation, if any.
pub(crate) fn check_each<'a, V: Into<ObservedViolation>>(
    messages: impl IntoIterator<Item = &'a ClientMessage>,
    none: &str,
    find_violation: impl Fn(&ClientMessage) -> Option<V>,
) -> Outcome {
    let mut evidence = Vec::new();
    for message in messages {
        if let Some(violation) = find_violation(message) {
            return Err(violation.into().into_not_passed([message.number]));
        }
        if evidence.len() < MAX_EVIDENCE {
            evidence.push(message.number);
        }
    }
    if evidence.is_empty() {
        Err(NotPassed::not_tested(none))
    } else {
        Evidence::from_entries(evidence)
    }
}
