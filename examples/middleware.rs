//! Layers around every request: an audit log, limits, timing, and a custom one.
//!
//! ```console
//! $ cargo example middleware
//! listening on http://127.0.0.1:8080/mcp
//! ```
//!
//! With `--check` it sends requests to itself in memory, and prints the responses and the audit log.
#![expect(clippy::print_stdout, reason = "the example shows what it does")]

#[path = "checks/middleware.rs"]
mod check;

use std::{error::Error, io::Write, time::Duration};

use tokio::net::TcpListener;
use turnbuckle::{
    Context, Server, Tool, ToolError,
    middleware::{
        AuditLog, ConcurrencyLimit, JsonLines, Next, Operation, OperationResponse, RateLimit,
        Timeout,
    },
    protocol::RpcError,
};

/// A custom layer: at night only read-only tools are allowed.
async fn closed_at_night(operation: Operation, next: Next) -> OperationResponse {
    let is_night = operation.get::<Night>().is_some();
    if is_night && operation.tool() == Some("order") {
        return RpcError::new(423, "the kitchen is closed until eight").into();
    }
    next.run().await
}

/// A value that a transport or an HTTP layer attaches to requests.
#[derive(Clone)]
struct Night;

async fn menu() -> Result<String, ToolError> {
    Ok("soup, pie".to_owned())
}

async fn order(cx: Context) -> Result<String, ToolError> {
    cx.progress(1, 2).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    Ok("here you are".to_owned())
}

/// The first layer is the outermost: the audit log also records what the others reject.
fn kitchen(log: impl Write + Send + 'static) -> Server {
    Server::new("kitchen", "1.0.0")
        .layer(AuditLog::new(JsonLines::new(log)))
        .layer(RateLimit::new(60, Duration::from_secs(60)).burst(3))
        .layer(ConcurrencyLimit::per_tool(2).queue_length(8))
        .layer(Timeout::new(Duration::from_secs(10)).when(
            |operation| operation.tool() == Some("order"),
            Duration::from_millis(200),
        ))
        .layer(closed_at_night)
        .tool(
            Tool::new("menu", menu)
                .description("What there is")
                .read_only(),
        )
        .tool(Tool::new("order", order).description("Orders the pie"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().any(|argument| argument == "--check") {
        return check::run().await;
    }
    let listener = TcpListener::bind("127.0.0.1:8080").await?;
    println!("listening on http://{}/mcp", listener.local_addr()?);
    turnbuckle::http::serve(listener, kitchen(std::io::stderr())).await?;
    Ok(())
}
