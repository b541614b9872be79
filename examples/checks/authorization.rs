//! The self-check of the example `authorization`: a client that calls it and compares the results.
#![expect(clippy::print_stdout, reason = "the check prints what it does")]

use std::{
    error::Error,
    time::{Duration, SystemTime},
};

use serde_json::{Map, json};
use turnbuckle::{
    auth::{
        jwt::{Jwks, SigningKey},
        server::TrustedIssuer,
    },
    http::Http,
    testing,
    testing::TestHttpClient,
};

use super::{RESOURCE, guard, printers};

pub(super) async fn run() -> Result<(), Box<dyn Error>> {
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

    println!("the metadata that names the issuer:");
    let metadata = axum::http::Request::get("/.well-known/oauth-protected-resource/mcp");
    let metadata = metadata.header("host", "127.0.0.1:8080");
    println!("  {}", client.send(metadata, "").await.json().await);
    Ok(())
}

/// Returns a token as an authorization server would issue it to Ada.
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

/// Calls a tool, prints the response and returns the status.
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
