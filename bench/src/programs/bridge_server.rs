//! The measured gateway: ours, with the defaults, in front of the bare server.

use std::net::SocketAddr;

use tokio::net::TcpListener;
use turnbuckle::{
    client::{LifecycleMode, Target, http::HttpTarget, stdio::ServerCommand},
    gateway::{Gateway, PrefixMode, Sharing, Upstream},
    http::Http,
};
use turnbuckle_bench::{Failure, options::Options};

/// Serves until the process ends. With `--upstream` the server behind is there; otherwise it is a `bare stdio`.
///
/// `--share` lets all callers share one connection. Otherwise a session has one of its own. With `--legacy` the server
/// behind gets sessions, although the bare server supports both eras. `--servers N` uses the server N times under different
/// names, which are prefixes of its tools, except with `--no-prefix`.
#[tokio::main]
pub(super) async fn run(mut options: Options) -> Result<bool, Failure> {
    let listen = options.value::<SocketAddr>("--listen")?;
    let listen = listen.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0)));
    let upstream = options.value::<SocketAddr>("--upstream")?;
    let tools = options.value::<usize>("--tools")?.unwrap_or(2);
    let servers = options.value::<usize>("--servers")?.unwrap_or(1);
    let prefix = if options.switch("--no-prefix") {
        PrefixMode::Never
    } else {
        PrefixMode::Auto
    };
    let sharing = if options.switch("--share") {
        Sharing::All
    } else {
        Sharing::Auto
    };
    let lifecycle = if options.switch("--legacy") {
        LifecycleMode::Legacy
    } else {
        LifecycleMode::Modern
    };
    // The bare server always has all of its tools.
    options.switch("--more");
    options.finish()?;
    let program = std::env::current_exe()?;
    let target = move || -> Target {
        match upstream {
            Some(address) => HttpTarget::new(format!("http://{address}/mcp")).into(),
            None => {
                let command = ServerCommand::new(&program);
                let tools = tools.to_string();
                command.args(["bare", "stdio", "--tools", &tools]).into()
            }
        }
    };
    // Responses of modern servers carry the name of the gateway; this one makes them equal to the limit's.
    let mut gateway = Gateway::new("echo", "0.1.0").prefix(prefix);
    for number in 1..=servers {
        let upstream = Upstream::new(format!("s{number}"), target.clone());
        gateway = gateway.upstream(upstream.sharing(sharing).lifecycle_mode(lifecycle));
    }
    let gateway = gateway.start().await?;
    let listener = TcpListener::bind(listen).await?;
    eprintln!("listening on http://{}/mcp", listener.local_addr()?);
    Http::new(gateway.server()).serve(listener).await?;
    Ok(true)
}
