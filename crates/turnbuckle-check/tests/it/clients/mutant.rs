//! Our client with one small thing wrong: a layer between it and the stage that changes what passes.

mod http;
mod ndjson;

use std::sync::Arc;

use serde_json::Value;
use turnbuckle_check::{
    CheckOptions, ClientTarget, Report, catalog, check_client, rule::Transports,
};
use turnbuckle_protocol::revision::Revision;

/// A client with one small thing wrong.
#[derive(Clone)]
pub(crate) struct Mutant {
    /// The rule that notices, and no other does.
    pub(crate) violates: &'static str,
    /// What is wrong.
    pub(crate) name: &'static str,
    on_ndjson: bool,
    revision: Option<Revision>,
    change: Change,
}

type Says = Arc<dyn Fn(&mut OutgoingMessage<'_>) + Send + Sync>;
type Hears = Arc<dyn Fn(&mut Value) + Send + Sync>;
type Requests = Arc<dyn Fn(&mut OutgoingRequest<'_>) + Send + Sync>;
type Responses = Arc<dyn Fn(&mut ::http::response::Parts) + Send + Sync>;
type Reads = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// What a mutant changes.
#[derive(Clone, Default)]
struct Change {
    map_sent: Option<Says>,
    map_received: Option<Hears>,
    request: Option<Requests>,
    response: Option<Responses>,
    lines: Option<Reads>,
}

/// A message that the client is about to send.
pub(crate) struct OutgoingMessage<'a> {
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
pub(crate) struct OutgoingRequest<'a> {
    /// The request; its body was changed before.
    pub(crate) request: ::http::Request<Vec<u8>>,
    /// What is answered in the server's place.
    pub(crate) response: Option<u16>,
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

impl OutgoingMessage<'_> {
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
    pub(crate) fn new(violates: &'static str, name: &'static str) -> Self {
        Self {
            violates,
            name,
            on_ndjson: false,
            revision: None,
            change: Change::default(),
        }
    }

    /// Is looked at on lines.
    pub(crate) fn on_ndjson(mut self) -> Self {
        self.on_ndjson = true;
        self
    }

    /// Is looked at in this revision.
    pub(crate) fn in_revision(mut self, revision: Revision) -> Self {
        self.revision = Some(revision);
        self
    }

    /// Changes what the client says.
    pub(crate) fn map_sent(
        mut self,
        change: impl Fn(&mut OutgoingMessage<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.change.map_sent = Some(Arc::new(change));
        self
    }

    /// Changes the requests for one method.
    pub(crate) fn asks(
        self,
        method: &'static str,
        change: impl Fn(&mut Value) + Send + Sync + 'static,
    ) -> Self {
        self.map_sent(move |outgoing| {
            if outgoing.method() == method {
                change(&mut outgoing.message);
            }
        })
    }

    /// Changes the answers to one question of the server's: by its id.
    pub(crate) fn map_response_to(
        self,
        id: &'static str,
        change: impl Fn(&mut Value) + Send + Sync + 'static,
    ) -> Self {
        self.map_sent(move |outgoing| {
            if outgoing.method().is_empty() && outgoing.message["id"] == id {
                change(&mut outgoing.message);
            }
        })
    }

    /// Changes what the client hears.
    pub(crate) fn map_received(
        mut self,
        change: impl Fn(&mut Value) + Send + Sync + 'static,
    ) -> Self {
        self.change.map_received = Some(Arc::new(change));
        self
    }

    /// Changes requests of HTTP.
    pub(crate) fn requests(
        mut self,
        change: impl Fn(&mut OutgoingRequest<'_>) + Send + Sync + 'static,
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
        self.requests(move |outgoing_request| {
            outgoing_request.request.headers_mut().remove(header);
        })
    }

    /// Checks it.
    pub(crate) async fn check(&self) -> Report {
        let rule = catalog::find(self.violates);
        let rule = rule.unwrap_or_else(|| panic!("there is no rule `{}`", self.violates));
        let mut options = CheckOptions::default();
        let newest = Revision::ALL
            .into_iter()
            .rev()
            .find(|&revision| rule.applies_in(revision));
        options.revisions = vec![self.revision.or(newest).expect("a rule binds somewhere")];
        let lines =
            self.on_ndjson || matches!(rule.transports, Transports::Ndjson | Transports::Stdio);
        check_client(&self.target(lines), &options).await.unwrap()
    }

    fn target(&self, lines: bool) -> ClientTarget {
        let change = self.change.clone();
        if lines {
            ClientTarget::on_ndjson(self.name, move |address| {
                ndjson::run(address, change.clone())
            })
        } else {
            ClientTarget::on_http(self.name, move |address| http::run(address, change.clone()))
        }
    }
}

impl Change {
    /// Applies what is wrong to a message on its way to the server; returns the texts that are sent.
    fn apply_to_sent(&self, message: Value, memory: &mut Memory) -> Vec<String> {
        let Some(map_sent) = &self.map_sent else {
            return vec![message.to_string()];
        };
        let mut outgoing = OutgoingMessage {
            message,
            before: Vec::new(),
            after: Vec::new(),
            text: None,
            memory,
        };
        map_sent(&mut outgoing);
        let message = match outgoing.message {
            Value::Null => None,
            message => Some(message.to_string()),
        };
        let text = |message: &Value| message.to_string();
        let before = outgoing.before.iter().map(text);
        let after = outgoing.after.iter().map(text);
        before
            .chain(outgoing.text.or(message))
            .chain(after)
            .collect()
    }

    /// Applies what is wrong to a message on its way to the client.
    fn apply_to_received(&self, text: &str) -> String {
        let (Some(map_received), Ok(mut message)) =
            (&self.map_received, serde_json::from_str(text))
        else {
            return text.to_owned();
        };
        map_received(&mut message);
        message.to_string()
    }
}
