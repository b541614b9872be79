//! What a client says about itself, in the way of its revision.

use serde_json::{Value, json};
use turnbuckle_protocol::{Revision, types::LogLevel};

/// How a client speaks.
pub(in crate::testing) struct Voice {
    pub(in crate::testing) revision: Revision,
    pub(in crate::testing) capabilities: Value,
    pub(in crate::testing) log_level: Option<LogLevel>,
    /// Whether tools are called as tasks.
    pub(in crate::testing) tasks: bool,
}

impl Voice {
    /// Says whether every request stands on its own.
    pub(super) fn is_modern(&self) -> bool {
        self.revision == Revision::MODERN
    }

    /// Says whether the client itself asks for a task.
    pub(super) fn asks_for_tasks(&self) -> bool {
        self.tasks && self.revision == Revision::V2025_11_25
    }

    /// The parameters of a handshake.
    pub(super) fn introduction(&self) -> Value {
        json!({
            "protocolVersion": self.revision,
            "capabilities": self.capabilities,
            "clientInfo": info(),
        })
    }

    /// Parameters with all that the revision wants to be said in them. What they say themselves stays.
    pub(super) fn fill(&self, mut params: Value) -> Value {
        if params.is_null() {
            params = json!({});
        }
        if !self.is_modern() || !params.is_object() {
            return params;
        }
        let mut said = vec![
            ("protocolVersion", json!(self.revision)),
            ("clientInfo", info()),
            ("clientCapabilities", self.capabilities.clone()),
        ];
        said.extend(self.log_level.map(|level| ("logLevel", json!(level))));
        for (key, value) in said {
            let member = &mut params["_meta"][format!("io.modelcontextprotocol/{key}")];
            if member.is_null() {
                *member = value;
            }
        }
        params
    }
}

fn info() -> Value {
    json!({ "name": "test", "version": "0" })
}
