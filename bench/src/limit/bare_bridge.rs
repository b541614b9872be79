//! The limit of a gateway: an HTTP server in front of one child process, or of another HTTP server, that checks nothing.

mod child;
mod proxy;

use std::net::SocketAddr;

use crate::{Failure, options::Options};

/// Serves until the process ends.
///
/// With `--upstream` every connection is passed on to one of its own; otherwise all share one `bare stdio`, which gets the
/// other arguments.
#[tokio::main]
pub async fn run(mut options: Options) -> Result<bool, Failure> {
    let listen = options.value("--listen")?;
    let listen = listen.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0)));
    let upstream = options.value::<SocketAddr>("--upstream")?;
    let tools = options.value::<usize>("--tools")?;
    // The bare server always has all of its tools.
    options.switch("--more");
    // It passes messages of both eras.
    options.switch("--legacy");
    options.finish()?;
    match upstream {
        Some(upstream) => proxy::serve(listen, upstream).await?,
        None => child::serve(listen, tools).await?,
    }
    Ok(true)
}
