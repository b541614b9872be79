//! Tokens that the issuer did not sign, or not as access tokens.

use ring::hmac;
use serde_json::{Value, json};
use turnbuckle_spec_coverage::req;

use super::{
    attacks::all_fail,
    fixture::{JWKS, METADATA, World, bearer},
};
use crate::{
    jwt::{Jwks, SignatureAlgorithm, SigningKey, decode, encode},
    server::TrustedIssuer,
};

#[tokio::test]
async fn a_trusted_issuer_cannot_speak_for_another() {
    let (world, other) = (World::new(), SigningKey::generate().unwrap());
    let mut jwk = other.public_jwk();
    jwk.insert("kid".into(), "one".into());
    let keys = json!({ "keys": [jwk] }).to_string();
    let second =
        TrustedIssuer::jwt("https://second.example").jwks(Jwks::parse(keys.as_bytes()).unwrap());
    let server = world.server().issuer(second);
    let forged = world.by(&other, json!({}), json!({}));

    all_fail(&server, "not signed by its issuer", vec![forged]).await;

    let own = world.by(
        &other,
        json!({}),
        json!({ "iss": "https://second.example" }),
    );
    assert_eq!(
        bearer(&server, &own).await.unwrap().issuer,
        "https://second.example"
    );
}

#[tokio::test]
async fn what_is_not_signed_or_signed_by_a_secret_that_everybody_knows_is_refused() {
    req!("auth.token.validate");
    let world = World::new();
    let server = world.server();
    let claims = encode(Value::from(world.claims()).to_string());
    let unsigned = |alg: &str, signature: &str| {
        let header = encode(json!({ "alg": alg, "kid": "one" }).to_string());
        format!("{header}.{claims}.{signature}")
    };
    let good = world.token(json!({}));
    let signature = good.rsplit('.').next().unwrap();
    let mut tokens: Vec<_> = [
        "none", "None", "NONE", "nOnE", "", "RS256 ", "rs256", "HS256",
    ]
    .iter()
    .flat_map(|alg| {
        [
            unsigned(alg, ""),
            unsigned(alg, "AA"),
            unsigned(alg, signature),
        ]
    })
    .collect();
    // The public key as the secret of HS256, in the forms in which people have it.
    let jwk = world.key.public_jwk();
    for secret in [
        decode(jwk["n"].as_str().unwrap()).unwrap(),
        Value::from(jwk).to_string().into_bytes(),
        b"one".to_vec(),
        Vec::new(),
    ] {
        for alg in ["HS256", "HS384", "HS512"] {
            let signed = unsigned(alg, "").trim_end_matches('.').to_owned();
            let key = hmac::Key::new(hmac::HMAC_SHA256, &secret);
            tokens.push(format!(
                "{signed}.{}",
                encode(hmac::sign(&key, signed.as_bytes()))
            ));
        }
    }
    all_fail(&server, "", tokens).await;

    let tokens = [
        "RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA",
    ]
    .map(|alg| {
        [
            unsigned(alg, ""),
            unsigned(alg, &encode([0; 64])),
            unsigned(alg, &encode([0; 256])),
        ]
    });
    all_fail(
        &server,
        "not signed by its issuer",
        tokens.into_iter().flatten().collect(),
    )
    .await;
    bearer(&server, &good).await.unwrap();
}

#[tokio::test]
async fn a_signature_of_zeros_is_none() {
    let world = World::new();
    let key = SigningKey::generate().unwrap();
    world.publish(&[("one", &key)]);
    let server = world.server();
    let good = world.by(&key, json!({}), json!({}));
    let (signed, _) = good.rsplit_once('.').unwrap();

    let forged = [encode([0; 64]), encode([255; 64]), encode([0; 0])]
        .map(|signature| format!("{signed}.{signature}"));

    all_fail(&server, "not signed by its issuer", forged.into()).await;
    bearer(&server, &good).await.unwrap();
}

#[tokio::test]
async fn a_token_that_was_changed_anywhere_is_refused() {
    let world = World::new();
    let server = world.server();
    let good = world.token(json!({}));
    let other = world.token(json!({ "sub": "bob", "scope": "admin" }));
    let part = |token: &str, at: usize| token.split('.').nth(at).unwrap().to_owned();
    let mut tokens = vec![
        format!("{}.{}.{}", part(&good, 0), part(&other, 1), part(&good, 2)),
        format!("{}.{}.{}", part(&good, 0), part(&good, 1), part(&other, 2)),
        format!("{good}.{good}"),
        format!("{good}.x"),
        format!("{good}="),
        good[..good.len() - 1].to_owned(),
        good.to_ascii_lowercase(),
        good.rsplit_once('.').unwrap().0.to_owned(),
    ];
    // Every letter, once.
    tokens.extend((0..good.len()).map(|at| {
        let letter = if &good[at..=at] == "A" { "B" } else { "A" };
        format!("{}{letter}{}", &good[..at], &good[at + 1..])
    }));

    all_fail(&server, "", tokens).await;
    bearer(&server, &good).await.unwrap();
}

#[tokio::test]
async fn a_header_cannot_bring_its_own_key() {
    let (world, own) = (World::new(), SigningKey::generate().unwrap());
    let mut jwk = own.public_jwk();
    jwk.insert("kid".into(), "one".into());
    let url = "https://evil.example/keys";
    world.network.answer(url, 200, &json!({ "keys": [jwk] }));
    let headers = [
        json!({ "jwk": jwk }),
        json!({ "jku": url }),
        json!({ "x5u": url }),
        json!({ "x5c": ["MIIB"] }),
        json!({ "kid": url }),
        json!({ "kid": "../../../../dev/null" }),
        json!({ "kid": "' UNION SELECT 'key" }),
        json!({ "kid": "" }),
        json!({ "kid": null }),
        json!({}),
    ];

    let tokens = headers.map(|header| world.by(&own, header, json!({})));
    all_fail(&world.server(), "not signed by its issuer", tokens.into()).await;

    assert_eq!(world.network.asked(url), 0);
    assert!(world.network.asked(JWKS) <= 1 && world.network.asked(METADATA) <= 1);
}

#[tokio::test]
async fn a_signed_text_of_another_kind_is_no_access_token() {
    let world = World::new();
    let server = world.server();
    let kinds = [
        "dpop+jwt",
        "logout+jwt",
        "oauth-id-jag+jwt",
        "secevent+jwt",
        "client-authentication+jwt",
        "at",
        "",
    ];

    let tokens = kinds.map(|typ| world.token_with(json!({ "typ": typ }), json!({})));
    all_fail(&server, "not an access token", tokens.into()).await;
    let odd = [
        json!({ "crit": ["b64"], "b64": false }),
        json!({ "crit": [] }),
    ];
    let tokens = odd.map(|header| world.token_with(header, json!({})));
    all_fail(&server, "extension", tokens.into()).await;

    for typ in [
        json!(null),
        json!("JWT"),
        json!("AT+JWT"),
        json!("application/at+jwt"),
    ] {
        let token = world.token_with(json!({ "typ": typ }), json!({}));
        bearer(&server, &token).await.unwrap();
    }
}

#[tokio::test]
async fn algorithms_that_were_not_chosen_are_refused() {
    let world = World::new();
    let server = world.server().algorithms([SignatureAlgorithm::Es256]);

    all_fail(&server, "not accepted", vec![world.token(json!({}))]).await;
}
