//! Public metadata documents.

use serde_json::{Value, json};
use turnbuckle_protocol::authenticator::Authenticator as _;
use turnbuckle_spec_coverage::req;

use super::fixture::{AuthFixture, ISSUER, METADATA, RESOURCE};
use crate::server::{DpopPolicy, InvalidResourceUrl, ResourceServer};

async fn read(server: &ResourceServer, path: &str) -> Option<(u16, Value)> {
    let document = server.metadata_document(path)?.await;
    Some((
        document.status,
        serde_json::from_slice(&document.body).unwrap(),
    ))
}

#[tokio::test]
async fn resource_metadata_is_served_at_each_well_known_path() {
    req!(
        "auth.prm.server",
        "auth.prm.authorization-servers",
        "auth.www-authenticate.or-well-known"
    );
    let fixture = AuthFixture::new();
    let server = fixture
        .server()
        .advertise_scopes("files:read".parse().unwrap())
        .name("Files")
        .documentation("https://api.example/docs");
    for path in [
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-protected-resource",
        "/mcp/.well-known/oauth-protected-resource",
    ] {
        let (status, document) = read(&server, path).await.unwrap();

        assert_eq!(status, 200);
        assert_eq!(
            document,
            json!({
                "resource": RESOURCE,
                "authorization_servers": [ISSUER],
                "scopes_supported": ["files:read"],
                "bearer_methods_supported": ["header"],
                "resource_name": "Files",
                "resource_documentation": "https://api.example/docs",
            })
        );
    }
    let server = server.dpop(DpopPolicy::Require);
    let (_, document) = read(&server, "/.well-known/oauth-protected-resource")
        .await
        .unwrap();
    assert_eq!(document["dpop_bound_access_tokens_required"], true);
}

#[tokio::test]
async fn other_paths_are_not_served() {
    let fixture = AuthFixture::new();
    let server = fixture.server();
    for path in [
        "",
        "/",
        "/mcp",
        "/.well-known",
        "/.well-known/oauth-protected-resource/other",
        "/.well-known/oauth-protected-resource/mcp/x",
        "/.well-known/oauth-protected-resourcemcp",
        "/x/.well-known/oauth-protected-resource",
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
        "/.well-known/../.well-known/oauth-protected-resource",
    ] {
        assert!(server.metadata_document(path).is_none(), "{path}");
    }
}

#[tokio::test]
async fn issuer_metadata_is_republished_unchanged() {
    req!(
        "auth.metadata.2025-03-26.server",
        "auth.third-party.allowed"
    );
    let fixture = AuthFixture::new();
    let server = fixture.server().republish_issuer_metadata();
    let original = format!(r#"{{ "issuer": "{ISSUER}",  "x-own": [1.0] }}"#);
    fixture
        .network
        .respond_bytes(METADATA, 200, original.clone().into());

    for _ in 0..3 {
        let document = server
            .metadata_document("/.well-known/oauth-authorization-server")
            .unwrap()
            .await;
        assert_eq!(document.status, 200);
        assert_eq!(document.body, original.as_bytes());
    }
    assert_eq!(fixture.network.request_count(METADATA), 1);
}

#[tokio::test]
async fn metadata_of_another_issuer_is_not_republished() {
    let fixture = AuthFixture::new();
    let server = fixture.server().republish_issuer_metadata();
    let foreign =
        json!({ "issuer": "https://evil.example", "token_endpoint": "https://evil.example" });
    fixture.network.respond(METADATA, 200, &foreign);

    for _ in 0..100 {
        let found = read(&server, "/.well-known/oauth-authorization-server").await;
        assert_eq!(
            found,
            Some((503, json!({ "error": "temporarily_unavailable" })))
        );
    }
    assert_eq!(fixture.network.request_count(METADATA), 1);
}

#[test]
fn an_invalid_resource_url_is_an_error() {
    for resource in [
        "",
        "mcp",
        "file:///x",
        "https://a.example/#x",
        "https://user@a.example",
    ] {
        let fixture = AuthFixture::new();
        let error = ResourceServer::new(resource, fixture.network).map(|_| ());
        assert_eq!(error, Err(InvalidResourceUrl(resource.to_owned())));
    }
}
