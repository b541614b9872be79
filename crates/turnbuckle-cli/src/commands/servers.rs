//! `turnbuckle servers`.

use serde_json::{Value, json};
use turnbuckle_text::shell;

use crate::{
    context::CommandContext,
    environment::Environment,
    error::{Result, warning},
    output::{sanitize, table::TextTable},
    target::{
        config_files::{self, ConfigScope, ConfiguredServer, ConfiguredServers, ServerEntry},
        trust,
    },
};

/// List configured servers
///
/// Reads .mcp.json and the configuration files of Claude Code, Claude Desktop, VS Code, Cursor, Codex and Gemini, of
/// this project and of the user. Of servers with the same name, the user's own is used, then the one of the nearest
/// project directory; NAME@SOURCE selects another one. You are asked before a server of a project is first used.
/// Values of variables and headers are never shown.
#[derive(Debug, clap::Args)]
pub(crate) struct ServersCommand {}

impl ServersCommand {
    pub(crate) fn run(&self, context: &CommandContext) -> Result {
        let found =
            config_files::find_servers(&context.environment, context.options.config.as_deref());
        for message in &found.warnings {
            context.ui.print(&warning(message));
        }
        if context.options.json {
            return context.print_json(&document(&found, &context.environment));
        }
        if found.servers.is_empty() {
            context.ui.print("no servers are configured\n");
            return Ok(());
        }
        context.print(&table(&found, &context.environment))
    }
}

fn table(found: &ConfiguredServers, environment: &Environment) -> String {
    let mut table = TextTable::new(&["name", "transport", "state", "file", "connection"]);
    for server in &found.servers {
        let name = if found.is_shadowed(server) {
            format!("{}@{}", server.name, server.source.id())
        } else {
            server.name.clone()
        };
        table.row([
            sanitize::line(&name),
            server.entry.transport().to_owned(),
            state(server, found, environment).to_owned(),
            sanitize::line(&short_path(server, environment)),
            sanitize::line(&connection_text(&server.entry)),
        ]);
    }
    table.render(environment.terminal.width)
}

/// Returns whether the server is used for its name, and whether it is approved.
fn state(
    server: &ConfiguredServer,
    found: &ConfiguredServers,
    environment: &Environment,
) -> &'static str {
    match (found.is_shadowed(server), server.scope) {
        (true, _) => "shadowed",
        (false, ConfigScope::User) => "yours",
        (false, ConfigScope::Project) if is_approved(server, environment) => "approved",
        (false, ConfigScope::Project) => "not approved",
    }
}

fn is_approved(server: &ConfiguredServer, environment: &Environment) -> bool {
    is_approved_with(server, environment, || {
        // A server that cannot be resolved cannot be used either.
        server.resolve(environment).ok()
    })
}

/// Resolves a definition only if it was approved as written, because its paths can be on other machines.
fn is_approved_with(
    server: &ConfiguredServer,
    environment: &Environment,
    resolve: impl FnOnce() -> Option<ServerEntry>,
) -> bool {
    if !trust::is_definition_trusted(server, environment) {
        return false;
    }
    resolve().is_some_and(|resolved| trust::is_approved(server, &resolved, environment))
}

fn document(found: &ConfiguredServers, environment: &Environment) -> Value {
    let servers = found.servers.iter();
    let servers: Vec<_> = servers
        .map(|server| server_json(server, found, environment))
        .collect();
    json!({ "servers": servers })
}

fn server_json(
    server: &ConfiguredServer,
    found: &ConfiguredServers,
    environment: &Environment,
) -> Value {
    let mut value = json!({
        "name": server.name,
        "source": server.source.id(),
        "file": server.file,
        "scope": match server.scope {
            ConfigScope::User => "user",
            ConfigScope::Project => "project",
        },
        "hidden": found.is_shadowed(server),
        "approved": server.scope == ConfigScope::User || is_approved(server, environment),
        "transport": server.entry.transport(),
    });
    let names = |pairs: &[(String, _)]| -> Value {
        pairs
            .iter()
            .map(|(name, _)| (name.clone(), "***".into()))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    match &server.entry {
        ServerEntry::Command(command) => {
            value["command"] = command.program.clone().into();
            value["args"] = command.arguments.clone().into();
            value["env"] = names(&command.env);
        }
        ServerEntry::Http(http_entry) => {
            value["url"] = sanitize::redact_query(&http_entry.url).into();
            value["headers"] = names(&http_entry.headers);
        }
    }
    value
}

fn connection_text(entry: &ServerEntry) -> String {
    match entry {
        ServerEntry::Command(command) => {
            let words = std::iter::once(&command.program).chain(&command.arguments);
            words
                .map(|word| shell::quote(word))
                .collect::<Vec<_>>()
                .join(" ")
        }
        ServerEntry::Http(http_entry) => sanitize::redact_query(&http_entry.url),
    }
}

/// Returns the path of the file relative to the current directory or the home directory.
fn short_path(server: &ConfiguredServer, environment: &Environment) -> String {
    if let Ok(below) = server.file.strip_prefix(&environment.cwd) {
        return below.display().to_string();
    }
    let home = environment.home.as_ref();
    match home.and_then(|home| server.file.strip_prefix(home).ok()) {
        Some(below) => format!("~/{}", below.display()),
        None => server.file.display().to_string(),
    }
}

#[cfg(test)]
mod tests;
