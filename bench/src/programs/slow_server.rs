//! The server with slow tools: tools that wait, tools that block, and one that returns at once.
//!
//! Uses only the public API; the limits that protect a server from this load are raised.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::net::TcpListener;
use turnbuckle::{
    Server, Tool, ToolError,
    http::Http,
    store::{Store, StoreLimits},
};
use turnbuckle_bench::{Failure, options::Options};

use super::Run;

pub(super) const RUN: Result<Run, &str> = Ok(run);

#[derive(Deserialize, JsonSchema)]
struct Slow {
    /// How long to take, in milliseconds.
    ms: u64,
    /// What to say afterwards.
    tag: String,
}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// What to say back.
    message: String,
}

#[derive(Deserialize, JsonSchema)]
struct NoArgs {}

async fn wait(args: Slow) -> Result<String, ToolError> {
    let _running = Running::new();
    tokio::time::sleep(Duration::from_millis(args.ms)).await;
    Ok(args.tag)
}

fn block(args: Slow) -> Result<String, ToolError> {
    std::thread::sleep(Duration::from_millis(args.ms));
    Ok(args.tag)
}

async fn echo(args: Echo) -> Result<String, ToolError> {
    Ok(args.message)
}

async fn running_calls(_: NoArgs) -> Result<String, ToolError> {
    Ok(RUNNING.load(Ordering::Relaxed).to_string())
}

/// The number of `wait` calls that are running; a cancelled one is not counted.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

struct Running;

impl Running {
    fn new() -> Running {
        RUNNING.fetch_add(1, Ordering::Relaxed);
        Running
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::Relaxed);
    }
}

fn server() -> Server {
    let mut limits = StoreLimits::default();
    limits.sessions.max_sessions = 20_000;
    Server::new("slow", "0.1.0")
        .tool(Tool::new("wait", wait).description("Waits without a thread"))
        .tool(Tool::blocking("block", block).description("Blocks a thread"))
        .tool(Tool::new("echo", echo).description("Says the message back"))
        .tool(Tool::new("held", running_calls).description("Counts the calls that wait"))
        .store(Store::memory_with(limits))
}

#[tokio::main]
async fn run(mut options: Options) -> Result<bool, Failure> {
    let listen = options.value::<String>("--listen")?;
    options.finish()?;
    let listener = TcpListener::bind(listen.as_deref().unwrap_or("127.0.0.1:0")).await?;
    eprintln!("listening on http://{}/mcp", listener.local_addr()?);
    Http::new(server())
        .max_in_flight(50_000)
        .max_connections(50_000)
        .serve(listener)
        .await?;
    Ok(true)
}
