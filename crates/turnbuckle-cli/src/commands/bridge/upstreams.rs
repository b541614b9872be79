//! The servers behind the bridge: their targets, names and patterns.

use std::{
    collections::BTreeSet,
    ops::Deref,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use turnbuckle_auth::Secret;
use turnbuckle_client::{LifecycleMode, Target, http::HttpTarget};
use turnbuckle_gateway::{HeaderName, Sharing, Upstream, UpstreamCaller};
use turnbuckle_protocol::timeouts::Timeouts;
use turnbuckle_text::url::HttpUrl;

use super::{
    BridgeCommand, ShareOption,
    config::{
        AuthKind, AuthSection, BridgeConfig, ConnectSection, NamedSection, RateSection,
        SHARED_EXCHANGE, SHARED_LOGINS,
    },
    connect::ConnectPages,
    server_files::{self, ServerFiles},
    token_file::TokenFile,
};
use crate::{
    cli::EraOption,
    context::CommandContext,
    credentials,
    error::{CliError, Result, warning},
    listener::ListenAddress,
    logins::{self, MachineClient},
    state_files,
    target::{
        CliTarget,
        config_files::HttpEntry,
        file_text::is_readable_by_others,
        resolve::{self, ResolvedTarget},
    },
    ui::Ui,
};

/// Prints each warning once, also if the files are read again.
pub(super) struct Warnings {
    ui: Ui,
    printed: BTreeSet<String>,
}

impl Warnings {
    pub(super) fn new(context: &CommandContext) -> Self {
        Self {
            ui: context.ui.clone(),
            printed: BTreeSet::new(),
        }
    }

    pub(super) fn print(&mut self, message: &str) {
        if self.printed.insert(message.to_owned()) {
            self.ui.print(&warning(message));
        }
    }
}

/// The servers behind the bridge.
pub(super) struct BridgedServers {
    servers: Vec<BridgedServer>,
    /// The maximum rate of requests of a caller to one server.
    rate: Option<RateSection>,
    /// The tool lock of the configuration file.
    pub(super) lock: Option<PathBuf>,
    /// The client that finds out who is at a browser, with an absolute path.
    connect: Option<ConnectSection>,
}

impl BridgedServers {
    /// Returns the rate as the gateway needs it.
    pub(super) fn rate_limit(&self) -> Option<(u32, Duration)> {
        self.rate.map(|rate| (rate.calls.get(), rate.per))
    }
}

impl Deref for BridgedServers {
    type Target = [BridgedServer];

    fn deref(&self) -> &Self::Target {
        &self.servers
    }
}

/// A server behind the bridge.
pub(super) struct BridgedServer {
    pub(super) name: String,
    pub(super) target: CliTarget,
    connection: UpstreamConnection,
    /// Identifies the definition of the server.
    definition: String,
    settings: ServerSettings,
    allow: Vec<String>,
    deny: Vec<String>,
}

/// The settings of a server in `bridge.toml`.
#[derive(Clone, Debug, Default)]
struct ServerSettings {
    share: Option<ShareOption>,
    one_at_a_time: bool,
    required: bool,
    allow: Vec<String>,
    deny: Vec<String>,
    scopes: Vec<(String, String)>,
    forward_headers: Vec<HeaderName>,
    timeout: Option<Duration>,
    era: Option<EraOption>,
    auth: Option<AuthSection>,
}

/// How to connect to a server.
enum UpstreamConnection {
    Http(HttpEntry),
    Local(TargetFactory),
}

/// Creates the target of each connection.
type TargetFactory = std::sync::Arc<dyn Fn() -> Target + Send + Sync>;

/// Finds the servers of the command line and of `bridge.toml`, after the user's approval of those that a project
/// defines.
pub(super) fn find(
    bridge: &BridgeCommand,
    listen: &ListenAddress,
    context: &CommandContext,
    warnings: &mut Warnings,
) -> Result<BridgedServers> {
    let files = ServerFiles::read(context)?;
    let found = if bridge.all {
        files.all(listen, context, warnings)?
    } else {
        files.named(bridge, context, warnings)?
    };
    let mut servers: Vec<BridgedServer> = Vec::new();
    let mut names = BTreeSet::new();
    for server in found {
        let name = unique_name(
            &server.target,
            server.configured_name.as_deref(),
            &mut names,
        );
        let configured_name = server.configured_name.as_deref().unwrap_or(&name);
        let section = files.config.section(configured_name);
        servers.push(BridgedServer {
            settings: section.map_or_else(
                || Ok(ServerSettings::default()),
                |section| settings(section, &files.config, &server.resolved, bridge, context),
            )?,
            name,
            target: server.target,
            connection: connection(server.resolved)?,
            definition: server.definition,
            allow: Vec::new(),
            deny: Vec::new(),
        });
    }
    files.check_sections(&servers.iter().map(|server| &*server.name), context)?;
    for glob in &bridge.allow {
        add_pattern("--allow", glob, &mut servers, |server| &mut server.allow)?;
    }
    for glob in &bridge.deny {
        add_pattern("--deny", glob, &mut servers, |server| &mut server.deny)?;
    }
    Ok(BridgedServers {
        servers,
        rate: files.config.policy.rate,
        lock: files.config.lock_path(&context.environment),
        connect: files.config.connect.clone().map(|mut connect| {
            let file = connect.client_secret_file.as_mut();
            if let Some(file) = file {
                *file = files.config.resolve_path(file, &context.environment);
            }
            connect
        }),
    })
}

/// Returns the settings of a section, with absolute paths.
fn settings(
    section: &NamedSection,
    config: &BridgeConfig,
    resolved: &ResolvedTarget,
    bridge: &BridgeCommand,
    context: &CommandContext,
) -> Result<ServerSettings> {
    let given = &section.settings;
    let mut auth = given.auth.as_ref().map(|auth| auth.get_ref().clone());
    if let Some(auth) = &mut auth {
        if auth.kind == AuthKind::Exchange {
            check_exchange(bridge).map_err(|reason| config.error(section, reason))?;
        }
        if auth.kind == AuthKind::PerUser {
            let checked = check_per_user(bridge, config.connect.is_some());
            checked.map_err(|reason| config.error(section, reason))?;
        }
        if matches!(resolved, ResolvedTarget::Local(_)) {
            let reason = "`auth` is only for servers on HTTP";
            return Err(config.error(section, reason));
        }
        if resolved.has_credentials() && auth.kind != AuthKind::Login {
            let reason = "the server has an `Authorization` header already";
            return Err(config.error(section, reason));
        }
        for file in auth.files() {
            *file = config.resolve_path(file, &context.environment);
            let others = std::fs::metadata(&*file).is_ok_and(|found| is_readable_by_others(&found));
            if others {
                let reason = format!("other users can read {}", file.display());
                let hint = format!("run `chmod 600 {}`", file.display());
                return Err(config.error(section, &reason).hint(hint));
            }
        }
    }
    if let ResolvedTarget::Http(http_entry) = resolved {
        let is_configured = |name: &HeaderName| {
            let mut own = http_entry.headers.iter();
            own.any(|(other, _)| other.eq_ignore_ascii_case(name.as_str()))
        };
        if let Some(name) = given.forwarded().find(is_configured) {
            let reason = format!("`{name}` is both in the headers of the server and forwarded");
            return Err(config.error(section, &reason));
        }
    }
    Ok(ServerSettings {
        share: given.share,
        one_at_a_time: given.one_at_a_time,
        required: given.required,
        allow: given.allow.clone(),
        deny: given.deny.clone(),
        scopes: given.scopes.clone().into_iter().collect(),
        forward_headers: given.forwarded().collect(),
        timeout: given.timeout,
        era: given.era,
        auth,
    })
}

/// Returns why tokens cannot be exchanged.
fn check_exchange(bridge: &BridgeCommand) -> std::result::Result<(), &'static str> {
    if !bridge.has_issued_tokens {
        return Err(
            "`exchange` needs callers with tokens of an issuer: start the bridge with --auth-issuer",
        );
    }
    if matches!(bridge.share, Some(ShareOption::All)) {
        return Err(SHARED_EXCHANGE);
    }
    if bridge.exchanges_tokens.get() == Some(&false) {
        return Err(
            "the running bridge keeps no tokens of callers: start it again for the first server with `exchange`",
        );
    }
    Ok(())
}

/// Returns why callers cannot log in with accounts of their own.
fn check_per_user(
    bridge: &BridgeCommand,
    has_connect_client: bool,
) -> std::result::Result<(), &'static str> {
    if !bridge.listens_on_tcp {
        return Err("`per-user` needs a bridge on HTTP, where users log in; use `login` here");
    }
    if bridge.has_issued_tokens {
        if !has_connect_client {
            return Err(
                "`per-user` needs `[connect] client-id`, the client that this bridge is at --auth-issuer",
            );
        }
        let audience = bridge.token_audience.as_deref().map(HttpUrl::parse);
        if !audience.is_some_and(|url| url.is_ok_and(|url| url.is_https_or_loopback())) {
            return Err(
                "`per-user` needs an --audience with https, or http on a loopback address: users log in at its origin",
            );
        }
    } else if bridge.has_authenticated_callers {
        return Err(
            "`per-user` needs callers with tokens of an issuer, where they can log in with a browser too: start the bridge with --auth-issuer",
        );
    } else if !bridge.listens_on_loopback {
        return Err(
            "without --auth-issuer, `per-user` is only for a bridge on a loopback address: nothing shows who is at a browser",
        );
    } else if bridge.allows_other_hosts {
        return Err(
            "without --auth-issuer, `per-user` is only for one user: with --allow-host, users of other machines could have the same login",
        );
    }
    if matches!(bridge.share, Some(ShareOption::All)) {
        return Err(SHARED_LOGINS);
    }
    if bridge.connect.get().is_some_and(Option::is_none) {
        return Err("start the bridge again for the first server with `per-user`");
    }
    Ok(())
}

impl BridgedServers {
    /// Returns whether callers log in to a server with accounts of their own.
    pub(super) fn has_caller_logins(&self) -> bool {
        let is_per_user = |server: &BridgedServer| {
            let auth = server.settings.auth.as_ref();
            auth.is_some_and(|auth| auth.kind == AuthKind::PerUser)
        };
        self.servers.iter().any(is_per_user)
    }

    /// Returns the id and the secret of the client that finds out who is at a browser.
    pub(super) fn connect_client(
        &self,
        context: &CommandContext,
    ) -> Result<Option<(String, Option<Secret>)>> {
        let Some(connect) = &self.connect else {
            return Ok(None);
        };
        let file = connect.client_secret_file.as_deref();
        let secret = file.map(|file| credentials::read_secret(file, context));
        let secret = secret.transpose()?.map(|text| Secret::new(text.trim_end()));
        Ok(Some((connect.client_id.clone(), secret)))
    }

    /// Returns whether a server needs the tokens of callers.
    pub(super) fn exchange_tokens(&self) -> bool {
        self.servers.iter().any(BridgedServer::exchanges_tokens)
    }
}

impl BridgedServer {
    /// Returns the upstream server, with its credentials. The command line takes precedence over `bridge.toml`.
    pub(super) async fn upstream(
        &self,
        bridge: &BridgeCommand,
        context: &CommandContext,
    ) -> Result<Upstream> {
        let settings = &self.settings;
        let upstream = match &self.connection {
            UpstreamConnection::Local(target) => {
                let target = target.clone();
                Upstream::new(&self.name, move || target())
            }
            UpstreamConnection::Http(http_entry) => match &settings.auth {
                Some(auth) if auth.kind == AuthKind::Exchange => {
                    self.exchanging_upstream(auth, http_entry, context)?
                }
                Some(auth) if auth.kind == AuthKind::PerUser => {
                    let client = machine_client(auth, context)?;
                    let pages = bridge.connect.get().and_then(Option::as_ref);
                    let create = |pages: &ConnectPages| {
                        pages.upstream(&self.name, http_entry, &client, context)
                    };
                    pages.map_or_else(|| Err(credentials_of_callers()), create)?
                }
                _ => {
                    let http = self.authorized_http(http_entry, context).await?;
                    Upstream::new(&self.name, move || http.clone().into())
                }
            },
        };
        let upstream = match context.options.timeout.or(settings.timeout) {
            Some(timeout) => {
                let mut timeouts = Timeouts::default();
                timeouts.idle = timeout;
                timeouts.total = timeouts.total.max(timeout);
                upstream.timeouts(timeouts)
            }
            None => upstream,
        };
        let allow = if self.allow.is_empty() {
            &settings.allow
        } else {
            &self.allow
        };
        // For clients, so without a URL or a command line.
        let upstream = match &self.target {
            CliTarget::Named(_) if self.entry_without_credentials().is_some() => {
                let command = self.target.command_line("login", "");
                upstream.login_hint(format!("log in with `{command}`"))
            }
            _ => upstream,
        };
        let upstream = settings
            .scopes
            .iter()
            .fold(upstream, |upstream, (glob, scope)| {
                upstream.scope(glob, scope)
            });
        let upstream = upstream
            .fingerprint(self.fingerprint())
            .forward_headers(settings.forward_headers.iter().cloned())
            .required(settings.required)
            .one_at_a_time(bridge.one_at_a_time || settings.one_at_a_time)
            .sharing(sharing(bridge.share.or(settings.share)))
            .lifecycle_mode(match bridge.server_era.or(settings.era) {
                None | Some(EraOption::Auto) => LifecycleMode::Auto,
                Some(EraOption::Modern) => LifecycleMode::Modern,
                Some(EraOption::Legacy) => LifecycleMode::Legacy,
            })
            .allow(allow.iter().cloned())
            .deny(settings.deny.iter().chain(&self.deny).cloned());
        // Here, so that a reload applies it too.
        bridge.policy_files.lock(upstream, self)
    }

    /// Identifies the definition and all settings: a reload keeps the server if they are the same.
    fn fingerprint(&self) -> String {
        let settings = format!("{:?} {:?} {:?}", self.settings, self.allow, self.deny);
        state_files::digest([self.definition.as_str(), settings.as_str()])
    }

    /// Returns the upstream server with tokens that are exchanged for those of callers.
    fn exchanging_upstream(
        &self,
        auth: &AuthSection,
        http_entry: &HttpEntry,
        context: &CommandContext,
    ) -> Result<Upstream> {
        let machine = machine_client(auth, context)?;
        let create = logins::exchanging_http(http_entry, &machine, context)?;
        let target = move |caller: &UpstreamCaller| {
            let (key, owner) = (Arc::clone(caller.key()), caller.clone());
            let newest_token = move || owner.newest_token().map(|token| token.secret().clone());
            create(key, Box::new(newest_token)).into()
        };
        Ok(Upstream::per_caller(&self.name, target).login_hint(NO_TOKEN_HINT))
    }

    async fn authorized_http(
        &self,
        http_entry: &HttpEntry,
        context: &CommandContext,
    ) -> Result<HttpTarget> {
        let auth = self.settings.auth.as_ref();
        match auth.map(|auth| (auth.kind, auth)) {
            None | Some((AuthKind::Login, _)) => {
                logins::authorized_http(&self.target, http_entry, context).await
            }
            Some((AuthKind::TokenFile, auth)) => {
                let path = auth.file.as_deref().unwrap_or(Path::new(""));
                let token = TokenFile::open(path, &http_entry.url)?;
                Ok(resolve::http_client(http_entry, context).authorization(token))
            }
            Some((AuthKind::ClientCredentials, auth)) => {
                logins::machine_http(http_entry, &machine_client(auth, context)?, context)
            }
            Some((AuthKind::Exchange | AuthKind::PerUser, _)) => Err(credentials_of_callers()),
        }
    }

    /// Returns whether the configuration or the command line has credentials for the server.
    pub(super) fn has_credentials(&self) -> bool {
        match &self.connection {
            UpstreamConnection::Http(http_entry) => {
                http_entry.has_credentials() || self.has_own_login()
            }
            UpstreamConnection::Local(_) => false,
        }
    }

    /// Returns the entry of a server on HTTP that the user can log in to.
    pub(super) fn entry_without_credentials(&self) -> Option<&HttpEntry> {
        match &self.connection {
            UpstreamConnection::Http(entry) if !self.has_credentials() => Some(entry),
            _ => None,
        }
    }

    /// Returns whether the server needs the tokens of callers.
    fn exchanges_tokens(&self) -> bool {
        let auth = self.settings.auth.as_ref();
        auth.is_some_and(|auth| auth.kind == AuthKind::Exchange)
    }

    /// Returns whether the bridge gets its credentials without a user.
    fn has_own_login(&self) -> bool {
        let auth = self.settings.auth.as_ref();
        auth.is_some_and(|auth| auth.kind != AuthKind::Login)
    }
}

fn credentials_of_callers() -> CliError {
    CliError::could_not_run("the credentials of the server are those of each caller")
}

/// What callers read if the bridge got no token for them.
const NO_TOKEN_HINT: &str = "the bridge got no token for this caller; its log has the reason";

/// Returns the client that the bridge is at an authorization server.
fn machine_client(auth: &AuthSection, context: &CommandContext) -> Result<MachineClient> {
    let read = |file: &Option<PathBuf>| {
        let file = file.as_deref();
        file.map(|file| credentials::read_secret(file, context))
            .transpose()
    };
    let secret = read(&auth.client_secret_file)?;
    Ok(MachineClient {
        id: auth.client_id.clone().unwrap_or_default(),
        secret: secret.map(|text| Secret::new(text.trim_end())),
        key: read(&auth.client_key_file)?.map(Secret::new),
        issuer: auth.issuer.clone(),
        scope: auth.scope.clone(),
        resource: auth.resource.clone(),
        audience: auth.audience.clone(),
    })
}

fn sharing(option: Option<ShareOption>) -> Sharing {
    match option.unwrap_or_default() {
        ShareOption::Auto => Sharing::Auto,
        ShareOption::All => Sharing::All,
        ShareOption::Principal => Sharing::Principal,
        ShareOption::Session => Sharing::Session,
        ShareOption::Call => Sharing::Call,
    }
}

fn connection(resolved: ResolvedTarget) -> Result<UpstreamConnection> {
    let local: TargetFactory = match resolved {
        ResolvedTarget::Http(http_entry) => return Ok(UpstreamConnection::Http(http_entry)),
        ResolvedTarget::Local(Target::Command(command)) => {
            let command = command.env(server_files::BRIDGED_VARIABLE, "1");
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
fn unique_name(
    target: &CliTarget,
    configured_name: Option<&str>,
    taken: &mut BTreeSet<String>,
) -> String {
    let text = match (configured_name, target) {
        (Some(name), _) => name.to_owned(),
        (None, CliTarget::Named(name)) => name.clone(),
        (None, CliTarget::Url(url)) => HttpUrl::parse(url)
            .map_or_else(|_| "server".to_owned(), |url| url.authority.to_string()),
        (None, CliTarget::Unix(path)) => file_stem(path),
        (None, CliTarget::Command(words)) => words
            .first()
            .map_or_else(String::new, |program| file_stem(Path::new(program))),
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
            definition: String::new(),
            settings: ServerSettings::default(),
            allow: Vec::new(),
            deny: Vec::new(),
        };
        names.iter().map(server).collect()
    }

    fn allow(glob: &str, servers: &mut [BridgedServer]) -> Result {
        add_pattern("--allow", glob, servers, |server| &mut server.allow)
    }

    #[test]
    fn a_running_bridge_without_tokens_of_callers_cannot_begin_to_exchange_them() {
        #[derive(clap::Parser)]
        struct Words {
            #[command(flatten)]
            bridge: BridgeCommand,
        }
        let mut bridge = <Words as clap::Parser>::parse_from(["bridge"]).bridge;
        assert!(
            check_exchange(&bridge)
                .unwrap_err()
                .contains("--auth-issuer")
        );
        bridge.has_issued_tokens = true;
        assert_eq!(check_exchange(&bridge), Ok(()));
        bridge.exchanges_tokens = std::sync::OnceLock::from(true);
        assert_eq!(check_exchange(&bridge), Ok(()));
        bridge.exchanges_tokens = std::sync::OnceLock::from(false);
        assert!(
            check_exchange(&bridge)
                .unwrap_err()
                .contains("start it again")
        );
    }

    #[test]
    fn names_are_valid_in_tool_names_and_unique() {
        let mut taken = BTreeSet::new();
        let mut name = |word: &str| unique_name(&CliTarget::parse(word).unwrap(), None, &mut taken);

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
