//! The states of the upstream servers, as clients see them.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use turnbuckle_protocol::{RpcError, types::JsonObject};
use turnbuckle_server::relay::ChangeTarget;

use crate::{
    convert::ListKind,
    gateway::GatewayState,
    hops::{self, GATEWAYS},
    raw_json::{ObjectWriter, quote},
    upstream::{UpstreamServer, UpstreamState},
};

/// Time for which the items of a server that is down stay in lists.
pub(crate) const DOWN_LIST_LIFETIME: Duration = Duration::from_secs(60);
/// The member of `_meta` with the states of all servers.
pub(crate) const META_KEY: &str = "dev.turnbuckle/servers";
/// The URI of the resource with the states of all servers.
pub(crate) const RESOURCE_URI: &str = "turnbuckle://servers";

impl GatewayState {
    /// Returns the states of all servers, in the order of the configuration.
    pub(crate) fn server_states(&self) -> Value {
        let servers = self.servers();
        let states = servers.iter().map(|server| {
            let status = server.status();
            let mut state = json!({
                "name": status.name,
                "state": status.state.to_string(),
                "since": since(status.since),
            });
            if let Some(revision) = status.revision {
                state["revision"] = revision.into();
            }
            if let Some(reason) = status.reason.or_else(|| server.lists.failure()) {
                state["reason"] = reason.into();
            }
            state
        });
        states.collect()
    }

    /// Returns the members for the `_meta` of `initialize` and `server/discover`.
    pub(crate) fn discovery_meta(&self) -> JsonObject {
        let mut meta = JsonObject::new();
        let gateways = self.id.handshake_value(self.gateways_behind());
        meta.insert(GATEWAYS.to_owned(), gateways);
        if self.servers().len() > 1 {
            meta.insert(META_KEY.to_owned(), self.server_states());
        }
        meta
    }

    /// Returns the gateways that requests to the connected servers can pass.
    fn gateways_behind(&self) -> Vec<String> {
        let servers = self.servers();
        let connected = servers.iter().filter(|server| server.is_up());
        let infos = connected.filter_map(|server| server.info.load_full());
        infos
            .flat_map(|info| {
                hops::gateways(&info.meta)
                    .map(String::from)
                    .collect::<Vec<_>>()
            })
            .collect()
    }

    /// Returns an error if a required server is not up.
    pub(crate) fn check_required(&self) -> Result<(), RpcError> {
        let servers = self.servers();
        let missing =
            |server: &&Arc<UpstreamServer>| server.settings.required && !server.is_available();
        match servers.iter().find(missing) {
            Some(server) => Err(down_error(server)),
            None => Ok(()),
        }
    }

    /// Returns the definition of the resource with the states.
    pub(crate) fn states_resource() -> String {
        let mut resource = ObjectWriter::new();
        resource.string("uri", RESOURCE_URI);
        resource.string("name", "servers");
        resource.string("description", "The states of the servers behind this one");
        resource.string("mimeType", "application/json");
        resource.finish()
    }

    /// Returns the result of reading the resource with the states.
    pub(crate) fn read_states(&self) -> String {
        let text = json!({ "servers": self.server_states() }).to_string();
        format!(
            r#"{{"contents":[{{"uri":"{RESOURCE_URI}","mimeType":"application/json","text":{}}}]}}"#,
            quote(&text)
        )
    }

    /// The state of a server has changed.
    pub(crate) fn note_state(&self, server: &UpstreamServer, state: UpstreamState) {
        self.catalog.states_changed();
        for view in self.views.of_server(server) {
            view.catalog.states_changed();
        }
        let (Some(gateway), Some(server)) = (self.this(), self.server_named(server.name())) else {
            return;
        };
        if let Some(front) = self.front() {
            front.resource_updated(RESOURCE_URI);
        }
        if state == UpstreamState::Up {
            ListKind::ALL.iter().for_each(|kind| {
                gateway.note_change(&server, *kind, false, &ChangeTarget::Everyone);
            });
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let weak = Arc::downgrade(&gateway);
        runtime.spawn(async move {
            tokio::time::sleep(DOWN_LIST_LIFETIME).await;
            if let Some(gateway) = weak.upgrade()
                && server
                    .down_time()
                    .is_some_and(|time| time >= DOWN_LIST_LIFETIME)
            {
                gateway.catalog.states_changed();
                for view in gateway.views.of_server(&server) {
                    view.catalog.states_changed();
                }
                ListKind::ALL.iter().for_each(|kind| {
                    gateway.note_change(&server, *kind, false, &ChangeTarget::Everyone);
                });
            }
        });
    }
}

/// Returns what is said about a server that is not up.
pub(crate) fn down_message(server: &UpstreamServer) -> String {
    let status = server.status();
    let since = since(status.since);
    let mut message = match status.state {
        UpstreamState::Starting => format!("server `{}` is starting since {since}", status.name),
        UpstreamState::Login => return server.login_error().message.to_string(),
        UpstreamState::Locked => format!("server `{}` is locked since {since}", status.name),
        _ => format!("server `{}` is down since {since}", status.name),
    };
    if let Some(reason) = status.reason {
        message.push_str(&format!(": {reason}"));
    }
    message
}

fn down_error(server: &UpstreamServer) -> RpcError {
    let status = server.status();
    RpcError::internal(down_message(server)).with_data(json!({
        "server": status.name,
        "kind": status.state.to_string(),
        "reason": status.reason,
        "effect": "none",
    }))
}

fn since(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}
