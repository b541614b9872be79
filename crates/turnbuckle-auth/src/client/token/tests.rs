//! The grants. `responses` tests token responses, `bound` DPoP, `identity_assertion` the grant of an identity provider,
//! `token_exchange` the exchange of tokens.

mod bound;
mod identity_assertion;
mod responses;
mod token_exchange;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use turnbuckle_spec_coverage::req;

use super::*;
use crate::{
    AuthorizationServer, Challenge,
    client::{
        authorization::AuthorizationRequest,
        discovery::discover,
        registration::{ClientAuthentication, ClientMetadata, ClientRegistration, register},
        tests::fake_http::{FakeHttp, RecordedRequest, SERVER, metadata, parameter, with},
    },
    jwt::SigningKey,
};

const CALLBACK: &str = "http://127.0.0.1:9999/callback";
const TOKEN: &str = "https://as.example/token";

fn server() -> AuthorizationServer {
    serde_json::from_value(metadata()).unwrap()
}

fn public() -> ClientRegistration {
    ClientRegistration::preregistered(&server(), "the client", None)
}

fn confidential() -> ClientRegistration {
    ClientRegistration::preregistered(&server(), "the client", Some(Secret::new("s:e%s+a me")))
}

/// Returns the code of a successful login.
fn code(server: &AuthorizationServer, client: &ClientRegistration) -> AuthorizationCode {
    let login = AuthorizationRequest::new(server, client, CALLBACK, SERVER, None, None).unwrap();
    let state = parameter(login.url(), "state").unwrap();
    let back = format!("code=the-code&state={state}&iss={}", server.issuer);
    login.parse_response(&back).unwrap()
}

/// Reads the claims of a JWT without checking its signature.
fn claims(jwt: &str) -> Value {
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let payload = jwt.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap()
}

#[tokio::test]
async fn a_challenge_leads_to_tokens() {
    req!("auth.oauth21.2025-03-26");
    req!("auth.resource.both-requests");
    req!("auth.resource.canonical");
    req!("auth.pkce.required");
    let http = FakeHttp::usual();
    let challenges = [Challenge::bearer()];

    let found = discover(&http, SERVER, &challenges, "2026-07-28")
        .await
        .unwrap();
    let description = ClientMetadata::new("Test", [CALLBACK]);
    let client = register(&http, &found.server, &description).await.unwrap();
    let login = AuthorizationRequest::new(
        &found.server,
        &client,
        CALLBACK,
        &found.resource,
        None,
        None,
    )
    .unwrap();
    let state = parameter(login.url(), "state").unwrap();
    let back = format!("{CALLBACK}?code=the-code&state={state}&iss=https%3A%2F%2Fas.example");
    let code = login.parse_response(&back).unwrap();
    let endpoint = TokenEndpoint::new(&found.server, &client);
    let tokens = exchange_code(&http, &endpoint, &code, None).await.unwrap();

    assert_eq!(tokens.access.expose(), "access");
    assert_eq!(tokens.refresh.unwrap().expose(), "refresh");
    assert_eq!(parameter(login.url(), "resource").as_deref(), Some(SERVER));
    let request = http.last_post(TOKEN);
    assert_eq!(
        request.header("content-type"),
        Some("application/x-www-form-urlencoded")
    );
    for (name, value) in [
        ("grant_type", "authorization_code"),
        ("code", "the-code"),
        ("redirect_uri", CALLBACK),
        ("client_id", "registered"),
        ("resource", SERVER),
    ] {
        assert_eq!(request.field(name).as_deref(), Some(value), "{name}");
    }
    let verifier = request.field("code_verifier").unwrap();
    assert_eq!(
        challenge_of(&verifier),
        parameter(login.url(), "code_challenge").unwrap()
    );
    assert!(
        http.urls().iter().all(|url| !url.contains('?')),
        "nothing secret is in a URL"
    );
}

fn challenge_of(verifier: &str) -> String {
    use sha2::{Digest as _, Sha256};
    crate::jwt::encode(Sha256::digest(verifier))
}

#[tokio::test]
async fn a_code_is_sent_only_to_the_issuer_of_the_login() {
    req!("auth.as.no-cross-credentials");
    let http = FakeHttp::usual();
    let code = code(&server(), &public());
    let other = AuthorizationServer {
        issuer: "https://evil.example".into(),
        ..server()
    };

    let error = exchange_code(&http, &TokenEndpoint::new(&other, &public()), &code, None).await;

    assert_eq!(error.unwrap_err().step(), AuthorizationStep::Token);
    assert!(http.requests().is_empty());
}

#[tokio::test]
async fn nothing_is_sent_to_an_unsafe_token_endpoint() {
    req!("auth.tls.communication");
    let http = FakeHttp::usual();
    for url in [
        "http://as.example/token",
        "http://10.0.0.1/token",
        "file:///x",
        "https://u@as.example/",
        "",
    ] {
        let server = AuthorizationServer {
            token_endpoint: Some(url.into()),
            ..server()
        };
        let client = public();
        let endpoint = TokenEndpoint::new(&server, &client);

        let by_code = exchange_code(&http, &endpoint, &code(&server, &client), None).await;
        let refreshed = refresh(&http, &endpoint, &Secret::new("r"), SERVER, None, None).await;

        assert!(by_code.is_err() && refreshed.is_err(), "{url}");
    }
    let none = AuthorizationServer {
        token_endpoint: None,
        ..server()
    };
    let client = public();
    let endpoint = TokenEndpoint::new(&none, &client);
    assert!(
        client_credentials(&http, &endpoint, SERVER, None, None)
            .await
            .is_err()
    );
    assert!(http.requests().is_empty());
}

#[tokio::test]
async fn a_refresh_names_the_resource_and_keeps_an_unreplaced_refresh_token() {
    req!("auth.resource.always");
    req!("auth.refresh.no-assumption");
    let (server, client) = (server(), public());
    let endpoint = TokenEndpoint::new(&server, &client);
    let scopes = "a b".parse().unwrap();
    let old = Secret::new("old");
    let refreshed = async |response: Value| {
        let http = FakeHttp::usual().post(TOKEN, 200, &response);
        let tokens = refresh(&http, &endpoint, &old, SERVER, Some(&scopes), None).await;
        (http.last_post(TOKEN), tokens.unwrap())
    };

    let (request, tokens) = refreshed(json!({ "access_token": "a", "token_type": "bearer" })).await;

    assert_eq!(
        request.field("grant_type").as_deref(),
        Some("refresh_token")
    );
    assert_eq!(request.field("refresh_token").as_deref(), Some("old"));
    assert_eq!(request.field("resource").as_deref(), Some(SERVER));
    assert_eq!(request.field("scope"), None, "the scopes stay the same");
    assert_eq!(tokens.refresh.unwrap().expose(), "old");
    assert_eq!(tokens.scopes.as_ref(), Some(&scopes));
    let rotated = json!({ "access_token": "a", "token_type": "bearer", "refresh_token": "new" });
    assert_eq!(refreshed(rotated).await.1.refresh.unwrap().expose(), "new");
}

#[tokio::test]
async fn an_expired_refresh_token_has_its_own_error_code() {
    let http = FakeHttp::usual().post(TOKEN, 400, &json!({ "error": "invalid_grant" }));
    let (server, client) = (server(), public());

    let endpoint = TokenEndpoint::new(&server, &client);
    let error = refresh(&http, &endpoint, &Secret::new("old"), SERVER, None, None)
        .await
        .unwrap_err();

    assert_eq!(error.step(), AuthorizationStep::Refresh);
    assert_eq!(error.error_code(), Some("invalid_grant"));
    assert_eq!(error.hint(), Some("log in again"));
}

async fn credentials(
    client: &ClientRegistration,
    key: Option<&SigningKey>,
) -> Result<RecordedRequest, AuthorizationError> {
    let http = FakeHttp::usual();
    let server = server();
    let mut endpoint = TokenEndpoint::new(&server, client);
    endpoint.key = key;
    let scopes = "b a".parse().unwrap();
    client_credentials(&http, &endpoint, SERVER, Some(&scopes), None).await?;
    Ok(http.last_post(TOKEN))
}

#[tokio::test]
async fn a_secret_is_form_encoded_in_the_basic_header() {
    req!("ext-cc.grant");
    req!("ext-cc.authenticate");
    let request = credentials(&confidential(), None).await.unwrap();

    let header = request
        .header("authorization")
        .unwrap()
        .strip_prefix("Basic ")
        .unwrap();
    let pair = String::from_utf8(STANDARD.decode(header).unwrap()).unwrap();
    assert_eq!(pair, "the%20client:s%3Ae%25s%2Ba%20me");
    assert_eq!(
        request.field("grant_type").as_deref(),
        Some("client_credentials")
    );
    assert_eq!(request.field("resource").as_deref(), Some(SERVER));
    assert_eq!(request.field("scope").as_deref(), Some("a b"));
    for absent in ["client_id", "client_secret", "client_assertion"] {
        assert_eq!(request.field(absent), None, "{absent}");
    }
}

#[tokio::test]
async fn client_secret_post_sends_the_secret_in_the_form() {
    let client = ClientRegistration {
        method: ClientAuthentication::Post,
        ..confidential()
    };

    let request = credentials(&client, None).await.unwrap();

    assert_eq!(request.field("client_id").as_deref(), Some("the client"));
    assert_eq!(
        request.field("client_secret").as_deref(),
        Some("s:e%s+a me")
    );
    assert_eq!(request.header("authorization"), None);
}

#[tokio::test]
async fn a_public_client_sends_only_its_id() {
    let request = credentials(&public(), None).await.unwrap();

    assert_eq!(request.field("client_id").as_deref(), Some("the client"));
    assert_eq!(request.field("client_secret"), None);
    assert_eq!(request.header("authorization"), None);
}

#[tokio::test]
async fn each_client_assertion_is_unique_and_for_the_issuer() {
    req!("ext-cc.jwt-preferred");
    req!("ext-cc.authenticate");
    req!("auth.cimd.private-key-jwt");
    let (client, key) = (
        ClientRegistration::with_key("the client"),
        SigningKey::generate().unwrap(),
    );

    let request = credentials(&client, Some(&key)).await.unwrap();
    let again = credentials(&client, Some(&key)).await.unwrap();

    assert_eq!(
        request.field("client_assertion_type").as_deref(),
        Some("urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
    );
    let one = claims(&request.field("client_assertion").unwrap());
    let other = claims(&again.field("client_assertion").unwrap());
    assert_eq!(
        (&one["iss"], &one["sub"]),
        (&json!("the client"), &json!("the client"))
    );
    assert_eq!(one["aud"], "https://as.example");
    assert_eq!(
        one["exp"].as_u64().unwrap() - one["iat"].as_u64().unwrap(),
        60
    );
    assert_ne!(one["jti"], other["jti"]);
    assert_eq!(request.field("client_secret"), None);
}

#[tokio::test]
async fn missing_client_credentials_are_an_error_before_any_request() {
    let without_secret = ClientRegistration {
        secret: None,
        ..confidential()
    };
    for client in [without_secret, ClientRegistration::with_key("x")] {
        let error = credentials(&client, None).await.unwrap_err();

        assert_eq!(error.step(), AuthorizationStep::Token);
        assert_eq!(error.request(), Some("POST https://as.example/token"));
        assert!(error.hint().unwrap().contains("configure"), "{error:?}");
    }
}

#[tokio::test]
async fn a_workload_sends_its_assertion() {
    let http = FakeHttp::usual();
    let (server, client) = (server(), public());

    let endpoint = TokenEndpoint::new(&server, &client);
    let assertion = Secret::new("a.b.c");
    jwt_bearer(&http, &endpoint, &assertion, SERVER, None, None)
        .await
        .unwrap();

    let request = http.last_post(TOKEN);
    for (name, value) in [
        ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
        ("assertion", "a.b.c"),
        ("resource", SERVER),
        ("client_id", "the client"),
    ] {
        assert_eq!(request.field(name).as_deref(), Some(value), "{name}");
    }
    assert_eq!(request.field("scope"), None);
    assert_eq!(http.requests().len(), 1);
}
