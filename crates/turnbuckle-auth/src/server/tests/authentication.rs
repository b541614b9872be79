//! Who is let in, and what others hear.

use serde_json::json;
use turnbuckle_protocol::{Principal, authenticator::Authenticator as _};
use turnbuckle_spec_coverage::req;

use super::fixture::{ISSUER, World, bearer, challenge, send};
use crate::Secret;

#[tokio::test]
async fn a_token_of_the_issuer_for_this_server_says_who_is_asking() {
    let world = World::new();

    let caller = bearer(&world.server(), &world.token(json!({})))
        .await
        .unwrap();

    assert_eq!(caller.issuer, ISSUER);
    assert_eq!(caller.subject, "alice");
    assert_eq!(caller.client.as_deref(), Some("editor"));
    assert_eq!(Vec::from_iter(&caller.scopes), ["files:read", "mcp"]);
    assert_eq!(caller.claims["exp"], world.now() + 600);
}

#[tokio::test]
async fn issuers_write_callers_and_scopes_in_their_own_ways() {
    let world = World::new();
    let server = world.server();
    for (changes, subject, client, scopes) in [
        (
            json!({ "sub": null }),
            "editor",
            Some("editor"),
            "files:read mcp",
        ),
        (
            json!({ "client_id": null, "azp": "other" }),
            "alice",
            Some("other"),
            "files:read mcp",
        ),
        (
            json!({ "client_id": null }),
            "alice",
            None,
            "files:read mcp",
        ),
        (
            json!({ "scope": null, "scp": ["a", "b"] }),
            "alice",
            Some("editor"),
            "a b",
        ),
        (
            json!({ "scope": null, "scp": "a b" }),
            "alice",
            Some("editor"),
            "a b",
        ),
        (json!({ "scope": null }), "alice", Some("editor"), ""),
    ] {
        let caller = bearer(&server, &world.token(changes)).await.unwrap();

        assert_eq!(
            (&*caller.subject, caller.client.as_deref()),
            (subject, client)
        );
        assert_eq!(
            Vec::from_iter(caller.scopes.iter().cloned()).join(" "),
            scopes
        );
    }
}

#[tokio::test]
async fn without_a_token_everybody_hears_where_one_is_to_be_had() {
    req!(
        "auth.401.required",
        "auth.www-authenticate.2025-06-18",
        "auth.www-authenticate.or-well-known",
        "auth.scope.challenge",
    );
    let world = World::new();
    let server = world.server().require_scopes("mcp".parse().unwrap());

    for headers in [&[][..], &["Basic YTpi"]] {
        let refusal = send(&server, headers).await.unwrap_err();

        assert_eq!(refusal.status, 401);
        let challenge = challenge(&refusal);
        assert!(challenge.is_scheme("Bearer"));
        assert_eq!(
            challenge.parameter("resource_metadata"),
            Some("https://api.example/.well-known/oauth-protected-resource/mcp")
        );
        assert_eq!(challenge.parameter("scope"), Some("mcp"));
        assert_eq!(challenge.parameter("error"), None, "nothing was wrong yet");
    }
}

#[tokio::test]
async fn a_known_token_is_who_it_was_said_to_be_and_nothing_like_it_is() {
    let world = World::new();
    let server = world
        .empty_server()
        .static_token(Secret::new("first-token"), Principal::new("local", "one"))
        .static_token(Secret::new("second-token"), Principal::new("local", "two"));

    assert_eq!(bearer(&server, "first-token").await.unwrap().subject, "one");
    assert_eq!(
        bearer(&server, "second-token").await.unwrap().subject,
        "two"
    );
    for token in [
        "first-toke",
        "first-tokens",
        "First-token",
        "first-token=",
        "x",
    ] {
        let refusal = bearer(&server, token).await.unwrap_err();
        assert_eq!(refusal.status, 401, "{token}");
        let challenge = challenge(&refusal);
        assert_eq!(challenge.parameter("error"), Some("invalid_token"));
        assert_eq!(
            challenge.parameter("resource_metadata"),
            None,
            "nobody issues tokens"
        );
    }
    assert!(
        server
            .metadata_document("/.well-known/oauth-protected-resource")
            .is_none()
    );
}
