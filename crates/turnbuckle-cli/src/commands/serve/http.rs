//! On HTTP.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::oneshot;
use turnbuckle_server::Server;
use turnbuckle_server::http::{Http, HttpSse};

use super::guard;
use super::settings::Settings;
use super::signals::Signals;
use super::welcome::Welcome;
use crate::context::Context;
use crate::failure::{Failure, Result};

/// How long calls may go on when we are asked to end. Whoever does not want to wait asks again.
const LAST_CALLS: Duration = Duration::from_secs(30);

/// Serves until a signal comes, then lets calls finish; a second signal ends them.
pub(super) async fn serve(
    server: Server,
    address: SocketAddr,
    mut signals: Signals,
    settings: &Settings,
    context: &Context,
) -> Result {
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| not_free(address, &error))?;
    let bound = listener.local_addr()?;
    let mut http = Http::new(server)
        .health_path("/healthz")
        .trailing_slash()
        .shutdown_timeout(LAST_CALLS);
    if let Some(most) = settings.limits.max_connections {
        http = http.max_connections(most.get());
    }
    for host in &settings.hosts {
        // Whether it is a host at all was seen when the settings were read.
        http = http.allow_host(host);
    }
    if settings.http_sse {
        http = http.http_sse(HttpSse::new().also_at("/mcp/sse", "/mcp/messages"));
    }
    if let Some(authorization) = &settings.authorization {
        http = guard::protect(http, authorization, bound)?;
    }
    Welcome::http(bound, settings).say(context);
    let (end, ending) = oneshot::channel::<()>();
    let serving = http.serve_until(listener, async {
        let _ = ending.await;
    });
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        done = &mut serving => return Ok(done?),
        () = signals.came() => {}
    }
    let _ = end.send(());
    context
        .voice
        .say("ending; calls that run may finish (again to end them)\n");
    tokio::select! {
        done = serving => Ok(done?),
        () = signals.came() => Err(Failure::interrupted()),
    }
}

fn not_free(address: SocketAddr, error: &io::Error) -> Failure {
    let port = address.port();
    let failure = Failure::not_asked(format!("cannot listen on {address}: {error}"));
    match error.kind() {
        io::ErrorKind::AddrInUse => failure.hint(format!(
            "perhaps it runs already: `turnbuckle info http://{address}/mcp` shows who answers; \
             --listen 127.0.0.1:0 takes a free port"
        )),
        io::ErrorKind::PermissionDenied if port < 1024 => {
            failure.hint("ports below 1024 need privileges; 8321 does not")
        }
        _ => failure,
    }
}
