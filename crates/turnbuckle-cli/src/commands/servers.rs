//! `turnbuckle servers`.

use serde_json::{Value, json};

use crate::context::Context;
use crate::environment::Environment;
use crate::failure::{Result, warning};
use crate::output::plain;
use crate::output::table::Table;
use crate::servers::{self, Entry, Found, Scope, Server};
use crate::trust;

/// List the servers of the configurations on this machine
///
/// Looks into .mcp.json, the configurations of Claude Code, Claude Desktop, VS Code, Cursor, Codex and
/// Gemini, of this project and of the user. Of servers with the same name, the user's own is used, then the
/// one of the nearest folder of the project; NAME@SOURCE means another one. A server of a project that is not
/// approved is asked for before its first use. Values of variables and headers are never shown.
#[derive(Debug, clap::Args)]
pub(crate) struct Servers {}

impl Servers {
    pub(crate) fn run(&self, context: &Context) -> Result {
        let found = servers::find(&context.environment, context.options.config.as_deref());
        for message in &found.warnings {
            context.voice.say(&warning(message));
        }
        if context.options.json {
            return context.json(&document(&found, &context.environment));
        }
        if found.servers.is_empty() {
            context.voice.say("no servers are configured\n");
            return Ok(());
        }
        context.print(&table(&found, &context.environment))
    }
}

fn table(found: &Found, environment: &Environment) -> String {
    let mut table = Table::new(&["name", "transport", "state", "file", "reached by"]);
    for server in &found.servers {
        let name = match found.is_hidden(server) {
            true => format!("{}@{}", server.name, server.source.id()),
            false => server.name.clone(),
        };
        table.row([
            plain::line(&name),
            server.entry.transport().to_owned(),
            state(server, found, environment).to_owned(),
            plain::line(&short(server, environment)),
            plain::line(&reach(&server.entry)),
        ]);
    }
    table.render(environment.terminal.width)
}

/// Returns whether the server is the one that its name means, and whether it can be used without asking.
fn state(server: &Server, found: &Found, environment: &Environment) -> &'static str {
    match (found.is_hidden(server), server.scope) {
        (true, _) => "shadowed",
        (false, Scope::User) => "yours",
        (false, Scope::Project) if is_approved(server, environment) => "approved",
        (false, Scope::Project) => "not approved",
    }
}

fn is_approved(server: &Server, environment: &Environment) -> bool {
    is_approved_as(server, environment, || {
        // What cannot be resolved cannot be used either.
        server.resolve(environment).ok()
    })
}

/// Resolves a definition only if the user agreed to it as it is written: the paths in it can lead to other machines.
fn is_approved_as(
    server: &Server,
    environment: &Environment,
    resolve: impl FnOnce() -> Option<Entry>,
) -> bool {
    if !trust::is_known(server, environment) {
        return false;
    }
    resolve().is_some_and(|resolved| trust::is_approved(server, &resolved, environment))
}

fn document(found: &Found, environment: &Environment) -> Value {
    let servers = found.servers.iter();
    let servers: Vec<_> = servers
        .map(|server| of_server(server, found, environment))
        .collect();
    json!({ "servers": servers })
}

fn of_server(server: &Server, found: &Found, environment: &Environment) -> Value {
    let mut value = json!({
        "name": server.name,
        "source": server.source.id(),
        "file": server.file,
        "scope": match server.scope {
            Scope::User => "user",
            Scope::Project => "project",
        },
        "hidden": found.is_hidden(server),
        "approved": server.scope == Scope::User || is_approved(server, environment),
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
