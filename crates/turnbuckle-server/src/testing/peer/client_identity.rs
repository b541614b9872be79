//! The identity of the test client, as its revision sends it.

use serde_json::{Value, json};
use turnbuckle_protocol::{Revision, types::LogLevel};

/// The identity and settings of the test client.
pub(in crate::testing) struct TestClientIdentity {
    pub(in crate::testing) revision: Revision,
    pub(in crate::testing) capabilities: Value,
    pub(in crate::testing) log_level: Option<LogLevel>,
    /// True if tools are called as tasks.
    pub(in crate::testing) tasks: bool,
}

impl TestClientIdentity {
    /// Returns whether requests are stateless.
    pub(super) fn is_modern(&self) -> bool {
        self.revision.is_stateless()
    }

    /// Returns whether the client requests tasks.
    pub(super) fn requests_tasks(&self) -> bool {
        self.tasks && self.revision == Revision::V2025_11_25
    }

    /// The parameters of `initialize`.
    pub(super) fn initialize_params(&self) -> Value {
        json!({
            "protocolVersion": self.revision,
            "capabilities": self.capabilities,
            "clientInfo": info(),
        })
    }

    /// Adds the required `_meta` to parameters, without overriding it.
    pub(super) fn fill(&self, mut params: Value) -> Value {
        if params.is_null() {
            params = json!({});
        }
        if !self.is_modern() || !params.is_object() {
            return params;
        }
        let mut members = vec![
            ("protocolVersion", json!(self.revision)),
            ("clientInfo", info()),
            ("clientCapabilities", self.capabilities.clone()),
        ];
        members.extend(self.log_level.map(|level| ("logLevel", json!(level))));
        for (key, value) in members {
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
