//! Serves on HTTP.

use std::{io, net::SocketAddr, time::Duration};

use tokio::{net::TcpListener, sync::oneshot};
use turnbuckle_server::{
    Server,
    http::{Http, HttpSse},
};

use super::{auth, config::ServeSettings, machine::MachineNames, startup_message::StartupMessage};
use crate::{
    context::CommandContext,
    error::{CliError, Result},
    signals::ShutdownSignals,
};

/// The time that running calls have at shutdown. A second signal aborts them.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);

/// Serves until a signal arrives, then lets running calls finish; a second signal aborts them.
pub(super) async fn serve(
    server: Server,
    address: SocketAddr,
    mut signals: ShutdownSignals,
    settings: &ServeSettings,
    context: &CommandContext,
) -> Result {
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| bind_error(address, &error))?;
    let bound = listener.local_addr()?;
    let mut http = Http::new(server)
        .health_path("/healthz")
        .trailing_slash()
        .host_setting("--allow-host")
        .shutdown_timeout(SHUTDOWN_TIMEOUT);
    if let Some(max) = settings.limits.max_connections {
        http = http.max_connections(max.get());
    }
    let machine = MachineNames::detect(&context.environment);
    // Only with tokens: a web page that uses DNS rebinding to claim such a name lacks a token.
    let own_hosts = machine
        .hosts()
        .filter(|_| settings.authorization.is_some() && !bound.ip().is_loopback());
    // The other hosts were validated when the settings were read.
    for host in settings.hosts.iter().cloned().chain(own_hosts) {
        http = http
            .try_allow_host(&host)
            .map_err(|error| CliError::could_not_run(error.to_string()))?;
    }
    let authorities = if settings.authorization.is_some() {
        machine.authorities(bound)
    } else {
        MachineNames::default().authorities(bound)
    };
    if settings.http_sse {
        http = http.http_sse(HttpSse::new().also_at("/mcp/sse", "/mcp/messages"));
    }
    if let Some(authorization) = &settings.authorization {
        http = auth::require_auth(http, authorization, &authorities[0])?;
    }
    StartupMessage::http(&authorities, settings).print(context);
    let (end, ending) = oneshot::channel::<()>();
    let serving = http.serve_until(listener, async {
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

fn bind_error(address: SocketAddr, error: &io::Error) -> CliError {
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
        io::ErrorKind::PermissionDenied if port < 1024 => {
            failure.hint("ports below 1024 need privileges; 8321 does not")
        }
        _ => failure,
    }
}

/// The maximum on macOS, even if the hard limit is higher.
#[cfg(unix)]
const MACOS_MAX_OPEN_FILES: u64 = 10_240;

/// Raises the limit of open files as far as the system allows.
#[cfg(unix)]
pub(super) fn raise_open_file_limit() {
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
pub(super) fn raise_open_file_limit() {}
