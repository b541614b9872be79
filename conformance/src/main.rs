//! The server that the official conformance suite is run against.
//!
//! `conformance-server --listen 127.0.0.1:8001` serves the tools, resources, prompts and skills that the suite's scenarios
//! use, to clients of every revision at one URL. It uses only the public API, with all checks on, and the
//! names and texts that the suite's own servers use. With `--behind-gateway legacy` or `modern` a gateway is between the
//! suite and the server, which the gateway connects to in that era. `run_suite.py` runs the suite and evaluates the result.

mod input;
mod prompts;
mod resources;
mod samples;
mod skills;
mod tasks;
mod tools;

use std::error::Error;

use tokio::net::TcpListener;
use turnbuckle::{
    Server,
    client::{LifecycleMode, Target, http::HttpTarget},
    gateway::{Gateway, RunningGateway, Upstream},
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::from_process()?;
    let mut server = server();
    if let Some(secret) = options.state_key {
        server = server.state_keys([secret]);
    }
    let gateway = match options.behind_gateway {
        Some(mode) => Some(gateway(server.clone(), mode).await?),
        None => None,
    };
    let served = gateway.as_ref().map_or(server, RunningGateway::server);
    let listener = TcpListener::bind(options.listen).await?;
    announce(&listener)?;
    turnbuckle::http::serve(listener, served).await?;
    Ok(())
}

/// Starts a gateway to the server, which it reaches on a loopback port.
async fn gateway(server: Server, mode: LifecycleMode) -> Result<RunningGateway, Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    tokio::spawn(turnbuckle::http::serve(listener, server));
    let target = move || Target::from(HttpTarget::new(url.as_str()));
    let upstream = Upstream::new("conformance", target).lifecycle_mode(mode);
    let gateway = Gateway::new("turnbuckle-gateway", env!("CARGO_PKG_VERSION")).upstream(upstream);
    Ok(gateway.start().await?)
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
    /// The era in which a gateway connects to the server.
    behind_gateway: Option<LifecycleMode>,
}

impl Options {
    fn from_process() -> Result<Self, &'static str> {
        let mut arguments = std::env::args().skip(1);
        let (mut listen, mut state_key, mut behind_gateway) = (None, None, None);
        while let Some(name) = arguments.next() {
            match (name.as_str(), arguments.next()) {
                ("--listen", Some(address)) => listen = Some(address),
                ("--state-key", Some(secret)) => state_key = Some(secret),
                ("--behind-gateway", Some(era)) => {
                    behind_gateway = Some(match era.as_str() {
                        "legacy" => LifecycleMode::Legacy,
                        "modern" => LifecycleMode::Modern,
                        _ => return Err(USAGE),
                    });
                }
                _ => return Err(USAGE),
            }
        }
        let listen = listen.ok_or(USAGE)?;
        Ok(Self {
            listen,
            state_key,
            behind_gateway,
        })
    }
}

const USAGE: &str = "usage: conformance-server --listen ADDRESS [--state-key SECRET] [--behind-gateway legacy|modern]";

#[expect(
    clippy::print_stdout,
    reason = "the parent process waits for this line"
)]
fn announce(listener: &TcpListener) -> std::io::Result<()> {
    println!("listening on http://{}/mcp", listener.local_addr()?);
    Ok(())
}
