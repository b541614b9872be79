//! Goes through all that was said, and looks at every message of the server's.

use std::collections::HashMap;

use serde_json::Value;
use turnbuckle_protocol::revision::Revision;

use super::topic::Topic;
use super::{Finding, Findings};
use crate::shape::{self, Flaw, Kind};
use crate::speech::Speech;
use crate::tape::{Entry, Tape, Way};
use crate::visit::Visit;

/// How many flaws of a topic are kept.
const KEPT: usize = 100;

/// A request that was sent, and which answers are its own.
#[derive(Clone)]
struct Asked {
    entry: usize,
    method: String,
    /// The revision in which it is answered, if that can be told.
    revision: Option<Revision>,
}

/// What is known while the tape is gone through.
struct Hearing {
    revision: Revision,
    has_handshake: bool,
    findings: Findings,
    /// Requests by channel and id.
    asked: HashMap<(usize, String), Asked>,
    /// What was agreed on by a handshake, on channels and in sessions.
    agreed: HashMap<String, Revision>,
    /// The channels of entries that others answer.
    channels: Vec<usize>,
}

/// Looks at every message of the server's.
pub(super) fn listen(visit: &Visit, tape: &Tape) -> Findings {
    let mut hearing = Hearing {
        revision: visit.revision,
        has_handshake: Speech::new(visit.revision).has_handshake(),
        findings: Findings::default(),
        asked: HashMap::new(),
        agreed: HashMap::new(),
        channels: Vec::new(),
    };
    for (number, entry) in tape.all() {
        hearing.channels.push(entry.channel);
        let Some(value) = entry.json() else { continue };
        match entry.way {
            Way::Sent => hearing.sent(number, &entry, &value),
            Way::Received if is_of_json_rpc(&entry, &value) => {
                hearing.received(number, &entry, &value);
            }
            Way::Received => {}
        }
    }
    hearing.findings
}

/// Says whether what was received means to be a message: bodies of HTTP may be anything else.
fn is_of_json_rpc(entry: &Entry, value: &Value) -> bool {
    match (&entry.head, &entry.event) {
        (Some(head), None) => {
            let first = value.get(0).unwrap_or(value);
            head.line == "200" && entry.answers.is_some() && !is_document(value)
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

impl Hearing {
    fn sent(&mut self, number: usize, entry: &Entry, value: &Value) {
        let all = match value {
            Value::Array(all) => all.as_slice(),
            one => std::slice::from_ref(one),
        };
        for message in all {
            if let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) {
                let asked = Asked {
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
    fn revision_of(&self, entry: &Entry, message: &Value) -> Option<Revision> {
        let key = "io.modelcontextprotocol/protocolVersion";
        if let Some(version) = message["params"]["_meta"][key].as_str() {
            return version.parse().ok();
        }
        let agreed = self.agreed.get(&place(entry)).copied();
        agreed.or_else(|| self.has_handshake.then_some(self.revision))
    }

    fn received(&mut self, number: usize, entry: &Entry, value: &Value) {
        for message in shape::messages(self.revision, value) {
            let (kind, flaws) = shape::envelope(message);
            self.see(Topic::Envelope, number);
            self.find(Topic::Envelope, flaws, &[number]);
            if let Some(kind) = kind {
                self.message(number, entry, kind, message);
            }
        }
    }

    fn message(&mut self, number: usize, entry: &Entry, kind: Kind, message: &Value) {
        let asked = match kind {
            Kind::Result | Kind::Error => self.question(entry, message),
            Kind::Request | Kind::Notification => None,
        };
        let own = message["method"].as_str();
        let method = asked.as_ref().map(|asked| asked.method.as_str()).or(own);
        if let (Kind::Result, Some("initialize")) = (kind, method) {
            self.agree(entry, message);
        }
        let agreed = self.agreed.get(&place(entry)).copied();
        let revision = match &asked {
            Some(asked) if asked.method == "initialize" => agreed.or(asked.revision),
            Some(asked) => asked.revision,
            None => agreed.or(Some(self.revision)),
        };
        // Errors look the same whatever was asked, if anything was.
        let topic = Topic::of(kind, method.or((kind == Kind::Error).then_some("")));
        let (Some(topic), Some(revision)) = (topic, revision) else {
            return;
        };
        let mut flaws = match (kind, method) {
            (Kind::Request, _) => shape::request(revision, message),
            (Kind::Notification, _) => shape::notification(revision, message),
            (Kind::Error, _) => shape::error(revision, message),
            (Kind::Result, Some(method)) => shape::result(revision, method, message),
            (Kind::Result, None) => return,
        };
        flaws.retain(|flaw| !Topic::is_judged_elsewhere(&flaw.path, method, message));
        let entries: Vec<_> = asked
            .iter()
            .map(|asked| asked.entry)
            .chain([number])
            .collect();
        for topic in topics_in(topic, message) {
            self.see(topic, number);
        }
        self.find(topic, flaws, &entries);
    }

    /// Returns the request that a message answers.
    fn question(&self, entry: &Entry, message: &Value) -> Option<Asked> {
        let id = message.get("id")?.to_string();
        let of_answered = entry.answers.and_then(|sent| self.channels.get(sent));
        let channels = of_answered.into_iter().chain([&entry.channel]);
        let mut found = channels.filter_map(|&channel| self.asked.get(&(channel, id.clone())));
        found.next().cloned()
    }

    /// Remembers what a handshake has agreed on.
    fn agree(&mut self, entry: &Entry, message: &Value) {
        let version = message["result"]["protocolVersion"].as_str();
        let Some(revision) = version.and_then(|version| version.parse().ok()) else {
            return;
        };
        self.agreed.insert(place(entry), revision);
    }

    fn see(&mut self, topic: Topic, entry: usize) {
        self.findings.seen.entry(topic).or_default().push(entry);
    }

    fn find(&mut self, topic: Topic, flaws: Vec<Flaw>, entries: &[usize]) {
        for flaw in flaws {
            let found = self
                .findings
                .flaws
                .entry(topic.of_place(&flaw.path))
                .or_default();
            if found.len() < KEPT && !found.iter().any(|other| other.flaw == flaw) {
                let entries = entries.to_vec();
                found.push(Finding { flaw, entries });
            }
        }
    }
}

/// Returns where a handshake counts: in its session on HTTP, on its connection elsewhere.
fn place(entry: &Entry) -> String {
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
fn topics_in(topic: Topic, message: &Value) -> Vec<Topic> {
    let mut topics = vec![topic];
    let Some(result) = message.get("result") else {
        return topics;
    };
    topics.push(Topic::Meta);
    let has = |name: &str| result.get(name).is_some();
    let some = [
        (has("resultType"), Topic::ResultType),
        (has("ttlMs") && has("cacheScope"), Topic::Caching),
        (has("content") || has("messages"), Topic::Content),
        (has("inputRequests"), Topic::Requests),
        (has("task") || has("taskId"), Topic::Tasks),
        (
            has("serverInfo")
                || result["_meta"]
                    .get("io.modelcontextprotocol/serverInfo")
                    .is_some(),
            Topic::ServerInfo,
        ),
    ];
    let there = some.into_iter().filter(|(there, _)| *there);
    topics.extend(there.map(|(_, topic)| topic));
    topics
}
