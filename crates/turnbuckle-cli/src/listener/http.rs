//! Serves on HTTP.

use std::{
    collections::BTreeSet, io, net::SocketAddr, num::NonZeroUsize, sync::Mutex, time::Duration,
};

use tokio::{net::TcpListener, sync::oneshot};
use turnbuckle_server::{
    Server,
    http::{Http, HttpSse, PathServers, WebPages},
};
use turnbuckle_text::{percent, url::HttpUrl};

use super::{
    ClientAccess,
    auth::{self, CallerAuth},
    machine::MachineNames,
};
use crate::{
    context::CommandContext,
    error::{CliError, Result},
    lock,
    signals::ShutdownSignals,
};

/// The settings of a listener.
#[derive(Debug)]
pub(crate) struct HttpSettings<'a> {
    pub(crate) access: &'a ClientAccess,
    /// True if HTTP+SSE of 2024-11-05 is served.
    pub(crate) http_sse: bool,
    pub(crate) max_connections: Option<NonZeroUsize>,
    /// The time that running calls have at shutdown. A second signal aborts them.
    pub(crate) shutdown_timeout: Duration,
}

/// A bound port.
#[derive(Debug)]
pub(crate) struct HttpListener {
    listener: TcpListener,
    bound: SocketAddr,
}

impl HttpListener {
    /// Binds a port.
    pub(crate) async fn bind(address: SocketAddr, default_port: u16) -> Result<Self> {
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|error| bind_error(address, default_port, &error))?;
        let bound = listener.local_addr()?;
        Ok(Self { listener, bound })
    }

    /// Returns a server for the port. It accepts no connection yet.
    pub(crate) fn into_server(
        self,
        server: Server,
        settings: &HttpSettings<'_>,
        context: &CommandContext,
    ) -> Result<HttpServer> {
        let access = settings.access;
        let machine = MachineNames::detect(&context.environment);
        // Only with tokens: a web page that uses DNS rebinding to claim such a name lacks a token.
        let own_hosts = machine
            .hosts()
            .filter(|_| access.authorization.is_some() && !self.bound.ip().is_loopback());
        let hosts: Vec<_> = access.hosts.iter().cloned().chain(own_hosts).collect();
        let mut http = with_hosts(Http::new(server), &hosts)?
            .health_path("/healthz")
            .trailing_slash()
            .shutdown_timeout(settings.shutdown_timeout);
        if let Some(max) = settings.max_connections {
            http = http.max_connections(max.get());
        }
        let authorities = if access.authorization.is_some() {
            machine.authorities(self.bound)
        } else {
            MachineNames::default().authorities(self.bound)
        };
        if settings.http_sse {
            http = http.http_sse(HttpSse::new().also_at("/mcp/sse", "/mcp/messages"));
        }
        if let Some(authorization) = &access.authorization {
            let resource = authorization.resource(&authorities[0]);
            http = auth::require_auth(http, authorization, &resource, None)?;
        }
        Ok(HttpServer {
            http,
            hosts,
            listener: self.listener,
            authorities,
        })
    }
}

/// A server on a bound port.
#[derive(Debug)]
pub(crate) struct HttpServer {
    http: Http,
    /// The hosts that requests may name, in addition to the address.
    hosts: Vec<String>,
    listener: TcpListener,
    authorities: Vec<String>,
}

impl HttpServer {
    /// Returns the hosts and ports that clients can use, at least one.
    pub(crate) fn authorities(&self) -> &[String] {
        &self.authorities
    }

    /// Adds a readiness check at `/readyz`.
    #[allow(dead_code, reason = "used by the optional command `bridge`")]
    pub(crate) fn readiness(mut self, is_ready: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.http = self.http.readiness_path("/readyz", is_ready);
        self
    }

    /// Also serves web pages.
    #[allow(dead_code, reason = "used by the optional command `bridge`")]
    pub(crate) fn web_pages(mut self, pages: impl WebPages) -> Self {
        self.http = self.http.web_pages(pages);
        self
    }

    /// Returns the origin that browsers use: that of the audience, or the listen address.
    #[allow(dead_code, reason = "used by the optional command `bridge`")]
    pub(crate) fn origin(&self, access: &ClientAccess) -> String {
        let authority = &self.authorities[0];
        let authorization = access.authorization.as_ref();
        let url = authorization.map(|authorization| authorization.resource(authority));
        let origin = url
            .as_deref()
            .and_then(|url| Some(HttpUrl::parse(url).ok()?.origin));
        origin.map_or_else(|| format!("http://{authority}"), str::to_owned)
    }

    /// Also serves the servers at `/mcp/NAME` that the returned value gets, to the same callers.
    #[allow(dead_code, reason = "used by the optional command `bridge`")]
    pub(crate) fn named_servers<'a>(&mut self, access: &'a ClientAccess) -> NamedServers<'a> {
        let servers = PathServers::default();
        self.http = self.http.clone().path_servers(&servers);
        NamedServers {
            servers,
            names: Mutex::default(),
            hosts: self.hosts.clone(),
            authorization: access
                .authorization
                .as_ref()
                .map(|authorization| (authorization, authorization.resource(&self.authorities[0]))),
        }
    }

    /// Serves until a signal arrives, then lets running calls finish; a second signal aborts them.
    pub(crate) async fn serve(
        self,
        signals: &mut ShutdownSignals,
        context: &CommandContext,
    ) -> Result {
        let (end, ending) = oneshot::channel::<()>();
        let serving = self.http.serve_until(self.listener, async {
            let _ = ending.await;
        });
        let mut serving = std::pin::pin!(serving);
        tokio::select! {
            done = &mut serving => return Ok(done?),
            () = signals.recv() => {}
        }
        let _ = end.send(());
        context
            .ui
            .print("shutting down; waiting for running calls (signal again to abort)\n");
        tokio::select! {
            done = serving => Ok(done?),
            () = signals.recv() => Err(CliError::interrupted()),
        }
    }
}

/// The servers at `/mcp/NAME`.
#[derive(Debug)]
pub(crate) struct NamedServers<'a> {
    servers: PathServers,
    names: Mutex<BTreeSet<String>>,
    hosts: Vec<String>,
    /// The authentication of callers, and the URL of the server above.
    authorization: Option<(&'a CallerAuth, String)>,
}

#[allow(dead_code, reason = "used by the optional command `bridge`")]
impl NamedServers<'_> {
    /// Serves exactly the servers with these names. Those that are served already are not touched.
    pub(crate) fn set(
        &self,
        names: BTreeSet<String>,
        find: impl Fn(&str) -> Option<Server>,
    ) -> Result {
        let mut known = lock(&self.names);
        for removed in known.difference(&names) {
            self.servers.remove(removed);
        }
        known.retain(|name| names.contains(name));
        for name in names {
            if let Some(server) = find(&name).filter(|_| !known.contains(&name)) {
                self.servers.insert(&*name, self.http(&name, server)?);
                known.insert(name);
            }
        }
        Ok(())
    }

    fn http(&self, name: &str, server: Server) -> Result<Http> {
        let http = with_hosts(Http::new(server), &self.hosts)?;
        let Some((authorization, above)) = &self.authorization else {
            return Ok(http);
        };
        let name = percent::encode_segment(name);
        let resource = format!("{}/{name}", above.trim_end_matches('/'));
        // Tokens for the server above are valid on all paths; those for one path only there.
        auth::require_auth(http, authorization, &resource, Some(above))
    }
}

/// Allows hosts, which were validated when the settings were read.
fn with_hosts(http: Http, hosts: &[String]) -> Result<Http> {
    hosts
        .iter()
        .try_fold(http.host_setting("--allow-host"), |http, host| {
            http.try_allow_host(host)
                .map_err(|error| CliError::could_not_run(error.to_string()))
        })
}

fn bind_error(address: SocketAddr, default_port: u16, error: &io::Error) -> CliError {
    let port = address.port();
    let failure = CliError::could_not_run(format!("cannot listen on {address}: {error}"));
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            let authority = &MachineNames::default().authorities(address)[0];
            failure.hint(format!(
                "it may be running already: check with `turnbuckle info http://{authority}/mcp`; \
                 --listen 127.0.0.1:0 uses a free port"
            ))
        }
        io::ErrorKind::PermissionDenied if port < 1024 => failure.hint(format!(
            "ports below 1024 need privileges; {default_port} does not"
        )),
        _ => failure,
    }
}

/// The maximum on macOS, even if the hard limit is higher.
#[cfg(unix)]
const MACOS_MAX_OPEN_FILES: u64 = 10_240;

/// Raises the limit of open files as far as the system allows.
#[cfg(unix)]
pub(crate) fn raise_open_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};

    let limit = getrlimit(Resource::Nofile);
    for requested in [limit.maximum, Some(MACOS_MAX_OPEN_FILES)] {
        let mut raised = limit;
        raised.current = requested;
        let is_more = match (limit.current, requested) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(current), Some(requested)) => requested > current,
        };
        if !is_more || setrlimit(Resource::Nofile, raised).is_ok() {
            return;
        }
    }
    tracing::debug!(current = ?limit.current, "could not raise the limit of open files");
}

/// Does nothing: this system has no such limit.
#[cfg(not(unix))]
pub(crate) fn raise_open_file_limit() {}
