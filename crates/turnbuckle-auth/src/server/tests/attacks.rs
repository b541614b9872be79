//! Attacks with invalid or foreign tokens, and their rejections.

use serde_json::{Value, json};
use turnbuckle_protocol::authenticator::{AuthRequest, Authenticator as _};
use turnbuckle_spec_coverage::req;

use super::fixture::{AuthFixture, ISSUER, RESOURCE, bearer, challenge, send};
use crate::{
    jwt::{UnverifiedJwt, encode},
    server::ResourceServer,
};

/// Sends each token, and expects 401 `invalid_token` with this reason.
pub(super) async fn assert_all_rejected(
    server: &ResourceServer,
    reason: &str,
    tokens: Vec<String>,
) {
    for token in tokens {
        let shown = &token[..token.len().min(400)];
        let rejection = bearer(server, &token).await.expect_err(shown);

        let challenge = challenge(&rejection);
        let reason_text = challenge.parameter("error_description").unwrap_or_default();
        assert_eq!(rejection.status, 401, "{shown}");
        assert_eq!(
            challenge.parameter("error"),
            Some("invalid_token"),
            "{shown}"
        );
        assert!(
            reason_text.contains(reason),
            "{reason_text:?} is not {reason:?}: {shown}"
        );
        assert!(
            challenge.parameter("resource_metadata").is_some(),
            "{shown}"
        );
    }
}

#[tokio::test]
async fn a_token_for_another_audience_is_rejected() {
    req!(
        "auth.token.audience",
        "auth.token.own-resources",
        "auth.401.invalid-token",
        "auth.token.error"
    );
    let fixture = AuthFixture::new();
    let server = fixture.server().audience("api://mcp");
    let elsewhere = [
        json!("https://other.example/mcp"),
        json!("https://api.example"),
        json!("https://api.example/"),
        json!("https://api.example/mcp/admin"),
        json!("https://api.example/MCP"),
        json!("http://api.example/mcp"),
        json!("https://api.example:8443/mcp"),
        json!("https://api.example.evil.example/mcp"),
        json!("https://evil.example/https://api.example/mcp"),
        json!("https://user@api.example/mcp"),
        json!("https://api.example/mcp#x"),
        json!("https://api.example/mcp?x"),
        json!(format!("{RESOURCE} https://other.example")),
        json!("API://mcp"),
        // An id token is for the client, not for us.
        json!("editor"),
        json!([]),
        json!(["https://other.example/mcp", "x"]),
        json!([[RESOURCE]]),
        json!({ "aud": RESOURCE }),
        json!(true),
        json!(""),
        json!(null),
    ];

    let tokens = elsewhere.map(|aud| fixture.token(json!({ "aud": aud })));
    assert_all_rejected(&server, "another audience", tokens.into()).await;

    for aud in [
        json!(["x", RESOURCE]),
        json!("HTTPS://API.example:443/mcp/"),
        json!("api://mcp"),
    ] {
        req!("auth.resource.case");
        bearer(&server, &fixture.token(json!({ "aud": aud })))
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_token_of_an_untrusted_issuer_is_rejected_without_a_request() {
    req!("auth.token.no-transit");
    let fixture = AuthFixture::new();
    let issuers = [
        json!("https://evil.example"),
        json!("https://auth.example/"),
        json!("https://AUTH.example"),
        json!("https://auth.example:443"),
        json!("https://auth.example.evil.example"),
        json!([ISSUER]),
        json!(null),
        json!(1),
    ];

    let tokens = issuers.map(|iss| fixture.token(json!({ "iss": iss })));
    assert_all_rejected(&fixture.server(), "another issuer", tokens.into()).await;

    assert_eq!(fixture.network.total_requests(), 0);
}

#[tokio::test]
async fn an_expired_or_not_yet_valid_token_is_rejected() {
    req!(
        "auth.401.invalid-token",
        "auth.token.expiry",
        "auth.token.validate"
    );
    let fixture = AuthFixture::new();
    let server = fixture.server();
    let now = fixture.now();
    let with = |name: &str, values: &[Value]| {
        values
            .iter()
            .map(|value| fixture.token(json!({ name: value })))
            .collect()
    };

    let over = [json!(now - 60), json!(now - 61), json!(0), json!(1.5)];
    assert_all_rejected(&server, "has expired", with("exp", &over)).await;
    let endless = [
        json!(null),
        json!("never"),
        json!((now + 600).to_string()),
        json!(-1),
        json!([now + 600]),
        json!({ "at": now + 600 }),
        json!(true),
        json!(""),
        json!(-1e300),
    ];
    assert_all_rejected(&server, "expiry time", with("exp", &endless)).await;
    let early = [
        json!(now + 61),
        json!(u64::MAX),
        json!("now"),
        json!(-5),
        json!(1e300),
        json!(true),
        json!([now]),
        json!({ "at": now }),
    ];
    assert_all_rejected(&server, "not valid yet", with("nbf", &early)).await;

    for changes in [
        json!({ "exp": now - 59 }),
        json!({ "nbf": now + 60 }),
        json!({ "exp": u64::MAX }),
        json!({ "exp": 1e300 }),
        json!({ "exp": now as f64 + 0.5 }),
        // The issue time does not limit a token.
        json!({ "iat": "yesterday" }),
        json!({ "iat": u64::MAX }),
        json!({ "iat": null }),
    ] {
        bearer(&server, &fixture.token(changes)).await.unwrap();
    }
}

#[tokio::test]
async fn a_cached_token_is_rejected_after_it_expires() {
    req!("auth.token.expiry");
    let fixture = AuthFixture::new();
    let server = fixture.server().leeway(std::time::Duration::ZERO);
    let token = fixture.token(json!({ "exp": fixture.now() + 100 }));

    bearer(&server, &token).await.unwrap();
    fixture.advance(99);
    bearer(&server, &token).await.unwrap();
    fixture.advance(1);
    assert_all_rejected(&server, "has expired", vec![token]).await;
}

#[tokio::test]
async fn a_token_without_subject_or_with_an_unknown_binding_is_rejected() {
    let fixture = AuthFixture::new();
    let server = fixture.server();

    let without_subject = json!({ "sub": null, "client_id": null });
    let empty = json!({ "sub": "" });
    let number = json!({ "sub": 1, "client_id": 2 });
    let tokens = [without_subject, empty, number].map(|changes| fixture.token(changes));
    assert_all_rejected(&server, "subject", tokens.into()).await;

    let bindings = [
        json!({ "x5t#S256": "abc" }),
        json!({}),
        json!("x"),
        json!({ "jkt": 1 }),
        json!({ "jkt": "a", "x5t#S256": "b" }),
    ];
    let tokens = bindings.map(|cnf| fixture.token(json!({ "cnf": cnf })));
    assert_all_rejected(
        &server,
        "binding of the token is not supported",
        tokens.into(),
    )
    .await;
}

#[tokio::test]
async fn oversized_deeply_nested_and_malformed_tokens_are_rejected() {
    let fixture = AuthFixture::new();
    let server = fixture.server();
    let deep = encode("[".repeat(5_000));
    let long = fixture.token(json!({ "x": "a".repeat(UnverifiedJwt::MAX_BYTES) }));

    assert_all_rejected(&server, "too long", vec![long, "a".repeat(1 << 20)]).await;
    let texts = ["a", "a.b.c", "..", "a.b.c.d.e", "e30.e30.e30", "-._~+/="].map(str::to_owned);
    assert_all_rejected(&server, "not a signed JWT", texts.into()).await;
    assert_all_rejected(
        &server,
        "not a signed JWT",
        vec![format!("{deep}.{deep}.AA")],
    )
    .await;
    assert_eq!(fixture.network.total_requests(), 0);
}

#[tokio::test]
async fn ambiguous_authorization_headers_are_malformed() {
    req!("auth.status-codes");
    let fixture = AuthFixture::new();
    let server = fixture.server();
    let good = format!("Bearer {}", fixture.token(json!({})));
    let comma = format!("{good}, {good}");
    let space = format!("{good} x");
    for headers in [
        &[&*good, &*good][..],
        &[&*good, "Basic YTpi"],
        &["Basic YTpi", &*good],
        &["", &*good],
        &[&*comma],
        &[&*space],
        &[""],
        &["Bearer"],
        &["Bearer "],
        &["DPoP"],
        &["Bearer a\u{0}b"],
    ] {
        let rejection = send(&server, headers).await.expect_err("it is malformed");

        assert_eq!(rejection.status, 400, "{headers:?}");
        assert_eq!(
            challenge(&rejection).parameter("error"),
            Some("invalid_request")
        );
    }
    send(&server, &[&good]).await.unwrap();
}

#[tokio::test]
async fn a_token_outside_the_authorization_header_is_ignored() {
    let fixture = AuthFixture::new();
    let server = fixture.server();
    let token = fixture.token(json!({}));
    let path = format!("/mcp?access_token={token}");

    let in_url = server
        .authenticate(AuthRequest::new("POST", &path, &[], &[]))
        .await
        .unwrap_err();
    let in_proof = server
        .authenticate(AuthRequest::new("POST", "/mcp", &[], &[&token]))
        .await
        .unwrap_err();
    let basic_auth_header = send(&server, &[&format!("Basic {token}")])
        .await
        .unwrap_err();

    for rejection in [in_url, in_proof, basic_auth_header] {
        assert_eq!(
            (rejection.status, challenge(&rejection).parameter("error")),
            (401, None)
        );
    }
}

#[tokio::test]
async fn a_rejection_does_not_quote_the_token() {
    let fixture = AuthFixture::new();
    let server = fixture.server();
    for token in [
        fixture.token(json!({ "aud": "x" })),
        "opaque-and-secret".to_owned(),
    ] {
        let rejection = bearer(&server, &token).await.unwrap_err();

        let reason_text = format!("{rejection:?}");
        for part in token.split('.') {
            assert!(!reason_text.contains(part), "{reason_text}");
        }
        assert!(!format!("{server:?}").contains(&token));
    }
}
