//! Client mutants: our client behind a layer that changes its messages.

mod http;
mod ndjson;

use std::sync::Arc;

use serde_json::Value;
use turnbuckle_check::{
    CheckOptions, ClientTarget, Report, catalog, check_client, rule::Transports,
};
use turnbuckle_protocol::revision::Revision;

/// A client with one violation.
#[derive(Clone)]
pub(crate) struct Mutant {
    /// The only rule that fails.
    pub(crate) violates: &'static str,
    /// A description of the violation.
    pub(crate) name: &'static str,
    /// The requirement that the finding names.
    pub(crate) requirement: Option<&'static str>,
    on_ndjson: bool,
    revision: Option<Revision>,
    change: Change,
}

type MessageChange = Arc<dyn Fn(&mut OutgoingMessage<'_>) + Send + Sync>;
type ValueChange = Arc<dyn Fn(&mut Value) + Send + Sync>;
type RequestChange = Arc<dyn Fn(&mut OutgoingRequest<'_>) + Send + Sync>;
type ResponseHeadChange = Arc<dyn Fn(&mut ::http::response::Parts) + Send + Sync>;
type LineChange = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// The changes of a mutant.
#[derive(Clone, Default)]
struct Change {
    map_sent: Option<MessageChange>,
    map_received: Option<ValueChange>,
    request: Option<RequestChange>,
    response: Option<ResponseHeadChange>,
    lines: Option<LineChange>,
}

/// An outgoing message of the client.
pub(crate) struct OutgoingMessage<'a> {
    /// The message; dropped if null.
    pub(crate) message: Value,
    /// Messages to send before it.
    pub(crate) before: Vec<Value>,
    /// Messages to send after it.
    pub(crate) after: Vec<Value>,
    /// The text to send instead, if it is not JSON.
    pub(crate) text: Option<String>,
    /// The state of the client run.
    pub(crate) state: &'a mut RunState,
}

/// An outgoing HTTP request of the client.
pub(crate) struct OutgoingRequest<'a> {
    /// The request, with its changed body.
    pub(crate) request: ::http::Request<Vec<u8>>,
    /// The response to send instead of the server's.
    pub(crate) response: Option<u16>,
    /// A request to send before it.
    pub(crate) before: Option<(::http::Method, &'static str)>,
    /// The state of the client run.
    pub(crate) state: &'a mut RunState,
}

/// The state of a client run that a mutant needs.
#[derive(Default)]
pub(crate) struct RunState {
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

    /// Returns whether the message is a request.
    pub(crate) fn is_request(&self) -> bool {
        self.message.get("id").is_some() && self.message.get("method").is_some()
    }
}

impl Mutant {
    /// Starts a mutant that violates a rule.
    pub(crate) fn new(violates: &'static str, name: &'static str) -> Self {
        Self {
            violates,
            name,
            requirement: None,
            on_ndjson: false,
            revision: None,
            change: Change::default(),
        }
    }

    /// Expects a finding about this requirement of the rule.
    pub(crate) fn for_requirement(mut self, id: &'static str) -> Self {
        self.requirement = Some(id);
        self
    }

    /// Checks the mutant on ndjson.
    pub(crate) fn on_ndjson(mut self) -> Self {
        self.on_ndjson = true;
        self
    }

    /// Checks the mutant in this revision.
    pub(crate) fn in_revision(mut self, revision: Revision) -> Self {
        self.revision = Some(revision);
        self
    }

    /// Changes messages of the client.
    pub(crate) fn map_sent(
        mut self,
        change: impl Fn(&mut OutgoingMessage<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.change.map_sent = Some(Arc::new(change));
        self
    }

    /// Changes the requests for one method.
    pub(crate) fn requests_input(
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

    /// Changes responses to the server request with this id.
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

    /// Changes messages to the client.
    pub(crate) fn map_received(
        mut self,
        change: impl Fn(&mut Value) + Send + Sync + 'static,
    ) -> Self {
        self.change.map_received = Some(Arc::new(change));
        self
    }

    /// Changes HTTP requests.
    pub(crate) fn requests(
        mut self,
        change: impl Fn(&mut OutgoingRequest<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.change.request = Some(Arc::new(change));
        self
    }

    /// Changes the heads of HTTP responses.
    pub(crate) fn responses(
        mut self,
        change: impl Fn(&mut ::http::response::Parts) + Send + Sync + 'static,
    ) -> Self {
        self.change.response = Some(Arc::new(change));
        self
    }

    /// Changes the lines of streams.
    pub(crate) fn lines(mut self, change: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        self.change.lines = Some(Arc::new(change));
        self
    }

    /// Removes a header.
    pub(crate) fn without(self, header: &'static str) -> Self {
        self.requests(move |outgoing_request| {
            outgoing_request.request.headers_mut().remove(header);
        })
    }

    /// Runs the check.
    pub(crate) async fn check(&self) -> Report {
        let rule = catalog::find(self.violates);
        let rule = rule.unwrap_or_else(|| panic!("unknown rule `{}`", self.violates));
        let mut options = CheckOptions::default();
        let newest = Revision::ALL
            .into_iter()
            .rev()
            .find(|&revision| rule.applies_in(revision));
        options.revisions = vec![
            self.revision
                .or(newest)
                .expect("every rule applies in some revision"),
        ];
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
    /// Changes an outgoing message; returns the texts to send.
    fn apply_to_sent(&self, message: Value, state: &mut RunState) -> Vec<String> {
        let Some(map_sent) = &self.map_sent else {
            return vec![message.to_string()];
        };
        let mut outgoing = OutgoingMessage {
            message,
            before: Vec::new(),
            after: Vec::new(),
            text: None,
            state,
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

    /// Changes an incoming message.
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
