//! `turnbuckle info`.

use serde_json::{Value, json};
use turnbuckle_client::{Era, Server};
use turnbuckle_protocol::types::ServerCapabilities;

use crate::arguments::{Program, TargetWord};
use crate::context::Context;
use crate::failure::Result;
use crate::output::{plain, style, wrap};
use crate::session;
use crate::target::Words;

/// Show what a server says about itself
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "turnbuckle info [OPTIONS] <TARGET>\n       turnbuckle info [OPTIONS] -- <COMMAND>..."
)]
pub(crate) struct Info {
    #[command(flatten)]
    target: TargetWord,
    #[command(flatten)]
    program: Program,
}

impl Info {
    pub(crate) async fn run(self, context: &Context) -> Result {
        let (target, words) = Words::split("info", self.target.target, &self.program.command)?;
        words.end()?;
        let server = session::with(&target, context, async |client| Ok(client.server())).await?;
        match context.options.json {
            true => context.json(&document(&server)),
            false => context.print(&shown(&server, context.width())),
        }
    }
}

fn document(server: &Server) -> Value {
    json!({
        "serverInfo": server.info,
        "protocolVersion": server.revision.as_str(),
        "supportedVersions": server.supported,
        "capabilities": server.capabilities,
        "instructions": server.instructions,
    })
}

fn shown(server: &Server, width: usize) -> String {
    let mut text = String::new();
    if let Some(info) = &server.info {
        let name = style::paint(style::NAME, &plain::line(&info.name));
        text += &format!("{name} {}\n", plain::line(&info.version));
        for about in [&info.title, &info.description, &info.website_url]
            .into_iter()
            .flatten()
        {
            text += &wrap::indented(&plain::line(about), 0, width);
        }
        text.push('\n');
    }
    let era = match server.era {
        Era::Modern => "every request on its own",
        Era::Legacy => "with a handshake",
    };
    text += &format!("revision    {} ({era})\n", server.revision);
    text += &row("offers", &offers(&server.capabilities).join(", "), width);
    let extensions = server.capabilities.extensions.iter().flatten();
    let extensions: Vec<_> = extensions.map(|(name, _)| plain::line(name)).collect();
    text += &row("extensions", &extensions.join(", "), width);
    if let Some(instructions) = &server.instructions {
        text += &format!(
            "\n{}",
            wrap::indented(plain::block(instructions).trim_end(), 0, width)
        );
    }
    text
}

fn row(label: &str, value: &str, width: usize) -> String {
    let lines = wrap::indented(value, 12, width);
    match value.is_empty() {
        true => String::new(),
        false => format!("{label:<12}{}", &lines[12..]),
    }
}

fn offers(capabilities: &ServerCapabilities) -> Vec<&'static str> {
    let subscribe = capabilities
        .resources
        .as_ref()
        .and_then(|resources| resources.subscribe);
    let offers = [
        (capabilities.tools.is_some(), "tools"),
        (capabilities.resources.is_some(), "resources"),
        (subscribe == Some(true), "subscriptions"),
        (capabilities.prompts.is_some(), "prompts"),
        (capabilities.completions.is_some(), "completions"),
        (capabilities.logging.is_some(), "logging"),
        (capabilities.tasks.is_some(), "tasks"),
    ];
    offers
        .iter()
        .filter(|(offered, _)| *offered)
        .map(|(_, name)| *name)
        .collect()
}
