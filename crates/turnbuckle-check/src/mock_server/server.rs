//! Decides how the mock server replies to requests.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard},
};

use serde_json::Value;
use tokio::time::Instant;
use turnbuckle_protocol::revision::Revision;

pub(crate) use super::default_replies::capabilities;
use super::{scenario::Scenario, script::ScriptedReply, target::TransportKind};
use crate::{engine::transcript::HttpHead, lock};

/// The HTTP endpoint.
pub(crate) const ENDPOINT: &str = "/mcp";

/// A mock server for one scenario.
pub(crate) struct MockServer {
    /// The scenario.
    pub(crate) scenario: Scenario,
    /// The revision of the mock server.
    pub(crate) revision: Revision,
    /// The transport.
    pub(crate) transport_kind: TransportKind,
    /// The HTTP origin.
    pub(crate) origin: String,
    state: Mutex<MockServerState>,
}

#[derive(Default)]
struct MockServerState {
    counts: HashMap<String, usize>,
    capabilities: Value,
    notes: Vec<(&'static str, Instant)>,
    done: Vec<&'static str>,
    deferred_response: Option<Value>,
}

/// A request of the client.
pub(crate) struct ReceivedRequest<'a> {
    pub(crate) method: &'a str,
    pub(crate) message: &'a Value,
    /// The HTTP head.
    pub(crate) head: Option<&'a HttpHead>,
}

/// An HTTP request without a JSON-RPC message.
pub(crate) struct NonRpcRequest<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) head: &'a HttpHead,
    pub(crate) body: &'a str,
}

impl MockServer {
    /// Prepares a mock server for a client that is checked in a revision.
    pub(crate) fn for_scenario(
        scenario: Scenario,
        revision: Revision,
        transport_kind: TransportKind,
    ) -> impl FnOnce(String) -> Self {
        move |origin| Self {
            scenario,
            revision: scenario.server_revision(revision),
            transport_kind,
            origin,
            state: Mutex::default(),
        }
    }

    /// Returns whether it uses HTTP+SSE.
    pub(crate) fn is_http_sse(&self) -> bool {
        self.transport_kind == TransportKind::Http && self.revision < Revision::V2025_03_26
    }

    /// Returns whether sessions start with a handshake.
    pub(crate) fn has_handshake(&self) -> bool {
        !self.revision.is_stateless()
    }

    /// Returns the reply to a request.
    pub(crate) fn reply(&self, received: &ReceivedRequest<'_>) -> ScriptedReply {
        self.record_capabilities(received);
        let special = self.scenario.reply(self, received);
        let reply = special.unwrap_or_else(|| self.default_reply(received));
        let again = self.count(received.method);
        self.state()
            .counts
            .insert(received.method.to_owned(), again + 1);
        reply
    }

    /// Returns the reply without special behavior.
    pub(crate) fn default_reply(&self, received: &ReceivedRequest<'_>) -> ScriptedReply {
        super::default_replies::reply(self, received)
    }

    /// Returns the reply to a message without a response.
    pub(crate) fn accepted(&self, head: &HttpHead) -> ScriptedReply {
        self.scenario
            .accepted(self, head)
            .unwrap_or(ScriptedReply::status(202))
    }

    /// Returns the reply to an HTTP request without a message.
    pub(crate) fn page(&self, page: &NonRpcRequest<'_>) -> ScriptedReply {
        let special = self.scenario.page(self, page);
        special.unwrap_or_else(|| super::default_replies::page(self, page))
    }

    /// Returns the number of earlier requests with a method.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.state().counts.get(method).copied().unwrap_or_default()
    }

    /// Returns whether the client declared a capability, for example `/sampling`.
    pub(crate) fn declared(&self, pointer: &str) -> bool {
        self.state().capabilities.pointer(pointer).is_some()
    }

    /// Returns whether this is the first call with an argument.
    pub(crate) fn is_first_time(&self, observed: &'static str) -> bool {
        let done = &mut self.state().done;
        let first = !done.contains(&observed);
        done.push(observed);
        first
    }

    /// Stores a response for later.
    pub(crate) fn defer_response(&self, response: Value) {
        self.state().deferred_response = Some(response);
    }

    /// Returns the stored response.
    pub(crate) fn deferred_response(&self) -> Option<Value> {
        self.state().deferred_response.clone()
    }

    /// Records the time of an event.
    pub(crate) fn note(&self, observed: &'static str) {
        self.state().notes.push((observed, Instant::now()));
    }

    /// Returns the times of events.
    pub(crate) fn notes(&self) -> Vec<(&'static str, Instant)> {
        self.state().notes.clone()
    }

    /// Stores the capabilities of the client.
    fn record_capabilities(&self, received: &ReceivedRequest<'_>) {
        let params = &received.message["params"];
        let declared = match received.method {
            "initialize" => &params["capabilities"],
            _ => &params["_meta"]["io.modelcontextprotocol/clientCapabilities"],
        };
        if declared.is_object() {
            self.state().capabilities = declared.clone();
        }
    }

    fn state(&self) -> MutexGuard<'_, MockServerState> {
        lock(&self.state)
    }
}
