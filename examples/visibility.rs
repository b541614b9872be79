//! A server that shows each caller the items it may see, inside an axum application that authenticates callers.
//!
//! A layer turns a token into a `Principal`; predicates on tools and resources use it. A hidden item is in no list, and a
//! request for it gets the same response as for an unknown item.
//!
//! ```console
//! $ cargo example visibility --features axum
//! listening on http://127.0.0.1:8080/mcp
//! ```
//!
//! With `--check` it listens on a free port, sends requests to itself and prints the responses.
#![expect(clippy::print_stdout, reason = "the example shows what it does")]

#[path = "checks/visibility.rs"]
mod check;

use std::error::Error;

use axum::{
    Router, extract::Request, http::header::AUTHORIZATION, middleware, middleware::Next,
    response::Response,
};
use tokio::net::TcpListener;
use turnbuckle::{Resource, Server, Tool, http::Http, protocol::Principal};

/// Authenticates the caller. A real layer verifies the token; this one accepts two constants.
async fn find_principal(mut request: Request, next: Next) -> Response {
    let token = request.headers().get(AUTHORIZATION);
    let principal = match token.and_then(|token| token.to_str().ok()) {
        Some("Bearer of-ada") => {
            let mut ada = Principal::new("https://example.com", "ada");
            ada.scopes.insert("operate".to_owned());
            Some(ada)
        }
        Some("Bearer of-bob") => Some(Principal::new("https://example.com", "bob")),
        _ => None,
    };
    if let Some(principal) = principal {
        request.extensions_mut().insert(principal);
    }
    next.run(request).await
}

fn is_known(principal: Option<&Principal>) -> bool {
    principal.is_some()
}

fn is_operator(principal: Option<&Principal>) -> bool {
    principal.is_some_and(|who| who.scopes.contains("operate"))
}

fn plant() -> Server {
    let tool = |name| Tool::new(name, async || Ok("done".to_owned()));
    Server::new("plant", "1.0.0")
        .tool(tool("opening_hours").description("Says when visitors may come"))
        .tool(
            tool("report_fault")
                .description("Tells the operators that something is broken")
                .visible_to(is_known),
        )
        .tool(
            tool("restart")
                .description("Restarts the turbine")
                .visible_to(is_operator),
        )
        .resource(Resource::text("plant://pressure", "pressure", "12 bar").visible_to(is_operator))
}

fn application() -> Router {
    Router::new()
        .route_service("/mcp", Http::new(plant()).into_service())
        .layer(middleware::from_fn(find_principal))
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
