//! The message at startup: the address, and how to configure agents.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::config::ServeSettings;
use crate::{
    context::CommandContext,
    output::{sanitize, style},
};

/// Printed if callers are authenticated and no project directory is allowed.
const NO_PROJECT_FOLDERS: &str =
    "\nCallers cannot use any project directory; allow some with --root DIR.\n";

/// The message at startup.
#[derive(Debug)]
pub(super) struct StartupMessage {
    address: String,
    /// The configuration of each agent.
    agents: Vec<(&'static str, String)>,
    document: Value,
    data: String,
    /// A notice about missing settings.
    notice: &'static str,
}

impl StartupMessage {
    /// Creates the message for HTTP.
    pub(super) fn http(bound: SocketAddr, settings: &ServeSettings) -> Self {
        let authorization = settings.authorization.as_ref();
        let audience = authorization.and_then(|auth| auth.audience.clone());
        let url = audience.unwrap_or_else(|| format!("http://{bound}/mcp"));
        let health = format!("http://{bound}/healthz");
        let data = &settings.data;
        // Clients of an issuer log in by themselves; those of a token file need a configured token.
        let needs_token = authorization.is_some_and(|auth| auth.issuer.is_none());
        let mut document = json!({ "url": url, "health": health, "data": data });
        let mut agents = agents(&url, needs_token);
        if settings.http_sse {
            let base = url.strip_suffix("/mcp").map(str::to_owned);
            let base = base.unwrap_or_else(|| format!("http://{bound}"));
            let stream = format!("{base}/sse");
            document["sse"] = json!(stream);
            agents.push(("HTTP+SSE", stream));
        }
        Self {
            document,
            agents,
            address: url,
            data: data.display().to_string(),
            notice: if authorization.is_some() && settings.roots.is_none() {
                NO_PROJECT_FOLDERS
            } else {
                ""
            },
        }
    }

    /// Creates the message for a Unix socket.
    #[cfg(unix)]
    pub(super) fn socket(path: &std::path::Path, settings: &ServeSettings) -> Self {
        let address = format!("unix:{}", path.display());
        let data = &settings.data;
        Self {
            document: json!({ "socket": path, "data": data }),
            agents: vec![("turnbuckle", format!("turnbuckle tools {address}"))],
            address,
            data: data.display().to_string(),
            notice: "",
        }
    }

    /// Prints the address to stdout, and the rest to stderr. Errors are ignored.
    pub(super) fn print(&self, context: &CommandContext) {
        if context.options.json {
            let _ = context.write_bytes(format!("{}\n", self.document).as_bytes());
            return;
        }
        context.ui.print(&self.header());
        let _ = context.print(&format!("{}\n", sanitize::line(&self.address)));
        context.ui.print(&self.instructions());
    }

    fn header(&self) -> String {
        let version = env!("CARGO_PKG_VERSION");
        format!(
            "turnbuckle {version} stores data in {}, listening on\n",
            sanitize::line(&self.data)
        )
    }

    fn instructions(&self) -> String {
        let mut text = "\nConfigure your agent:\n".to_owned();
        for (agent, line) in &self.agents {
            let name = style::styled(style::NAME, &format!("{agent:<11}"));
            text += &format!("  {name}  {}\n", sanitize::line(line));
        }
        text + self.notice + "\nPress Ctrl-C to stop.\n"
    }
}

/// Returns the configuration of each agent, with the token that it needs.
fn agents(url: &str, needs_token: bool) -> Vec<(&'static str, String)> {
    let mut entry = json!({ "type": "http", "url": url });
    let (mut header, mut variable) = ("", "");
    if needs_token {
        entry["headers"] = json!({ "Authorization": "Bearer TOKEN" });
        header = " --header 'Authorization: Bearer TOKEN'";
        variable = " --bearer-token-env-var TURNBUCKLE_TOKEN";
    }
    let entry = json!({ "mcpServers": { "turnbuckle": entry } });
    let add = "mcp add --scope user --transport http turnbuckle";
    vec![
        ("Claude Code", format!("claude {add} {url}{header}")),
        (
            "Codex",
            format!("codex mcp add turnbuckle --url {url}{variable}"),
        ),
        ("Gemini", format!("gemini {add} {url}{header}")),
        (".mcp.json", entry.to_string()),
    ]
}
