//! The message at startup: the address, and how to configure agents.

use serde_json::{Value, json};
use turnbuckle_text::shell;

use super::ClientAccess;
use crate::{
    context::CommandContext,
    output::{sanitize, style},
};

/// The message at startup.
#[derive(Debug)]
pub(crate) struct StartupMessage {
    /// The sanitized lines above the address.
    pub(crate) header: String,
    pub(crate) address: String,
    /// The configuration of each agent.
    pub(crate) agents: Vec<(&'static str, String)>,
    /// The message as JSON.
    pub(crate) document: Value,
    /// Notices below the configurations.
    pub(crate) notice: String,
}

impl StartupMessage {
    /// Prints the address to stdout, and the rest to stderr. Errors are ignored.
    pub(crate) fn print(&self, context: &CommandContext) {
        if context.options.json {
            let _ = context.write_bytes(format!("{}\n", self.document).as_bytes());
            return;
        }
        context.ui.print(&self.header);
        let _ = context.print(&format!("{}\n", sanitize::line(&self.address)));
        context.ui.print(&self.instructions());
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

/// The URLs of a server on HTTP, as clients use them.
#[derive(Debug)]
pub(crate) struct PublicUrls {
    pub(crate) endpoint: String,
    /// The endpoint on other addresses of this machine.
    pub(crate) others: Vec<String>,
    /// The health check.
    pub(crate) health: String,
    /// The readiness check.
    pub(crate) readiness: String,
    /// The stream of HTTP+SSE.
    pub(crate) sse: String,
    /// True if clients log in at an issuer.
    pub(crate) has_issuer: bool,
    /// True if clients need a configured token.
    pub(crate) needs_token: bool,
}

impl PublicUrls {
    /// Creates the URLs. `authorities` are the hosts and ports that clients can use, at least one.
    pub(crate) fn new(authorities: &[String], access: &ClientAccess) -> Self {
        let authorization = access.authorization.as_ref();
        let audience = authorization.and_then(|auth| auth.audience.clone());
        let url_at = |authority: &String| format!("http://{authority}/mcp");
        let first = format!("http://{}", authorities[0]);
        let endpoint = audience.unwrap_or_else(|| url_at(&authorities[0]));
        let has_issuer = authorization.is_some_and(|auth| auth.issuer.is_some());
        let base = endpoint.strip_suffix("/mcp").unwrap_or(&first);
        Self {
            others: authorities.iter().skip(1).map(url_at).collect(),
            health: format!("{first}/healthz"),
            readiness: format!("{first}/readyz"),
            sse: format!("{base}/sse"),
            has_issuer,
            // Clients of an issuer log in by themselves; those of a token file need a configured token.
            needs_token: authorization.is_some() && !has_issuer,
            endpoint,
        }
    }

    /// Returns the notice about other addresses.
    pub(crate) fn others_notice(&self) -> String {
        let others = self.others.join(", ");
        format!("\nOther addresses of this machine: {others}\n")
    }
}

/// Returns how to use a server on a Unix socket.
pub(crate) fn socket_agents(address: &str) -> Vec<(&'static str, String)> {
    vec![("turnbuckle", format!("turnbuckle tools {address}"))]
}

/// Returns the configuration of each agent for a server, with the token that it needs.
pub(crate) fn agents(name: &str, url: &str, needs_token: bool) -> Vec<(&'static str, String)> {
    let mut entry = json!({ "type": "http", "url": url });
    let (mut header, mut variable) = ("", "");
    if needs_token {
        entry["headers"] = json!({ "Authorization": "Bearer TOKEN" });
        header = " --header 'Authorization: Bearer TOKEN'";
        variable = " --bearer-token-env-var TURNBUCKLE_TOKEN";
    }
    let url = shell::quote(url);
    let entry = json!({ "mcpServers": { name: entry } });
    let add = format!("mcp add --scope user --transport http {name}");
    vec![
        ("Claude Code", format!("claude {add} {url}{header}")),
        (
            "Codex",
            format!("codex mcp add {name} --url {url}{variable}"),
        ),
        ("Gemini", format!("gemini {add} {url}{header}")),
        (".mcp.json", entry.to_string()),
    ]
}
