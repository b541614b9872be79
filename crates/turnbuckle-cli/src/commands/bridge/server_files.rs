//! The files that define servers, and the servers of the command line in them.

use std::path::{Path, PathBuf};

use turnbuckle_text::url::HttpUrl;

use super::{
    BridgeCommand,
    config::{BridgeConfig, NamedSection},
    upstreams::Warnings,
};
use crate::{
    context::CommandContext,
    error::{CliError, Result},
    listener::ListenAddress,
    target::{
        CliTarget,
        config_files::{self, ConfiguredServer, ConfiguredServers, ServerEntry},
        resolve::{self, ResolvedTarget},
        trust,
    },
};

/// Set for programs that a bridge starts, so that `bridge --all` does not start itself.
pub(super) const BRIDGED_VARIABLE: &str = "TURNBUCKLE_BRIDGED";

/// A server that was found, before it has a name that no other one has.
pub(super) struct FoundServer {
    /// The name in the configuration.
    pub(super) configured_name: Option<String>,
    pub(super) target: CliTarget,
    pub(super) resolved: ResolvedTarget,
    pub(super) definition: String,
}

/// The files that servers are found in.
pub(super) struct ServerFiles {
    pub(super) config: BridgeConfig,
    found: ConfiguredServers,
}

/// Returns the files that the servers depend on, whether they exist or not.
pub(super) fn watched_files(context: &CommandContext) -> Vec<PathBuf> {
    let (bridge_file, servers_file) = named_files(context);
    let mut files = config_files::file_paths(&context.environment, servers_file);
    files.extend(BridgeConfig::path(bridge_file, &context.environment));
    files
}

/// Returns the path of the tool lock that the configuration file names.
pub(super) fn lock_path(context: &CommandContext) -> Result<Option<PathBuf>> {
    let (bridge_file, _) = named_files(context);
    let config = BridgeConfig::find(bridge_file, &context.environment)?;
    Ok(config.lock_path(&context.environment))
}

/// Returns the files of `--config`: a TOML file is that of the bridge, any other one has servers.
fn named_files(context: &CommandContext) -> (Option<&Path>, Option<&Path>) {
    let named = context.options.config.as_deref();
    let is_toml = |file: &&Path| {
        file.extension()
            .is_some_and(|extension| extension == "toml")
    };
    (named.filter(is_toml), named.filter(|file| !is_toml(file)))
}

impl ServerFiles {
    pub(super) fn read(context: &CommandContext) -> Result<Self> {
        let (bridge_file, servers_file) = named_files(context);
        Ok(Self {
            config: BridgeConfig::find(bridge_file, &context.environment)?,
            found: config_files::find_servers(&context.environment, servers_file),
        })
    }

    /// Resolves the targets of the command line, or without one the servers of `bridge.toml`.
    pub(super) fn named(
        &self,
        bridge: &BridgeCommand,
        context: &CommandContext,
        warnings: &mut Warnings,
    ) -> Result<Vec<FoundServer>> {
        let usage = |message: String| {
            CliError::could_not_run(message).hint("see `turnbuckle bridge --help`")
        };
        let program = &bridge.program.command;
        let targets = match (&*bridge.targets, &**program) {
            ([], []) if self.config.servers.is_empty() => {
                return Err(usage("missing argument TARGET".to_owned()));
            }
            ([], []) => {
                let names = self.config.servers.iter();
                names
                    .map(|section| CliTarget::Named(section.name.clone()))
                    .collect()
            }
            ([], program) => vec![CliTarget::Command(program.to_vec())],
            (words, []) => words
                .iter()
                .map(|word| CliTarget::parse(word))
                .collect::<Result<Vec<_>>>()?,
            ([word, ..], _) => {
                return Err(usage(format!(
                    "unexpected argument `{word}`: a command after `--` is the only server"
                )));
            }
        };
        if targets.len() > 1 {
            reject_credentials(context)?;
        }
        let mut found = Vec::new();
        for target in targets {
            found.push(match &target {
                CliTarget::Named(name) => self.configured(name, context, warnings)?,
                _ => FoundServer {
                    configured_name: None,
                    definition: format!("{target:?}"),
                    resolved: resolve::resolve(&target, context)?,
                    target,
                },
            });
        }
        Ok(found)
    }

    /// Resolves a server by its name: in `bridge.toml`, or in a file of another program.
    fn configured(
        &self,
        name: &str,
        context: &CommandContext,
        warnings: &mut Warnings,
    ) -> Result<FoundServer> {
        let own = self.config.section(name);
        let own = own.and_then(|section| self.config.definition(section, &context.environment));
        if let Some(server) = own {
            return found_server(&server, own_target(&server), context);
        }
        for message in &self.found.warnings {
            warnings.print(message);
        }
        let Some(server) = self.found.find_by_name(name) else {
            let message = format!("no server `{name}` is configured");
            let hint = "list configured servers with `turnbuckle servers`, or start a program with `-- PROGRAM`";
            return Err(match self.config.section(name) {
                Some(section) => self.undefined(section),
                None => CliError::could_not_run(message).hint(hint),
            });
        };
        found_server(server, CliTarget::Named(name.to_owned()), context)
    }

    /// Resolves all configured servers. Those that cannot be used are left out with a warning.
    pub(super) fn all(
        &self,
        listen: &ListenAddress,
        context: &CommandContext,
        warnings: &mut Warnings,
    ) -> Result<Vec<FoundServer>> {
        reject_credentials(context)?;
        if context.environment.var(BRIDGED_VARIABLE).is_some() {
            return Err(CliError::could_not_run(
                "a bridge has started this command: it would start itself",
            )
            .hint("name the servers instead of --all"));
        }
        for message in &self.found.warnings {
            warnings.print(message);
        }
        let sections = self.config.servers.iter();
        let own: Vec<_> = sections
            .filter_map(|section| self.config.definition(section, &context.environment))
            .collect();
        let is_own = |name: &str| own.iter().any(|server| server.name == name);
        let others = self.found.servers.iter();
        let others =
            others.filter(|server| !self.found.is_shadowed(server) && !is_own(&server.name));
        let mut targets = Vec::new();
        for server in own.iter().chain(others) {
            if is_bridge(server, listen) {
                let message = format!("`{}` is this bridge, and is left out", server.name);
                warnings.print(&message);
                continue;
            }
            let target = if is_own(&server.name) {
                own_target(server)
            } else {
                CliTarget::Named(server.name.clone())
            };
            match found_server(server, target, context) {
                Ok(found) => targets.push(found),
                Err(failure) => {
                    let message = format!("`{}` is left out: {}", server.name, failure.summary());
                    warnings.print(&message);
                }
            }
        }
        if targets.is_empty() {
            return Err(CliError::could_not_run("no configured server can be used")
                .hint("list configured servers with `turnbuckle servers`"));
        }
        Ok(targets)
    }

    /// Returns an error for a section of a server that nothing defines: its name may be misspelled.
    pub(super) fn check_sections<'a>(
        &self,
        names: &(impl Iterator<Item = &'a str> + Clone),
        context: &CommandContext,
    ) -> Result {
        for section in &self.config.servers {
            let is_defined = self
                .config
                .definition(section, &context.environment)
                .is_some()
                || self.found.find_by_name(&section.name).is_some()
                || names.clone().any(|name| name == section.name);
            if !is_defined {
                return Err(self.undefined(section));
            }
        }
        Ok(())
    }

    fn undefined(&self, section: &NamedSection) -> CliError {
        let reason = format!("no server `{}` is configured", section.name);
        self.config.error(section, &reason).hint(
            "define it here with `command` or `url`, or correct the name: `turnbuckle servers` lists them",
        )
    }
}

/// Resolves a configured server.
fn found_server(
    server: &ConfiguredServer,
    target: CliTarget,
    context: &CommandContext,
) -> Result<FoundServer> {
    let resolved = resolve::resolve_server(server, context)?;
    let resolved = resolve::with_cli_headers(resolved, context)?;
    let entry = server.resolve(&context.environment);
    let definition = entry.map(|entry| trust::approval_digest(server, &entry));
    Ok(FoundServer {
        configured_name: Some(server.name.clone()),
        target,
        resolved,
        // It was resolved before.
        definition: definition.unwrap_or_default(),
    })
}

/// Returns the target that other commands use for a server that only `bridge.toml` defines.
fn own_target(server: &ConfiguredServer) -> CliTarget {
    match &server.entry {
        ServerEntry::Http(http_entry) => CliTarget::Url(http_entry.url.clone()),
        ServerEntry::Command(command) => {
            let program = std::iter::once(&command.program);
            CliTarget::Command(program.chain(&command.arguments).cloned().collect())
        }
    }
}

/// Returns an error if the command line has credentials, which would be sent to every server.
fn reject_credentials(context: &CommandContext) -> Result {
    let options = &context.options;
    if options.headers.is_empty() && options.authorization.token.is_none() {
        return Ok(());
    }
    Err(
        CliError::could_not_run("--header and --token would be sent to every server")
            .hint("put headers into the configuration of the server, or use `turnbuckle login`"),
    )
}

/// Returns whether a configured server is a bridge, which would call itself.
fn is_bridge(server: &ConfiguredServer, listen: &ListenAddress) -> bool {
    match &server.entry {
        ServerEntry::Command(command) => {
            let program = Path::new(&command.program).file_stem();
            let is_turnbuckle = program.is_some_and(|program| program == "turnbuckle");
            is_turnbuckle && command.arguments.iter().any(|word| word == "bridge")
        }
        ServerEntry::Http(http_entry) => {
            let url = HttpUrl::parse(&http_entry.url);
            let authority =
                url.map(|url| url.authority.to_string().replace("localhost", "127.0.0.1"));
            authority.is_ok_and(|authority| authority == listen.to_string())
        }
    }
}
