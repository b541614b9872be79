//! The capabilities and instructions that clients see.

use serde_json::Value;
use turnbuckle_protocol::types::{
    JsonObject, ListCapability, ResourcesCapability, ServerCapabilities, skills, tasks,
};

use crate::{
    catalog::{search, server_states::down_message},
    gateway::GatewayState,
    upstream::UpstreamServer,
};

/// Extensions that several servers can have at the same time. User interfaces add no methods, and what they add to tools
/// and resources is relayed; the methods of skills name a server by their URI.
const SHARED_EXTENSIONS: [&str; 2] = ["io.modelcontextprotocol/ui", skills::EXTENSION];

impl GatewayState {
    /// Returns what the servers have and the gateway relays. A server that was never connected may have everything,
    /// because clients of the legacy era learn capabilities only once.
    pub(crate) fn capabilities(&self) -> ServerCapabilities {
        let servers = self.servers();
        let is_single = servers.len() == 1;
        let changing = || Some(ListCapability::default().list_changed(true));
        let resources = || {
            let resources = ResourcesCapability::default();
            Some(resources.subscribe(true).list_changed(true))
        };
        let mut union = ServerCapabilities::new();
        if self.catalog.settings.search_mode {
            union.tools = changing();
        }
        if !is_single {
            // The states of the servers are a resource.
            union.resources = resources();
        }
        for server in servers.iter() {
            let info = server.info.load();
            let Some(info) = info.as_ref() else {
                union.tools = changing();
                union.prompts = changing();
                union.resources = resources();
                union.completions = Some(JsonObject::new());
                union.logging = Some(JsonObject::new());
                continue;
            };
            let capabilities = &info.capabilities;
            if capabilities.tools.is_some() {
                union.tools = changing();
            }
            if capabilities.prompts.is_some() {
                union.prompts = changing();
            }
            if capabilities.resources.is_some() {
                union.resources = resources();
            }
            if capabilities.completions.is_some() {
                union.completions = Some(JsonObject::new());
            }
            if capabilities.logging.is_some() {
                union.logging = Some(JsonObject::new());
            }
            for (name, settings) in capabilities.extensions.iter().flatten() {
                let is_relayed = if is_single {
                    name != tasks::EXTENSION
                } else {
                    SHARED_EXTENSIONS.contains(&&**name)
                };
                if is_relayed {
                    let extensions = union.extensions.get_or_insert_default();
                    let known = extensions.entry(name.clone());
                    known
                        .and_modify(|known| retain_common(known, settings))
                        .or_insert_with(|| Value::clone(settings));
                }
            }
        }
        self.add_task_capabilities(&mut union);
        union
    }

    pub(crate) fn instructions(&self) -> Option<String> {
        let of_server = |server: &UpstreamServer| {
            let info = server.info.load();
            // They may be for one caller.
            let info = info.as_ref().filter(|_| !server.settings.is_per_caller());
            let text = info.and_then(|info| info.instructions.clone());
            text.filter(|text| server.tool_lock.accepts_instructions(text))
        };
        let mut texts = Vec::new();
        if self.catalog.settings.search_mode {
            texts.push(search::INSTRUCTIONS.to_owned());
        }
        if let Some(server) = self.only_server() {
            texts.extend(of_server(&server));
        } else {
            for server in self.servers().iter() {
                if !server.is_up() {
                    texts.push(format!("Note: {}.", down_message(server)));
                } else if let Some(text) = of_server(server) {
                    texts.push(format!("Server `{}`: {text}", server.name()));
                }
            }
        }
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }
}

/// Removes the settings of an extension that another server does not have.
fn retain_common(known: &mut Value, other: &Value) {
    if let Value::Object(known) = known {
        known.retain(|name, value| other.get(name) == Some(value));
    }
}
