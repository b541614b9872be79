//! The limit: the least that a program which answers the same bytes has to do.
//!
//! No MCP library, no checks. One parse into a borrowed struct, one write. `http` and `stdio` are what
//! a call is measured against, `http --more` what open streams are measured against; `slow` is what holding many calls
//! is measured against.
#![expect(clippy::print_stderr, reason = "a command says where it listens")]

mod answer;
mod http;
mod list;
mod slow;
mod stdio;
mod steps;
mod streams;

use std::{net::SocketAddr, process::ExitCode};

use turnbuckle_bench::{Failure, options::Options};

const USAGE: &str = "usage: bare (http [--listen ADDR] | streams [--listen ADDR] | slow [--listen ADDR] | stdio) [--tools N] [--more]";

fn main() -> ExitCode {
    match run(Options::from_process()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(mut options: Options) -> Result<(), Failure> {
    let verb = options.verb().unwrap_or_default();
    let listen = options.value("--listen")?;
    let listen = listen.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0)));
    list::set(options.value("--tools")?.unwrap_or(2));
    // It can always do all it can.
    options.switch("--more");
    options.finish()?;
    match verb.as_str() {
        "http" => runtime()?.block_on(http::serve(listen)),
        "streams" => runtime()?.block_on(streams::serve(listen)),
        "slow" => runtime()?.block_on(slow::serve(listen)),
        "stdio" => stdio::serve(),
        _ => Err(USAGE.into()),
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    Ok(tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?)
}
