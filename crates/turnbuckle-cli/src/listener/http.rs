//! Serves on HTTP.

use std::{io, net::SocketAddr, num::NonZeroUsize, time::Duration};

use tokio::{net::TcpListener, sync::oneshot};
use turnbuckle_server::{
    Server,
    http::{Http, HttpSse},
};

use super::{ClientAccess, auth, machine::MachineNames};
use crate::{
    context::CommandContext,
    error::{CliError, Result},
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
        let mut http = Http::new(server)
            .health_path("/healthz")
            .trailing_slash()
            .host_setting("--allow-host")
            .shutdown_timeout(settings.shutdown_timeout);
        if let Some(max) = settings.max_connections {
            http = http.max_connections(max.get());
        }
        let machine = MachineNames::detect(&context.environment);
        // Only with tokens: a web page that uses DNS rebinding to claim such a name lacks a token.
        let own_hosts = machine
            .hosts()
            .filter(|_| access.authorization.is_some() && !self.bound.ip().is_loopback());
        // The other hosts were validated when the settings were read.
        for host in access.hosts.iter().cloned().chain(own_hosts) {
            http = http
                .try_allow_host(&host)
                .map_err(|error| CliError::could_not_run(error.to_string()))?;
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
            http = auth::require_auth(http, authorization, &authorities[0])?;
        }
        Ok(HttpServer {
            http,
            listener: self.listener,
            authorities,
        })
    }
}

/// A server on a bound port.
#[derive(Debug)]
pub(crate) struct HttpServer {
    http: Http,
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
