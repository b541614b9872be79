//! Opaque tokens, which the issuer introspects.

use serde_json::{Value, json};

use super::fixture::{AuthFixture, ISSUER, RESOURCE, bearer, challenge, merge};
use crate::{
    Secret,
    fetch::FetchMethod,
    server::{ResourceServer, TrustedIssuer},
};

const ENDPOINT: &str = "https://auth.example/introspect";

fn server(fixture: &AuthFixture) -> ResourceServer {
    let password = Secret::new("p:ss w\u{f6}rd");
    let issuer = TrustedIssuer::introspection(ISSUER, ENDPOINT, "mcp server", &password);
    fixture.empty_server().issuer(issuer)
}

/// Sets the introspection response for every token.
fn answer(fixture: &AuthFixture, changes: Value) {
    let mut claims = fixture.claims();
    claims.insert("active".into(), json!(true));
    merge(&mut claims, changes);
    fixture.network.respond(ENDPOINT, 200, &claims.into());
}

async fn status(server: &ResourceServer, token: &str) -> u16 {
    match bearer(server, token).await {
        Ok(_) => 200,
        Err(rejection) => rejection.status,
    }
}

#[tokio::test]
async fn introspection_returns_the_principal() {
    let fixture = AuthFixture::new();
    answer(&fixture, json!({}));

    let caller = bearer(&server(&fixture), "opaque+/=").await.unwrap();

    assert_eq!((&*caller.issuer, &*caller.subject), (ISSUER, "alice"));
    assert!(caller.scopes.contains("files:read"));
    let request = fixture.network.last_request();
    assert_eq!(request.method, FetchMethod::Post);
    assert_eq!(
        request.body,
        b"token=opaque%2B%2F%3D&token_type_hint=access_token"
    );
    let header = |name| {
        request
            .headers
            .iter()
            .find(|(own, _)| *own == name)
            .unwrap()
            .1
            .expose()
    };
    assert_eq!(header("content-type"), "application/x-www-form-urlencoded");
    // `mcp%20server:p%3Ass%20w%C3%B6rd`: both are encoded before they are joined.
    assert_eq!(
        header("authorization"),
        "Basic bWNwJTIwc2VydmVyOnAlM0FzcyUyMHclQzMlQjZyZA=="
    );
}

#[tokio::test]
async fn an_inactive_or_foreign_token_is_rejected() {
    for (changes, reason) in [
        (json!({ "active": false }), "not active"),
        (json!({ "active": "true" }), "not active"),
        (json!({ "active": null }), "not active"),
        (
            json!({ "aud": "https://other.example" }),
            "another audience",
        ),
        (json!({ "aud": null }), "another audience"),
        (json!({ "iss": "https://evil.example" }), "another issuer"),
        (json!({ "exp": 1 }), "has expired"),
        (json!({ "exp": null }), "expiry time"),
        (json!({ "sub": null, "client_id": null }), "subject"),
        (json!({ "cnf": { "jkt": "abc" } }), "DPoP"),
    ] {
        let fixture = AuthFixture::new();
        answer(&fixture, changes.clone());

        let rejection = bearer(&server(&fixture), "opaque")
            .await
            .expect_err("refused");

        let challenge = challenge(&rejection);
        let reason_text = challenge.parameter("error_description").unwrap();
        assert!(reason_text.contains(reason), "{reason_text}: {changes}");
        assert_eq!(rejection.status, 401);
    }
}

#[tokio::test]
async fn an_introspection_result_is_cached_for_a_minute_at_most_until_expiry() {
    let fixture = AuthFixture::new();
    let server = server(&fixture);
    answer(&fixture, json!({}));
    for _ in 0..10 {
        assert_eq!(status(&server, "opaque").await, 200);
    }
    assert_eq!(fixture.network.request_count(ENDPOINT), 1);
    answer(&fixture, json!({ "active": false }));

    fixture.advance(59);
    assert_eq!(status(&server, "opaque").await, 200);
    fixture.advance(1);
    assert_eq!(status(&server, "opaque").await, 401, "it was revoked");

    answer(&fixture, json!({ "exp": fixture.now() + 5 }));
    assert_eq!(status(&server, "short").await, 200);
    answer(&fixture, json!({ "active": false }));
    fixture.advance(5);
    assert_eq!(status(&server, "short").await, 401);
}

#[tokio::test]
async fn a_negative_introspection_result_is_cached_briefly() {
    let fixture = AuthFixture::new();
    let server = server(&fixture);
    answer(&fixture, json!({ "active": false }));
    for _ in 0..10 {
        assert_eq!(status(&server, "opaque").await, 401);
    }
    assert_eq!(fixture.network.request_count(ENDPOINT), 1);

    answer(&fixture, json!({}));
    fixture.advance(10);
    assert_eq!(status(&server, "opaque").await, 200);
}

#[tokio::test]
async fn an_unavailable_issuer_is_answered_with_503() {
    let fixture = AuthFixture::new();
    let server = server(&fixture);

    assert_eq!(status(&server, "opaque").await, 503);
    for (code, body) in [
        (401, "{}"),
        (500, ""),
        (200, "<html>"),
        (200, "[]"),
        (302, r#"{"active":true}"#),
    ] {
        fixture.network.respond_bytes(ENDPOINT, code, body.into());
        assert_eq!(status(&server, "opaque").await, 503, "{code} {body}");
    }
    answer(&fixture, json!({}));
    assert_eq!(
        status(&server, "opaque").await,
        200,
        "an error is not cached"
    );
}

#[tokio::test]
async fn a_token_of_another_issuer_is_not_sent_to_introspection() {
    let fixture = AuthFixture::new();
    let server = server(&fixture);
    answer(&fixture, json!({}));

    assert_eq!(
        status(
            &server,
            &fixture.token(json!({ "iss": "https://bank.example" }))
        )
        .await,
        401
    );
    assert_eq!(fixture.network.request_count(ENDPOINT), 0);
    assert_eq!(
        status(&server, &fixture.token(json!({}))).await,
        200,
        "it introspects its own tokens"
    );
    assert_eq!(fixture.network.request_count(ENDPOINT), 1);
}

#[tokio::test]
async fn a_second_issuer_introspects_tokens_unknown_to_the_first() {
    let fixture = AuthFixture::new();
    let second = "https://second.example/introspect";
    let issuer =
        TrustedIssuer::introspection("https://second.example", second, "a", &Secret::new("b"));
    let server = server(&fixture).issuer(issuer);
    let claims =
        json!({ "active": true, "aud": RESOURCE, "sub": "bob", "exp": fixture.now() + 60 });
    fixture.network.respond(second, 200, &claims);

    answer(&fixture, json!({ "active": false }));
    assert_eq!(
        bearer(&server, "one").await.unwrap().issuer,
        "https://second.example"
    );

    fixture.network.remove(ENDPOINT);
    fixture
        .network
        .respond(second, 200, &json!({ "active": false }));
    assert_eq!(status(&server, "two").await, 503, "the first might know it");
}
