//! Layers around every request: an audit log, limits, timing, and one of your own.
//!
//! ```console
//! $ cargo run -q --example middleware
//! listening on http://127.0.0.1:8080/mcp
//! ```
//!
//! With `--check` it asks itself in memory, prints what comes back and what the audit log says of it, and ends.
#![expect(clippy::print_stdout, reason = "the example shows what it does")]

use std::{error::Error, io::Write, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
};
use turnbuckle::{
    Context, Server, Tool, ToolError,
    middleware::{
        AuditLog, ConcurrencyLimit, JsonLines, Next, Operation, OperationResponse, RateLimit,
        Timeout,
    },
    protocol::RpcError,
};

/// A layer of our own: at night only what reads is allowed.
async fn closed_at_night(operation: Operation, next: Next) -> OperationResponse {
    let is_night = operation.get::<Night>().is_some();
    if is_night && operation.tool() == Some("order") {
        return RpcError::new(423, "the kitchen is closed until eight").into();
    }
    next.run().await
}

/// Something that a transport or an HTTP layer puts into requests.
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

/// The first layer is the outermost: the audit log also sees what the others refuse.
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
        return check().await;
    }
    let listener = TcpListener::bind("127.0.0.1:8080").await?;
    println!("listening on http://{}/mcp", listener.local_addr()?);
    turnbuckle::http::serve(listener, kitchen(std::io::stderr())).await?;
    Ok(())
}

async fn check() -> Result<(), Box<dyn Error>> {
    let menu = json!({ "name": "menu" });
    let order = json!({ "name": "order" });
    let day = ask(
        kitchen(std::io::stdout()),
        false,
        &[&menu, &order, &menu, &menu],
    )
    .await?;
    let night = ask(kitchen(std::io::stdout()), true, &[&order]).await?;
    let as_expected = day[0]["result"]["content"][0]["text"] == "soup, pie"
        && day[1]["result"]["isError"] == true
        && day[3]["error"]["code"] == RateLimit::CODE
        && night[0]["error"]["code"] == 423;
    as_expected
        .then_some(())
        .ok_or_else(|| "the answers are not as expected".into())
}

/// Calls tools one after the other over a pipe in memory.
async fn ask(server: Server, night: bool, calls: &[&Value]) -> Result<Vec<Value>, Box<dyn Error>> {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(theirs);
    let mut lines = turnbuckle::ndjson::NdjsonServer::new(server);
    if night {
        lines = lines.extension(Night);
    }
    let serving = tokio::spawn(lines.serve(reader, writer));
    let (answers, mut requests) = tokio::io::split(ours);
    let mut answers = BufReader::new(answers).lines();
    let mut got = Vec::new();
    for call in calls {
        let mut params = (*call).clone();
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let request =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        requests
            .write_all(format!("{request}\n").as_bytes())
            .await?;
        let line = answers.next_line().await?.ok_or("the server hung up")?;
        println!("{line}");
        got.push(serde_json::from_str(&line)?);
    }
    requests.shutdown().await?;
    serving.await??;
    Ok(got)
}
