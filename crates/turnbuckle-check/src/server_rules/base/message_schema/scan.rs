//! Goes through all that was said, and looks at every message of the server's.

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

/// How many flaws of a topic are kept.
const KEPT: usize = 100;

/// A request that was sent, and which answers are its own.
#[derive(Clone)]
struct SentRequest {
    entry: usize,
    method: String,
    /// The revision in which it is answered, if that can be told.
    revision: Option<Revision>,
}

/// What is known while the tape is gone through.
struct MessageScan {
    revision: Revision,
    has_handshake: bool,
    findings: SchemaFindings,
    /// Requests by channel and id.
    asked: HashMap<(usize, String), SentRequest>,
    /// What was agreed on by a handshake, on channels and in sessions.
    agreed: HashMap<String, Revision>,
    /// The channels of entries that others answer.
    channels: Vec<usize>,
}

/// Looks at every message of the server's.
pub(super) fn listen(ctx: &CheckContext, transcript: &Transcript) -> SchemaFindings {
    let mut hearing = MessageScan {
        revision: ctx.revision,
        has_handshake: RequestBuilder::new(ctx.revision).has_handshake(),
        findings: SchemaFindings::default(),
        asked: HashMap::new(),
        agreed: HashMap::new(),
        channels: Vec::new(),
    };
    for (number, entry) in transcript.all() {
        hearing.channels.push(entry.channel);
        let Some(value) = entry.json() else { continue };
        match entry.direction {
            Direction::Sent => hearing.sent(number, &entry, &value),
            Direction::Received if is_of_json_rpc(&entry, &value) => {
                hearing.received(number, &entry, &value);
            }
            Direction::Received => {}
        }
    }
    hearing.findings
}

/// Says whether what was received means to be a message: bodies of HTTP may be anything else.
fn is_of_json_rpc(entry: &TranscriptEntry, value: &Value) -> bool {
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

/// Says whether it is what servers answer to a GET: the metadata of a resource, a page of health.
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
                let asked = SentRequest {
                    entry: number,
                    method: method.to_owned(),
                    revision: self.revision_of(entry, message),
                };
                self.asked.insert((entry.channel, id.to_string()), asked);
            }
        }
    }

    /// Returns the revision in which a request is answered, if that can be told.
    ///
    /// Rules mix the eras on purpose: in a visit of one revision there may be messages of another.
    fn revision_of(&self, entry: &TranscriptEntry, message: &Value) -> Option<Revision> {
        let key = "io.modelcontextprotocol/protocolVersion";
        if let Some(version) = message["params"]["_meta"][key].as_str() {
            return version.parse().ok();
        }
        let agreed = self.agreed.get(&place(entry)).copied();
        agreed.or_else(|| self.has_handshake.then_some(self.revision))
    }

    fn received(&mut self, number: usize, entry: &TranscriptEntry, value: &Value) {
        for message in message_schema::messages(self.revision, value) {
            let (kind, violations) = message_schema::envelope(message);
            self.see(SchemaTopic::Envelope, number);
            self.find(SchemaTopic::Envelope, violations, &[number]);
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
        let asked = match kind {
            MessageKind::Result | MessageKind::Error => self.client_request(entry, message),
            MessageKind::Request | MessageKind::Notification => None,
        };
        let own = message["method"].as_str();
        let method = asked.as_ref().map(|asked| asked.method.as_str()).or(own);
        if let (MessageKind::Result, Some("initialize")) = (kind, method) {
            self.agree(entry, message);
        }
        let agreed = self.agreed.get(&place(entry)).copied();
        let revision = match &asked {
            Some(asked) if asked.method == "initialize" => agreed.or(asked.revision),
            Some(asked) => asked.revision,
            None => agreed.or(Some(self.revision)),
        };
        // Errors look the same whatever was asked, if anything was.
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
            !SchemaTopic::is_judged_elsewhere(&violation.path, method, message)
        });
        let entries: Vec<_> = asked
            .iter()
            .map(|asked| asked.entry)
            .chain([number])
            .collect();
        for topic in topics_in(topic, message) {
            self.see(topic, number);
        }
        self.find(topic, violations, &entries);
    }

    /// Returns the request that a message answers.
    fn client_request(&self, entry: &TranscriptEntry, message: &Value) -> Option<SentRequest> {
        let id = message.get("id")?.to_string();
        let of_answered = entry.response_to.and_then(|sent| self.channels.get(sent));
        let channels = of_answered.into_iter().chain([&entry.channel]);
        let mut found = channels.filter_map(|&channel| self.asked.get(&(channel, id.clone())));
        found.next().cloned()
    }

    /// Remembers what a handshake has agreed on.
    fn agree(&mut self, entry: &TranscriptEntry, message: &Value) {
        let version = message["result"]["protocolVersion"].as_str();
        let Some(revision) = version.and_then(|version| version.parse().ok()) else {
            return;
        };
        self.agreed.insert(place(entry), revision);
    }

    fn see(&mut self, topic: SchemaTopic, entry: usize) {
        self.findings.evidence.entry(topic).or_default().push(entry);
    }

    fn find(&mut self, topic: SchemaTopic, violations: Vec<SchemaViolation>, entries: &[usize]) {
        for violation in violations {
            let found = self
                .findings
                .violations
                .entry(topic.of_place(&violation.path))
                .or_default();
            if found.len() < KEPT && !found.iter().any(|other| other.violation == violation) {
                let entries = entries.to_vec();
                found.push(SchemaFinding { violation, entries });
            }
        }
    }
}

/// Returns where a handshake counts: in its session on HTTP, on its connection elsewhere.
fn place(entry: &TranscriptEntry) -> String {
    let session = entry
        .head
        .as_ref()
        .and_then(|head| head.header("mcp-session-id"));
    match session {
        Some(session) => session.to_owned(),
        None => format!("channel {}", entry.channel),
    }
}

/// Returns all topics of which there is something in a message.
fn topics_in(topic: SchemaTopic, message: &Value) -> Vec<SchemaTopic> {
    let mut topics = vec![topic];
    let Some(result) = message.get("result") else {
        return topics;
    };
    topics.push(SchemaTopic::Meta);
    let has = |name: &str| result.get(name).is_some();
    let some = [
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
    let there = some.into_iter().filter(|(there, _)| *there);
    topics.extend(there.map(|(_, topic)| topic));
    topics
}
