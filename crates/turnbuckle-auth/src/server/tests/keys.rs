//! Keys that are added, removed or unavailable.

use std::sync::Arc;

use serde_json::json;
use turnbuckle_protocol::authenticator::{AuthRequest, Authenticator as _};

use super::fixture::{AuthFixture, ISSUER, JWKS, METADATA, bearer};
use crate::{
    jwt::{Jwks, SigningKey},
    server::TrustedIssuer,
};

async fn status(server: &crate::server::ResourceServer, token: &str) -> u16 {
    match bearer(server, token).await {
        Ok(_) => 200,
        Err(rejection) => rejection.status,
    }
}

#[tokio::test]
async fn unknown_key_ids_do_not_cause_repeated_fetches() {
    let fixture = AuthFixture::new();
    let server = Arc::new(fixture.server());
    let flood: Vec<_> = (0..200)
        .map(|at| fixture.token_with(json!({ "kid": format!("kid-{at}") }), json!({})))
        .map(|token| {
            let server = Arc::clone(&server);
            tokio::spawn(async move { status(&server, &token).await })
        })
        .collect();
    for one in flood {
        assert_eq!(one.await.unwrap(), 401);
    }

    assert_eq!(
        (
            fixture.network.request_count(JWKS),
            fixture.network.request_count(METADATA)
        ),
        (1, 1)
    );
    fixture.advance(29);
    status(
        &server,
        &fixture.token_with(json!({ "kid": "x" }), json!({})),
    )
    .await;
    assert_eq!(fixture.network.request_count(JWKS), 1);
    fixture.advance(1);
    status(
        &server,
        &fixture.token_with(json!({ "kid": "y" }), json!({})),
    )
    .await;
    assert_eq!(fixture.network.request_count(JWKS), 2);
    assert_eq!(
        status(&server, &fixture.token(json!({}))).await,
        200,
        "other requests are still answered"
    );
}

#[tokio::test]
async fn a_new_key_is_fetched_at_its_first_use() {
    let (fixture, new) = (AuthFixture::new(), SigningKey::generate().unwrap());
    let server = fixture.server();
    assert_eq!(status(&server, &fixture.token(json!({}))).await, 200);
    fixture.publish(&[("one", &fixture.key), ("two", &new)]);
    fixture.advance(30);

    let token = fixture.sign_token(&new, json!({ "kid": "two" }), json!({}));

    assert_eq!(status(&server, &token).await, 200);
    assert_eq!(fixture.network.request_count(JWKS), 2);
}

#[tokio::test]
async fn a_removed_key_is_accepted_only_until_the_cache_expires() {
    let (fixture, new) = (AuthFixture::new(), SigningKey::generate().unwrap());
    let server = fixture.server();
    let token = fixture.token(json!({ "exp": fixture.now() + 86_400 }));
    assert_eq!(status(&server, &token).await, 200);
    fixture.publish(&[("two", &new)]);

    assert_eq!(status(&server, &token).await, 200, "cached");
    assert_eq!(fixture.network.request_count(JWKS), 1, "no further fetch");
    fixture.advance(15 * 60);
    assert_eq!(status(&server, &token).await, 401);
}

#[tokio::test]
async fn cached_keys_are_used_for_a_limited_time_while_the_issuer_is_unreachable() {
    let fixture = AuthFixture::new();
    let server = fixture.server();
    let token = || fixture.token(json!({ "jti": fixture.now() }));
    assert_eq!(status(&server, &token()).await, 200);
    fixture.network.remove(JWKS);

    for hours in [1, 10, 12] {
        fixture.advance(hours * 3600);
        assert_eq!(status(&server, &token()).await, 200);
    }
    fixture.advance(2 * 3600);
    assert_eq!(status(&server, &token()).await, 503);
}

#[tokio::test]
async fn missing_keys_are_answered_with_503() {
    let fixture = AuthFixture::new();
    let (server, token) = (fixture.server(), fixture.token(json!({})));
    fixture.network.remove(METADATA);

    let rejection = bearer(&server, &token).await.unwrap_err();
    assert_eq!(rejection.status, 503);
    assert!(
        rejection.challenges.is_empty(),
        "503 comes without a challenge"
    );
    let request = fixture.network.total_requests();
    assert_eq!(status(&server, &token).await, 503);
    assert_eq!(
        fixture.network.total_requests(),
        request,
        "fetches are not repeated at once"
    );

    fixture.publish_metadata();
    fixture.advance(5);
    assert_eq!(status(&server, &token).await, 200);
}

#[tokio::test]
async fn invalid_metadata_and_keys_are_not_used() {
    for (url, body) in [
        (
            METADATA,
            json!({ "issuer": "https://evil.example", "jwks_uri": JWKS }),
        ),
        (
            METADATA,
            json!({ "issuer": format!("{ISSUER}/"), "jwks_uri": JWKS }),
        ),
        (METADATA, json!({ "issuer": ISSUER })),
        (METADATA, json!([])),
        (JWKS, json!({})),
        (JWKS, json!({ "keys": vec![json!({}); 101] })),
        (
            JWKS,
            json!({ "keys": [], "x": "a".repeat(Jwks::MAX_BYTES) }),
        ),
    ] {
        let fixture = AuthFixture::new();
        fixture.network.respond(url, 200, &body);
        let status = status(&fixture.server(), &fixture.token(json!({}))).await;
        assert_eq!(status, 503, "{url}");
    }
    let fixture = AuthFixture::new();
    fixture
        .network
        .respond(JWKS, 500, &json!({ "keys": [fixture.key.public_jwk()] }));
    assert_eq!(
        status(&fixture.server(), &fixture.token(json!({}))).await,
        503
    );
}

#[tokio::test]
async fn openid_configuration_is_used_as_metadata() {
    let fixture = AuthFixture::new();
    fixture.network.remove(METADATA);
    let metadata = json!({ "issuer": ISSUER, "jwks_uri": JWKS });
    let url = "https://auth.example/.well-known/openid-configuration";
    fixture.network.respond(url, 200, &metadata);

    assert_eq!(
        status(&fixture.server(), &fixture.token(json!({}))).await,
        200
    );
}

#[tokio::test]
async fn keys_can_have_a_configured_url_or_be_configured() {
    let fixture = AuthFixture::new();
    let key = fixture.key.public_jwk();
    let given = Jwks::parse(json!({ "keys": [key] }).to_string().as_bytes()).unwrap();
    fixture.network.remove(METADATA);

    let at = fixture
        .empty_server()
        .issuer(TrustedIssuer::jwt(ISSUER).jwks_uri(JWKS));
    let with = fixture
        .empty_server()
        .issuer(TrustedIssuer::jwt(ISSUER).jwks(given));

    assert_eq!(status(&at, &fixture.token(json!({}))).await, 200);
    assert_eq!(fixture.network.total_requests(), 1);
    assert_eq!(status(&with, &fixture.token(json!({}))).await, 200);
    assert_eq!(fixture.network.total_requests(), 1);
}

#[tokio::test]
async fn concurrent_requests_share_one_fetch() {
    let fixture = AuthFixture::new();
    let server = Arc::new(fixture.server());
    let callers: Vec<_> = (0..50)
        .map(|at| {
            let (server, token) = (Arc::clone(&server), fixture.token(json!({ "jti": at })));
            tokio::spawn(async move { status(&server, &token).await })
        })
        .collect();

    for caller in callers {
        assert_eq!(caller.await.unwrap(), 200);
    }
    assert_eq!(fixture.network.request_count(JWKS), 1);
}

#[tokio::test]
async fn a_dropped_request_does_not_cancel_a_shared_fetch() {
    let fixture = AuthFixture::new();
    let server = fixture.server();
    let header = format!("Bearer {}", fixture.token(json!({})));
    {
        let headers = [&*header];
        let mut visit = server.authenticate(AuthRequest::new("POST", "/mcp", &headers, &[]));
        let once =
            std::future::poll_fn(|context| std::task::Poll::Ready(visit.as_mut().poll(context)));
        assert!(once.await.is_pending());
    }

    assert_eq!(status(&server, &fixture.token(json!({}))).await, 200);
    assert_eq!(fixture.network.request_count(JWKS), 1);
}
