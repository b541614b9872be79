//! What a caller may do.

use std::collections::BTreeSet;

use serde_json::json;
use turnbuckle_protocol::{Principal, authenticator::Authenticator as _};
use turnbuckle_spec_coverage::req;

use super::fixture::{World, bearer, challenge};
use crate::Secret;

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().copied().map(str::to_owned).collect()
}

#[tokio::test]
async fn a_token_without_what_everything_needs_is_refused_with_all_of_it() {
    req!(
        "auth.status-codes",
        "auth.scope.403",
        "auth.scope.403-include",
        "auth.scope.403-single"
    );
    let world = World::new();
    let server = world.server().require_scopes("mcp admin".parse().unwrap());

    let refusal = bearer(&server, &world.token(json!({}))).await.unwrap_err();

    assert_eq!(refusal.status, 403);
    let challenge = challenge(&refusal);
    assert!(challenge.is_scheme("Bearer"));
    assert_eq!(challenge.parameter("error"), Some("insufficient_scope"));
    assert_eq!(challenge.parameter("scope"), Some("admin mcp"));
    assert_eq!(
        challenge.parameter("resource_metadata"),
        Some("https://api.example/.well-known/oauth-protected-resource/mcp")
    );
}

#[tokio::test]
async fn an_operation_that_needs_more_names_all_that_is_needed() {
    req!(
        "auth.scope.403",
        "auth.scope.403-include",
        "auth.scope.403-single",
        "auth.scope.challenge-free"
    );
    let world = World::new();
    let server = world.server().require_scopes("mcp".parse().unwrap());
    let caller = bearer(&server, &world.token(json!({}))).await.unwrap();

    let refusal = server.insufficient_scope(&caller, &set(&["files:write", "files:read"]));

    assert_eq!(refusal.status, 403);
    assert_eq!(
        challenge(&refusal).parameter("scope"),
        Some("files:read files:write mcp")
    );
    assert_eq!(
        challenge(&refusal).parameter("error"),
        Some("insufficient_scope")
    );
}

#[tokio::test]
async fn a_broader_scope_is_as_good_as_what_it_implies() {
    req!("auth.scope.hierarchy");
    let world = World::new();
    let mut known = Principal::new("local", "root");
    known.scopes = set(&["admin"]);
    let server = world
        .server()
        .static_token(Secret::new("known"), known)
        .require_scopes("files:read".parse().unwrap())
        .scope_implies("admin", ["files:write"])
        .scope_implies("files:write", ["files:read"]);

    let broad = bearer(&server, &world.token(json!({ "scope": "admin" })))
        .await
        .unwrap();
    let known = bearer(&server, "known").await.unwrap();
    let narrow = bearer(&server, &world.token(json!({ "scope": "files" })))
        .await
        .unwrap_err();

    for caller in [broad, known] {
        assert_eq!(caller.scopes, set(&["admin", "files:read", "files:write"]));
    }
    assert_eq!(narrow.status, 403, "a name is no prefix");
}

#[tokio::test]
async fn refresh_tokens_are_no_business_of_this_server() {
    req!("auth.refresh.server-no-offline");
    let world = World::new();
    let server = world
        .server()
        .require_scopes("mcp offline_access".parse().unwrap())
        .advertise_scopes("files offline_access".parse().unwrap());

    let caller = bearer(&server, &world.token(json!({}))).await.unwrap_err();
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
