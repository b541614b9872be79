//! The message at startup of the context server.

use serde_json::json;

use super::config::{ServeSettings, ToolSetOption};
use crate::{
    listener::startup_message::{PublicUrls, StartupMessage, agents, socket_agents},
    output::sanitize,
};

/// Printed if the URL of the configurations selects the core tools.
const CORE_TOOLS: &str =
    "\n?tools=core lists memory and search only; without it, all tools are listed.\n";

/// Printed if callers are authenticated and no project directory is allowed.
const NO_PROJECT_FOLDERS: &str =
    "\nCallers cannot use any project directory; allow some with --root DIR.\n";

/// The name of the server in the configuration of agents.
const NAME: &str = "turnbuckle";

/// Creates the message for HTTP. `authorities` are the hosts and ports that clients can use, at least one. `database` is the address
/// of the database without its password, if memory is in one.
pub(super) fn http(
    authorities: &[String],
    settings: &ServeSettings,
    database: Option<&str>,
) -> StartupMessage {
    let urls = PublicUrls::new(authorities, &settings.access);
    let mut document =
        json!({ "url": urls.endpoint, "health": urls.health, "data": settings.data });
    if let Some(database) = database {
        document["database"] = json!(database);
    }
    // A client that logs in requests tokens for its URL, which has to be the audience.
    let selects_core = settings.tools == ToolSetOption::All && !urls.has_issuer;
    let agent_url = if selects_core {
        format!("{}?tools=core", urls.endpoint)
    } else {
        urls.endpoint.clone()
    };
    let mut agents = agents(NAME, &agent_url, urls.needs_token);
    if settings.http_sse {
        document["sse"] = json!(urls.sse);
        agents.push(("HTTP+SSE", urls.sse.clone()));
    }
    let mut notice = String::new();
    if selects_core {
        notice += CORE_TOOLS;
    }
    if !urls.others.is_empty() {
        document["other-urls"] = json!(urls.others);
        notice += &urls.others_notice();
    }
    if settings.access.authorization.is_some() && settings.roots.is_none() {
        notice += NO_PROJECT_FOLDERS;
    }
    StartupMessage {
        header: header(settings, database),
        address: urls.endpoint,
        agents,
        document,
        notice,
    }
}

/// Creates the message for a Unix socket.
pub(super) fn socket(
    path: &std::path::Path,
    settings: &ServeSettings,
    database: Option<&str>,
) -> StartupMessage {
    let address = format!("unix:{}", path.display());
    let mut document = json!({ "socket": path, "data": settings.data });
    if let Some(database) = database {
        document["database"] = json!(database);
    }
    StartupMessage {
        header: header(settings, database),
        agents: socket_agents(&address),
        address,
        document,
        notice: String::new(),
    }
}

fn header(settings: &ServeSettings, database: Option<&str>) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let data = sanitize::line(&settings.data.display().to_string());
    match database.map(sanitize::line) {
        Some(database) => format!(
            "turnbuckle {version} stores memory in {database}, indexes in {data}, listening on\n"
        ),
        None => format!("turnbuckle {version} stores data in {data}, listening on\n"),
    }
}
