//! `turnbuckle servers`.

use serde_json::{Value, json};

use crate::context::Context;
use crate::environment::Environment;
use crate::failure::{Result, warning};
use crate::output::plain;
use crate::output::table::Table;
use crate::servers::{self, Entry, Found, Server};
use crate::trust;

/// List the servers of the configurations on this machine
///
/// Looks into .mcp.json, the configurations of Claude Code, Claude Desktop, VS Code, Cursor, Codex and
/// Gemini, of this project and of the user. Of servers with the same name, the one of the nearest project
/// is used, and NAME@SOURCE means another one. Values of variables and headers are never shown.
#[derive(Debug, clap::Args)]
pub(crate) struct Servers {}

impl Servers {
    pub(crate) fn run(&self, context: &Context) -> Result {
        let found = servers::find(&context.environment, context.options.config.as_deref());
        for message in &found.warnings {
            context.voice.say(&warning(message));
        }
        if context.options.json {
            return context.json(&document(&found));
        }
        if found.servers.is_empty() {
            context.voice.say("no servers are configured\n");
            return Ok(());
        }
        context.print(&table(&found, &context.environment))
    }
}

fn table(found: &Found, environment: &Environment) -> String {
    let mut table = Table::new(&["name", "transport", "file", "reached by"]);
    for server in &found.servers {
        let name = match found.is_hidden(server) {
            true => format!("{}@{}", server.name, server.source.id()),
            false => server.name.clone(),
        };
        table.row([
            plain::line(&name),
            server.entry.transport().to_owned(),
            plain::line(&short(server, environment)),
            plain::line(&reach(&server.entry)),
        ]);
    }
    table.render(environment.terminal.width)
}

fn document(found: &Found) -> Value {
    let servers: Vec<_> = found
        .servers
        .iter()
        .map(|server| of_server(server, found))
        .collect();
    json!({ "servers": servers })
}

fn of_server(server: &Server, found: &Found) -> Value {
    let mut value = json!({
        "name": server.name,
        "source": server.source.id(),
        "file": server.file,
        "hidden": found.is_hidden(server),
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
        Entry::Start(start) => {
            value["command"] = start.program.clone().into();
            value["args"] = start.arguments.clone().into();
            value["env"] = names(&start.env);
        }
        Entry::Remote(remote) => {
            value["url"] = plain::without_query(&remote.url).into();
            value["headers"] = names(&remote.headers);
        }
    }
    value
}

fn reach(entry: &Entry) -> String {
    match entry {
        Entry::Start(start) => {
            let words = std::iter::once(&start.program).chain(&start.arguments);
            words
                .map(|word| trust::quoted(word))
                .collect::<Vec<_>>()
                .join(" ")
        }
        Entry::Remote(remote) => plain::without_query(&remote.url),
    }
}

/// Returns the file as one would write it from here.
fn short(server: &Server, environment: &Environment) -> String {
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
