//! The servers behind the bridge: their targets, names and patterns.

use std::{collections::BTreeSet, path::Path};

use turnbuckle_client::{LifecycleMode, Target};
use turnbuckle_gateway::Upstream;
use turnbuckle_protocol::timeouts::Timeouts;
use turnbuckle_text::url::HttpUrl;

use super::BridgeCommand;
use crate::{
    cli::EraOption,
    context::CommandContext,
    error::{CliError, Result, warning},
    listener::ListenAddress,
    logins,
    target::{
        CliTarget,
        config_files::{self, ConfiguredServer, HttpEntry, ServerEntry},
        resolve::{self, ResolvedTarget},
    },
};

/// Set for programs that a bridge starts, so that `bridge --all` does not start itself.
const BRIDGED_VARIABLE: &str = "TURNBUCKLE_BRIDGED";

/// A server behind the bridge.
pub(super) struct BridgedServer {
    pub(super) name: String,
    pub(super) target: CliTarget,
    connection: UpstreamConnection,
    allow: Vec<String>,
    deny: Vec<String>,
}

/// How to connect to a server.
enum UpstreamConnection {
    Http(HttpEntry),
    Local(TargetFactory),
}

/// Creates the target of each connection.
type TargetFactory = std::sync::Arc<dyn Fn() -> Target + Send + Sync>;

/// Finds the servers of the command line, after the user's approval of those that a project defines.
pub(super) fn find(
    bridge: &BridgeCommand,
    listen: &ListenAddress,
    context: &CommandContext,
) -> Result<Vec<BridgedServer>> {
    let targets = if bridge.all {
        configured_targets(listen, context)?
    } else {
        named_targets(bridge, context)?
    };
    let mut servers: Vec<BridgedServer> = Vec::new();
    let mut names = BTreeSet::new();
    for (target, resolved) in targets {
        servers.push(BridgedServer {
            name: unique_name(&target, &mut names),
            target,
            connection: connection(resolved)?,
            allow: Vec::new(),
            deny: Vec::new(),
        });
    }
    for glob in &bridge.allow {
        add_pattern("--allow", glob, &mut servers, |server| &mut server.allow)?;
    }
    for glob in &bridge.deny {
        add_pattern("--deny", glob, &mut servers, |server| &mut server.deny)?;
    }
    Ok(servers)
}

impl BridgedServer {
    /// Returns the upstream server, with the stored login if there is one.
    pub(super) async fn upstream(
        &self,
        bridge: &BridgeCommand,
        context: &CommandContext,
    ) -> Result<Upstream> {
        let upstream = match &self.connection {
            UpstreamConnection::Local(target) => {
                let target = target.clone();
                Upstream::new(&self.name, move || target())
            }
            UpstreamConnection::Http(http_entry) => {
                let http = logins::authorized_http(&self.target, http_entry, context).await?;
                Upstream::new(&self.name, move || http.clone().into())
            }
        };
        let upstream = match context.options.timeout {
            Some(timeout) => {
                let mut timeouts = Timeouts::default();
                timeouts.idle = timeout;
                timeouts.total = timeouts.total.max(timeout);
                upstream.timeouts(timeouts)
            }
            None => upstream,
        };
        Ok(upstream
            .sharing(bridge.sharing())
            .lifecycle_mode(match bridge.server_era {
                EraOption::Auto => LifecycleMode::Auto,
                EraOption::Modern => LifecycleMode::Modern,
                EraOption::Legacy => LifecycleMode::Legacy,
            })
            .allow(self.allow.iter().cloned())
            .deny(self.deny.iter().cloned()))
    }

    /// Returns whether the configuration or the command line has credentials for the server.
    pub(super) fn has_credentials(&self) -> bool {
        match &self.connection {
            UpstreamConnection::Http(http_entry) => http_entry.has_credentials(),
            UpstreamConnection::Local(_) => false,
        }
    }

    /// Returns the entry of a server on HTTP that the user can log in to.
    pub(super) fn entry_without_credentials(&self) -> Option<&HttpEntry> {
        match &self.connection {
            UpstreamConnection::Http(entry) if !entry.has_credentials() => Some(entry),
            _ => None,
        }
    }
}

/// Resolves the targets of the command line.
fn named_targets(
    bridge: &BridgeCommand,
    context: &CommandContext,
) -> Result<Vec<(CliTarget, ResolvedTarget)>> {
    let usage =
        |message: String| CliError::could_not_run(message).hint("see `turnbuckle bridge --help`");
    let program = &bridge.program.command;
    let targets = match (&*bridge.targets, &**program) {
        ([], []) => return Err(usage("missing argument TARGET".to_owned())),
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
    let mut resolved = Vec::new();
    for target in targets {
        let connection = resolve::resolve(&target, context)?;
        resolved.push((target, connection));
    }
    Ok(resolved)
}

/// Resolves all configured servers. Those that cannot be used are left out with a warning.
fn configured_targets(
    listen: &ListenAddress,
    context: &CommandContext,
) -> Result<Vec<(CliTarget, ResolvedTarget)>> {
    reject_credentials(context)?;
    if context.environment.var(BRIDGED_VARIABLE).is_some() {
        return Err(CliError::could_not_run(
            "a bridge has started this command: it would start itself",
        )
        .hint("name the servers instead of --all"));
    }
    let config = context.options.config.as_deref();
    let found = config_files::find_servers(&context.environment, config);
    for message in &found.warnings {
        context.ui.print(&warning(message));
    }
    let mut targets = Vec::new();
    for server in &found.servers {
        if found.is_shadowed(server) {
            continue;
        }
        if is_bridge(server, listen) {
            let message = format!("`{}` is this bridge, and is left out", server.name);
            context.ui.print(&warning(&message));
            continue;
        }
        match resolve::resolve_server(server, context) {
            Ok(resolved) => targets.push((CliTarget::Named(server.name.clone()), resolved)),
            Err(failure) => {
                let message = format!("`{}` is left out: {}", server.name, failure.summary());
                context.ui.print(&warning(&message));
            }
        }
    }
    if targets.is_empty() {
        return Err(CliError::could_not_run("no configured server can be used")
            .hint("list configured servers with `turnbuckle servers`"));
    }
    Ok(targets)
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

fn connection(resolved: ResolvedTarget) -> Result<UpstreamConnection> {
    let local: TargetFactory = match resolved {
        ResolvedTarget::Http(http_entry) => return Ok(UpstreamConnection::Http(http_entry)),
        ResolvedTarget::Local(Target::Command(command)) => {
            let command = command.env(BRIDGED_VARIABLE, "1");
            std::sync::Arc::new(move || command.clone().into())
        }
        ResolvedTarget::Local(Target::Unix(socket)) => {
            std::sync::Arc::new(move || socket.clone().into())
        }
        ResolvedTarget::Local(_) => {
            return Err(CliError::could_not_run("this target cannot be bridged"));
        }
    };
    Ok(UpstreamConnection::Local(local))
}

/// Adds a pattern to the servers that it names.
fn add_pattern(
    option: &str,
    glob: &str,
    servers: &mut [BridgedServer],
    patterns: impl Fn(&mut BridgedServer) -> &mut Vec<String>,
) -> Result {
    let (server, pattern) = match glob.split_once('/') {
        Some((server, pattern)) => (Some(server), pattern),
        None => (None, glob),
    };
    let is_named = |bridged: &BridgedServer| match server {
        Some(server) => server == "*" || bridged.name == server,
        None => false,
    };
    if servers.iter().any(is_named) {
        for server in servers.iter_mut().filter(|server| is_named(server)) {
            patterns(server).push(pattern.to_owned());
        }
        return Ok(());
    }
    // The URI of a resource has slashes, too.
    if let [only] = servers {
        patterns(only).push(glob.to_owned());
        return Ok(());
    }
    let names: Vec<_> = servers.iter().map(|server| &*server.name).collect();
    let message = match server {
        Some(server) => format!("{option} `{glob}` names no server: `{server}` is not bridged"),
        None => format!("{option} `{glob}` names no server"),
    };
    Err(CliError::could_not_run(message).hint(format!(
        "use SERVER/{pattern} with one of {}, or */{pattern} for all",
        names.join(", ")
    )))
}

/// Returns a name for a server that no other one has. Letters, digits, `-` and `_` are allowed in names of tools.
fn unique_name(target: &CliTarget, taken: &mut BTreeSet<String>) -> String {
    let text = match target {
        CliTarget::Url(url) => HttpUrl::parse(url)
            .map_or_else(|_| "server".to_owned(), |url| url.authority.to_string()),
        CliTarget::Unix(path) => file_stem(path),
        CliTarget::Command(words) => words
            .first()
            .map_or_else(String::new, |program| file_stem(Path::new(program))),
        CliTarget::Named(name) => name.clone(),
    };
    let is_allowed = |ch: char| ch.is_ascii_alphanumeric() || ch == '-' || ch == '_';
    let name: String = text
        .chars()
        .map(|ch| if is_allowed(ch) { ch } else { '-' })
        .collect();
    let name = match name.trim_matches('-') {
        "" => "server".to_owned(),
        name => name.to_owned(),
    };
    let mut unique = name.clone();
    let mut number = 2;
    while !taken.insert(unique.clone()) {
        unique = format!("{name}-{number}");
        number += 1;
    }
    unique
}

fn file_stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::style;

    fn servers(names: &[&str]) -> Vec<BridgedServer> {
        let server = |name: &&str| BridgedServer {
            name: (*name).to_owned(),
            target: CliTarget::Named((*name).to_owned()),
            connection: UpstreamConnection::Http(HttpEntry::new("http://a.example")),
            allow: Vec::new(),
            deny: Vec::new(),
        };
        names.iter().map(server).collect()
    }

    fn allow(glob: &str, servers: &mut [BridgedServer]) -> Result {
        add_pattern("--allow", glob, servers, |server| &mut server.allow)
    }

    #[test]
    fn names_are_valid_in_tool_names_and_unique() {
        let mut taken = BTreeSet::new();
        let mut name = |word: &str| unique_name(&CliTarget::parse(word).unwrap(), &mut taken);

        assert_eq!(name("https://mcp.example.com/mcp"), "mcp-example-com");
        assert_eq!(name("http://127.0.0.1:8080/mcp"), "127-0-0-1-8080");
        assert_eq!(name("unix:/run/notes.sock"), "notes");
        assert_eq!(name("notes"), "notes-2");
        assert_eq!(name("weather@codex"), "weather-codex");
        assert_eq!(name("unix:/"), "server");
    }

    #[test]
    fn a_pattern_belongs_to_the_server_that_it_names() {
        let mut servers = servers(&["a", "b"]);

        allow("a/get_*", &mut servers).unwrap();
        allow("*/list_*", &mut servers).unwrap();

        assert_eq!(servers[0].allow, ["get_*", "list_*"]);
        assert_eq!(servers[1].allow, ["list_*"]);
    }

    #[test]
    fn with_one_server_its_name_is_optional() {
        let mut servers = servers(&["a"]);

        for glob in ["get_*", "a/list_*", "file:///srv/*"] {
            allow(glob, &mut servers).unwrap();
        }

        assert_eq!(servers[0].allow, ["get_*", "list_*", "file:///srv/*"]);
    }

    #[test]
    fn a_pattern_that_names_no_server_is_an_error() {
        let mut servers = servers(&["a", "b"]);
        let mut error = |glob| style::strip(&allow(glob, &mut servers).unwrap_err().render());

        insta::assert_snapshot!(error("get_*"), @r"
        error: --allow `get_*` names no server

        hint: use SERVER/get_* with one of a, b, or */get_* for all
        ");
        insta::assert_snapshot!(error("c/get_*"), @r"
        error: --allow `c/get_*` names no server: `c` is not bridged

        hint: use SERVER/get_* with one of a, b, or */get_* for all
        ");
    }
}
