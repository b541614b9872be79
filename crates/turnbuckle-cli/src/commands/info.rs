//! `turnbuckle info`.

use serde_json::{Value, json};
use turnbuckle_client::{Era, ServerInfo};
use turnbuckle_protocol::types::ServerCapabilities;

use crate::{
    cli::{CommandArg, TargetArg},
    connection,
    context::CommandContext,
    error::Result,
    output::{sanitize, style, wrap},
    target::PositionalArgs,
};

/// Show information about a server
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "turnbuckle info [OPTIONS] <TARGET>\n       turnbuckle info [OPTIONS] -- <COMMAND>..."
)]
pub(crate) struct InfoCommand {
    #[command(flatten)]
    target: TargetArg,
    #[command(flatten)]
    program: CommandArg,
}

impl InfoCommand {
    pub(crate) async fn run(self, context: &CommandContext) -> Result {
        let (target, args) =
            PositionalArgs::split("info", self.target.target, &self.program.command)?;
        args.finish()?;
        let server =
            connection::with_client(&target, context, async |client| Ok(client.server())).await?;
        if context.options.json {
            context.print_json(&document(&server))
        } else {
            context.print(&render(&server, context.width()))
        }
    }
}

fn document(server: &ServerInfo) -> Value {
    json!({
        "serverInfo": server.info,
        "protocolVersion": server.revision.as_str(),
        "supportedVersions": server.supported_versions,
        "capabilities": server.capabilities,
        "instructions": server.instructions,
    })
}

fn render(server: &ServerInfo, width: usize) -> String {
    let mut text = String::new();
    if let Some(info) = &server.info {
        let name = style::styled(style::NAME, &sanitize::line(&info.name));
        text += &format!("{name} {}\n", sanitize::line(&info.version));
        for about in [&info.title, &info.description, &info.website_url]
            .into_iter()
            .flatten()
        {
            text += &wrap::indented(&sanitize::line(about), 0, width);
        }
        text.push('\n');
    }
    let era = match server.era {
        Era::Modern => "stateless",
        Era::Legacy => "session",
    };
    text += &format!("revision    {} ({era})\n", server.revision);
    text += &row(
        "features",
        &capability_names(&server.capabilities).join(", "),
        width,
    );
    let extensions = server.capabilities.extensions.iter().flatten();
    let extensions: Vec<_> = extensions.map(|(name, _)| sanitize::line(name)).collect();
    text += &row("extensions", &extensions.join(", "), width);
    if let Some(instructions) = &server.instructions {
        text += &format!(
            "\n{}",
            wrap::indented(sanitize::block(instructions).trim_end(), 0, width)
        );
    }
    text
}

fn row(label: &str, value: &str, width: usize) -> String {
    let lines = wrap::indented(value, 12, width);
    if value.is_empty() {
        String::new()
    } else {
        format!("{label:<12}{}", &lines[12..])
    }
}

fn capability_names(capabilities: &ServerCapabilities) -> Vec<&'static str> {
    let subscribe = capabilities
        .resources
        .as_ref()
        .and_then(|resources| resources.subscribe);
    let names = [
        (capabilities.tools.is_some(), "tools"),
        (capabilities.resources.is_some(), "resources"),
        (subscribe == Some(true), "subscriptions"),
        (capabilities.prompts.is_some(), "prompts"),
        (capabilities.completions.is_some(), "completions"),
        (capabilities.logging.is_some(), "logging"),
        (capabilities.tasks.is_some(), "tasks"),
    ];
    names
        .iter()
        .filter(|(present, _)| *present)
        .map(|(_, name)| *name)
        .collect()
}
