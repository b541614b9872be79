//! Our server with one small thing wrong: a layer between it and the checker that changes what passes.

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

/// A server with one small thing wrong.
#[derive(Clone)]
pub(crate) struct Mutant {
    /// The rule that notices, and no other does.
    pub(crate) violates: &'static str,
    /// What is wrong.
    pub(crate) name: &'static str,
    /// Where it is looked at.
    pub(crate) on: Transport,
    /// In which revision; the newest in which the rule binds unless said.
    pub(crate) revision: Option<Revision>,
    change: Change,
    server: fn() -> Server,
}

/// Where a mutant is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Ndjson,
    Http,
    HttpSse,
    Protected,
}

/// Changes something on its way.
type Alteration<T> = Arc<dyn Fn(&mut T) + Send + Sync>;

/// Changes something on its way, knowing the request of HTTP that it answers.
type ResponseAlteration<T> = Arc<dyn Fn(&::http::request::Parts, &mut T) + Send + Sync>;

/// What a mutant changes.
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

/// A message that the server is about to send.
pub(crate) struct OutgoingMessage {
    /// The message; nothing is sent if it is null.
    pub(crate) message: Value,
    /// The request that it answers.
    pub(crate) request: Option<Value>,
    /// What is sent before it.
    pub(crate) before: Vec<Value>,
    /// What is sent after it.
    pub(crate) after: Vec<Value>,
    /// What is sent in its place, if it is no message of JSON.
    pub(crate) text: Option<String>,
}

/// A message that the server is about to get.
pub(crate) struct IncomingMessage {
    /// The message; the server never gets it if it is null.
    pub(crate) message: Value,
    /// What is answered in the server's place.
    pub(crate) response: Option<Value>,
    /// What came before on the same line; nothing on HTTP.
    pub(crate) earlier: Vec<Value>,
}

/// Stands for a byte that is no UTF-8, in a text that is sent on a line.
pub(crate) const NO_UTF8: char = '\u{10fffe}';

/// A response that is about to be sent.
pub(crate) struct OutgoingResponse {
    /// Status and headers.
    pub(crate) head: ::http::response::Parts,
    /// The body in place of the one that the server has.
    pub(crate) body: Option<Vec<u8>>,
}

/// Returns an id for a request of the server's that none had before.
pub(crate) fn unique_id() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    format!("ours-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

impl Mutant {
    /// Begins a mutant that trips a rule.
    pub(crate) fn new(violates: &'static str, name: &'static str) -> Self {
        Self {
            violates,
            name,
            on: Transport::Http,
            revision: None,
            change: Change::default(),
            server: good::server,
        }
    }

    /// Is looked at on lines.
    pub(crate) fn on_ndjson(mut self) -> Self {
        self.on = Transport::Ndjson;
        self
    }

    /// Is looked at on HTTP+SSE.
    pub(crate) fn on_http_sse(mut self) -> Self {
        self.on = Transport::HttpSse;
        self
    }

    /// Is looked at on HTTP, behind a guard who knows us.
    pub(crate) fn guarded(mut self) -> Self {
        self.on = Transport::Protected;
        self
    }

    /// Is looked at in this revision.
    pub(crate) fn in_revision(mut self, revision: Revision) -> Self {
        self.revision = Some(revision);
        self
    }

    /// Changes what the server says.
    pub(crate) fn map_sent(
        mut self,
        change: impl Fn(&mut OutgoingMessage) + Send + Sync + 'static,
    ) -> Self {
        self.change.map_sent = Some(Arc::new(change));
        self
    }

    /// Changes the answers to one method.
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

    /// Changes what the server hears.
    pub(crate) fn map_received(
        mut self,
        change: impl Fn(&mut IncomingMessage) + Send + Sync + 'static,
    ) -> Self {
        self.change.map_received = Some(Arc::new(change));
        self
    }

    /// Changes requests of HTTP before the server gets them.
    pub(crate) fn request(
        mut self,
        change: impl Fn(&mut ::http::Request<Vec<u8>>) + Send + Sync + 'static,
    ) -> Self {
        self.change.request = Some(Arc::new(change));
        self
    }

    /// Changes responses of HTTP; messages in them were changed before.
    pub(crate) fn response(
        mut self,
        change: impl Fn(&::http::request::Parts, &mut OutgoingResponse) + Send + Sync + 'static,
    ) -> Self {
        self.change.response = Some(Arc::new(change));
        self
    }

    /// Changes events of streams as they are written; messages in them were changed before.
    pub(crate) fn events(
        mut self,
        change: impl Fn(&::http::request::Parts, &mut String) + Send + Sync + 'static,
    ) -> Self {
        self.change.events = Some(Arc::new(change));
        self
    }

    /// Copies what is said under a name on the stream of a request to all streams that GET has opened.
    pub(crate) fn copies(mut self, method: &'static str) -> Self {
        self.change.copied = Some((method, tokio::sync::broadcast::Sender::new(16)));
        self
    }

    /// Never ends a stream.
    pub(crate) fn lingers(mut self) -> Self {
        self.change.lingers = true;
        self
    }

    /// Takes so long to answer a method of HTTP or of the protocol.
    pub(crate) fn late(mut self, method: &'static str, by: Duration) -> Self {
        self.change.late = Some((method, by));
        self
    }

    /// Is another server than the good one.
    pub(crate) fn server(mut self, server: fn() -> Server) -> Self {
        self.server = server;
        self
    }

    /// Checks it.
    pub(crate) async fn check(&self) -> Report {
        self.check_only(&[]).await
    }

    /// Looks at these rules only, if there are any.
    pub(crate) async fn check_only(&self, only: &[&str]) -> Report {
        let rule = catalog::find(self.violates);
        let rule = rule.unwrap_or_else(|| panic!("there is no rule `{}`", self.violates));
        let mut options = CheckOptions::default();
        options.only = only.iter().map(|&name| name.to_owned()).collect();
        let newest = Revision::ALL
            .into_iter()
            .rev()
            .find(|&revision| rule.applies_in(revision));
        options.revisions = vec![self.revision.or(newest).expect("a rule binds somewhere")];
        let checked = check_server(&self.target(), &options).await;
        checked.unwrap_or_else(|why| panic!("{}: {why}", self.name))
    }

    fn target(&self) -> ServerTarget {
        match self.on {
            Transport::Ndjson => ndjson::target(self.server, self.change.clone()),
            Transport::Http => http::target((self.server)(), self.change.clone()),
            Transport::Protected => http::guarded_target((self.server)(), self.change.clone()),
            Transport::HttpSse => http::sse_target((self.server)(), self.change.clone()),
        }
    }
}

impl Change {
    /// Applies what is wrong to a message on its way out; returns the texts that are sent.
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
        // Whoever changes something in a result means messages that have one: there is none beside an error.
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

    /// Applies what is wrong to a message on its way in.
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
