//! Our client with one small thing wrong: a layer between it and the stage that changes what passes.

mod http;
mod lines;

use std::sync::Arc;

use serde_json::Value;
use turnbuckle_check::{ClientTarget, Options, Report, catalogue, check_client, rule::On};
use turnbuckle_protocol::revision::Revision;

/// A client with one small thing wrong.
#[derive(Clone)]
pub(crate) struct Mutant {
    /// The rule that notices, and no other does.
    pub(crate) trips: &'static str,
    /// What is wrong.
    pub(crate) name: &'static str,
    on_lines: bool,
    revision: Option<Revision>,
    change: Change,
}

type Says = Arc<dyn Fn(&mut Saying<'_>) + Send + Sync>;
type Hears = Arc<dyn Fn(&mut Value) + Send + Sync>;
type Requests = Arc<dyn Fn(&mut Requesting<'_>) + Send + Sync>;
type Responses = Arc<dyn Fn(&mut ::http::response::Parts) + Send + Sync>;
type Reads = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// What a mutant changes.
#[derive(Clone, Default)]
struct Change {
    says: Option<Says>,
    hears: Option<Hears>,
    request: Option<Requests>,
    response: Option<Responses>,
    lines: Option<Reads>,
}

/// A message that the client is about to send.
pub(crate) struct Saying<'a> {
    /// The message; nothing is sent if it is null.
    pub(crate) message: Value,
    /// What is sent before it.
    pub(crate) before: Vec<Value>,
    /// What is sent after it.
    pub(crate) after: Vec<Value>,
    /// What is sent in its place, if it is no message of JSON.
    pub(crate) text: Option<String>,
    /// What this run of the client has come to.
    pub(crate) memory: &'a mut Memory,
}

/// A request of HTTP that the client is about to send.
pub(crate) struct Requesting<'a> {
    /// The request; its body was changed before.
    pub(crate) request: ::http::Request<Vec<u8>>,
    /// What is answered in the server's place.
    pub(crate) answer: Option<u16>,
    /// What is asked for before it.
    pub(crate) before: Option<(::http::Method, &'static str)>,
    /// What this run of the client has come to.
    pub(crate) memory: &'a mut Memory,
}

/// What a run of the client has come to, as far as its mutant cares.
#[derive(Default)]
pub(crate) struct Memory {
    /// A number.
    pub(crate) count: usize,
    /// A message.
    pub(crate) message: Option<Value>,
}

impl Saying<'_> {
    /// Returns the method.
    pub(crate) fn method(&self) -> &str {
        self.message["method"].as_str().unwrap_or_default()
    }

    /// Says whether it is a request.
    pub(crate) fn is_request(&self) -> bool {
        self.message.get("id").is_some() && self.message.get("method").is_some()
    }
}

impl Mutant {
    /// Begins a mutant that trips a rule.
    pub(crate) fn new(trips: &'static str, name: &'static str) -> Self {
        Self {
            trips,
            name,
            on_lines: false,
            revision: None,
            change: Change::default(),
        }
    }

    /// Is looked at on lines.
    pub(crate) fn on_lines(mut self) -> Self {
        self.on_lines = true;
        self
    }

    /// Is looked at in this revision.
    pub(crate) fn in_revision(mut self, revision: Revision) -> Self {
        self.revision = Some(revision);
        self
    }

    /// Changes what the client says.
    pub(crate) fn says(mut self, change: impl Fn(&mut Saying<'_>) + Send + Sync + 'static) -> Self {
        self.change.says = Some(Arc::new(change));
        self
    }

    /// Changes the requests for one method.
    pub(crate) fn asks(
        self,
        method: &'static str,
        change: impl Fn(&mut Value) + Send + Sync + 'static,
    ) -> Self {
        self.says(move |saying| {
            if saying.method() == method {
                change(&mut saying.message);
            }
        })
    }

    /// Changes the answers to one question of the server's: by its id.
    pub(crate) fn answers(
        self,
        id: &'static str,
        change: impl Fn(&mut Value) + Send + Sync + 'static,
    ) -> Self {
        self.says(move |saying| {
            if saying.method().is_empty() && saying.message["id"] == id {
                change(&mut saying.message);
            }
        })
    }

    /// Changes what the client hears.
    pub(crate) fn hears(mut self, change: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        self.change.hears = Some(Arc::new(change));
        self
    }

    /// Changes requests of HTTP.
    pub(crate) fn requests(
        mut self,
        change: impl Fn(&mut Requesting<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.change.request = Some(Arc::new(change));
        self
    }

    /// Changes the heads of responses of HTTP.
    pub(crate) fn responses(
        mut self,
        change: impl Fn(&mut ::http::response::Parts) + Send + Sync + 'static,
    ) -> Self {
        self.change.response = Some(Arc::new(change));
        self
    }

    /// Changes lines of streams, whatever they bring.
    pub(crate) fn lines(mut self, change: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        self.change.lines = Some(Arc::new(change));
        self
    }

    /// Leaves a header out.
    pub(crate) fn without(self, header: &'static str) -> Self {
        self.requests(move |requesting| {
            requesting.request.headers_mut().remove(header);
        })
    }

    /// Checks it.
    pub(crate) async fn check(&self) -> Report {
        let rule = catalogue::find(self.trips);
        let rule = rule.unwrap_or_else(|| panic!("there is no rule `{}`", self.trips));
        let mut options = Options::default();
        let newest = Revision::ALL
            .into_iter()
            .rev()
            .find(|&revision| rule.binds_in(revision));
        options.revisions = vec![self.revision.or(newest).expect("a rule binds somewhere")];
        let lines = self.on_lines || matches!(rule.on, On::Lines | On::Stdio);
        check_client(&self.target(lines), &options).await.unwrap()
    }

    fn target(&self, lines: bool) -> ClientTarget {
        let change = self.change.clone();
        match lines {
            true => ClientTarget::on_lines(self.name, move |dial| lines::run(dial, change.clone())),
            false => ClientTarget::on_http(self.name, move |dial| http::run(dial, change.clone())),
        }
    }
}

impl Change {
    /// Applies what is wrong to a message on its way to the server; returns the texts that are sent.
    fn said(&self, message: Value, memory: &mut Memory) -> Vec<String> {
        let Some(says) = &self.says else {
            return vec![message.to_string()];
        };
        let mut saying = Saying {
            message,
            before: Vec::new(),
            after: Vec::new(),
            text: None,
            memory,
        };
        says(&mut saying);
        let message = match saying.message {
            Value::Null => None,
            message => Some(message.to_string()),
        };
        let text = |message: &Value| message.to_string();
        let before = saying.before.iter().map(text);
        let after = saying.after.iter().map(text);
        before.chain(saying.text.or(message)).chain(after).collect()
    }

    /// Applies what is wrong to a message on its way to the client.
    fn heard(&self, text: &str) -> String {
        let (Some(hears), Ok(mut message)) = (&self.hears, serde_json::from_str(text)) else {
            return text.to_owned();
        };
        hears(&mut message);
        message.to_string()
    }
}
