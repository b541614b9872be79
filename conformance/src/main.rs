//! The server that the official conformance suite is run against.
//!
//! `conformance-server --listen 127.0.0.1:8001` serves the tools, resources, prompts and skills that the suite's scenarios
//! use, to clients of every revision at one URL. It uses only the public API, with all checks on, and the
//! names and texts that the suite's own servers use. `run_suite.py` runs the suite and evaluates the result.

mod input;
mod prompts;
mod resources;
mod samples;
mod skills;
mod tasks;
mod tools;

use std::error::Error;

use tokio::net::TcpListener;
use turnbuckle::Server;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::from_process()?;
    let mut server = server();
    if let Some(secret) = options.state_key {
        server = server.state_keys([secret]);
    }
    let listener = TcpListener::bind(options.listen).await?;
    announce(&listener)?;
    turnbuckle::http::serve(listener, server).await?;
    Ok(())
}

fn server() -> Server {
    let server = Server::new("turnbuckle-conformance", env!("CARGO_PKG_VERSION"))
        .instructions("Answers the scenarios of the official conformance suite.")
        .validate_input(true)
        .validate_output(cfg!(debug_assertions));
    let server = tools::offer(server);
    let server = input::offer(server);
    let server = tasks::offer(server);
    let server = resources::offer(server);
    let server = prompts::offer(server);
    skills::offer(server)
}

/// The command line.
struct Options {
    listen: String,
    /// Shared by all processes that serve the same clients, so that each can continue a call of another.
    state_key: Option<String>,
}

impl Options {
    fn from_process() -> Result<Self, &'static str> {
        let mut arguments = std::env::args().skip(1);
        let (mut listen, mut state_key) = (None, None);
        while let Some(name) = arguments.next() {
            match (name.as_str(), arguments.next()) {
                ("--listen", Some(address)) => listen = Some(address),
                ("--state-key", Some(secret)) => state_key = Some(secret),
                _ => return Err(USAGE),
            }
        }
        let listen = listen.ok_or(USAGE)?;
        Ok(Self { listen, state_key })
    }
}

const USAGE: &str = "usage: conformance-server --listen ADDRESS [--state-key SECRET]";

#[expect(
    clippy::print_stdout,
    reason = "the parent process waits for this line"
)]
fn announce(listener: &TcpListener) -> std::io::Result<()> {
    println!("listening on http://{}/mcp", listener.local_addr()?);
    Ok(())
}
