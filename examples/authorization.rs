//! A server that requires a token: one from a trusted issuer, verified by its keys, or one from a fixed list.
//!
//! The issuer is your authorization server, named as in its own metadata. Clients discover it through the server, log in
//! there, and send a token that was issued for this server.
//!
//! ```console
//! $ cargo example authorization --features auth,client -- https://auth.example.com
//! listening on http://127.0.0.1:8080/mcp
//! ```
//!
//! With `--check` it acts as its own issuer in memory, sends requests with several tokens, and prints the responses.
#![expect(clippy::print_stdout, reason = "the example shows what it does")]

#[path = "checks/authorization.rs"]
mod check;

use std::{error::Error, sync::Arc};

use tokio::net::TcpListener;
use turnbuckle::{
    Context, Principal, Server, Tool, ToolError,
    auth::{
        Secret,
        server::{ResourceServer, TrustedIssuer},
    },
    client::http::HttpFetcher,
    http::Http,
};

/// The URL of the server. Tokens must be issued for it.
const RESOURCE: &str = "http://127.0.0.1:8080/mcp";

fn printers() -> Server {
    let whoami = Tool::new("whoami", async |cx: Context| match cx.principal() {
        Some(who) => Ok(format!("You are {}.", who.subject)),
        None => Err(ToolError::new("the caller is unknown")),
    });
    let restart = Tool::new("restart", async || Ok("It is warming up.".to_owned()));
    Server::new("printers", "1.0.0")
        .tool(whoami.read_only())
        // Every caller sees it; a call without the scope gets an error that names the scope.
        .tool(restart.scopes(["printers:operate"]))
}

fn guard(issuer: TrustedIssuer) -> Result<ResourceServer, Box<dyn Error>> {
    // For programs without a browser. Read the token from a file that only you can read.
    let monitoring = Secret::new("b6f7c1d09e5a4f83a2");
    Ok(
        ResourceServer::new(RESOURCE, Arc::new(HttpFetcher::trusted()))?
            .issuer(issuer)
            .static_token(monitoring, Principal::new("local", "monitoring"))
            .advertise_scopes("printers:operate printers:admin".parse()?)
            .scope_implies("printers:admin", ["printers:operate"])
            .name("Printers"),
    )
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let issuer = match std::env::args().nth(1).as_deref() {
        Some("--check") => return check::run().await,
        Some(name) => TrustedIssuer::jwt(name),
        None => {
            return Err("pass the issuer of the tokens, such as https://auth.example.com".into());
        }
    };
    let listener = TcpListener::bind("127.0.0.1:8080").await?;
    println!("listening on http://{}/mcp", listener.local_addr()?);
    let http = Http::new(printers()).authenticator(guard(issuer)?);
    Ok(http.serve(listener).await?)
}
