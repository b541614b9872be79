//! A server that requires a token, for clients of other projects and for ours.
//!
//! `turnbuckle-interop-auth-server '{"issuer": …, "resource": …, "tokens": "jwt" | "opaque", "dpop", "nonce"}'`
//!
//! `whoami` needs the scope `mcp:read`, and `write` needs `mcp:write`.
#![expect(clippy::print_stdout, reason = "the listen address is printed")]

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
struct ServerTask {
    issuer: String,
    resource: String,
    tokens: TokenFormat,
    /// True if tokens must be bound to a key.
    dpop: bool,
    /// True if proofs must have a nonce of the server.
    nonce: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum TokenFormat {
    Jwt,
    Opaque,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let task: ServerTask = serde_json::from_str(&env::args().nth(1).ok_or("a task is missing")?)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("listening on http://{}/mcp", listener.local_addr()?);
    let http = Http::new(server()).authenticator(authenticator(&task)?);
    Ok(http.serve(listener).await?)
}

fn authenticator(task: &ServerTask) -> Result<ResourceServer, Box<dyn Error>> {
    let issuer = match task.tokens {
        TokenFormat::Jwt => TrustedIssuer::jwt(&task.issuer),
        TokenFormat::Opaque => {
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
    let server = ResourceServer::new(&task.resource, Arc::new(HttpFetcher::trusted()))?
        .issuer(issuer)
        .require_scopes(scopes("mcp:read")?)
        .advertise_scopes(scopes("mcp:read mcp:write")?)
        // Tokens are valid for seconds here, and their expiry is tested.
        .leeway(Duration::ZERO);
    Ok(match (task.dpop, task.nonce) {
        (true, true) => server.dpop(DpopPolicy::Require).require_dpop_nonce()?,
        (true, false) => server.dpop(DpopPolicy::Require),
        _ => server,
    })
}

fn server() -> Server {
    let whoami = Tool::new("whoami", async |cx: Context| {
        let caller = cx
            .principal()
            .ok_or_else(|| ToolError::new("no principal"))?;
        let text =
            json!({ "subject": caller.subject, "client": caller.client, "scopes": caller.scopes });
        Ok(text.to_string())
    });
    let write = Tool::new("write", async || Ok("written".to_owned()));
    Server::new("guarded", "1")
        .tool(whoami)
        .tool(write.scopes(["mcp:write"]))
}
