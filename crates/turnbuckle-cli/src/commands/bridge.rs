//! `turnbuckle bridge`.

mod config;
#[cfg(feature = "tls")]
mod connect;
#[cfg(not(feature = "tls"))]
#[path = "bridge/connect_without_tls.rs"]
mod connect;
mod first_message;
mod policy;
mod reload;
mod server_files;
mod server_section;
mod startup_message;
mod token_file;
mod upstreams;

use std::{num::NonZeroUsize, path::PathBuf, time::Duration};

use clap::ValueEnum;
use connect::ConnectPages;
use first_message::FirstMessage;
use policy::{PolicyFiles, PolicyOptions};
use reload::Reloader;
use serde::Deserialize;
use turnbuckle_gateway::{Gateway, PrefixMode, RunningGateway, StartError};
use turnbuckle_protocol::types::{ClientCapabilities, Implementation};
use turnbuckle_server::{ServedEras, stdio::Stdio};
use turnbuckle_text::error_chain;
use upstreams::{BridgedServer, BridgedServers};

use super::state_keys::StateKeys;
use crate::{
    cli::{CommandArg, EraOption, parse_duration},
    connection::or_interrupted,
    context::CommandContext,
    error::{CliError, Result, warning},
    listener::{
        AccessOptions, ClientAccess, ListenAddress, auth,
        http::{self, HttpListener, HttpSettings},
        log,
        unix_socket::UnixSocket,
    },
    logins,
    output::sanitize,
    signals::ShutdownSignals,
};

/// The default port.
const DEFAULT_PORT: u16 = 8322;

/// The time that running calls have at shutdown. Programs that do not end then take up to four more seconds.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(500);

/// Serve any servers to any client: HTTP, stdio, all eras
///
/// Clients of any protocol revision connect to http://127.0.0.1:8322/mcp by default, and call servers of any revision
/// and transport. Several servers become one: tools and prompts get the name of their server as a prefix. A server that
/// cannot be reached is left out, and tried again. Each server is also served alone, at /mcp/NAME.
///
/// The address is printed to stdout, everything else to stderr. /healthz responds with status 200, /readyz too if a
/// server can be reached, and with 503 otherwise. Old clients use HTTP+SSE at /sse. Programs that were started end with
/// this command, however it ends.
///
/// Settings of servers are read from bridge.toml in the configuration directory of the user; without TARGET, the servers
/// in it are bridged. Servers are added, changed and removed when the file changes, and on SIGHUP.
///
/// GLOB is a pattern for the names of tools and prompts and the URIs of resources, for example `get_*`. With several
/// servers it starts with the name of one, or `*`: `github/get_*`. A server without --allow shows everything.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "turnbuckle bridge [OPTIONS] <TARGET>...\n       turnbuckle bridge [OPTIONS] --all\n       turnbuckle bridge [OPTIONS] -- <COMMAND>..."
)]
pub(crate) struct BridgeCommand {
    /// The servers: URL, unix:PATH or configured name
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,

    #[command(flatten)]
    program: CommandArg,

    /// Bridge every configured server
    #[arg(long, conflicts_with_all = ["targets", "command"])]
    all: bool,

    /// Serve one client on stdin and stdout
    ///
    /// If a server requires a login, it starts as with `turnbuckle login`.
    #[arg(long, conflicts_with = "listen")]
    stdio: bool,

    /// Listen on ADDRESS:PORT (0: any free port) or unix:PATH
    #[arg(long, value_name = "ADDR|unix:PATH", value_parser = parse_listen_address)]
    listen: Option<ListenAddress>,

    /// Select which callers share a connection to a server [default: auto]
    #[arg(long, value_enum)]
    share: Option<ShareOption>,

    /// Send calls to each legacy server one after the other
    ///
    /// A connection of all callers can then request input: a request of the server belongs to the call that runs. A call
    /// that waits for its client delays the calls of all others.
    #[arg(long)]
    one_at_a_time: bool,

    /// End unused connections and programs after this time
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "5m")]
    idle: Duration,

    /// Open at most this many connections to each server
    #[arg(long, value_name = "N", default_value = "64")]
    max_connections: NonZeroUsize,

    /// Show only what matches; repeatable
    #[arg(long, value_name = "GLOB")]
    allow: Vec<String>,

    /// Hide what matches, even if it is allowed; repeatable
    #[arg(long, value_name = "GLOB")]
    deny: Vec<String>,

    #[command(flatten)]
    policy: PolicyOptions,

    /// The files and the listener of the policy, once they are open.
    #[arg(skip)]
    policy_files: PolicyFiles,

    /// Put the name of the server before the names of tools
    #[arg(long, value_enum, default_value_t)]
    prefix: PrefixOption,

    /// Limit names of tools of several servers to N bytes
    ///
    /// A longer name becomes its prefix, its end, and a digest.
    #[arg(long = "max-name", value_name = "N", default_value = "128", value_parser = clap::value_parser!(u16).range(16..))]
    max_name_length: u16,

    /// List tools to search, describe and call all others
    #[arg(long)]
    search: bool,

    /// Use this era of the protocol towards the servers [default: auto]
    #[arg(long, value_name = "ERA", value_enum)]
    server_era: Option<EraOption>,

    /// Read the keys that seal request states from this file
    ///
    /// Request states, cursors and ids of tasks then stay valid after a restart, and at other bridges with the same file.
    /// Each line is a key of 32 characters or more; the first seals, all of them open. Without the option, a key of this
    /// process is used. Make a file with `(umask 077; openssl rand -hex 32 > FILE)`.
    #[arg(long, value_name = "FILE")]
    state_key_file: Option<PathBuf>,

    /// The keys of the file.
    #[arg(skip)]
    state_keys: Option<StateKeys>,

    /// Accept requests for this host name or address; repeatable
    #[arg(long = "allow-host", value_name = "HOST")]
    hosts: Vec<String>,

    #[command(flatten)]
    authorization: auth::AuthFlags,

    /// Allow other machines to call the servers
    #[arg(long)]
    dangerously_allow_unauthenticated: bool,

    /// Whether callers have principals with scopes.
    #[arg(skip)]
    has_authenticated_callers: bool,

    /// Whether an issuer issues the tokens of callers.
    #[arg(skip)]
    has_issued_tokens: bool,

    /// Whether clients connect over HTTP to a port.
    #[arg(skip)]
    listens_on_tcp: bool,

    /// Whether only this machine can connect.
    #[arg(skip)]
    listens_on_loopback: bool,

    /// Whether requests may name other hosts than the address.
    #[arg(skip)]
    allows_other_hosts: bool,

    /// The audience of the tokens of callers.
    #[arg(skip)]
    token_audience: Option<String>,

    /// The pages for logins of callers, once it is known whether there are any.
    #[arg(skip)]
    connect: std::sync::OnceLock<Option<ConnectPages>>,

    /// Whether tokens of callers are exchanged, once it is known.
    #[arg(skip)]
    exchanges_tokens: std::sync::OnceLock<bool>,
}

/// The value of `--share`.
#[derive(Clone, Copy, Debug, Default, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum ShareOption {
    /// Modern servers: all callers; legacy servers: by session
    #[default]
    Auto,
    /// One connection for all callers
    All,
    /// One per authenticated caller
    Principal,
    /// One per session
    Session,
    /// One per call
    Call,
}

/// The value of `--prefix`.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum PrefixOption {
    /// With several servers
    #[default]
    Auto,
    /// Also with one server
    Always,
    /// Never
    Never,
}

fn parse_listen_address(text: &str) -> std::result::Result<ListenAddress, String> {
    ListenAddress::parse(text, DEFAULT_PORT)
}

impl BridgeCommand {
    pub(crate) async fn run(mut self, context: &CommandContext) -> Result {
        let address = self.listen.take();
        let address = address.unwrap_or_else(|| ListenAddress::loopback(DEFAULT_PORT));
        let address = address.relative_to(&context.environment.cwd);
        self.allows_other_hosts = !self.hosts.is_empty();
        let access = AccessOptions {
            flags: std::mem::take(&mut self.authorization),
            section: None,
            hosts: std::mem::take(&mut self.hosts),
            is_stdio: self.stdio,
            allows_unauthenticated: self.dangerously_allow_unauthenticated,
        };
        let mut access = access.resolve(&address, DEFAULT_PORT, &context.environment)?;
        self.has_authenticated_callers = access.authorization.is_some();
        let issuer = access.authorization.as_ref().map(|auth| &auth.issuer);
        self.has_issued_tokens = issuer.is_some_and(Option::is_some);
        let authorization = access.authorization.as_ref();
        self.token_audience = authorization.and_then(|auth| auth.audience.clone());
        self.listens_on_tcp = !self.stdio && matches!(address, ListenAddress::Tcp(_));
        self.listens_on_loopback = address.is_local();
        self.policy_files = self.policy.open(context).await?;
        self.state_keys = match &self.state_key_file {
            Some(path) => Some(StateKeys::read(&context.environment.cwd.join(path))?),
            None => None,
        };
        let mut reloader = Reloader::new(&self, &address, context)?;
        let servers = upstreams::find(&self, &address, context, reloader.warnings())?;
        let _ = self.exchanges_tokens.set(servers.exchange_tokens());
        let pages = servers.has_caller_logins().then(|| {
            let client = servers.connect_client(context)?;
            ConnectPages::for_callers(access.authorization.as_ref(), client)
        });
        let _ = self.connect.set(pages.transpose()?);
        if let Some(authorization) = &mut access.authorization {
            authorization.allows_token_exchange = servers.exchange_tokens();
        }
        log::init(None, context)?;
        http::raise_open_file_limit();
        if self.stdio {
            return self.serve_stdio(&servers, reloader, context).await;
        }
        match &address {
            ListenAddress::Tcp(bound) => {
                let listener = HttpListener::bind(*bound, DEFAULT_PORT).await?;
                self.serve_http(listener, &access, &servers, reloader, context)
                    .await
            }
            ListenAddress::Unix(path) => {
                let socket = UnixSocket::bind(path).await?;
                let mut signals = ShutdownSignals::without_hangup()?;
                let gateway = or_interrupted(self.start(&servers, None, context)).await?;
                startup_message::socket(path, &gateway.status()).print(context);
                let serving = socket.serve(gateway.server(), &mut signals, SHUTDOWN_TIMEOUT);
                let done = or_terminal_closed(serving, reloader, &gateway, || Ok(())).await;
                close(&gateway, signals).await;
                done
            }
        }
    }

    async fn serve_http(
        &self,
        listener: HttpListener,
        access: &ClientAccess,
        servers: &BridgedServers,
        reloader: Reloader<'_>,
        context: &CommandContext,
    ) -> Result {
        let mut signals = ShutdownSignals::without_hangup()?;
        let gateway = or_interrupted(self.start(servers, None, context)).await?;
        let settings = HttpSettings {
            access,
            http_sse: true,
            max_connections: None,
            shutdown_timeout: SHUTDOWN_TIMEOUT,
        };
        let readiness = gateway.clone();
        let done = async {
            let mut http = listener
                .into_server(gateway.server(), &settings, context)?
                .readiness(move || readiness.is_ready());
            if let Some(pages) = self.connect.get().and_then(Option::as_ref) {
                pages.set_origin(http.origin(access));
                http = http.web_pages(pages.clone());
            }
            let named = http.named_servers(access);
            let serve_each = || {
                let names = gateway.status().into_iter().map(|server| server.name);
                named.set(names.collect(), |name| gateway.server_of(name))
            };
            serve_each()?;
            startup_message::http(http.authorities(), access, &gateway.status()).print(context);
            let serving = http.serve(&mut signals, context);
            or_terminal_closed(serving, reloader, &gateway, serve_each).await
        };
        let done = done.await;
        close(&gateway, signals).await;
        done
    }

    /// Serves one client. Its end and signals end the bridge.
    async fn serve_stdio(
        &self,
        servers: &BridgedServers,
        reloader: Reloader<'_>,
        context: &CommandContext,
    ) -> Result {
        let (signals, mut end) = (
            ShutdownSignals::without_hangup()?,
            ShutdownSignals::without_hangup()?,
        );
        let first = or_interrupted(async { Ok(FirstMessage::wait().await) }).await?;
        let starting = self.start_with_logins(servers, &first, context);
        let gateway = or_interrupted(starting).await?;
        for message in startup_message::unreachable(&gateway.status()) {
            context.ui.print(&warning(&sanitize::line(&message)));
        }
        let stdio = Stdio::new(gateway.server()).received(first.input);
        let stdio = stdio.shutdown(async move { end.recv().await });
        let serving = async { Ok(stdio.serve().await?) };
        let done = or_terminal_closed(serving, reloader, &gateway, || Ok(())).await;
        close(&gateway, signals).await;
        done
    }

    /// Starts the gateway. If a server requires a login, lets the user log in, and starts again.
    async fn start_with_logins(
        &self,
        servers: &BridgedServers,
        first: &FirstMessage,
        context: &CommandContext,
    ) -> Result<RunningGateway> {
        let started = self.start(servers, first.client(), context).await;
        let down: Vec<_> = match &started {
            Ok(gateway) => startup_message::names_down(&gateway.status()),
            Err(_) => servers.iter().map(|server| server.name.clone()).collect(),
        };
        let mut is_logged_in = false;
        for server in servers.iter().filter(|server| down.contains(&server.name)) {
            let Some(http_entry) = server.entry_without_credentials() else {
                continue;
            };
            match logins::log_in_if_required(&server.target, http_entry, context).await {
                Ok(done) => is_logged_in |= done,
                Err(failure) if servers.len() > 1 => {
                    let message = format!("`{}`: {}", server.name, failure.summary());
                    context.ui.print(&warning(&message));
                }
                // The reason why the server cannot be reached is more exact here.
                Err(failure) => return Err(failure),
            }
        }
        if !is_logged_in {
            return started;
        }
        if let Ok(gateway) = started {
            gateway.close().await;
        }
        self.start(servers, first.client(), context).await
    }

    async fn start(
        &self,
        servers: &BridgedServers,
        client: Option<(Implementation, ClientCapabilities)>,
        context: &CommandContext,
    ) -> Result<RunningGateway> {
        let mut gateway = Gateway::new("turnbuckle", env!("CARGO_PKG_VERSION"))
            .authenticated_callers(self.has_authenticated_callers)
            .idle_timeout(self.idle)
            .max_connections(self.max_connections.get())
            .max_name_length(self.max_name_length.into())
            .search_mode(self.search)
            .served_eras(match context.options.era {
                EraOption::Auto => ServedEras::Both,
                EraOption::Modern => ServedEras::Modern,
                EraOption::Legacy => ServedEras::Legacy,
            })
            .prefix(match self.prefix {
                PrefixOption::Auto => PrefixMode::Auto,
                PrefixOption::Always => PrefixMode::Always,
                PrefixOption::Never => PrefixMode::Never,
            });
        if let Some((calls, per)) = servers.rate_limit() {
            gateway = gateway.rate_limit(calls, per);
        }
        if let Some((info, capabilities)) = client {
            gateway = gateway.first_client(info, capabilities);
        }
        if let Some(keys) = &self.state_keys {
            gateway = gateway
                .state_keys(keys.iter())
                .map_err(|error| CliError::could_not_run(format!("invalid state key: {error}")))?;
        }
        for server in servers.iter() {
            gateway = gateway.upstream(server.upstream(self, context).await?);
        }
        let started = self.policy_files.observe(gateway).start().await;
        let gateway = started.map_err(|error| start_error(&error, servers))?;
        self.policy_files.started(&gateway, servers, context)?;
        Ok(gateway)
    }
}

fn start_error(error: &StartError, servers: &[BridgedServer]) -> CliError {
    let failure = CliError::could_not_run(error_chain(error));
    let StartError::Unreachable { server, reason } = error else {
        return failure;
    };
    let Some(server) = servers.iter().find(|bridged| bridged.name == *server) else {
        return failure;
    };
    let needs_login = ["login required", "HTTP status 401", "HTTP status 403"];
    if needs_login.contains(&reason.as_str()) {
        return failure.hint(logins::login_hint(&server.target, server.has_credentials()));
    }
    let info = server.target.command_line("info", "");
    failure.hint(format!("`{info}` shows the reason"))
}

/// Serves and reloads, until serving ends or the terminal of the bridge is closed. `changed` is called when there are
/// other servers.
async fn or_terminal_closed(
    serving: impl Future<Output = Result>,
    reloader: Reloader<'_>,
    gateway: &RunningGateway,
    changed: impl Fn() -> Result,
) -> Result {
    tokio::select! {
        done = serving => done,
        () = reloader.run(gateway, changed) => Ok(()),
    }
}

/// Ends all connections and programs; a signal leaves them to the supervisor.
async fn close(gateway: &RunningGateway, mut signals: ShutdownSignals) {
    tokio::select! {
        () = gateway.close() => {}
        () = signals.recv() => {}
    }
}
