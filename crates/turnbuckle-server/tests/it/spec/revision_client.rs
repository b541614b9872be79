//! A client with a fixed revision.

use serde_json::{Value, json};
use turnbuckle_server::Server;

use crate::ndjson::test_client::{Peer, modern_with};

/// All revisions, oldest first.
pub(crate) const EVERY: [&str; 6] = [
    "2024-10-07",
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    MODERN,
];

pub(crate) const MODERN: &str = "2026-07-28";

/// A peer that initializes a session, or sends stateless requests, as its revision requires.
pub(crate) struct RevisionClient {
    pub(crate) peer: Peer,
    pub(crate) revision: &'static str,
    capabilities: Value,
}

impl RevisionClient {
    /// Connects a client without capabilities.
    pub(crate) async fn new(revision: &'static str, server: Server) -> Self {
        Self::with(revision, server, json!({})).await
    }

    /// Connects a client with capabilities.
    pub(crate) async fn with(revision: &'static str, server: Server, capabilities: Value) -> Self {
        let mut peer = Peer::new(server);
        if revision != MODERN {
            peer.initialize_session(revision, capabilities.clone())
                .await;
        }
        Self {
            peer,
            revision,
            capabilities,
        }
    }

    pub(crate) fn is_modern(&self) -> bool {
        self.revision == MODERN
    }

    /// Adds the `_meta` that the revision requires.
    pub(crate) fn params(&self, params: Value) -> Value {
        if self.is_modern() {
            modern_with(params, self.capabilities.clone())
        } else {
            params
        }
    }

    /// Sends a request and returns its id.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> i64 {
        let params = self.params(params);
        self.peer.request(method, params).await
    }

    /// Sends a request and returns the next message, which must be its response.
    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Value {
        let params = self.params(params);
        self.peer.call(method, params).await
    }

    /// Returns the result of a request, which must succeed.
    pub(crate) async fn result(&mut self, method: &str, params: Value) -> Value {
        let mut response = self.call(method, params).await;
        assert!(
            response["result"].is_object(),
            "{} {method}: {response}",
            self.revision
        );
        response["result"].take()
    }

    /// The result of a tool.
    pub(crate) async fn tool(&mut self, name: &str, arguments: Value) -> Value {
        let params = json!({ "name": name, "arguments": arguments });
        self.result("tools/call", params).await
    }

    /// Returns the error code of a request.
    pub(crate) async fn code(&mut self, method: &str, params: Value) -> i64 {
        let response = self.call(method, params).await;
        response["error"]["code"]
            .as_i64()
            .unwrap_or_else(|| panic!("{} {method}: {response}", self.revision))
    }

    /// Returns all messages up to the response, which is last.
    pub(crate) async fn until_answered(&mut self, id: i64) -> Vec<Value> {
        let mut messages = Vec::new();
        loop {
            let message = self.peer.next().await;
            let is_answer = message["id"] == id && message.get("method").is_none();
            messages.push(message);
            if is_answer {
                return messages;
            }
        }
    }
}
