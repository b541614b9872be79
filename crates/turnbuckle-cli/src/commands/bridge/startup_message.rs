//! The message at startup of the bridge: the servers with their states, and the address.

use std::path::Path;

use serde_json::{Value, json};
use turnbuckle_gateway::{UpstreamState, UpstreamStatus};

use crate::{
    listener::{
        ClientAccess,
        startup_message::{PublicUrls, StartupMessage, agents, socket_agents},
    },
    output::{sanitize, table::TextTable},
};

/// The name of several servers in the configuration of agents.
const NAME: &str = "bridge";

/// The width of the table of servers; its columns are short.
const TABLE_WIDTH: usize = 100;

/// Creates the message for HTTP. `authorities` are the hosts and ports that clients can use, at least one.
pub(super) fn http(
    authorities: &[String],
    access: &ClientAccess,
    servers: &[UpstreamStatus],
) -> StartupMessage {
    let urls = PublicUrls::new(authorities, access);
    let mut document = json!({
        "url": urls.endpoint,
        "sse": urls.sse,
        "health": urls.health,
        "ready": urls.readiness,
        "servers": documents(servers),
    });
    let name = match servers {
        [server] => &server.name,
        _ => NAME,
    };
    let mut agents = agents(name, &urls.endpoint, urls.needs_token);
    agents.push(("HTTP+SSE", urls.sse.clone()));
    let mut notice = String::new();
    if !urls.others.is_empty() {
        document["other-urls"] = json!(urls.others);
        notice += &urls.others_notice();
    }
    StartupMessage {
        header: header(servers),
        address: urls.endpoint,
        agents,
        document,
        notice,
    }
}

/// Creates the message for a Unix socket.
pub(super) fn socket(path: &Path, servers: &[UpstreamStatus]) -> StartupMessage {
    let address = format!("unix:{}", path.display());
    StartupMessage {
        header: header(servers),
        agents: socket_agents(&address),
        address,
        document: json!({ "socket": path, "servers": documents(servers) }),
        notice: String::new(),
    }
}

/// Returns a message for each server that cannot be reached.
pub(super) fn unreachable(servers: &[UpstreamStatus]) -> Vec<String> {
    let down = servers
        .iter()
        .filter(|server| server.state != UpstreamState::Up);
    down.map(|server| {
        let reason = server.reason.as_deref().unwrap_or("not connected");
        format!("server `{}` is {}: {reason}", server.name, server.state)
    })
    .collect()
}

/// Returns the names of the servers that cannot be reached.
pub(super) fn names_down(servers: &[UpstreamStatus]) -> Vec<String> {
    let down = servers
        .iter()
        .filter(|server| !matches!(server.state, UpstreamState::Up | UpstreamState::Locked));
    down.map(|server| server.name.clone()).collect()
}

fn documents(servers: &[UpstreamStatus]) -> Value {
    let document = |server: &UpstreamStatus| {
        json!({
            "name": server.name,
            "state": server.state.to_string(),
            "revision": server.revision,
            "reason": server.reason,
        })
    };
    servers.iter().map(document).collect()
}

fn header(servers: &[UpstreamStatus]) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut table = TextTable::new(&["server", "state", "revision"]);
    for server in servers {
        let detail = server.revision.as_ref().or(server.reason.as_ref());
        table.row([
            sanitize::line(&server.name),
            server.state.to_string(),
            sanitize::line(detail.map_or("", String::as_str)),
        ]);
    }
    let table = table.render(TABLE_WIDTH);
    format!("turnbuckle {version} bridges\n\n{table}\nlistening on\n")
}
