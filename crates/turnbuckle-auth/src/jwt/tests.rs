use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::Secret;

const RSA: &str = include_str!("keys_for_tests/rsa2048.pem");
const SHORT_RSA: &str = include_str!("keys_for_tests/rsa1024.pem");
const P256: &str = include_str!("keys_for_tests/p256.pem");
const P384: &str = include_str!("keys_for_tests/p384.pem");
const ED25519: &str = include_str!("keys_for_tests/ed25519.pem");

pub(super) fn signing_key(algorithm: SignatureAlgorithm) -> SigningKey {
    let pem = match algorithm {
        SignatureAlgorithm::Es256 => P256,
        SignatureAlgorithm::Es384 => P384,
        SignatureAlgorithm::EdDsa => ED25519,
        _ => RSA,
    };
    SigningKey::from_pem(pem, algorithm).unwrap()
}

fn public(jwk: &Value) -> Result<Jwk, InvalidJwk> {
    Jwk::parse(jwk.as_object().unwrap())
}

fn claims(token: &str, key: &Jwk) -> Option<Map<String, Value>> {
    UnverifiedJwt::parse(token).unwrap().verify([key])
}

#[test]
fn a_signature_is_verified_by_its_public_key_only() {
    let all = SignatureAlgorithm::ALL.map(|algorithm| {
        let key = signing_key(algorithm);
        let token = key.sign(Map::new(), &json!({ "by": algorithm.as_str() }));
        let mut jwk = key.public_jwk();
        jwk.insert("alg".into(), algorithm.as_str().into());
        (algorithm, Jwk::parse(&jwk).unwrap(), token.unwrap())
    });

    for (signed_by, _, token) in &all {
        for (algorithm, jwk, _) in &all {
            let claims = claims(token, jwk);
            assert_eq!(
                claims.is_some(),
                signed_by == algorithm,
                "{signed_by} {algorithm}"
            );
        }
    }
}

#[test]
fn the_signatures_of_the_rfc_examples_are_verified() {
    // The examples of RFC 7515, appendix A.3, and of RFC 8037, appendix A.4.
    let ecdsa = json!({
        "kty": "EC", "crv": "P-256",
        "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
    });
    let token = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
    assert_eq!(
        claims(token, &public(&ecdsa).unwrap()).unwrap()["iss"],
        "joe"
    );

    let ed25519 = json!({
        "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
    });
    let signature = decode(
        "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg",
    );
    let message = b"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
    let key = public(&ed25519).unwrap();
    assert!(key.verify(SignatureAlgorithm::EdDsa, message, &signature.unwrap()));
}

#[test]
fn a_signing_key_survives_serialization() {
    for algorithm in SignatureAlgorithm::ALL {
        let key = signing_key(algorithm);

        let again = SigningKey::from_secret(&key.to_secret()).unwrap();

        assert_eq!(again.algorithm(), algorithm);
        assert_eq!(again.thumbprint(), key.thumbprint());
        let private = key.to_secret();
        assert!(
            !format!("{key:?}").contains(private.expose()),
            "never printed"
        );
    }
}

#[test]
fn invalid_and_weak_signing_keys_are_rejected() {
    let error = |pem: &str, algorithm| SigningKey::from_pem(pem, algorithm).unwrap_err();

    for pem in [
        "",
        "-----BEGIN PRIVATE KEY-----",
        &P256.replace("PRIVATE", "EC PRIVATE"),
        &P256.replace('M', "*"),
    ] {
        assert_eq!(
            error(pem, SignatureAlgorithm::Es256),
            InvalidSigningKey::Pem
        );
    }
    for (pem, algorithm) in [
        (RSA, SignatureAlgorithm::Es256),
        (P256, SignatureAlgorithm::Es384),
        (P384, SignatureAlgorithm::EdDsa),
        (ED25519, SignatureAlgorithm::Rs256),
        (SHORT_RSA, SignatureAlgorithm::Rs256),
    ] {
        assert!(matches!(
            error(pem, algorithm),
            InvalidSigningKey::Rejected { .. }
        ));
    }
    for stored in ["", "ES256", "ES256 !", "none AAAA", "HS256 AAAA"] {
        assert_eq!(
            SigningKey::from_secret(&Secret::new(stored)).unwrap_err(),
            InvalidSigningKey::Secret
        );
    }
}

#[test]
fn weak_private_broken_and_misused_jwks_are_rejected() {
    let good = Value::from(signing_key(SignatureAlgorithm::Es256).public_jwk());
    let rsa = Value::from(signing_key(SignatureAlgorithm::Rs256).public_jwk());
    let with = |jwk: &Value, name: &str, value: Value| {
        let mut jwk = jwk.clone();
        jwk[name] = value;
        public(&jwk).map(|_| ()).unwrap_err()
    };

    assert!(public(&good).is_ok() && public(&rsa).is_ok());
    for (error, why) in [
        (with(&good, "use", json!("enc")), InvalidJwk::Purpose),
        (with(&good, "key_ops", json!(["sign"])), InvalidJwk::Purpose),
        (with(&good, "alg", json!("RS256")), InvalidJwk::Purpose),
        (with(&rsa, "alg", json!("RSA-OAEP")), InvalidJwk::Purpose),
        (with(&rsa, "alg", json!("HS256")), InvalidJwk::Purpose),
        (with(&rsa, "alg", json!(null)), InvalidJwk::Purpose),
        (with(&good, "d", json!("AAAA")), InvalidJwk::Private),
        (with(&good, "k", json!("AAAA")), InvalidJwk::Private),
        (
            with(&good, "crv", json!("secp256k1")),
            InvalidJwk::UnsupportedKeyType,
        ),
        (with(&good, "crv", json!("P-384")), InvalidJwk::Incomplete),
        (
            with(&good, "kty", json!("oct")),
            InvalidJwk::UnsupportedKeyType,
        ),
        (with(&good, "x", json!("AAAA")), InvalidJwk::Incomplete),
        (with(&good, "x", json!(1)), InvalidJwk::Incomplete),
        (
            with(&rsa, "n", json!(encode([255; 128]))),
            InvalidJwk::Length,
        ),
        (
            with(&rsa, "n", json!(encode([255; 2000]))),
            InvalidJwk::Length,
        ),
        (with(&rsa, "n", json!("")), InvalidJwk::Length),
        (with(&rsa, "e", json!("AA")), InvalidJwk::Length),
    ] {
        assert_eq!(error, why);
    }
}

#[test]
fn a_jwk_set_skips_unusable_keys_and_is_bounded() {
    let mut good = signing_key(SignatureAlgorithm::Es256).public_jwk();
    good.insert("kid".into(), "one".into());
    let set = json!({ "keys": [{ "kty": "oct", "k": "AAAA" }, {}, good] });

    let set = Jwks::parse(set.to_string().as_bytes()).unwrap();

    assert_eq!(set.iter().count(), 1);
    let found = |id, algorithm| set.candidates(id, algorithm).count();
    assert_eq!(found(Some("one"), SignatureAlgorithm::Es256), 1);
    assert_eq!(found(None, SignatureAlgorithm::Es256), 1);
    assert_eq!(found(Some("two"), SignatureAlgorithm::Es256), 0);
    assert_eq!(found(Some("one"), SignatureAlgorithm::Rs256), 0);

    let many = json!({ "keys": vec![json!({}); Jwks::MAX_KEYS + 1] }).to_string();
    let long = format!("{{\"keys\":[]{}}}", " ".repeat(Jwks::MAX_BYTES));
    for set in [many, long] {
        assert_eq!(
            Jwks::parse(set.as_bytes()).unwrap_err(),
            InvalidJwks::TooLarge
        );
    }
    for set in ["", "[]", "{}", r#"{"keys":1}"#, r#"{"keys":[1]}"#] {
        assert!(
            matches!(
                Jwks::parse(set.as_bytes()),
                Err(InvalidJwks::InvalidJson(_))
            ),
            "{set}"
        );
    }
}

#[test]
fn malformed_and_unsigned_jwts_are_rejected() {
    let part = |json: Value| encode(json.to_string());
    let token = |header: Value| format!("{}.{}.AAAA", part(header), part(json!({})));

    for text in [
        "",
        ".",
        "..",
        "...",
        "a.b",
        "a.b.c",
        "e30.e30.",
        "e30.e30.A",
        "e30.e30.AAAA",
        "W10.e30.AAAA",
        "e30=.e30.AAAA",
    ] {
        assert_eq!(
            UnverifiedJwt::parse(text).unwrap_err(),
            InvalidJwt::Malformed,
            "{text:?}"
        );
    }
    for name in ["none", "HS256"] {
        let error = UnverifiedJwt::parse(&token(json!({ "alg": name })))
            .map(|_| ())
            .unwrap_err();
        assert_eq!(error, InvalidJwt::Algorithm(UnknownAlgorithm(name.into())));
    }
    let critical = token(json!({ "alg": "ES256", "crit": ["exp"] }));
    assert_eq!(
        UnverifiedJwt::parse(&critical).unwrap_err(),
        InvalidJwt::CriticalHeader
    );
    let long = "a".repeat(UnverifiedJwt::MAX_BYTES + 1);
    assert_eq!(
        UnverifiedJwt::parse(&long).unwrap_err(),
        InvalidJwt::TooLong
    );
}

proptest! {
    #[test]
    fn any_text_is_parsed_without_panic(text in "\\PC{0,200}", parts in prop::collection::vec("[ -~]{0,60}", 0..6)) {
        let encoded: Vec<_> = parts.iter().map(encode).collect();
        for text in [text, parts.join("."), encoded.join(".")] {
            let _ = UnverifiedJwt::parse(&text);
            let _ = Jwks::parse(text.as_bytes());
            let _ = SigningKey::from_secret(&Secret::new(text));
        }
    }

    #[test]
    fn base64url_has_one_encoding_per_value(bytes: Vec<u8>, text in "[A-Za-z0-9_-]{0,40}") {
        prop_assert_eq!(decode(&encode(&bytes)), Some(bytes));
        if let Some(bytes) = decode(&text) {
            prop_assert_eq!(encode(bytes), text);
        }
    }
}

#[test]
fn algorithm_names_are_parsed_to_themselves() {
    for algorithm in SignatureAlgorithm::ALL {
        assert_eq!(algorithm.to_string().parse(), Ok(algorithm));
    }
}

#[test]
fn none_and_hmac_are_not_algorithms() {
    for name in [
        "none", "None", "NONE", "", "HS256", "HS384", "HS512", "rs256", "RS256 ", "A128KW",
    ] {
        assert_eq!(
            name.parse::<SignatureAlgorithm>(),
            Err(UnknownAlgorithm(name.into()))
        );
    }
}
