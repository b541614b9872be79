//! A server inside an axum application, beside other routes and behind its layers.
//!
//! A layer looks at the headers and puts what it finds into the request; a tool reads it with `cx.get`. Tokens, tenants
//! and trace ids reach tools in the same way.
//!
//! ```console
//! $ cargo run -q --example axum_embedding
//! listening on http://127.0.0.1:8080/mcp
//! ```
//!
//! With `--check` it listens on a free port, asks itself, prints the answers and ends.
#![expect(clippy::print_stdout, reason = "the example shows what it does")]

use std::{error::Error, net::SocketAddr};

use axum::{
    Router,
    extract::Request,
    middleware::{self, Next},
    response::Response,
    routing::get,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use turnbuckle::{Context, Server, Tool, ToolError, http::Http};

/// Who is asking, as the layer below found out.
#[derive(Clone)]
struct Tenant(String);

async fn find_tenant(mut request: Request, next: Next) -> Response {
    let header = request.headers().get("x-tenant");
    if let Some(name) = header.and_then(|name| name.to_str().ok()) {
        let tenant = Tenant(name.to_owned());
        request.extensions_mut().insert(tenant);
    }
    next.run(request).await
}

async fn whoami(cx: Context) -> Result<String, ToolError> {
    match cx.get::<Tenant>() {
        Some(Tenant(name)) => Ok(format!("You are {name}.")),
        None => Err(ToolError::new(
            "nobody said who you are: set the header `x-tenant`",
        )),
    }
}

fn application() -> Router {
    let server = Server::new("tenants", "1.0.0").tool(
        Tool::new("whoami", whoami)
            .description("Says who you are")
            .read_only(),
    );
    Router::new()
        .route_service("/mcp", Http::new(server).into_service())
        .route("/health", get(async || "fine"))
        .layer(middleware::from_fn(find_tenant))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let check = std::env::args().any(|argument| argument == "--check");
    let listener = TcpListener::bind(if check {
        "127.0.0.1:0"
    } else {
        "127.0.0.1:8080"
    })
    .await?;
    let address = listener.local_addr()?;
    println!("listening on http://{address}/mcp");
    let serving = async { axum::serve(listener, application()).await };
    tokio::select! {
        stopped = serving => Ok(stopped?),
        checked = ask(address), if check => checked,
    }
}

/// Asks both routes over a plain socket and prints what comes back.
async fn ask(address: SocketAddr) -> Result<(), Box<dyn Error>> {
    let health = send(address, "GET /health", "", "").await?;
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let headers = "Content-Type: application/json\r\n\
        Accept: application/json, text/event-stream\r\n\
        MCP-Protocol-Version: 2026-07-28\r\n\
        Mcp-Method: tools/call\r\n\
        Mcp-Name: whoami\r\n\
        X-Tenant: Ada\r\n";
    let answer = send(address, "POST /mcp", headers, call).await?;
    let as_expected = health.ends_with("fine") && answer.contains("You are Ada.");
    as_expected
        .then_some(())
        .ok_or_else(|| "the answers are not as expected".into())
}

async fn send(
    address: SocketAddr,
    line: &str,
    headers: &str,
    body: &str,
) -> Result<String, Box<dyn Error>> {
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    );
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let body = answer
        .split_once("\r\n\r\n")
        .map_or(&*answer, |(_, body)| body);
    println!("{line}: {body}");
    Ok(body.to_owned())
}
