//! A server that shows each caller what it may see, inside an axum application that finds out who is asking.
//!
//! A layer turns a token into a `Principal`; predicates on tools and resources decide from it. What a caller may not see
//! is not there: no list has it, and asking for it gets the answer of something that does not exist.
//!
//! ```console
//! $ cargo run -q --example visibility
//! listening on http://127.0.0.1:8080/mcp
//! ```
//!
//! With `--check` it listens on a free port, asks itself, prints the answers and ends.
#![expect(clippy::print_stdout, reason = "the example shows what it does")]

use std::{error::Error, net::SocketAddr};

use axum::{
    Router,
    extract::Request,
    http::header::AUTHORIZATION,
    middleware::{self, Next},
    response::Response,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use turnbuckle::{Resource, Server, Tool, http::Http, protocol::Principal};

/// Tells who is asking. A real one verifies the token; this one believes two of them.
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
        checked = ask(address), if check => checked,
    }
}

/// Looks at the list as each caller, and calls the same tool as each.
async fn ask(address: SocketAddr) -> Result<(), Box<dyn Error>> {
    for (who, sees, may_restart) in [("nobody", 1, false), ("bob", 2, false), ("ada", 3, true)] {
        let listed = send(address, who, "tools/list", json!({})).await?;
        let tools = listed["result"]["tools"].as_array().map_or(0, Vec::len);
        let restart = json!({ "name": "restart" });
        let restarted = send(address, who, "tools/call", restart).await?;
        if tools != sees || restarted.get("result").is_some() != may_restart {
            return Err(format!("{who} does not see what was expected").into());
        }
    }
    Ok(())
}

async fn send(
    address: SocketAddr,
    who: &str,
    method: &str,
    mut params: Value,
) -> Result<Value, Box<dyn Error>> {
    let name = match params["name"].as_str() {
        Some(name) => format!("Mcp-Name: {name}\r\n"),
        None => String::new(),
    };
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let length = body.len();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
        Authorization: Bearer of-{who}\r\nContent-Type: application/json\r\n\
        Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
        Mcp-Method: {method}\r\n{name}Content-Length: {length}\r\n\r\n{body}"
    );
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (_, body) = answer.split_once("\r\n\r\n").ok_or("this is no answer")?;
    println!("{method} by {who}: {body}");
    Ok(serde_json::from_str(body)?)
}
