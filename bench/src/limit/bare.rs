//! The limit: the least that a program must do to send the same bytes.
//!
//! No MCP library, no checks. One parse into a borrowed struct, one write. `http` and `stdio` are the reference
//! for calls, `http --more` is the reference for open streams, and `slow` is the reference for many calls in flight.

mod http;
mod list;
mod respond;
mod slow;
mod stdio;
mod steps;
mod streams;

use std::net::SocketAddr;

pub(super) use self::{http::status, respond::is_initialize};
use crate::{Failure, options::Options};

const USAGE: &str = "usage: turnbuckle-bench bare (http [--listen ADDR] | streams [--listen ADDR] | slow [--listen ADDR] | stdio) [--tools N] [--more]";

/// Serves until the process or its input ends.
pub fn run(mut options: Options) -> Result<bool, Failure> {
    let verb = options.verb().unwrap_or_default();
    let listen = options.value("--listen")?;
    let listen = listen.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0)));
    list::set(options.value("--tools")?.unwrap_or(2));
    // The bare server always has all of its tools.
    options.switch("--more");
    options.finish()?;
    match verb.as_str() {
        "http" => runtime()?.block_on(http::serve(listen)),
        "streams" => runtime()?.block_on(streams::serve(listen)),
        "slow" => runtime()?.block_on(slow::serve(listen)),
        "stdio" => stdio::serve(),
        _ => Err(USAGE.into()),
    }?;
    Ok(true)
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    Ok(tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?)
}
