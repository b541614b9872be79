//! A server for those who bring a token: one of an issuer, verified by its keys, or one that is simply known.
//!
//! The issuer is an authorization server that you have already; its name is the one it has in its own metadata. Clients find it
//! through the server, log in there, and come back with a token that was issued for this server and no other.
//!
//! ```console
//! $ cargo run -q --example authorization -- https://auth.example.com
//! listening on http://127.0.0.1:8080/mcp
//! ```
//!
//! With `--check` it plays its own issuer in memory, asks with several tokens, prints the answers and ends.
#![expect(clippy::print_stdout, reason = "the example shows what it does")]

use std::{
    error::Error,
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde_json::{Map, json};
use tokio::net::TcpListener;
use turnbuckle::{
    Context, Principal, Server, Tool, ToolError,
    auth::{
        Secret,
        jwt::{Jwks, SigningKey},
        server::{ResourceServer, TrustedIssuer},
    },
    client::http::HttpFetcher,
    http::Http,
    testing::{self, TestHttpClient},
};

/// Where clients reach the server. Tokens have to be issued for it.
const RESOURCE: &str = "http://127.0.0.1:8080/mcp";

fn printers() -> Server {
    let whoami = Tool::new("whoami", async |cx: Context| match cx.principal() {
        Some(who) => Ok(format!("You are {}.", who.subject)),
        None => Err(ToolError::new("nobody knows who you are")),
    });
    let restart = Tool::new("restart", async || Ok("It is warming up.".to_owned()));
    Server::new("printers", "1.0.0")
        .tool(whoami.read_only())
        // Everybody sees it; whoever calls it without the scope is told to ask for it.
        .tool(restart.scopes(["printers:operate"]))
}

fn guard(issuer: TrustedIssuer) -> Result<ResourceServer, Box<dyn Error>> {
    // For programs that have no browser to log in with. Read it from a file that only you can read.
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
        Some("--check") => return ask().await,
        Some(name) => TrustedIssuer::jwt(name),
        None => return Err("say who issues the tokens, as https://auth.example.com".into()),
    };
    let listener = TcpListener::bind("127.0.0.1:8080").await?;
    println!("listening on http://{}/mcp", listener.local_addr()?);
    let http = Http::new(printers()).authenticator(guard(issuer)?);
    Ok(http.serve(listener).await?)
}

async fn ask() -> Result<(), Box<dyn Error>> {
    let key = SigningKey::generate()?;
    let keys = Jwks::parse(json!({ "keys": [key.public_jwk()] }).to_string().as_bytes())?;
    let issuer = TrustedIssuer::jwt("https://auth.example.com").jwks(keys);
    let client = testing::http(Http::new(printers()).authenticator(guard(issuer)?));

    println!("without a token:");
    assert_eq!(call(&client, None, "whoami").await, 401);
    println!("with one that is known:");
    let known = Some("b6f7c1d09e5a4f83a2".to_owned());
    assert_eq!(call(&client, known, "whoami").await, 200);

    println!("with one for this server:");
    let ada = token(&key, RESOURCE, "")?;
    assert_eq!(call(&client, Some(ada.clone()), "whoami").await, 200);
    println!("with one for another server:");
    let elsewhere = token(&key, "https://elsewhere.example/mcp", "")?;
    assert_eq!(call(&client, Some(elsewhere), "whoami").await, 401);

    println!("with too little:");
    assert_eq!(call(&client, Some(ada), "restart").await, 403);
    println!("with more than enough:");
    let admin = token(&key, RESOURCE, "printers:admin")?;
    assert_eq!(call(&client, Some(admin), "restart").await, 200);

    println!("where tokens are to be had:");
    let metadata = axum::http::Request::get("/.well-known/oauth-protected-resource/mcp");
    let metadata = metadata.header("host", "127.0.0.1:8080");
    println!("  {}", client.send(metadata, "").await.json().await);
    Ok(())
}

/// What an authorization server would issue to Ada.
fn token(key: &SigningKey, audience: &str, scope: &str) -> Result<String, Box<dyn Error>> {
    let expiry = SystemTime::now() + Duration::from_secs(60);
    let expiry = expiry.duration_since(SystemTime::UNIX_EPOCH)?.as_secs();
    let claims = json!({
        "iss": "https://auth.example.com", "sub": "ada", "client_id": "desk",
        "aud": audience, "exp": expiry, "scope": scope,
    });
    let header = Map::from_iter([("typ".to_owned(), json!("at+jwt"))]);
    Ok(key.sign(header, &claims)?)
}

/// Calls a tool and prints what came back; returns the status.
async fn call(client: &TestHttpClient, token: Option<String>, tool: &str) -> u16 {
    let mut client = client.clone();
    client.authorization = token.map(|token| format!("Bearer {token}"));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": tool, "arguments": {}, "_meta": meta });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let response = client.post(&message).await;
    let status = response.status();
    if let Some(challenge) = response.header("www-authenticate") {
        println!("  {status}, WWW-Authenticate: {challenge}");
    } else {
        let answer = response.json().await;
        println!("  {status}, {}", answer["result"]["content"][0]["text"]);
    }
    status.as_u16()
}
