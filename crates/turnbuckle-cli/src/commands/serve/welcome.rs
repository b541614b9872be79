//! What is said when the server listens: where, and how agents are told of it.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::settings::Settings;
use crate::context::Context;
use crate::output::{plain, style};

/// Said to whoever lets others in, but into no project.
const NO_FOLDERS: &str = "\nCallers may use no folder of this machine; --root DIR lets them, and without one there are no projects.\n";

/// What is said when the server listens.
#[derive(Debug)]
pub(super) struct Welcome {
    address: String,
    /// How each agent is told of the server.
    agents: Vec<(&'static str, String)>,
    document: Value,
    data: String,
    /// What callers cannot do yet, and how they could.
    lacking: &'static str,
}

impl Welcome {
    /// On HTTP.
    pub(super) fn http(bound: SocketAddr, settings: &Settings) -> Self {
        let authorization = settings.authorization.as_ref();
        let known = authorization.and_then(|known| known.audience.clone());
        let url = known.unwrap_or_else(|| format!("http://{bound}/mcp"));
        let health = format!("http://{bound}/healthz");
        let data = &settings.data;
        // Clients of an issuer log in by themselves; those of a file have to be given a token.
        let needs_token = authorization.is_some_and(|known| known.issuer.is_none());
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
            lacking: match authorization.is_some() && settings.roots.is_none() {
                true => NO_FOLDERS,
                false => "",
            },
        }
    }

    /// On a Unix socket.
    #[cfg(unix)]
    pub(super) fn socket(path: &std::path::Path, settings: &Settings) -> Self {
        let address = format!("unix:{}", path.display());
        let data = &settings.data;
        Self {
            document: json!({ "socket": path, "data": data }),
            agents: vec![("turnbuckle", format!("turnbuckle tools {address}"))],
            address,
            data: data.display().to_string(),
            lacking: "",
        }
    }

    /// Prints the address for programs, and the rest for people. Nobody has to listen.
    pub(super) fn say(&self, context: &Context) {
        if context.options.json {
            let _ = context.bytes(format!("{}\n", self.document).as_bytes());
            return;
        }
        context.voice.say(&self.before());
        let _ = context.print(&format!("{}\n", plain::line(&self.address)));
        context.voice.say(&self.after());
    }

    fn before(&self) -> String {
        let version = env!("CARGO_PKG_VERSION");
        format!(
            "turnbuckle {version} keeps its memory in {} and listens on\n",
            plain::line(&self.data)
        )
    }

    fn after(&self) -> String {
        let mut text = "\nTell your agent:\n".to_owned();
        for (agent, line) in &self.agents {
            let name = style::paint(style::NAME, &format!("{agent:<11}"));
            text += &format!("  {name}  {}\n", plain::line(line));
        }
        text + self.lacking + "\nCtrl-C ends it.\n"
    }
}

/// How each agent is told of a server, and of the token that it needs.
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
