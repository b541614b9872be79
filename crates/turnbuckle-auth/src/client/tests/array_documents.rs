//! Arrays in place of objects: a derived `Deserialize` would read them as the members in order.

use serde_json::{Value, json};

use super::fake_http::{FakeHttp, ISSUER, SERVER, metadata};
use crate::{
    AuthorizationServer, ProtectedResource,
    client::{
        device, discovery,
        registration::{ClientMetadata, ClientRegistration, register},
        token::{self, TokenEndpoint},
    },
    jwt::Jwks,
};

const RESOURCE_METADATA: &str = "https://mcp.example/.well-known/oauth-protected-resource/mcp";
const SERVER_METADATA: &str = "https://as.example/.well-known/oauth-authorization-server";

/// Returns the authorization server of [`metadata`].
fn server() -> AuthorizationServer {
    serde_json::from_value(metadata()).unwrap()
}

async fn discovery_error(url: &str, document: &Value) -> String {
    let http = FakeHttp::usual().get(url, document);
    let found = discovery::discover(&http, SERVER, &[], "2026-07-28").await;
    found.unwrap_err().to_string()
}

async fn registration_error(document: &Value) -> String {
    let http = FakeHttp::usual().post("https://as.example/register", 201, document);
    let client_metadata = ClientMetadata::new("Test", ["http://127.0.0.1/"]);
    let registered = register(&http, &server(), &client_metadata).await;
    registered.unwrap_err().to_string()
}

async fn token_error(document: &Value) -> String {
    let http = FakeHttp::usual().post("https://as.example/token", 200, document);
    let server = server();
    let client = ClientRegistration::preregistered(&server, "x", None);
    let endpoint = TokenEndpoint::new(&server, &client);
    let tokens = token::client_credentials(&http, &endpoint, SERVER, None, None).await;
    tokens.unwrap_err().to_string()
}

async fn device_error(document: &Value) -> String {
    let http = FakeHttp::usual().post("https://as.example/device", 200, document);
    let server = server();
    let client = ClientRegistration::preregistered(&server, "x", None);
    let endpoint = TokenEndpoint::new(&server, &client);
    let code = device::request_code(&http, &endpoint, SERVER, None).await;
    code.unwrap_err().to_string()
}

#[tokio::test]
async fn an_array_is_rejected_wherever_an_object_is_read() {
    let resource = json!([SERVER, [ISSUER], []]);
    let endpoints = json!([
        ISSUER,
        "https://as.example/authorize",
        "https://as.example/token"
    ]);
    let tokens = json!(["sesame", "Bearer", 300, null, null, null, null]);
    let code = json!(["sesame", "ABCD", "https://as.example/open", null, 600, 5]);
    let keys = json!([[]]).to_string();

    for (document, error) in [
        (
            "resource metadata",
            discovery_error(RESOURCE_METADATA, &resource).await,
        ),
        (
            "server metadata",
            discovery_error(SERVER_METADATA, &endpoints).await,
        ),
        (
            "registration",
            registration_error(&json!(["x", null, null, "none"])).await,
        ),
        ("tokens", token_error(&tokens).await),
        ("device code", device_error(&code).await),
        (
            "key set",
            Jwks::parse(keys.as_bytes()).unwrap_err().to_string(),
        ),
        (
            "resource metadata, by itself",
            ProtectedResource::parse(resource.to_string().as_bytes(), SERVER)
                .unwrap_err()
                .to_string(),
        ),
        (
            "server metadata, by itself",
            AuthorizationServer::parse(endpoints.to_string().as_bytes(), ISSUER)
                .unwrap_err()
                .to_string(),
        ),
    ] {
        assert!(error.contains("expected object"), "{document}: {error}");
        assert!(!error.contains("sesame"), "{document}: {error}");
    }
}

#[tokio::test]
async fn the_error_for_a_token_response_has_the_member_but_not_its_value() {
    let sesame = json!({ "access_token": "a", "token_type": ["sesame, expected sesame"] });

    let error = token_error(&sesame).await;

    assert!(error.contains("`token_type`: expected string"), "{error}");
    assert!(!error.contains("sesame"), "{error}");
    assert!(
        registration_error(&json!({}))
            .await
            .contains("`client_id` is missing")
    );
}
