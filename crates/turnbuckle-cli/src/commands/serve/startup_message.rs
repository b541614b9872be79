//! The message at startup: the address, and how to configure agents.

use serde_json::{Value, json};
use turnbuckle_text::shell;

use super::config::{ServeSettings, ToolSetOption};
use crate::{
    context::CommandContext,
    output::{sanitize, style},
};

/// Printed if the URL of the configurations selects the core tools.
const CORE_TOOLS: &str =
    "\n?tools=core lists memory and search only; without it, all tools are listed.\n";

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
    /// Notices below the configurations.
    notice: String,
}

impl StartupMessage {
    /// Creates the message for HTTP. `authorities` are the hosts and ports that clients can use, at least one.
    pub(super) fn http(authorities: &[String], settings: &ServeSettings) -> Self {
        let authorization = settings.authorization.as_ref();
        let audience = authorization.and_then(|auth| auth.audience.clone());
        let url_at = |authority: &String| format!("http://{authority}/mcp");
        let first = format!("http://{}", authorities[0]);
        let url = audience.unwrap_or_else(|| url_at(&authorities[0]));
        let data = &settings.data;
        let has_issuer = authorization.is_some_and(|auth| auth.issuer.is_some());
        // Clients of an issuer log in by themselves; those of a token file need a configured token.
        let needs_token = authorization.is_some() && !has_issuer;
        let others: Vec<_> = authorities.iter().skip(1).map(url_at).collect();
        let mut document =
            json!({ "url": url, "health": format!("{first}/healthz"), "data": data });
        // A client that logs in requests tokens for its URL, which has to be the audience.
        let selects_core = settings.tools == ToolSetOption::All && !has_issuer;
        let agent_url = if selects_core {
            format!("{url}?tools=core")
        } else {
            url.clone()
        };
        let mut agents = agents(&agent_url, needs_token);
        if settings.http_sse {
            let base = url.strip_suffix("/mcp").map_or(first, str::to_owned);
            let stream = format!("{base}/sse");
            document["sse"] = json!(stream);
            agents.push(("HTTP+SSE", stream));
        }
        let mut notice = String::new();
        if selects_core {
            notice += CORE_TOOLS;
        }
        if !others.is_empty() {
            document["other-urls"] = json!(others);
            notice += &format!("\nOther addresses of this machine: {}\n", others.join(", "));
        }
        if authorization.is_some() && settings.roots.is_none() {
            notice += NO_PROJECT_FOLDERS;
        }
        Self {
            document,
            agents,
            address: url,
            data: data.display().to_string(),
            notice,
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
            notice: String::new(),
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
        text + &sanitize::block(&self.notice) + "\nPress Ctrl-C to stop.\n"
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
    let url = shell::quote(url);
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
