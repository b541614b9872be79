//! What came of playing a scene for a client: all that it said, ready to be looked at.

use serde_json::Value;
use tokio::time::Instant;
use turnbuckle_client::stdio::Died;
use turnbuckle_protocol::revision::Revision;

use super::scene::Scene;
use crate::outcome::{Outcome, Seen, Unmet};
use crate::tape::{Entry, Head, Way};

/// How many entries are shown for a rule that is kept everywhere.
const SHOWN: usize = 3;

/// A scene that was played.
pub(crate) struct Take {
    pub(crate) scene: Scene,
    /// The revision that the played server spoke.
    pub(crate) speaks: Revision,
    /// All that was said, with the numbers that it has on the tape.
    pub(crate) entries: Vec<(usize, Entry)>,
    /// How it ended.
    pub(crate) ending: Ending,
    /// What happened when.
    pub(crate) notes: Vec<(&'static str, Instant)>,
    said: Vec<Said>,
    ours: Vec<Ours>,
}

/// A message of ours.
struct Ours {
    number: usize,
    answers: Option<usize>,
    message: Value,
}

/// How the run of a client ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// By itself.
    Finished,
    /// By itself, as a process.
    Exited(Died),
    /// It said nothing any more.
    Quiet,
    /// It took too long.
    Late,
    /// It said more than anybody wants to read.
    Flooding,
    /// It could not be started, and why.
    Unstarted(String),
}

/// A message that the client said.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    /// Its entry on the tape; messages of a batch share one.
    pub(crate) number: usize,
    pub(crate) message: Value,
    /// What HTTP said before it.
    pub(crate) head: Option<Head>,
    pub(crate) channel: usize,
}

/// All scenes that were played for a client in one revision, on one transport.
pub(crate) struct Takes {
    pub(crate) revision: Revision,
    takes: Vec<Take>,
}

impl Take {
    pub(crate) fn new(
        scene: Scene,
        speaks: Revision,
        entries: Vec<(usize, Entry)>,
        ending: Ending,
        notes: Vec<(&'static str, Instant)>,
    ) -> Self {
        let received = entries
            .iter()
            .filter(|(_, entry)| entry.way == Way::Received);
        let said = received
            .flat_map(|(number, entry)| Said::of(*number, entry))
            .collect();
        let sent = entries.iter().filter(|(_, entry)| entry.way == Way::Sent);
        let ours = sent
            .flat_map(|(number, entry)| Ours::of(*number, entry))
            .collect();
        Self {
            scene,
            speaks,
            entries,
            ending,
            notes,
            said,
            ours,
        }
    }

    /// Returns what the client said, message by message.
    pub(crate) fn said(&self) -> &[Said] {
        &self.said
    }

    /// Returns the requests that the client made.
    pub(crate) fn requests(&self) -> impl Iterator<Item = &Said> {
        self.said.iter().filter(|said| said.is_request())
    }

    /// Returns the requests for a method.
    pub(crate) fn asked<'a>(&'a self, method: &'a str) -> impl Iterator<Item = &'a Said> {
        self.requests()
            .filter(move |said| said.method() == Some(method))
    }

    /// Returns our answer to a request: its number, and the message.
    pub(crate) fn answer(&self, request: &Said) -> Option<(usize, &Value)> {
        let mut ours = self.ours.iter();
        let found = ours.find(|ours| {
            ours.answers == Some(request.number)
                && ours.message.get("method").is_none()
                && ours.message.get("id") == request.id()
        });
        found.map(|ours| (ours.number, &ours.message))
    }

    /// Says whether HTTP refused a request, so that nobody looked at what it asks.
    pub(crate) fn is_refused(&self, request: &Said) -> bool {
        self.entries.iter().any(|(_, entry)| {
            let answers = entry.way == Way::Sent && entry.answers == Some(request.number);
            let head = entry.head.as_ref().filter(|_| answers);
            head.is_some_and(|head| head.line.starts_with('4'))
        })
    }

    /// Returns a header of our response to a request.
    pub(crate) fn given(&self, request: &Said, name: &str) -> Option<&str> {
        self.entries.iter().find_map(|(_, entry)| {
            let answers = entry.way == Way::Sent && entry.answers == Some(request.number);
            entry.head.as_ref().filter(|_| answers)?.header(name)
        })
    }

    /// Says whether an entry asks for revisions without a handshake: it belongs to no session.
    pub(crate) fn probes(&self, number: usize) -> bool {
        self.said.iter().any(|said| {
            let modern =
                said.method() == Some("server/discover") || said.meta("protocolVersion").is_some();
            said.number == number && modern
        })
    }

    /// Returns the entry of a question of ours.
    pub(crate) fn question(&self, id: &Value) -> Option<usize> {
        let mut ours = self.ours.iter();
        let asks = |ours: &&Ours| {
            ours.message.get("method").is_some() && ours.message.get("id") == Some(id)
        };
        ours.find(asks).map(|ours| ours.number)
    }

    /// Returns the client's answer to a question of ours.
    pub(crate) fn reply(&self, id: &Value) -> Option<&Said> {
        let mut said = self.said.iter();
        said.find(|said| said.is_response() && said.id() == Some(id))
    }

    /// Returns requests of HTTP that the client made, whatever they bring.
    pub(crate) fn exchanges(&self) -> impl Iterator<Item = (usize, &Head, &Entry)> {
        self.entries.iter().filter_map(|(number, entry)| {
            let head = entry.head.as_ref()?;
            (entry.way == Way::Received).then_some((*number, head, entry))
        })
    }

    /// Returns the methods that the client asked for, each once, in order.
    pub(crate) fn methods(&self) -> Vec<&str> {
        let mut methods = Vec::new();
        for method in self.requests().filter_map(Said::method) {
            if !methods.contains(&method) {
                methods.push(method);
            }
        }
        methods
    }
}

impl Takes {
    pub(crate) fn new(revision: Revision) -> Self {
        Self {
            revision,
            takes: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, take: Take) {
        self.takes.push(take);
    }

    /// Returns the scene as it was played.
    pub(crate) fn of(&self, scene: Scene) -> Result<&Take, Unmet> {
        let found = self.takes.iter().find(|take| take.scene == scene);
        found.ok_or_else(|| Unmet::not_applicable("there is no such thing in this revision"))
    }

    /// Returns all in which the revision was spoken that is looked at.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Take> {
        let takes = self.takes.iter();
        takes.filter(|take| take.speaks == self.revision)
    }

    /// Returns all messages of the client's that belong to the revision.
    pub(crate) fn said(&self) -> impl Iterator<Item = &Said> {
        let modern = self.revision >= Revision::MODERN;
        self.all().flat_map(Take::said).filter(move |said| {
            said.is_modern_only() == Some(modern) || said.is_modern_only().is_none()
        })
    }

    /// Returns all requests that belong to the revision.
    pub(crate) fn requests(&self) -> impl Iterator<Item = &Said> {
        self.said().filter(|said| said.is_request())
    }
}

impl Ours {
    fn of(number: usize, entry: &Entry) -> Vec<Self> {
        let messages = match entry.json() {
            Some(Value::Array(messages)) => messages,
            Some(message) => vec![message],
            None => Vec::new(),
        };
        let ours = |message| Self {
            number,
            answers: entry.answers,
            message,
        };
        messages.into_iter().map(ours).collect()
    }
}

impl Said {
    fn of(number: usize, entry: &Entry) -> Vec<Self> {
        let said = |message| Self {
            number,
            message,
            head: entry.head.clone(),
            channel: entry.channel,
        };
        // What is posted elsewhere is about authorization.
        let elsewhere = entry.head.as_ref().is_some_and(|head| {
            let places = ["POST /mcp", "POST /messages"];
            !places.iter().any(|place| head.line.starts_with(place))
        });
        match entry.json().filter(|_| !elsewhere) {
            Some(Value::Array(messages)) => messages.into_iter().map(said).collect(),
            Some(message @ Value::Object(_)) => vec![said(message)],
            _ => Vec::new(),
        }
    }

    pub(crate) fn method(&self) -> Option<&str> {
        self.message.get("method").and_then(Value::as_str)
    }

    pub(crate) fn id(&self) -> Option<&Value> {
        self.message.get("id")
    }

    pub(crate) fn params(&self) -> &Value {
        &self.message["params"]
    }

    /// Returns a member of `_meta` that is the protocol's.
    pub(crate) fn meta(&self, name: &str) -> Option<&Value> {
        let meta = self.params().get("_meta")?;
        meta.get(format!("io.modelcontextprotocol/{name}"))
    }

    pub(crate) fn is_request(&self) -> bool {
        self.message.get("method").is_some() && !self.is_notification()
    }

    /// Says whether it is a notification; one with an id is wrong, and one nevertheless.
    pub(crate) fn is_notification(&self) -> bool {
        match self.method() {
            Some(method) => self.id().is_none() || method.starts_with("notifications/"),
            None => false,
        }
    }

    pub(crate) fn is_response(&self) -> bool {
        self.message.get("method").is_none()
            && (self.message.get("result").is_some() || self.message.get("error").is_some())
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.as_ref()?.header(name)
    }

    /// Says whether both came to the same server: on lines, each connection is a process of its own.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        self.head.is_some() || self.channel == other.channel
    }

    /// Says to which era a message belongs that exists in one only: a client may try the one and then the other.
    fn is_modern_only(&self) -> Option<bool> {
        match self.method()? {
            "server/discover" => Some(true),
            "initialize" | "notifications/initialized" => Some(false),
            _ => None,
        }
    }
}

/// Judges each of some messages; `wrong` says what is wrong with one.
pub(crate) fn every<'a>(
    messages: impl IntoIterator<Item = &'a Said>,
    none: &str,
    wrong: impl Fn(&Said) -> Option<String>,
) -> Outcome {
    let mut seen = Vec::new();
    for said in messages {
        if let Some(what) = wrong(said) {
            return Err(Unmet::broken(what, [said.number]));
        }
        if seen.len() < SHOWN {
            seen.push(said.number);
        }
    }
    match seen.is_empty() {
        true => Err(Unmet::not_tested(none)),
        false => Seen::at(seen),
    }
}
