//! A server that wants a token, for clients of other projects and for ours.
//!
//! `turnbuckle-interop-auth-server '{"issuer": …, "resource": …, "tokens": "jwt" | "opaque", "dpop", "nonce"}'`
//!
//! Everybody who may `mcp:read` can ask who they are; `write` wants `mcp:write`.
#![expect(clippy::print_stdout, reason = "it says where it listens")]

use std::{env, error::Error, sync::Arc, time::Duration};

use serde::Deserialize;
use serde_json::json;
use tokio::net::TcpListener;
use turnbuckle::{Context, Server, Tool, ToolError, http::Http};
use turnbuckle_auth::{
    Scopes, Secret,
    server::{DpopPolicy, ResourceServer, TrustedIssuer},
};
use turnbuckle_client::http::HttpFetcher;

#[derive(Deserialize)]
struct Task {
    issuer: String,
    resource: String,
    tokens: Tokens,
    /// Whether a token has to be bound to a key.
    dpop: bool,
    /// Whether a proof has to repeat a nonce of ours.
    nonce: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Tokens {
    Jwt,
    Opaque,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let task: Task = serde_json::from_str(&env::args().nth(1).ok_or("a task is missing")?)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("listening on http://{}/mcp", listener.local_addr()?);
    let http = Http::new(server()).authenticator(guard(&task)?);
    Ok(http.serve(listener).await?)
}

fn guard(task: &Task) -> Result<ResourceServer, Box<dyn Error>> {
    let issuer = match task.tokens {
        Tokens::Jwt => TrustedIssuer::jwt(&task.issuer),
        Tokens::Opaque => {
            let endpoint = format!("{}/token/introspection", task.issuer);
            TrustedIssuer::introspection(
                &task.issuer,
                endpoint,
                "server",
                &Secret::new("of the server"),
            )
        }
    };
    let scopes = |text: &str| text.parse::<Scopes>();
    let guard = ResourceServer::new(&task.resource, Arc::new(HttpFetcher::trusted()))?
        .issuer(issuer)
        .require_scopes(scopes("mcp:read")?)
        .advertise_scopes(scopes("mcp:read mcp:write")?)
        // Tokens live for seconds here, and their end is what is looked at.
        .leeway(Duration::ZERO);
    Ok(match (task.dpop, task.nonce) {
        (true, true) => guard.dpop(DpopPolicy::Require).require_dpop_nonce()?,
        (true, false) => guard.dpop(DpopPolicy::Require),
        _ => guard,
    })
}

fn server() -> Server {
    let whoami = Tool::new("whoami", async |cx: Context| {
        let caller = cx
            .principal()
            .ok_or_else(|| ToolError::new("nobody asked"))?;
        let told =
            json!({ "subject": caller.subject, "client": caller.client, "scopes": caller.scopes });
        Ok::<_, ToolError>(told.to_string())
    });
    let write = Tool::new("write", async || Ok::<_, ToolError>("written".to_owned()));
    Server::new("guarded", "1")
        .tool(whoami)
        .tool(write.scopes(["mcp:write"]))
}
