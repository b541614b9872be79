//! Tokens that only their issuer can read.

use serde_json::{Value, json};

use super::fixture::{ISSUER, RESOURCE, World, bearer, challenge, merge};
use crate::{
    Secret,
    fetch::FetchMethod,
    server::{ResourceServer, TrustedIssuer},
};

const ENDPOINT: &str = "https://auth.example/introspect";

fn server(world: &World) -> ResourceServer {
    let password = Secret::new("p:ss w\u{f6}rd");
    let issuer = TrustedIssuer::introspection(ISSUER, ENDPOINT, "mcp server", &password);
    world.empty_server().issuer(issuer)
}

/// Has the issuer say this about every token.
fn answer(world: &World, changes: Value) {
    let mut claims = world.claims();
    claims.insert("active".into(), json!(true));
    merge(&mut claims, changes);
    world.network.answer(ENDPOINT, 200, &claims.into());
}

async fn status(server: &ResourceServer, token: &str) -> u16 {
    match bearer(server, token).await {
        Ok(_) => 200,
        Err(refusal) => refusal.status,
    }
}

#[tokio::test]
async fn the_issuer_says_whose_token_it_is() {
    let world = World::new();
    answer(&world, json!({}));

    let caller = bearer(&server(&world), "opaque+/=").await.unwrap();

    assert_eq!((&*caller.issuer, &*caller.subject), (ISSUER, "alice"));
    assert!(caller.scopes.contains("files:read"));
    let request = world.network.last();
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
async fn a_token_that_is_not_active_or_not_for_us_is_refused() {
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
        (json!({ "exp": null }), "no expiry time"),
        (json!({ "sub": null, "client_id": null }), "no subject"),
        (json!({ "cnf": { "jkt": "abc" } }), "DPoP"),
    ] {
        let world = World::new();
        answer(&world, changes.clone());

        let refusal = bearer(&server(&world), "opaque")
            .await
            .expect_err("refused");

        let challenge = challenge(&refusal);
        let heard = challenge.parameter("error_description").unwrap();
        assert!(heard.contains(reason), "{heard}: {changes}");
        assert_eq!(refusal.status, 401);
    }
}

#[tokio::test]
async fn an_answer_counts_for_a_minute_and_never_longer_than_the_token() {
    let world = World::new();
    let server = server(&world);
    answer(&world, json!({}));
    for _ in 0..10 {
        assert_eq!(status(&server, "opaque").await, 200);
    }
    assert_eq!(world.network.asked(ENDPOINT), 1);
    answer(&world, json!({ "active": false }));

    world.advance(59);
    assert_eq!(status(&server, "opaque").await, 200);
    world.advance(1);
    assert_eq!(status(&server, "opaque").await, 401, "it was revoked");

    answer(&world, json!({ "exp": world.now() + 5 }));
    assert_eq!(status(&server, "short").await, 200);
    answer(&world, json!({ "active": false }));
    world.advance(5);
    assert_eq!(status(&server, "short").await, 401);
}

#[tokio::test]
async fn a_no_counts_for_a_short_while() {
    let world = World::new();
    let server = server(&world);
    answer(&world, json!({ "active": false }));
    for _ in 0..10 {
        assert_eq!(status(&server, "opaque").await, 401);
    }
    assert_eq!(world.network.asked(ENDPOINT), 1);

    answer(&world, json!({}));
    world.advance(10);
    assert_eq!(status(&server, "opaque").await, 200);
}

#[tokio::test]
async fn nobody_is_let_in_while_the_issuer_does_not_answer() {
    let world = World::new();
    let server = server(&world);

    assert_eq!(status(&server, "opaque").await, 503);
    for (code, body) in [
        (401, "{}"),
        (500, ""),
        (200, "<html>"),
        (200, "[]"),
        (302, r#"{"active":true}"#),
    ] {
        world.network.answer_bytes(ENDPOINT, code, body.into());
        assert_eq!(status(&server, "opaque").await, 503, "{code} {body}");
    }
    answer(&world, json!({}));
    assert_eq!(
        status(&server, "opaque").await,
        200,
        "and it is asked again at once"
    );
}

#[tokio::test]
async fn the_issuer_is_shown_no_token_of_another() {
    let world = World::new();
    let server = server(&world);
    answer(&world, json!({}));

    assert_eq!(
        status(
            &server,
            &world.token(json!({ "iss": "https://bank.example" }))
        )
        .await,
        401
    );
    assert_eq!(world.network.asked(ENDPOINT), 0);
    assert_eq!(
        status(&server, &world.token(json!({}))).await,
        200,
        "its own it may see"
    );
    assert_eq!(world.network.asked(ENDPOINT), 1);
}

#[tokio::test]
async fn a_second_issuer_is_asked_about_what_the_first_does_not_know() {
    let world = World::new();
    let second = "https://second.example/introspect";
    let issuer =
        TrustedIssuer::introspection("https://second.example", second, "a", &Secret::new("b"));
    let server = server(&world).issuer(issuer);
    let claims = json!({ "active": true, "aud": RESOURCE, "sub": "bob", "exp": world.now() + 60 });
    world.network.answer(second, 200, &claims);

    answer(&world, json!({ "active": false }));
    assert_eq!(
        bearer(&server, "one").await.unwrap().issuer,
        "https://second.example"
    );

    world.network.vanish(ENDPOINT);
    world
        .network
        .answer(second, 200, &json!({ "active": false }));
    assert_eq!(status(&server, "two").await, 503, "the first might know it");
}
