//! Every way of getting in without a token for this server, tried; and what is heard instead.

use serde_json::{Value, json};
use turnbuckle_protocol::authenticator::{AuthRequest, Authenticator as _};
use turnbuckle_spec_coverage::req;

use super::fixture::{ISSUER, RESOURCE, World, bearer, challenge, send};
use crate::{
    jwt::{UnverifiedJwt, encode},
    server::ResourceServer,
};

/// Tries each token, and expects 401 `invalid_token` for this reason.
pub(super) async fn all_fail(server: &ResourceServer, reason: &str, tokens: Vec<String>) {
    for token in tokens {
        let shown = &token[..token.len().min(400)];
        let refusal = bearer(server, &token).await.expect_err(shown);

        let challenge = challenge(&refusal);
        let heard = challenge.parameter("error_description").unwrap_or_default();
        assert_eq!(refusal.status, 401, "{shown}");
        assert_eq!(
            challenge.parameter("error"),
            Some("invalid_token"),
            "{shown}"
        );
        assert!(
            heard.contains(reason),
            "{heard:?} is not {reason:?}: {shown}"
        );
        assert!(
            challenge.parameter("resource_metadata").is_some(),
            "{shown}"
        );
    }
}

#[tokio::test]
async fn a_token_for_somebody_else_is_of_no_use_here() {
    req!(
        "auth.token.audience",
        "auth.token.own-resources",
        "auth.401.invalid-token",
        "auth.token.error"
    );
    let world = World::new();
    let server = world.server().audience("api://mcp");
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

    let tokens = elsewhere.map(|aud| world.token(json!({ "aud": aud })));
    all_fail(&server, "another audience", tokens.into()).await;

    for aud in [
        json!(["x", RESOURCE]),
        json!("HTTPS://API.example:443/mcp/"),
        json!("api://mcp"),
    ] {
        req!("auth.resource.case");
        bearer(&server, &world.token(json!({ "aud": aud })))
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_token_of_an_issuer_that_is_not_trusted_is_refused_and_nobody_is_asked() {
    req!("auth.token.no-transit");
    let world = World::new();
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

    let tokens = issuers.map(|iss| world.token(json!({ "iss": iss })));
    all_fail(&world.server(), "another issuer", tokens.into()).await;

    assert_eq!(world.network.total(), 0);
}

#[tokio::test]
async fn a_token_that_is_over_or_not_yet_valid_is_refused() {
    req!(
        "auth.401.invalid-token",
        "auth.token.expiry",
        "auth.token.validate"
    );
    let world = World::new();
    let server = world.server();
    let now = world.now();
    let with = |name: &str, values: &[Value]| {
        values
            .iter()
            .map(|value| world.token(json!({ name: value })))
            .collect()
    };

    let over = [json!(now - 60), json!(now - 61), json!(0), json!(1.5)];
    all_fail(&server, "has expired", with("exp", &over)).await;
    let endless = [
        json!(null),
        json!("never"),
        json!((now + 600).to_string()),
        json!(-1),
        json!([now + 600]),
    ];
    all_fail(&server, "no expiry time", with("exp", &endless)).await;
    let early = [
        json!(now + 61),
        json!(u64::MAX),
        json!("now"),
        json!(-5),
        json!(1e300),
    ];
    all_fail(&server, "not valid yet", with("nbf", &early)).await;

    for changes in [
        json!({ "exp": now - 59 }),
        json!({ "nbf": now + 60 }),
        json!({ "exp": u64::MAX }),
        json!({ "exp": 1e300 }),
    ] {
        bearer(&server, &world.token(changes)).await.unwrap();
    }
}

#[tokio::test]
async fn a_token_that_was_let_in_is_let_in_no_longer_than_it_lives() {
    req!("auth.token.expiry");
    let world = World::new();
    let server = world.server().leeway(std::time::Duration::ZERO);
    let token = world.token(json!({ "exp": world.now() + 100 }));

    bearer(&server, &token).await.unwrap();
    world.advance(99);
    bearer(&server, &token).await.unwrap();
    world.advance(1);
    all_fail(&server, "has expired", vec![token]).await;
}

#[tokio::test]
async fn a_token_that_says_neither_whose_nor_how_bound_it_is_is_refused() {
    let world = World::new();
    let server = world.server();

    let nobody = json!({ "sub": null, "client_id": null });
    let empty = json!({ "sub": "" });
    let number = json!({ "sub": 1, "client_id": 2 });
    let tokens = [nobody, empty, number].map(|changes| world.token(changes));
    all_fail(&server, "no subject", tokens.into()).await;

    let bindings = [
        json!({ "x5t#S256": "abc" }),
        json!({}),
        json!("x"),
        json!({ "jkt": 1 }),
        json!({ "jkt": "a", "x5t#S256": "b" }),
    ];
    let tokens = bindings.map(|cnf| world.token(json!({ "cnf": cnf })));
    all_fail(
        &server,
        "binding of the token is not supported",
        tokens.into(),
    )
    .await;
}

#[tokio::test]
async fn what_is_too_long_too_deep_or_no_token_at_all_is_refused() {
    let world = World::new();
    let server = world.server();
    let deep = encode("[".repeat(5_000));
    let long = world.token(json!({ "x": "a".repeat(UnverifiedJwt::MAX_BYTES) }));

    all_fail(&server, "too long", vec![long, "a".repeat(1 << 20)]).await;
    let texts = ["a", "a.b.c", "..", "a.b.c.d.e", "e30.e30.e30", "-._~+/="].map(str::to_owned);
    all_fail(&server, "not a signed JWT", texts.into()).await;
    all_fail(
        &server,
        "not a signed JWT",
        vec![format!("{deep}.{deep}.AA")],
    )
    .await;
    assert_eq!(world.network.total(), 0);
}

#[tokio::test]
async fn what_can_be_read_in_two_ways_is_malformed() {
    req!("auth.status-codes");
    let world = World::new();
    let server = world.server();
    let good = format!("Bearer {}", world.token(json!({})));
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
        let refusal = send(&server, headers).await.expect_err("it is malformed");

        assert_eq!(refusal.status, 400, "{headers:?}");
        assert_eq!(
            challenge(&refusal).parameter("error"),
            Some("invalid_request")
        );
    }
    send(&server, &[&good]).await.unwrap();
}

#[tokio::test]
async fn a_token_anywhere_else_than_in_its_header_is_not_looked_at() {
    let world = World::new();
    let server = world.server();
    let token = world.token(json!({}));
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

    for refusal in [in_url, in_proof, basic_auth_header] {
        assert_eq!(
            (refusal.status, challenge(&refusal).parameter("error")),
            (401, None)
        );
    }
}

#[tokio::test]
async fn a_refusal_repeats_nothing_of_the_token() {
    let world = World::new();
    let server = world.server();
    for token in [
        world.token(json!({ "aud": "x" })),
        "opaque-and-secret".to_owned(),
    ] {
        let refusal = bearer(&server, &token).await.unwrap_err();

        let heard = format!("{refusal:?}");
        for part in token.split('.') {
            assert!(!heard.contains(part), "{heard}");
        }
        assert!(!format!("{server:?}").contains(&token));
    }
}
