//! Accepted tokens, and challenges for requests without one.

use serde_json::json;
use turnbuckle_protocol::{
    Principal,
    authenticator::{AuthRequest, Authenticator as _},
};
use turnbuckle_spec_coverage::req;

use super::fixture::{AuthFixture, ISSUER, bearer, challenge, send};
use crate::Secret;

#[tokio::test]
async fn a_valid_token_yields_its_principal() {
    let fixture = AuthFixture::new();

    let caller = bearer(&fixture.server(), &fixture.token(json!({})))
        .await
        .unwrap();

    assert_eq!(caller.issuer, ISSUER);
    assert_eq!(caller.subject, "alice");
    assert_eq!(caller.client.as_deref(), Some("editor"));
    assert_eq!(Vec::from_iter(&caller.scopes), ["files:read", "mcp"]);
    assert_eq!(caller.claims["exp"], fixture.now() + 600);
}

#[tokio::test]
async fn subjects_and_scopes_are_read_in_the_spellings_of_several_issuers() {
    let fixture = AuthFixture::new();
    let server = fixture.server();
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
        let caller = bearer(&server, &fixture.token(changes)).await.unwrap();

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
async fn a_request_without_a_token_gets_the_metadata_url() {
    req!(
        "auth.401.required",
        "auth.www-authenticate.2025-06-18",
        "auth.www-authenticate.or-well-known",
        "auth.scope.challenge",
    );
    let fixture = AuthFixture::new();
    let server = fixture.server().require_scopes("mcp".parse().unwrap());

    for headers in [&[][..], &["Basic YTpi"]] {
        let rejection = send(&server, headers).await.unwrap_err();

        assert_eq!(rejection.status, 401);
        let challenge = challenge(&rejection);
        assert!(challenge.is_scheme("Bearer"));
        assert_eq!(
            challenge.parameter("resource_metadata"),
            Some("https://api.example/.well-known/oauth-protected-resource/mcp")
        );
        assert_eq!(challenge.parameter("scope"), Some("mcp"));
        assert_eq!(
            challenge.parameter("error"),
            None,
            "a missing token is not an error"
        );
    }
}

#[tokio::test]
async fn only_exact_static_tokens_are_accepted() {
    let fixture = AuthFixture::new();
    let server = fixture
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
        let rejection = bearer(&server, token).await.unwrap_err();
        assert_eq!(rejection.status, 401, "{token}");
        let challenge = challenge(&rejection);
        assert_eq!(challenge.parameter("error"), Some("invalid_token"));
        assert_eq!(
            challenge.parameter("resource_metadata"),
            None,
            "without issuers there is nothing to name"
        );
    }
    assert!(
        server
            .metadata_document("/.well-known/oauth-protected-resource")
            .is_none()
    );
}

#[test]
fn only_bearer_tokens_of_issuers_can_be_exchanged_and_only_if_allowed() {
    let server = |allowed| {
        AuthFixture::new()
            .server()
            .static_token(Secret::new("static-token"), Principal::new("local", "one"))
            .allow_token_exchange(allowed)
    };
    let exchangeable = |allowed: bool, header: &str| {
        let headers = [header];
        let request = AuthRequest::new("POST", "/mcp", &headers, &[]);
        let token = server(allowed).exchangeable_token(request, &Principal::default());
        token.map(str::to_owned)
    };

    assert_eq!(exchangeable(true, "Bearer a.b.c").as_deref(), Some("a.b.c"));
    assert_eq!(exchangeable(false, "Bearer a.b.c"), None);
    for header in ["DPoP a.b.c", "Bearer static-token", "Basic a", "Bearer", ""] {
        assert_eq!(exchangeable(true, header), None, "{header}");
    }
}
