//! A server inside an axum application, with other routes and layers.
//!
//! A layer reads a header and puts a value into the request extensions; a tool gets it with `cx.get`. Tokens, tenants and
//! trace ids reach tools in the same way.
//!
//! ```console
//! $ cargo example axum_embedding --features axum
//! listening on http://127.0.0.1:8080/mcp
//! ```
//!
//! With `--check` it listens on a free port, sends requests to itself and prints the responses.
#![expect(clippy::print_stdout, reason = "the example shows what it does")]

#[path = "checks/axum_embedding.rs"]
mod check;

use std::error::Error;

use axum::{
    Router, extract::Request, middleware, middleware::Next, response::Response, routing::get,
};
use tokio::net::TcpListener;
use turnbuckle::{Context, Server, Tool, ToolError, http::Http};

/// The caller, set by the layer below.
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
            "the tenant is unknown: set the header `x-tenant`",
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
        checked = check::run(address), if check => checked,
    }
}
