//! Keys that come, go, and cannot be had.

use std::sync::Arc;

use serde_json::json;
use turnbuckle_protocol::authenticator::{AuthRequest, Authenticator as _};

use super::fixture::{ISSUER, JWKS, METADATA, World, bearer};
use crate::{
    jwt::{Jwks, SigningKey},
    server::TrustedIssuer,
};

async fn status(server: &crate::server::ResourceServer, token: &str) -> u16 {
    match bearer(server, token).await {
        Ok(_) => 200,
        Err(refusal) => refusal.status,
    }
}

#[tokio::test]
async fn a_flood_of_unknown_keys_does_not_reach_the_issuer() {
    let world = World::new();
    let server = Arc::new(world.server());
    let flood: Vec<_> = (0..200)
        .map(|at| world.token_with(json!({ "kid": format!("kid-{at}") }), json!({})))
        .map(|token| {
            let server = Arc::clone(&server);
            tokio::spawn(async move { status(&server, &token).await })
        })
        .collect();
    for one in flood {
        assert_eq!(one.await.unwrap(), 401);
    }

    assert_eq!(
        (world.network.asked(JWKS), world.network.asked(METADATA)),
        (1, 1)
    );
    world.advance(29);
    status(&server, &world.token_with(json!({ "kid": "x" }), json!({}))).await;
    assert_eq!(world.network.asked(JWKS), 1);
    world.advance(1);
    status(&server, &world.token_with(json!({ "kid": "y" }), json!({}))).await;
    assert_eq!(world.network.asked(JWKS), 2);
    assert_eq!(
        status(&server, &world.token(json!({}))).await,
        200,
        "meanwhile others come and go"
    );
}

#[tokio::test]
async fn a_new_key_is_found_when_it_is_first_used() {
    let (world, new) = (World::new(), SigningKey::generate().unwrap());
    let server = world.server();
    assert_eq!(status(&server, &world.token(json!({}))).await, 200);
    world.publish(&[("one", &world.key), ("two", &new)]);
    world.advance(30);

    let token = world.by(&new, json!({ "kid": "two" }), json!({}));

    assert_eq!(status(&server, &token).await, 200);
    assert_eq!(world.network.asked(JWKS), 2);
}

#[tokio::test]
async fn a_key_that_is_taken_back_counts_only_a_few_minutes_longer() {
    let (world, new) = (World::new(), SigningKey::generate().unwrap());
    let server = world.server();
    let token = world.token(json!({ "exp": world.now() + 86_400 }));
    assert_eq!(status(&server, &token).await, 200);
    world.publish(&[("two", &new)]);

    assert_eq!(status(&server, &token).await, 200, "remembered");
    assert_eq!(world.network.asked(JWKS), 1, "at no cost");
    world.advance(15 * 60);
    assert_eq!(status(&server, &token).await, 401);
}

#[tokio::test]
async fn old_keys_are_used_while_the_issuer_cannot_be_reached_but_not_forever() {
    let world = World::new();
    let server = world.server();
    let token = || world.token(json!({ "jti": world.now() }));
    assert_eq!(status(&server, &token()).await, 200);
    world.network.vanish(JWKS);

    for hours in [1, 10, 12] {
        world.advance(hours * 3600);
        assert_eq!(status(&server, &token()).await, 200);
    }
    world.advance(2 * 3600);
    assert_eq!(status(&server, &token()).await, 503);
}

#[tokio::test]
async fn nobody_is_let_in_while_there_are_no_keys() {
    let world = World::new();
    let (server, token) = (world.server(), world.token(json!({})));
    world.network.vanish(METADATA);

    let refusal = bearer(&server, &token).await.unwrap_err();
    assert_eq!(refusal.status, 503);
    assert!(
        refusal.challenges.is_empty(),
        "another token would not help"
    );
    let asked = world.network.total();
    assert_eq!(status(&server, &token).await, 503);
    assert_eq!(
        world.network.total(),
        asked,
        "the issuer is left in peace for a while"
    );

    world.publish_metadata();
    world.advance(5);
    assert_eq!(status(&server, &token).await, 200);
}

#[tokio::test]
async fn metadata_and_keys_that_are_not_as_they_should_be_are_not_used() {
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
        let world = World::new();
        world.network.answer(url, 200, &body);
        let status = status(&world.server(), &world.token(json!({}))).await;
        assert_eq!(status, 503, "{url}");
    }
    let world = World::new();
    world
        .network
        .answer(JWKS, 500, &json!({ "keys": [world.key.public_jwk()] }));
    assert_eq!(status(&world.server(), &world.token(json!({}))).await, 503);
}

#[tokio::test]
async fn metadata_is_found_in_the_form_of_openid_too() {
    let world = World::new();
    world.network.vanish(METADATA);
    let metadata = json!({ "issuer": ISSUER, "jwks_uri": JWKS });
    let url = "https://auth.example/.well-known/openid-configuration";
    world.network.answer(url, 200, &metadata);

    assert_eq!(status(&world.server(), &world.token(json!({}))).await, 200);
}

#[tokio::test]
async fn keys_can_be_at_a_given_place_or_be_given() {
    let world = World::new();
    let key = world.key.public_jwk();
    let given = Jwks::parse(json!({ "keys": [key] }).to_string().as_bytes()).unwrap();
    world.network.vanish(METADATA);

    let at = world
        .empty_server()
        .issuer(TrustedIssuer::jwt(ISSUER).jwks_uri(JWKS));
    let with = world
        .empty_server()
        .issuer(TrustedIssuer::jwt(ISSUER).jwks(given));

    assert_eq!(status(&at, &world.token(json!({}))).await, 200);
    assert_eq!(world.network.total(), 1);
    assert_eq!(status(&with, &world.token(json!({}))).await, 200);
    assert_eq!(world.network.total(), 1);
}

#[tokio::test]
async fn many_who_come_at_once_wait_for_one_answer() {
    let world = World::new();
    let server = Arc::new(world.server());
    let callers: Vec<_> = (0..50)
        .map(|at| {
            let (server, token) = (Arc::clone(&server), world.token(json!({ "jti": at })));
            tokio::spawn(async move { status(&server, &token).await })
        })
        .collect();

    for caller in callers {
        assert_eq!(caller.await.unwrap(), 200);
    }
    assert_eq!(world.network.asked(JWKS), 1);
}

#[tokio::test]
async fn a_caller_who_goes_away_does_not_stop_what_others_wait_for() {
    let world = World::new();
    let server = world.server();
    let header = format!("Bearer {}", world.token(json!({})));
    {
        let headers = [&*header];
        let mut visit = server.authenticate(AuthRequest::new("POST", "/mcp", &headers, &[]));
        let once =
            std::future::poll_fn(|context| std::task::Poll::Ready(visit.as_mut().poll(context)));
        assert!(once.await.is_pending());
    }

    assert_eq!(status(&server, &world.token(json!({}))).await, 200);
    assert_eq!(world.network.asked(JWKS), 1);
}
