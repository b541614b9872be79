//! Resolves a target: to a URL, a socket, or a program that is started after the user's approval.

use std::{io, path::Path};

use turnbuckle_client as client;
use turnbuckle_client::{http::HttpTarget, stdio::ServerCommand, unix::UnixTarget};

use crate::{
    context::CommandContext,
    credentials,
    error::{CliError, Result, warning},
    output::sanitize,
    target::{
        CliTarget,
        config_files::{self, CommandEntry, ConfiguredServer, HttpEntry, ServerEntry},
        trust::{self, ConfirmMode},
    },
};

/// A resolved target.
pub(crate) enum ResolvedTarget {
    /// A server on HTTP.
    Http(HttpEntry),
    /// A server on this machine, which needs no authorization.
    Local(client::Target),
}

impl ResolvedTarget {
    /// Returns whether the configuration or the command line has credentials for the server.
    pub(crate) fn has_credentials(&self) -> bool {
        match self {
            Self::Http(http_entry) => http_entry.has_credentials(),
            Self::Local(_) => false,
        }
    }
}

/// Resolves a target.
pub(crate) fn resolve(target: &CliTarget, context: &CommandContext) -> Result<ResolvedTarget> {
    let resolved = match target {
        CliTarget::Url(url) => ResolvedTarget::Http(HttpEntry::new(url)),
        CliTarget::Unix(path) => {
            ResolvedTarget::Local(UnixTarget::new(context.environment.cwd.join(path)).into())
        }
        CliTarget::Command(words) => {
            let (program, arguments) = words
                .split_first()
                .ok_or_else(|| CliError::could_not_run("no command after `--`"))?;
            // A command on the command line sees the whole environment, like any other command.
            let child = ServerCommand::new(program)
                .args(arguments)
                .inherit_all_env();
            ResolvedTarget::Local(with_stderr_logging(child, context).into())
        }
        CliTarget::Named(name) => resolve_configured(name, context)?,
    };
    with_cli_headers(resolved, context)
}

/// Adds the headers of the command line to a resolved target.
pub(crate) fn with_cli_headers(
    resolved: ResolvedTarget,
    context: &CommandContext,
) -> Result<ResolvedTarget> {
    match resolved {
        ResolvedTarget::Http(http_entry) => Ok(ResolvedTarget::Http(apply_cli_headers(
            http_entry, context,
        )?)),
        ResolvedTarget::Local(resolved) => {
            credentials::reject_token_options(context)?;
            Ok(ResolvedTarget::Local(resolved))
        }
    }
}

fn resolve_configured(name: &str, context: &CommandContext) -> Result<ResolvedTarget> {
    let environment = &context.environment;
    let found = config_files::find_servers(environment, context.options.config.as_deref());
    for message in &found.warnings {
        context.ui.print(&warning(message));
    }
    let server = found.find_by_name(name).ok_or_else(|| {
        CliError::could_not_run(format!("no server `{name}` is configured"))
            .hint("list configured servers with `turnbuckle servers`, or start a program with `-- PROGRAM`")
    })?;
    resolve_server(server, context)
}

/// Resolves a configured server, after the user's approval if a project defines it.
pub(crate) fn resolve_server(
    server: &ConfiguredServer,
    context: &CommandContext,
) -> Result<ResolvedTarget> {
    let entry = server.resolve(&context.environment).map_err(|error| {
        let (name, file) = (&server.name, server.file.display());
        let message = format!("cannot use `{name}` in {file}: {error}");
        CliError::could_not_run(sanitize::line(&message))
    })?;
    // Before headers of the command line or of a login are added.
    ensure_trust(server, &entry, context)?;
    Ok(match &entry {
        ServerEntry::Command(command) => {
            ResolvedTarget::Local(configured_child(command, server, context).into())
        }
        ServerEntry::Http(http_entry) => ResolvedTarget::Http(http_entry.clone()),
    })
}

fn ensure_trust(
    server: &ConfiguredServer,
    entry: &ServerEntry,
    context: &CommandContext,
) -> Result {
    let mut reader = io::stdin().lock();
    let mut writer = anstream::stderr().lock();
    let confirm = match (
        context.options.yes,
        context.environment.terminal.is_interactive,
    ) {
        (true, _) => ConfirmMode::Yes,
        (false, true) => ConfirmMode::Terminal(&mut reader, &mut writer),
        (false, false) => ConfirmMode::NoTerminal,
    };
    trust::ensure_trusted(server, entry, &context.environment, confirm)
}

fn configured_child(
    command: &CommandEntry,
    server: &ConfiguredServer,
    context: &CommandContext,
) -> ServerCommand {
    // The file that the user approved, even if the name has another meaning now.
    let program = command.lookup.program.as_deref();
    let child = ServerCommand::new(program.unwrap_or(Path::new(&command.program)))
        .args(&command.arguments)
        .envs(command.variables())
        .current_dir(command.folder(server));
    let child = if context.options.inherit_env {
        child.inherit_all_env()
    } else {
        child
    };
    with_stderr_logging(child, context)
}

fn with_stderr_logging(child: ServerCommand, context: &CommandContext) -> ServerCommand {
    let child = child.observer(context.supervisor.clone());
    if !context.options.verbose {
        return child;
    }
    let ui = context.ui.clone();
    child.on_stderr(move |line| ui.note("!", line))
}

/// Adds the headers of the command line, which override configured ones.
fn apply_cli_headers(mut http_entry: HttpEntry, context: &CommandContext) -> Result<HttpEntry> {
    let given = credentials::headers(context)?;
    let named = |name: &str| {
        let mut given = given.iter();
        given.any(|(other, _)| other.eq_ignore_ascii_case(name))
    };
    http_entry.headers.retain(|(name, _)| !named(name));
    http_entry.headers.extend(given.iter().cloned());
    Ok(http_entry)
}

/// Creates the HTTP client for a server.
pub(crate) fn http_client(http_entry: &HttpEntry, context: &CommandContext) -> HttpTarget {
    let headers = &http_entry.headers;
    if context.options.verbose {
        let shown = headers.iter().map(|(name, _)| format!(", {name}: ***"));
        let shown: String = shown.collect();
        let url = http_entry.url.split('?').next().unwrap_or(&http_entry.url);
        context.ui.note("*", &format!("{url}{shown}"));
    }
    let resolved = HttpTarget::new(&http_entry.url);
    let resolved = if http_entry.sse {
        resolved.http_sse_only()
    } else {
        resolved
    };
    headers.iter().fold(resolved, |resolved, (name, value)| {
        resolved.header(name, value.expose())
    })
}
