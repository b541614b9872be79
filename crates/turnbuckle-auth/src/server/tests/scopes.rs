//! Scopes of callers.

use std::collections::BTreeSet;

use serde_json::json;
use turnbuckle_protocol::{Principal, authenticator::Authenticator as _};
use turnbuckle_spec_coverage::req;

use super::fixture::{AuthFixture, bearer, challenge};
use crate::Secret;

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().copied().map(str::to_owned).collect()
}

#[tokio::test]
async fn a_token_without_required_scopes_is_rejected_with_all_of_them() {
    req!(
        "auth.status-codes",
        "auth.scope.403",
        "auth.scope.403-include",
        "auth.scope.403-single"
    );
    let fixture = AuthFixture::new();
    let server = fixture
        .server()
        .require_scopes("mcp admin".parse().unwrap());

    let rejection = bearer(&server, &fixture.token(json!({})))
        .await
        .unwrap_err();

    assert_eq!(rejection.status, 403);
    let challenge = challenge(&rejection);
    assert!(challenge.is_scheme("Bearer"));
    assert_eq!(challenge.parameter("error"), Some("insufficient_scope"));
    assert_eq!(challenge.parameter("scope"), Some("admin mcp"));
    assert_eq!(
        challenge.parameter("resource_metadata"),
        Some("https://api.example/.well-known/oauth-protected-resource/mcp")
    );
}

#[tokio::test]
async fn an_insufficient_scope_challenge_names_all_needed_scopes() {
    req!(
        "auth.scope.403",
        "auth.scope.403-include",
        "auth.scope.403-single",
        "auth.scope.challenge-free"
    );
    let fixture = AuthFixture::new();
    let server = fixture.server().require_scopes("mcp".parse().unwrap());
    let caller = bearer(&server, &fixture.token(json!({}))).await.unwrap();

    let rejection = server.insufficient_scope(&caller, &set(&["files:write", "files:read"]));

    assert_eq!(rejection.status, 403);
    assert_eq!(
        challenge(&rejection).parameter("scope"),
        Some("files:read files:write mcp")
    );
    assert_eq!(
        challenge(&rejection).parameter("error"),
        Some("insufficient_scope")
    );
}

#[tokio::test]
async fn a_scope_grants_the_scopes_it_implies() {
    req!("auth.scope.hierarchy");
    let fixture = AuthFixture::new();
    let mut known = Principal::new("local", "root");
    known.scopes = set(&["admin"]);
    let server = fixture
        .server()
        .static_token(Secret::new("known"), known)
        .require_scopes("files:read".parse().unwrap())
        .scope_implies("admin", ["files:write"])
        .scope_implies("files:write", ["files:read"]);

    let broad = bearer(&server, &fixture.token(json!({ "scope": "admin" })))
        .await
        .unwrap();
    let known = bearer(&server, "known").await.unwrap();
    let narrow = bearer(&server, &fixture.token(json!({ "scope": "files" })))
        .await
        .unwrap_err();

    for caller in [broad, known] {
        assert_eq!(caller.scopes, set(&["admin", "files:read", "files:write"]));
    }
    assert_eq!(narrow.status, 403, "a scope does not match by prefix");
}

#[tokio::test]
async fn offline_access_is_never_advertised_or_required() {
    req!("auth.refresh.server-no-offline");
    let fixture = AuthFixture::new();
    let server = fixture
        .server()
        .require_scopes("mcp offline_access".parse().unwrap())
        .advertise_scopes("files offline_access".parse().unwrap());

    let caller = bearer(&server, &fixture.token(json!({})))
        .await
        .unwrap_err();
    let lacking =
        server.insufficient_scope(&Principal::new("a", "b"), &set(&["offline_access", "x"]));
    let document = server
        .metadata_document("/.well-known/oauth-protected-resource")
        .unwrap()
        .await;

    assert_eq!(challenge(&caller).parameter("scope"), Some("mcp"));
    assert_eq!(challenge(&lacking).parameter("scope"), Some("mcp x"));
    let document: serde_json::Value = serde_json::from_slice(&document.body).unwrap();
    assert_eq!(document["scopes_supported"], json!(["files", "mcp"]));
}
