//! What is said when the server listens: where, and how agents are told of it.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::settings::Settings;
use crate::context::Context;
use crate::output::{plain, style};

/// What is said when the server listens.
#[derive(Debug)]
pub(super) struct Welcome {
    address: String,
    /// How each agent is told of the server.
    agents: Vec<(&'static str, String)>,
    document: Value,
    data: String,
}

impl Welcome {
    /// On HTTP.
    pub(super) fn http(bound: SocketAddr, settings: &Settings) -> Self {
        let url = format!("http://{bound}/mcp");
        let entry = json!({ "mcpServers": { "turnbuckle": { "type": "http", "url": url } } });
        let agents = vec![
            (
                "Claude Code",
                format!("claude mcp add --scope user --transport http turnbuckle {url}"),
            ),
            ("Codex", format!("codex mcp add turnbuckle --url {url}")),
            (
                "Gemini",
                format!("gemini mcp add --scope user --transport http turnbuckle {url}"),
            ),
            (".mcp.json", entry.to_string()),
        ];
        let health = format!("http://{bound}/healthz");
        let data = &settings.data;
        Self {
            document: json!({ "url": url, "health": health, "data": data }),
            address: url,
            agents,
            data: data.display().to_string(),
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
        text + "\nCtrl-C ends it.\n"
    }
}
