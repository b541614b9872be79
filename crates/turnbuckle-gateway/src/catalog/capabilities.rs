//! The capabilities, instructions and server states that clients see.

use serde_json::json;
use turnbuckle_protocol::types::{
    JsonObject, ListCapability, ResourcesCapability, ServerCapabilities, tasks::EXTENSION,
};

use crate::{gateway::GatewayState, upstream::UpstreamServer};

impl GatewayState {
    pub(crate) fn server_states(&self) -> serde_json::Value {
        let servers = self.servers();
        let states = servers.iter().map(|server| {
            let status = server.status();
            json!({
                "name": status.name,
                "state": status.state.to_string(),
                "revision": status.revision,
                "since": humantime::format_rfc3339_seconds(status.since).to_string(),
                "reason": status.reason,
            })
        });
        states.collect()
    }

    pub(crate) fn capabilities(&self) -> ServerCapabilities {
        let mut union = ServerCapabilities::new().logging(JsonObject::new());
        let servers = self.servers();
        for server in servers.iter() {
            let info = server.info.load();
            let Some(info) = info.as_ref() else {
                continue;
            };
            let capabilities = &info.capabilities;
            if capabilities.tools.is_some() {
                union.tools = Some(ListCapability::default().list_changed(true));
            }
            if capabilities.prompts.is_some() {
                union.prompts = Some(ListCapability::default().list_changed(true));
            }
            if capabilities.resources.is_some() {
                let resources = ResourcesCapability::default();
                union.resources = Some(resources.subscribe(true).list_changed(true));
            }
            if capabilities.completions.is_some() {
                union.completions = Some(JsonObject::new());
            }
            if servers.only().is_some() {
                union.extensions = capabilities.extensions.clone();
                if let Some(extensions) = &mut union.extensions {
                    extensions.remove(EXTENSION);
                }
            }
        }
        union
    }

    pub(crate) fn instructions(&self) -> Option<String> {
        let of_server = |server: &UpstreamServer| {
            let info = server.info.load();
            info.as_ref().and_then(|info| info.instructions.clone())
        };
        let servers = self.servers();
        if let Some(server) = servers.only() {
            return of_server(server);
        }
        let mut texts = Vec::new();
        for server in servers.iter() {
            let name = server.name();
            if !server.is_up() {
                texts.push(format!("Server `{name}` is down now."));
            } else if let Some(text) = of_server(server) {
                texts.push(format!("Server `{name}`: {text}"));
            }
        }
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }
}
