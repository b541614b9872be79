//! The server that the official conformance suite is run against.
//!
//! `conformance-server --listen 127.0.0.1:8001` serves the tools, resources and prompts that the suite's scenarios
//! look for, to clients of every revision at one URL. It uses nothing but the public API, with all checks on, and the
//! names and texts that the suite's own servers use. `judge.py` runs the suite and says how it went.

mod input;
mod prompts;
mod resources;
mod samples;
mod tools;

use std::error::Error;

use tokio::net::TcpListener;
use turnbuckle::Server;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(address()?).await?;
    announce(&listener)?;
    turnbuckle::http::serve(listener, server()).await?;
    Ok(())
}

fn server() -> Server {
    let server = Server::new("turnbuckle-conformance", env!("CARGO_PKG_VERSION"))
        .instructions("Answers the scenarios of the official conformance suite.");
    let server = tools::offer(server);
    let server = input::offer(server);
    let server = resources::offer(server);
    prompts::offer(server)
}

fn address() -> Result<String, &'static str> {
    let mut arguments = std::env::args().skip(1);
    match (
        arguments.next().as_deref(),
        arguments.next(),
        arguments.next(),
    ) {
        (Some("--listen"), Some(address), None) => Ok(address),
        _ => Err("usage: conformance-server --listen ADDRESS"),
    }
}

#[expect(
    clippy::print_stdout,
    reason = "whoever started us waits for this line"
)]
fn announce(listener: &TcpListener) -> std::io::Result<()> {
    println!("listening on http://{}/mcp", listener.local_addr()?);
    Ok(())
}
