//! Server mutants: our server behind a layer that changes its messages.

mod http;
mod ndjson;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::Value;
use turnbuckle_check::{CheckOptions, Report, ServerTarget, catalog, check_server};
use turnbuckle_protocol::revision::Revision;
use turnbuckle_server::Server;

use crate::good;

/// A server with one violation.
#[derive(Clone)]
pub(crate) struct Mutant {
    /// The only rule that fails.
    pub(crate) violates: &'static str,
    /// The requirement that a finding names, if it is not the first of the rule.
    pub(crate) requirement: Option<&'static str>,
    /// A description of the violation.
    pub(crate) name: &'static str,
    /// The transport on which it is checked.
    pub(crate) on: Transport,
    /// The revision; by default the latest in which the rule applies.
    pub(crate) revision: Option<Revision>,
    change: Change,
    server: fn() -> Server,
}

/// The transport on which a mutant is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Ndjson,
    Http,
    HttpSse,
    Protected,
}

/// Changes a value in transit.
type Alteration<T> = Arc<dyn Fn(&mut T) + Send + Sync>;

/// Changes a value in transit, given the HTTP request that it responds to.
type ResponseAlteration<T> = Arc<dyn Fn(&::http::request::Parts, &mut T) + Send + Sync>;

/// The changes of a mutant.
#[derive(Clone, Default)]
struct Change {
    map_sent: Option<Alteration<OutgoingMessage>>,
    map_received: Option<Alteration<IncomingMessage>>,
    request: Option<Alteration<::http::Request<Vec<u8>>>>,
    response: Option<ResponseAlteration<OutgoingResponse>>,
    events: Option<ResponseAlteration<String>>,
    copied: Option<(&'static str, tokio::sync::broadcast::Sender<String>)>,
    lingers: bool,
    late: Option<(&'static str, Duration)>,
}

/// An outgoing message of the server.
pub(crate) struct OutgoingMessage {
    /// The message; dropped if null.
    pub(crate) message: Value,
    /// The request that it responds to.
    pub(crate) request: Option<Value>,
    /// Messages to send before it.
    pub(crate) before: Vec<Value>,
    /// Messages to send after it.
    pub(crate) after: Vec<Value>,
    /// The text to send instead, if it is not JSON.
    pub(crate) text: Option<String>,
}

/// An incoming message of the server.
pub(crate) struct IncomingMessage {
    /// The message; dropped if null.
    pub(crate) message: Value,
    /// The response to send instead of the server's.
    pub(crate) response: Option<Value>,
    /// Earlier messages on the same connection; empty on HTTP.
    pub(crate) earlier: Vec<Value>,
}

/// A placeholder for an invalid UTF-8 byte in a line.
pub(crate) const INVALID_UTF8: char = '\u{10fffe}';

/// An outgoing HTTP response.
pub(crate) struct OutgoingResponse {
    /// Status and headers.
    pub(crate) head: ::http::response::Parts,
    /// The body to send instead of the server's.
    pub(crate) body: Option<Vec<u8>>,
}

/// Returns a unique id for a server request.
pub(crate) fn unique_id() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    format!("ours-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

impl Mutant {
    /// Starts a mutant that violates a rule.
    pub(crate) fn new(violates: &'static str, name: &'static str) -> Self {
        Self {
            violates,
            requirement: None,
            name,
            on: Transport::Http,
            revision: None,
            change: Change::default(),
            server: good::server,
        }
    }

    /// Expects a finding about this requirement of the rule.
    pub(crate) fn for_requirement(mut self, id: &'static str) -> Self {
        self.requirement = Some(id);
        self
    }

    /// Checks the mutant on ndjson.
    pub(crate) fn on_ndjson(mut self) -> Self {
        self.on = Transport::Ndjson;
        self
    }

    /// Checks the mutant on HTTP+SSE.
    pub(crate) fn on_http_sse(mut self) -> Self {
        self.on = Transport::HttpSse;
        self
    }

    /// Checks the mutant on HTTP with authorization, with a valid token.
    pub(crate) fn protected(mut self) -> Self {
        self.on = Transport::Protected;
        self
    }

    /// Checks the mutant in this revision.
    pub(crate) fn in_revision(mut self, revision: Revision) -> Self {
        self.revision = Some(revision);
        self
    }

    /// Changes messages of the server.
    pub(crate) fn map_sent(
        mut self,
        change: impl Fn(&mut OutgoingMessage) + Send + Sync + 'static,
    ) -> Self {
        self.change.map_sent = Some(Arc::new(change));
        self
    }

    /// Changes responses to one method.
    pub(crate) fn map_response_to(
        self,
        method: &'static str,
        change: impl Fn(&mut Value) + Send + Sync + 'static,
    ) -> Self {
        self.map_sent(move |outgoing| {
            if outgoing
                .request
                .as_ref()
                .is_some_and(|request| request["method"] == method)
            {
                change(&mut outgoing.message);
            }
        })
    }

    /// Changes messages to the server.
    pub(crate) fn map_received(
        mut self,
        change: impl Fn(&mut IncomingMessage) + Send + Sync + 'static,
    ) -> Self {
        self.change.map_received = Some(Arc::new(change));
        self
    }

    /// Changes HTTP requests to the server.
    pub(crate) fn request(
        mut self,
        change: impl Fn(&mut ::http::Request<Vec<u8>>) + Send + Sync + 'static,
    ) -> Self {
        self.change.request = Some(Arc::new(change));
        self
    }

    /// Changes HTTP responses, after their messages.
    pub(crate) fn response(
        mut self,
        change: impl Fn(&::http::request::Parts, &mut OutgoingResponse) + Send + Sync + 'static,
    ) -> Self {
        self.change.response = Some(Arc::new(change));
        self
    }

    /// Changes the text of stream events, after their messages.
    pub(crate) fn events(
        mut self,
        change: impl Fn(&::http::request::Parts, &mut String) + Send + Sync + 'static,
    ) -> Self {
        self.change.events = Some(Arc::new(change));
        self
    }

    /// Copies messages with this method from request streams to all GET streams.
    pub(crate) fn copies(mut self, method: &'static str) -> Self {
        self.change.copied = Some((method, tokio::sync::broadcast::Sender::new(16)));
        self
    }

    /// Never ends a stream.
    pub(crate) fn lingers(mut self) -> Self {
        self.change.lingers = true;
        self
    }

    /// Delays the response to an HTTP or JSON-RPC method.
    pub(crate) fn late(mut self, method: &'static str, by: Duration) -> Self {
        self.change.late = Some((method, by));
        self
    }

    /// Replaces the good server.
    pub(crate) fn server(mut self, server: fn() -> Server) -> Self {
        self.server = server;
        self
    }

    /// Runs the check.
    pub(crate) async fn check(&self) -> Report {
        self.check_only(&[]).await
    }

    /// Runs the check with these rules only, or with all if empty.
    pub(crate) async fn check_only(&self, only: &[&str]) -> Report {
        let rule = catalog::find(self.violates);
        let rule = rule.unwrap_or_else(|| panic!("unknown rule `{}`", self.violates));
        let mut options = CheckOptions::default();
        options.only = only.iter().map(|&name| name.to_owned()).collect();
        let newest = Revision::ALL
            .into_iter()
            .rev()
            .find(|&revision| rule.applies_in(revision));
        options.revisions = vec![
            self.revision
                .or(newest)
                .expect("every rule applies in some revision"),
        ];
        let checked = check_server(&self.target(), &options).await;
        checked.unwrap_or_else(|why| panic!("{}: {why}", self.name))
    }

    fn target(&self) -> ServerTarget {
        match self.on {
            Transport::Ndjson => ndjson::target(self.server, self.change.clone()),
            Transport::Http => http::target((self.server)(), self.change.clone()),
            Transport::Protected => http::protected_target((self.server)(), self.change.clone()),
            Transport::HttpSse => http::sse_target((self.server)(), self.change.clone()),
        }
    }
}

impl Change {
    /// Changes an outgoing message; returns the texts to send.
    fn apply_to_sent(&self, message: Value, request: Option<Value>) -> Vec<String> {
        let Some(map_sent) = &self.map_sent else {
            return vec![message.to_string()];
        };
        let had_result = message.get("result").is_some();
        let mut outgoing = OutgoingMessage {
            message,
            request,
            before: Vec::new(),
            after: Vec::new(),
            text: None,
        };
        map_sent(&mut outgoing);
        // A change of a result does not apply to errors and requests.
        if let Some(fields) = outgoing.message.as_object_mut()
            && !had_result
            && (fields.contains_key("error") || fields.contains_key("method"))
        {
            fields.remove("result");
        }
        let message = match outgoing.message {
            Value::Null => None,
            message => Some(message.to_string()),
        };
        let before = outgoing.before.iter().map(Value::to_string);
        let after = outgoing.after.iter().map(Value::to_string);
        before
            .chain(outgoing.text.or(message))
            .chain(after)
            .collect()
    }

    /// Changes an incoming message.
    fn apply_to_received(&self, message: Value, earlier: &[Value]) -> IncomingMessage {
        let mut incoming = IncomingMessage {
            message,
            response: None,
            earlier: earlier.to_vec(),
        };
        if let Some(map_received) = &self.map_received {
            map_received(&mut incoming);
        }
        incoming
    }
}
