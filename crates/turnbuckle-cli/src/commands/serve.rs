//! `turnbuckle serve`.

mod build_server;
mod config;
mod service;
mod shared_store;
mod startup_message;

use std::{path::PathBuf, time::Duration};

use config::{DEFAULT_PORT, QuotaOption, ServeConfig, ServeSettings, ToolSetOption};
use service::{ServiceAction, ServiceFlags};
use turnbuckle_auth::Secret;
use turnbuckle_server::stdio::Stdio;

use super::{
    context,
    database::{DatabaseFlags, DatabaseUrl},
};
use crate::{
    context::CommandContext,
    error::Result,
    listener::{
        ListenAddress, auth,
        http::{self, HttpListener, HttpSettings},
        log,
        unix_socket::UnixSocket,
    },
    signals::ShutdownSignals,
};

/// The time that running calls have at shutdown. A second signal aborts them.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);

/// Run the context server: agent memory and code search
///
/// Listens on http://127.0.0.1:8321/mcp by default, and prints how to configure agents. Data stays on this machine,
/// one file per project. The address is printed to stdout, everything else to stderr: warnings, and with --verbose a
/// line for each request with client, tool, outcome and duration. The variable RUST_LOG selects other log lines, for example RUST_LOG=turnbuckle_server=trace.
///
/// Settings can also be in a file: turnbuckle/serve.toml in the configuration directory, or the file of --config.
/// Keys: listen, data, database, database-file, half-life, roots, tools, quota, deadline, index-deadline, allow-hosts, http-sse, store, state-key-file, log-file, a table `[embeddings]` with url,
/// model and api-key-env, a table `[authorization]` with issuer, audience, require-scopes and token-file, and a table
/// `[limits]` with max-connections, max-sessions and max-sessions-per-caller. Options on the command line take
/// precedence.
///
/// By default, every user of this machine can connect, and all share the same data. With --auth-issuer or
/// --token-file, callers have to authenticate, and each has separate data.
#[derive(Debug, clap::Args)]
pub(crate) struct ServeCommand {
    /// Serve one client on stdin and stdout
    #[arg(long, conflicts_with = "listen")]
    stdio: bool,

    /// Listen on ADDRESS:PORT (0: any free port) or unix:PATH
    #[arg(long, value_name = "ADDR|unix:PATH", value_parser = config::parse_listen_address)]
    listen: Option<ListenAddress>,

    /// Store all data in this directory
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    #[command(flatten)]
    database: DatabaseFlags,

    /// Allow only projects below this directory; repeatable
    #[arg(long = "root", value_name = "DIR")]
    roots: Vec<PathBuf>,

    /// List these tools: all, or core (memory and search)
    #[arg(long, value_name = "SET", value_enum)]
    tools: Option<ToolSetOption>,

    /// Limit the data per caller: 500MB, 4GB or none
    ///
    /// The default is 4 GiB per caller with --auth-issuer or --token-file, and no limit otherwise.
    #[arg(long, value_name = "SIZE", value_parser = config::parse_quota)]
    quota: Option<QuotaOption>,

    /// Stop a search after this time [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = crate::cli::parse_duration)]
    deadline: Option<Duration>,

    /// Stop indexing after this time [default: 30m]
    #[arg(long, value_name = "DURATION", value_parser = crate::cli::parse_duration)]
    index_deadline: Option<Duration>,

    /// Accept requests for this host name or address; repeatable
    #[arg(long = "allow-host", value_name = "HOST")]
    hosts: Vec<String>,

    /// Also serve HTTP+SSE (2024-11-05) at /sse and /mcp/sse
    #[arg(long, conflicts_with = "stdio")]
    http_sse: bool,

    /// Share sessions with other instances through Redis
    ///
    /// For example redis://HOST:PORT, redis-sentinel://HOST:PORT,HOST:PORT/NAME or redis-cluster://HOST:PORT. Requires
    /// --state-key-file. Put a URL with a password into the configuration file: other users can see command lines.
    #[arg(long, value_name = "URL", conflicts_with = "stdio", value_parser = config::parse_store_url)]
    store: Option<Secret>,

    /// Seal values with the keys of this file
    ///
    /// Each line is a key of 32 characters or more; the first seals, all of them open. All instances need the same keys.
    /// Make a file with `(umask 077; openssl rand -hex 32 > FILE)`.
    #[arg(long, value_name = "FILE")]
    state_key_file: Option<PathBuf>,

    /// Write the log to this file instead of stderr
    ///
    /// At 10 MiB the file is renamed to FILE.1, and older ones to FILE.2 and so on; five are kept.
    #[arg(long, value_name = "FILE")]
    log_file: Option<PathBuf>,

    #[command(flatten)]
    authorization: auth::AuthFlags,

    #[command(flatten)]
    service: ServiceFlags,

    /// Allow other machines to read and write all data
    #[arg(long)]
    dangerously_allow_unauthenticated: bool,
}

impl ServeCommand {
    pub(crate) async fn run(mut self, context: &CommandContext) -> Result {
        let is_stdio = self.stdio;
        let service = std::mem::take(&mut self.service);
        let action = service.action()?;
        if let Some(ServiceAction::Uninstall) = action {
            return service.run(ServiceAction::Uninstall, context);
        }
        // Before a service is installed, so that it does not start with invalid settings.
        let settings = ServeSettings::resolve(self, context)?;
        if let Some(action) = action {
            return service.run(action, context);
        }
        log::init(settings.log_file.as_deref(), context)?;
        let database = settings.database.as_ref();
        let database = database.map(|url| url.open(context)).transpose()?;
        let server = build_server::build(&settings, database.as_ref(), context)?;
        let server = shared_store::apply(server, &settings).await?;
        let database = database.as_ref().map(|database| &*database.address);
        if is_stdio {
            return Ok(Stdio::new(server).serve().await?);
        }
        http::raise_open_file_limit();
        // Before the address is printed, so that a signal right after it is handled.
        let mut signals = ShutdownSignals::new()?;
        match &settings.address {
            ListenAddress::Tcp(address) => {
                let listener = HttpListener::bind(*address, DEFAULT_PORT).await?;
                let http = HttpSettings {
                    access: &settings.access,
                    http_sse: settings.http_sse,
                    max_connections: settings.limits.max_connections,
                    shutdown_timeout: SHUTDOWN_TIMEOUT,
                };
                let http = listener.into_server(server, &http, context)?;
                startup_message::http(http.authorities(), &settings, database).print(context);
                http.serve(&mut signals, context).await
            }
            ListenAddress::Unix(path) => {
                let socket = UnixSocket::bind(path).await?;
                startup_message::socket(path, &settings, database).print(context);
                socket.serve(server, &mut signals, SHUTDOWN_TIMEOUT).await
            }
        }
    }
}

/// Returns the data directory and the database of memory: those of the options, or else of the settings.
pub(super) fn data_source(
    folder: Option<PathBuf>,
    database: DatabaseFlags,
    context: &CommandContext,
) -> Result<(PathBuf, Option<DatabaseUrl>)> {
    let environment = &context.environment;
    // A named directory is the place of all data, unless a database is named, too.
    let config = match &folder {
        Some(_) => ServeConfig::default(),
        None => ServeConfig::find(context.options.config.as_deref(), environment)?,
    };
    let database = database.url(config.database, config.database_file, environment)?;
    let folder = folder.map(|folder| environment.cwd.join(folder));
    let folder = context::data_dir(folder.or(config.data), environment)?;
    Ok((folder, database))
}
