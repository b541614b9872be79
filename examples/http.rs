//! HTTP with its options: address, accepted hosts, limits and shutdown.
//!
//! ```console
//! $ cargo example http
//! listening on http://127.0.0.1:8080/mcp
//! ```
//!
//! With `--check` it listens in memory, sends requests to itself and prints the responses.
#![expect(clippy::print_stdout, reason = "the example shows what it does")]

#[path = "checks/http.rs"]
mod check;

use std::{error::Error, time::Duration};

use tokio::net::TcpListener;
use turnbuckle::{
    Server, Tool,
    http::{Http, HttpSse},
};

fn clock() -> Http {
    let now = Tool::new("now", async || Ok("half past nine".to_owned()));
    Http::new(Server::new("clock", "1.0.0").tool(now))
        // By default a server accepts only the names of this machine, which prevents DNS rebinding.
        .allow_host("clock.example")
        .allow_origin("https://app.example")
        // Limits on what a client can make the server store or run.
        .body_limit(64 * 1024)
        .max_connections(1_000)
        .max_in_flight(500)
        .body_timeout(Duration::from_secs(10))
        // For clients of 2024: a stream at /sse, messages to /messages.
        .http_sse(HttpSse::new().max_streams(100))
        .shutdown_timeout(Duration::from_secs(5))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().any(|argument| argument == "--check") {
        return check::run().await;
    }
    let listener = TcpListener::bind("127.0.0.1:8080").await?;
    println!("listening on http://{}/mcp", listener.local_addr()?);
    let ctrl_c = async { drop(tokio::signal::ctrl_c().await) };
    Ok(clock().serve_until(listener, ctrl_c).await?)
}
