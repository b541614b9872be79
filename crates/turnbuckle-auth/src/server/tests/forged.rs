//! Tokens that the issuer did not sign, or not as access tokens.

use ring::hmac;
use serde_json::{Value, json};
use turnbuckle_spec_coverage::req;

use super::{
    attacks::assert_all_rejected,
    fixture::{AuthFixture, JWKS, METADATA, bearer},
};
use crate::{
    jwt::{Jwks, SignatureAlgorithm, SigningKey, decode, encode},
    server::TrustedIssuer,
};

#[tokio::test]
async fn a_trusted_issuer_cannot_issue_tokens_of_another() {
    let (fixture, other) = (AuthFixture::new(), SigningKey::generate().unwrap());
    let mut jwk = other.public_jwk();
    jwk.insert("kid".into(), "one".into());
    let keys = json!({ "keys": [jwk] }).to_string();
    let second =
        TrustedIssuer::jwt("https://second.example").jwks(Jwks::parse(keys.as_bytes()).unwrap());
    let server = fixture.server().issuer(second);
    let forged = fixture.sign_token(&other, json!({}), json!({}));

    assert_all_rejected(&server, "not signed by its issuer", vec![forged]).await;

    let own = fixture.sign_token(
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
async fn unsigned_tokens_and_hmac_with_the_public_key_are_rejected() {
    req!("auth.token.validate");
    let fixture = AuthFixture::new();
    let server = fixture.server();
    let claims = encode(Value::from(fixture.claims()).to_string());
    let unsigned = |alg: &str, signature: &str| {
        let header = encode(json!({ "alg": alg, "kid": "one" }).to_string());
        format!("{header}.{claims}.{signature}")
    };
    let good = fixture.token(json!({}));
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
    // The public key as the secret of HS256, in its common encodings.
    let jwk = fixture.key.public_jwk();
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
    assert_all_rejected(&server, "", tokens).await;

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
    assert_all_rejected(
        &server,
        "not signed by its issuer",
        tokens.into_iter().flatten().collect(),
    )
    .await;
    bearer(&server, &good).await.unwrap();
}

#[tokio::test]
async fn a_signature_of_zeros_is_rejected() {
    let fixture = AuthFixture::new();
    let key = SigningKey::generate().unwrap();
    fixture.publish(&[("one", &key)]);
    let server = fixture.server();
    let good = fixture.sign_token(&key, json!({}), json!({}));
    let (signed, _) = good.rsplit_once('.').unwrap();

    let forged = [encode([0; 64]), encode([255; 64]), encode([0; 0])]
        .map(|signature| format!("{signed}.{signature}"));

    assert_all_rejected(&server, "not signed by its issuer", forged.into()).await;
    bearer(&server, &good).await.unwrap();
}

#[tokio::test]
async fn a_token_changed_at_any_position_is_rejected() {
    let fixture = AuthFixture::new();
    let server = fixture.server();
    let good = fixture.token(json!({}));
    let other = fixture.token(json!({ "sub": "bob", "scope": "admin" }));
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
    // Each character, once.
    tokens.extend((0..good.len()).map(|at| {
        let character = if &good[at..=at] == "A" { "B" } else { "A" };
        format!("{}{character}{}", &good[..at], &good[at + 1..])
    }));

    assert_all_rejected(&server, "", tokens).await;
    bearer(&server, &good).await.unwrap();
}

#[tokio::test]
async fn a_key_in_the_token_header_is_ignored() {
    let (fixture, own) = (AuthFixture::new(), SigningKey::generate().unwrap());
    let mut jwk = own.public_jwk();
    jwk.insert("kid".into(), "one".into());
    let url = "https://evil.example/keys";
    fixture.network.respond(url, 200, &json!({ "keys": [jwk] }));
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

    let tokens = headers.map(|header| fixture.sign_token(&own, header, json!({})));
    assert_all_rejected(&fixture.server(), "not signed by its issuer", tokens.into()).await;

    assert_eq!(fixture.network.request_count(url), 0);
    assert!(
        fixture.network.request_count(JWKS) <= 1 && fixture.network.request_count(METADATA) <= 1
    );
}

#[tokio::test]
async fn a_jwt_of_another_type_is_rejected() {
    let fixture = AuthFixture::new();
    let server = fixture.server();
    let kinds = [
        "dpop+jwt",
        "logout+jwt",
        "oauth-id-jag+jwt",
        "secevent+jwt",
        "client-authentication+jwt",
        "at",
        "",
    ];

    let tokens = kinds.map(|typ| fixture.token_with(json!({ "typ": typ }), json!({})));
    assert_all_rejected(&server, "not an access token", tokens.into()).await;
    let unknown = [
        json!({ "crit": ["b64"], "b64": false }),
        json!({ "crit": [] }),
    ];
    let tokens = unknown.map(|header| fixture.token_with(header, json!({})));
    assert_all_rejected(&server, "extension", tokens.into()).await;

    for typ in [
        json!(null),
        json!("JWT"),
        json!("AT+JWT"),
        json!("application/at+jwt"),
    ] {
        let token = fixture.token_with(json!({ "typ": typ }), json!({}));
        bearer(&server, &token).await.unwrap();
    }
}

#[tokio::test]
async fn disabled_algorithms_are_rejected() {
    let fixture = AuthFixture::new();
    let server = fixture.server().algorithms([SignatureAlgorithm::Es256]);

    assert_all_rejected(&server, "not accepted", vec![fixture.token(json!({}))]).await;
}
