//! Scans the transcript, and validates every message of the server.

use std::collections::HashMap;

use serde_json::Value;
use turnbuckle_protocol::revision::Revision;

use super::{SchemaFinding, SchemaFindings, topic::SchemaTopic};
use crate::{
    engine::{
        check_context::CheckContext,
        transcript::{Direction, Transcript, TranscriptEntry},
    },
    message_schema::{self, MessageKind, SchemaViolation},
    session::request_builder::RequestBuilder,
};

/// The maximum number of violations per topic.
const MAX_VIOLATIONS: usize = 100;

/// A sent request.
#[derive(Clone)]
struct SentRequest {
    entry: usize,
    method: String,
    /// The revision of the response, if known.
    revision: Option<Revision>,
}

/// The state of a scan.
struct MessageScan {
    revision: Revision,
    has_handshake: bool,
    findings: SchemaFindings,
    /// The sent requests, by channel and id.
    requests: HashMap<(usize, String), SentRequest>,
    /// The negotiated revisions, by session or channel.
    negotiated: HashMap<String, Revision>,
    /// The channel of each entry so far.
    channels: Vec<usize>,
}

/// Validates every message of the server.
pub(super) fn scan(ctx: &CheckContext, transcript: &Transcript) -> SchemaFindings {
    let mut scan = MessageScan {
        revision: ctx.revision,
        has_handshake: RequestBuilder::new(ctx.revision).has_handshake(),
        findings: SchemaFindings::default(),
        requests: HashMap::new(),
        negotiated: HashMap::new(),
        channels: Vec::new(),
    };
    for (number, entry) in transcript.all() {
        scan.channels.push(entry.channel);
        let Some(value) = entry.json() else { continue };
        match entry.direction {
            Direction::Sent => scan.sent(number, &entry, &value),
            Direction::Received if is_json_rpc(&entry, &value) => {
                scan.received(number, &entry, &value);
            }
            Direction::Received => {}
        }
    }
    scan.findings
}

/// Returns whether a received value is meant as a message: an HTTP body may be anything.
fn is_json_rpc(entry: &TranscriptEntry, value: &Value) -> bool {
    match (&entry.head, &entry.event) {
        (Some(head), None) => {
            let first = value.get(0).unwrap_or(value);
            head.start_line == "200" && entry.response_to.is_some() && !is_document(value)
                || first.get("jsonrpc").is_some()
        }
        (_, Some(event)) => event.name.is_empty() || event.name == "message",
        (None, None) => true,
    }
}

/// Returns whether the value is a document of another endpoint, such as resource metadata or a health status.
fn is_document(value: &Value) -> bool {
    let members = ["jsonrpc", "id", "result", "error", "method"];
    value.is_object() && members.iter().all(|name| value.get(name).is_none())
}

impl MessageScan {
    fn sent(&mut self, number: usize, entry: &TranscriptEntry, value: &Value) {
        let all = match value {
            Value::Array(all) => all.as_slice(),
            one => std::slice::from_ref(one),
        };
        for message in all {
            if let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) {
                let request = SentRequest {
                    entry: number,
                    method: method.to_owned(),
                    revision: self.revision_of(entry, message),
                };
                self.requests
                    .insert((entry.channel, id.to_string()), request);
            }
        }
    }

    /// Returns the revision of the response to a request, if known.
    ///
    /// Rules mix the eras on purpose: the check of one revision may send messages of another.
    fn revision_of(&self, entry: &TranscriptEntry, message: &Value) -> Option<Revision> {
        let key = "io.modelcontextprotocol/protocolVersion";
        if let Some(version) = message["params"]["_meta"][key].as_str() {
            return version.parse().ok();
        }
        let negotiated = self.negotiated.get(&session_key(entry)).copied();
        negotiated.or_else(|| self.has_handshake.then_some(self.revision))
    }

    fn received(&mut self, number: usize, entry: &TranscriptEntry, value: &Value) {
        for message in message_schema::messages(self.revision, value) {
            let (kind, violations) = message_schema::envelope(message);
            self.add_evidence(SchemaTopic::Envelope, number);
            self.add_violations(SchemaTopic::Envelope, violations, &[number]);
            if let Some(kind) = kind {
                self.message(number, entry, kind, message);
            }
        }
    }

    fn message(
        &mut self,
        number: usize,
        entry: &TranscriptEntry,
        kind: MessageKind,
        message: &Value,
    ) {
        let request = match kind {
            MessageKind::Result | MessageKind::Error => self.request_for(entry, message),
            MessageKind::Request | MessageKind::Notification => None,
        };
        let own_method = message["method"].as_str();
        let method = request
            .as_ref()
            .map(|request| request.method.as_str())
            .or(own_method);
        if let (MessageKind::Result, Some("initialize")) = (kind, method) {
            self.store_negotiated(entry, message);
        }
        let negotiated = self.negotiated.get(&session_key(entry)).copied();
        let revision = match &request {
            Some(request) if request.method == "initialize" => negotiated.or(request.revision),
            Some(request) => request.revision,
            None => negotiated.or(Some(self.revision)),
        };
        // Errors have the same schema for all requests.
        let topic =
            SchemaTopic::for_message(kind, method.or((kind == MessageKind::Error).then_some("")));
        let (Some(topic), Some(revision)) = (topic, revision) else {
            return;
        };
        let mut violations = match (kind, method) {
            (MessageKind::Request, _) => message_schema::request(revision, message),
            (MessageKind::Notification, _) => message_schema::notification(revision, message),
            (MessageKind::Error, _) => message_schema::error(revision, message),
            (MessageKind::Result, Some(method)) => {
                message_schema::result(revision, method, message)
            }
            (MessageKind::Result, None) => return,
        };
        violations.retain(|violation| {
            !SchemaTopic::is_covered_by_other_rule(&violation.path, method, message)
        });
        let entries: Vec<_> = request
            .iter()
            .map(|request| request.entry)
            .chain([number])
            .collect();
        for topic in topics_in(topic, message) {
            self.add_evidence(topic, number);
        }
        self.add_violations(topic, violations, &entries);
    }

    /// Returns the request of a response.
    fn request_for(&self, entry: &TranscriptEntry, message: &Value) -> Option<SentRequest> {
        let id = message.get("id")?.to_string();
        let request_channel = entry.response_to.and_then(|sent| self.channels.get(sent));
        let channels = request_channel.into_iter().chain([&entry.channel]);
        let mut found = channels.filter_map(|&channel| self.requests.get(&(channel, id.clone())));
        found.next().cloned()
    }

    /// Stores the negotiated revision of a handshake.
    fn store_negotiated(&mut self, entry: &TranscriptEntry, message: &Value) {
        let version = message["result"]["protocolVersion"].as_str();
        let Some(revision) = version.and_then(|version| version.parse().ok()) else {
            return;
        };
        self.negotiated.insert(session_key(entry), revision);
    }

    fn add_evidence(&mut self, topic: SchemaTopic, entry: usize) {
        self.findings.evidence.entry(topic).or_default().push(entry);
    }

    fn add_violations(
        &mut self,
        topic: SchemaTopic,
        violations: Vec<SchemaViolation>,
        entries: &[usize],
    ) {
        for violation in violations {
            let found = self
                .findings
                .violations
                .entry(topic.for_path(&violation.path))
                .or_default();
            if found.len() < MAX_VIOLATIONS
                && !found.iter().any(|other| other.violation == violation)
            {
                let entries = entries.to_vec();
                found.push(SchemaFinding { violation, entries });
            }
        }
    }
}

/// Returns the key of a session: its id on HTTP, its channel on other transports.
fn session_key(entry: &TranscriptEntry) -> String {
    let session = entry
        .head
        .as_ref()
        .and_then(|head| head.header("mcp-session-id"));
    match session {
        Some(session) => session.to_owned(),
        None => format!("channel {}", entry.channel),
    }
}

/// Returns all topics of a message.
fn topics_in(topic: SchemaTopic, message: &Value) -> Vec<SchemaTopic> {
    let mut topics = vec![topic];
    let Some(result) = message.get("result") else {
        return topics;
    };
    topics.push(SchemaTopic::Meta);
    let has = |name: &str| result.get(name).is_some();
    let topic_flags = [
        (has("resultType"), SchemaTopic::ResultType),
        (has("ttlMs") && has("cacheScope"), SchemaTopic::Caching),
        (has("content") || has("messages"), SchemaTopic::Content),
        (has("inputRequests"), SchemaTopic::Requests),
        (has("task") || has("taskId"), SchemaTopic::Tasks),
        (
            has("serverInfo")
                || result["_meta"]
                    .get("io.modelcontextprotocol/serverInfo")
                    .is_some(),
            SchemaTopic::ServerInfo,
        ),
    ];
    let present = topic_flags
        .into_iter()
        .filter(|(is_present, _)| *is_present);
    topics.extend(present.map(|(_, topic)| topic));
    topics
}
