//! `turnbuckle serve`.

mod authorization;
mod config;
#[cfg(unix)]
mod descriptors;
#[cfg(not(unix))]
#[path = "serve/no_descriptors.rs"]
mod descriptors;
#[cfg(feature = "tls")]
mod guard;
#[cfg(not(feature = "tls"))]
#[path = "serve/no_guard.rs"]
mod guard;
mod http;
mod log;
mod offer;
mod place;
mod quota;
mod settings;
mod signals;
#[cfg(not(unix))]
#[path = "serve/no_socket.rs"]
mod socket;
#[cfg(unix)]
mod socket;
mod tokens;
mod welcome;

use std::path::PathBuf;
use std::time::Duration;

use turnbuckle_server::middleware::Timing;
use turnbuckle_server::stdio::Stdio;

use crate::context::Context;
use crate::failure::Result;
use crate::memory;
use config::Config;
use place::Place;
use quota::Quota;
use settings::Settings;
use signals::Signals;

/// Run the context server: memory for agents, and search in repositories
///
/// Listens on http://127.0.0.1:8321/mcp unless told otherwise, and says how agents are told of it. What is remembered
/// stays on this machine, a file for each project. The address is printed to stdout, everything else to stderr: warnings,
/// and with --verbose every request.
///
/// Settings may also stand in a file, turnbuckle/serve.toml in the folder for configurations or the one that --config
/// names: listen, data, half-life, roots, quota, deadline, index-deadline, http-sse, a table `[embeddings]` with url,
/// model and api-key-env, a table `[authorization]` with issuer, audience, require-scopes and token-file, and a table
/// `[limits]` with max-connections, max-sessions and max-sessions-per-caller. What the command line says counts more.
///
/// Everybody on this machine may ask, and all of them share one memory, unless --auth-issuer or --token-file says who may.
/// Then each caller has a memory of its own.
#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    /// Serve one client on stdin and stdout, and end with it
    #[arg(long, conflicts_with = "listen")]
    stdio: bool,

    /// Where to listen: ADDRESS:PORT (port 0 is any free one), or unix:PATH for lines on a socket
    #[arg(long, value_name = "ADDR|unix:PATH", value_parser = place::read)]
    listen: Option<Place>,

    /// Keep everything below this folder
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Accept only projects below this folder; can be given again
    #[arg(long = "root", value_name = "DIR")]
    roots: Vec<PathBuf>,

    /// Let each caller keep at most this much: 500MB, 4GB or none
    ///
    /// Without it each caller keeps at most 4 GiB where --auth-issuer or --token-file tells them apart, and there is no limit
    /// for one person.
    #[arg(long, value_name = "SIZE", value_parser = quota::read)]
    quota: Option<Quota>,

    /// Stop a search after this long, 30s by default
    #[arg(long, value_name = "DURATION", value_parser = crate::arguments::duration)]
    deadline: Option<Duration>,

    /// Stop indexing after this long, 30m by default
    #[arg(long, value_name = "DURATION", value_parser = crate::arguments::duration)]
    index_deadline: Option<Duration>,

    /// Also answer to this name or address of the machine
    #[arg(long = "allow-host", value_name = "HOST")]
    hosts: Vec<String>,

    /// Also serve clients of 2024-11-05, by HTTP+SSE at /sse and /mcp/sse
    #[arg(long, conflicts_with = "stdio")]
    http_sse: bool,

    #[command(flatten)]
    authorization: authorization::Flags,

    /// Listen beyond this machine, where everybody who reaches the port reads and writes all memory
    #[arg(long)]
    dangerously_allow_unauthenticated: bool,
}

impl Serve {
    pub(crate) async fn run(self, context: &Context) -> Result {
        log::begin(context);
        let is_stdio = self.stdio;
        let settings = Settings::gather(self, context)?;
        let mut server = offer::server(&settings, context)?;
        if context.options.verbose {
            server = server.layer(Timing::events());
        }
        if is_stdio {
            return Ok(Stdio::new(server).serve().await?);
        }
        descriptors::raise();
        // Before anybody is told where we are, so that whoever is may end us at once.
        let signals = Signals::watch()?;
        match &settings.place {
            Place::Tcp(address) => http::serve(server, *address, signals, &settings, context).await,
            Place::Unix(path) => socket::serve(server, path, signals, &settings, context).await,
        }
    }
}

/// Returns the folder that everything is kept in: the one that was named, or that of the settings, or the usual one.
pub(super) fn data_folder(named: Option<PathBuf>, context: &Context) -> Result<PathBuf> {
    let environment = &context.environment;
    let named = match named {
        Some(folder) => Some(environment.cwd.join(folder)),
        None => Config::find(context.options.config.as_deref(), environment)?.data,
    };
    memory::folder(named, environment)
}
