//! Builds requests and headers for a revision.

use serde_json::{Map, Value, json};
use turnbuckle_protocol::{codec::headers, revision::Revision};

/// Builds messages for a revision.
#[derive(Clone, Debug)]
pub(crate) struct RequestBuilder {
    /// The revision.
    pub(crate) revision: Revision,
    /// The capabilities that the checker declares.
    pub(crate) capabilities: Value,
}

impl RequestBuilder {
    /// Creates a builder that declares all client capabilities.
    pub(crate) fn new(revision: Revision) -> Self {
        let capabilities = capabilities(revision);
        Self {
            revision,
            capabilities,
        }
    }

    /// Returns whether sessions start with a handshake.
    pub(crate) fn has_handshake(&self) -> bool {
        !self.revision.is_stateless()
    }

    /// Returns a method without parameters that every server supports.
    pub(crate) fn noop_method(&self) -> &'static str {
        if self.has_handshake() {
            "ping"
        } else {
            "server/discover"
        }
    }

    /// Builds a request.
    pub(crate) fn request(&self, id: impl Into<Value>, method: &str, params: Value) -> Value {
        let mut message = self.notification(method, params);
        message["id"] = id.into();
        if !self.has_handshake() {
            let meta = &mut message["params"]["_meta"];
            for (key, value) in self.meta() {
                meta[&key] = value;
            }
        }
        message
    }

    /// Builds a notification.
    pub(crate) fn notification(&self, method: &str, params: Value) -> Value {
        let mut message = json!({ "jsonrpc": "2.0", "method": method });
        let empty = params.as_object().is_some_and(Map::is_empty);
        if !params.is_null() && !empty {
            message["params"] = params;
        }
        message
    }

    /// Builds the parameters of `initialize`.
    pub(crate) fn initialize(&self) -> Value {
        json!({
            "protocolVersion": self.revision.as_str(),
            "capabilities": self.capabilities,
            "clientInfo": client_info(),
        })
    }

    /// Returns the `_meta` members that every request has in the modern era.
    pub(crate) fn meta(&self) -> Map<String, Value> {
        let key = |name| format!("io.modelcontextprotocol/{name}");
        Map::from_iter([
            (key("protocolVersion"), self.revision.as_str().into()),
            (key("clientInfo"), client_info()),
            (key("clientCapabilities"), self.capabilities.clone()),
        ])
    }

    /// Returns the HTTP headers for a message.
    pub(crate) fn headers(&self, message: &Value, session: Option<&str>) -> Vec<(String, String)> {
        let own = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut all = vec![
            own("content-type", "application/json"),
            own("accept", "application/json, text/event-stream"),
        ];
        let method = message["method"].as_str();
        if self.revision >= Revision::V2025_06_18 && method != Some("initialize") {
            all.push(own("mcp-protocol-version", self.revision.as_str()));
        }
        if let Some(session) = session {
            all.push(own("mcp-session-id", session));
        }
        if let (false, Some(method)) = (self.has_handshake(), method) {
            all.push(own("mcp-method", method));
            let params = &message["params"];
            let name = match method {
                "tools/call" | "prompts/get" => &params["name"],
                "resources/read" => &params["uri"],
                "tasks/get" | "tasks/update" | "tasks/cancel" => &params["taskId"],
                _ => &Value::Null,
            };
            if let Some(name) = name.as_str() {
                all.push(own("mcp-name", &headers::encode(name)));
            }
        }
        all
    }
}

/// Returns all client capabilities of a revision. A stateless revision has those of the first, unless it is named here.
fn capabilities(revision: Revision) -> Value {
    let mut capabilities = json!({ "roots": { "listChanged": true }, "sampling": {} });
    if revision >= Revision::V2025_06_18 {
        capabilities["elicitation"] = json!({});
    }
    if revision >= Revision::V2025_11_25 {
        capabilities["elicitation"] = json!({ "form": {}, "url": {} });
    }
    if revision.is_stateless() {
        capabilities["roots"] = json!({});
    }
    capabilities
}

fn client_info() -> Value {
    json!({ "name": "turnbuckle-check", "version": env!("CARGO_PKG_VERSION") })
}
