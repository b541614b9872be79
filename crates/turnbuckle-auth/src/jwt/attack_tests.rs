//! Forged and malformed tokens, in the manner of Wycheproof: each case is a token that must not be verified.

use ring::{
    hmac,
    rand::SystemRandom,
    signature::{self, EcdsaKeyPair},
};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::{
    InvalidJwt, Jwk, SignatureAlgorithm, SigningKey, UnverifiedJwt, decode, encode,
    tests::signing_key,
};

const ALGORITHMS: [SignatureAlgorithm; 4] = [
    SignatureAlgorithm::Rs256,
    SignatureAlgorithm::Es256,
    SignatureAlgorithm::Es384,
    SignatureAlgorithm::EdDsa,
];

/// The order of P-256, big-endian.
const P256_ORDER: [u8; 32] = [
    0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xbc, 0xe6, 0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
];

/// A forged or malformed token.
struct AttackCase {
    name: String,
    token: String,
}

fn case(name: impl Into<String>, token: impl Into<String>) -> AttackCase {
    AttackCase {
        name: name.into(),
        token: token.into(),
    }
}

fn public_key(key: &SigningKey) -> Jwk {
    Jwk::parse(&key.public_jwk()).unwrap()
}

fn valid_token(algorithm: SignatureAlgorithm) -> String {
    let claims = json!({ "sub": "alice", "exp": 4_000_000_000_u64 });
    signing_key(algorithm).sign(Map::new(), &claims).unwrap()
}

/// Splits a token into header, claims and signature.
fn parts(token: &str) -> [&str; 3] {
    let parts: Vec<_> = token.split('.').collect();
    parts.try_into().unwrap()
}

/// Returns the token with another signature.
fn with_signature(token: &str, signature: &[u8]) -> String {
    let [header, claims, _] = parts(token);
    format!("{header}.{claims}.{}", encode(signature))
}

/// Signs the texts of a header and claims, which need not be valid JSON, with ES256.
fn sign_texts(header: &str, claims: &str) -> String {
    let message = format!("{}.{}", encode(header), encode(claims));
    let signature = sign_es256(message.as_bytes());
    format!("{message}.{}", encode(signature))
}

fn sign_es256(message: &[u8]) -> Vec<u8> {
    ecdsa_pair(&signature::ECDSA_P256_SHA256_FIXED_SIGNING)
        .sign(&SystemRandom::new(), message)
        .unwrap()
        .as_ref()
        .to_vec()
}

fn ecdsa_pair(scheme: &'static signature::EcdsaSigningAlgorithm) -> EcdsaKeyPair {
    let secret = signing_key(SignatureAlgorithm::Es256).to_secret();
    let (_, pkcs8) = secret.expose().split_once(' ').unwrap();
    let pkcs8 = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, pkcs8).unwrap();
    EcdsaKeyPair::from_pkcs8(scheme, &pkcs8, &SystemRandom::new()).unwrap()
}

/// Asserts that no key verifies the token of any case.
fn assert_rejected(cases: impl IntoIterator<Item = AttackCase>) {
    let keys = ALGORITHMS.map(|algorithm| public_key(&signing_key(algorithm)));
    for AttackCase { name, token } in cases {
        let claims = UnverifiedJwt::parse(&token)
            .ok()
            .and_then(|jwt| jwt.verify(&keys));
        assert_eq!(claims, None, "{name}: {token}");
    }
}

fn assert_verified(token: &str, algorithm: SignatureAlgorithm) {
    let key = public_key(&signing_key(algorithm));
    assert!(
        UnverifiedJwt::parse(token)
            .unwrap()
            .verify([&key])
            .is_some(),
        "{algorithm}: {token}"
    );
}

#[test]
fn valid_tokens_are_verified() {
    for algorithm in ALGORITHMS {
        assert_verified(&valid_token(algorithm), algorithm);
    }
    assert_verified(
        &sign_texts(r#"{"alg":"ES256"}"#, r#"{"sub":"alice"}"#),
        SignatureAlgorithm::Es256,
    );
}

#[test]
fn unsigned_tokens_are_rejected() {
    let token = valid_token(SignatureAlgorithm::Es256);
    let [_, claims, signature] = parts(&token);
    let algorithms = ["none", "None", "NONE", "nOnE", "", "null"];
    assert_rejected(algorithms.iter().flat_map(|alg| {
        let header = encode(json!({ "alg": alg }).to_string());
        [
            case(
                format!("alg {alg:?}, no signature"),
                format!("{header}.{claims}."),
            ),
            case(
                format!("alg {alg:?}, a signature"),
                format!("{header}.{claims}.{signature}"),
            ),
        ]
    }));
    let types = [
        json!({}),
        json!({ "alg": null }),
        json!({ "alg": 1 }),
        json!({ "alg": ["ES256"] }),
    ];
    assert_rejected(types.map(|header| {
        let encoded = encode(header.to_string());
        case(
            format!("header {header}"),
            format!("{encoded}.{claims}.{signature}"),
        )
    }));
}

#[test]
fn a_public_key_is_not_an_hmac_secret() {
    let jwk = signing_key(SignatureAlgorithm::Rs256).public_jwk();
    let secrets = [
        ("modulus", decode(jwk["n"].as_str().unwrap()).unwrap()),
        ("encoded modulus", jwk["n"].as_str().unwrap().into()),
        ("JWK", Value::from(jwk).to_string().into_bytes()),
        ("empty", Vec::new()),
    ];
    let algorithms = [
        ("HS256", hmac::HMAC_SHA256),
        ("HS384", hmac::HMAC_SHA384),
        ("HS512", hmac::HMAC_SHA512),
        // The name of an RSA algorithm on an HMAC.
        ("RS256", hmac::HMAC_SHA256),
    ];
    let claims = &encode(r#"{"sub":"alice"}"#);
    let algorithms = &algorithms;
    assert_rejected(secrets.iter().flat_map(|(name, secret)| {
        algorithms.iter().map(move |(alg, hash)| {
            let message = format!("{}.{claims}", encode(json!({ "alg": alg }).to_string()));
            let tag = hmac::sign(&hmac::Key::new(*hash, secret), message.as_bytes());
            case(
                format!("{alg} with the {name}"),
                format!("{message}.{}", encode(tag)),
            )
        })
    }));
}

#[test]
fn a_signature_is_bound_to_its_algorithm_and_curve() {
    for signed_with in ALGORITHMS {
        let token = valid_token(signed_with);
        let [_, claims, signature] = parts(&token);
        let others = SignatureAlgorithm::ALL
            .into_iter()
            .filter(|alg| *alg != signed_with);
        assert_rejected(others.map(|alg| {
            let header = encode(json!({ "alg": alg.as_str() }).to_string());
            case(
                format!("{signed_with} presented as {alg}"),
                format!("{header}.{claims}.{signature}"),
            )
        }));
    }
    // P-256 coordinates that claim to be on another curve.
    let jwk = signing_key(SignatureAlgorithm::Es256).public_jwk();
    for curve in ["P-384", "P-521", "secp256k1", "Ed25519", ""] {
        let mut jwk = jwk.clone();
        jwk.insert("crv".into(), curve.into());
        assert!(Jwk::parse(&jwk).is_err(), "{curve}");
    }
    // A point that is not on the curve verifies nothing.
    let mut off_curve = jwk;
    off_curve.insert("x".into(), encode([1; 32]).into());
    let token = valid_token(SignatureAlgorithm::Es256);
    let verified = Jwk::parse(&off_curve).is_ok_and(|key| {
        UnverifiedJwt::parse(&token)
            .unwrap()
            .verify([&key])
            .is_some()
    });
    assert!(!verified);
}

#[test]
fn a_modified_signature_is_rejected() {
    for algorithm in ALGORITHMS {
        let token = valid_token(algorithm);
        let signature = decode(parts(&token)[2]).unwrap();
        let flipped = (0..signature.len()).map(|at| {
            let mut changed = signature.clone();
            changed[at] ^= 1;
            (format!("bit 0 of byte {at} flipped"), changed)
        });
        let resized = [
            ("empty".to_owned(), Vec::new()),
            ("first byte only".to_owned(), signature[..1].to_vec()),
            (
                "last byte missing".to_owned(),
                signature[..signature.len() - 1].to_vec(),
            ),
            ("first byte missing".to_owned(), signature[1..].to_vec()),
            (
                "zero byte before".to_owned(),
                [&[0], &signature[..]].concat(),
            ),
            (
                "zero byte after".to_owned(),
                [&signature[..], &[0]].concat(),
            ),
            ("written twice".to_owned(), signature.repeat(2)),
            ("all zero".to_owned(), vec![0; signature.len()]),
            ("all ones".to_owned(), vec![255; signature.len()]),
        ];
        assert_rejected(flipped.chain(resized).map(|(name, signature)| {
            case(
                format!("{algorithm}: {name}"),
                with_signature(&token, &signature),
            )
        }));
    }
}

#[test]
fn invalid_ecdsa_signatures_are_rejected() {
    let token = valid_token(SignatureAlgorithm::Es256);
    let [header, claims, signature] = parts(&token);
    let signature = decode(signature).unwrap();
    let (r, s) = signature.split_at(32);
    let (zero, one) = ([0; 32], {
        let mut one = [0; 32];
        one[31] = 1;
        one
    });
    let der = ecdsa_pair(&signature::ECDSA_P256_SHA256_ASN1_SIGNING)
        .sign(
            &SystemRandom::new(),
            format!("{header}.{claims}").as_bytes(),
        )
        .unwrap();
    let padded = |part: &[u8]| [&[0; 16], part].concat();
    let signatures = [
        ("r is zero", [&zero, s].concat()),
        ("s is zero", [r, &zero].concat()),
        ("r and s are zero", [zero, zero].concat()),
        ("r and s are one", [one, one].concat()),
        ("r is the order", [&P256_ORDER, s].concat()),
        ("s is the order", [r, &P256_ORDER].concat()),
        ("r and s swapped", [s, r].concat()),
        ("r only", r.to_vec()),
        ("DER", der.as_ref().to_vec()),
        ("padded as for P-384", [padded(r), padded(s)].concat()),
        ("compressed to 62 bytes", [&r[1..], &s[1..]].concat()),
    ];
    assert_rejected(
        signatures.map(|(name, signature)| case(name, with_signature(&token, &signature))),
    );
}

#[test]
fn short_rsa_keys_are_rejected() {
    let jwk = |n: &[u8], e: &[u8]| {
        let jwk = json!({ "kty": "RSA", "n": encode(n), "e": encode(e) });
        Jwk::parse(jwk.as_object().unwrap())
    };
    for bytes in [0, 1, 64, 128, 255, 1025] {
        assert!(
            jwk(&vec![0xff; bytes], &[1, 0, 1]).is_err(),
            "{bytes} bytes"
        );
    }
    let leading_zeros = [vec![0; 128], vec![0xff; 128]].concat();
    assert!(
        jwk(&leading_zeros, &[1, 0, 1]).is_err(),
        "1024 bits with leading zeros"
    );
    assert!(jwk(&[0xff; 256], &[]).is_err(), "no exponent");
}

/// With the exponent 1, a signature is the padded hash, which anyone can compute.
#[test]
fn an_rsa_exponent_of_one_verifies_nothing() {
    let token = valid_token(SignatureAlgorithm::Rs256);
    let [header, claims, _] = parts(&token);
    let hash = Sha256::digest(format!("{header}.{claims}"));
    // The DigestInfo of SHA-256: RFC 8017, section 9.2, note 1.
    let digest_info = [
        0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01,
        0x05, 0x00, 0x04, 0x20,
    ];
    let padding = vec![0xff; 256 - 3 - digest_info.len() - hash.len()];
    let padded = [&[0, 1], &padding[..], &[0], &digest_info, &hash].concat();
    let forged = with_signature(&token, &padded);
    let mut jwk = signing_key(SignatureAlgorithm::Rs256).public_jwk();
    jwk.insert("e".into(), encode([1]).into());

    let key = Jwk::parse(&jwk).unwrap();

    assert!(
        UnverifiedJwt::parse(&forged)
            .unwrap()
            .verify([&key])
            .is_none()
    );
}

#[test]
fn keys_in_the_header_are_ignored() {
    let attacker = SigningKey::generate().unwrap();
    let jwk = attacker.public_jwk();
    let headers = [
        json!({ "jwk": jwk }),
        json!({ "jku": "https://evil.example/keys" }),
        json!({ "x5u": "https://evil.example/cert" }),
        json!({ "x5c": ["MIIB"] }),
        json!({ "x5t#S256": "AAAA", "kid": "one" }),
    ];
    assert_rejected(headers.map(|header| {
        let name = header.to_string();
        let header = header.as_object().unwrap().clone();
        case(
            name,
            attacker.sign(header, &json!({ "sub": "alice" })).unwrap(),
        )
    }));
}

#[test]
fn critical_extensions_are_rejected() {
    for crit in [
        json!(["exp"]),
        json!(["b64"]),
        json!([]),
        json!(null),
        json!("exp"),
    ] {
        let header = json!({ "alg": "ES256", "crit": crit, "b64": false });
        let token = sign_texts(&header.to_string(), r#"{"sub":"alice"}"#);
        assert_eq!(
            UnverifiedJwt::parse(&token).unwrap_err(),
            InvalidJwt::CriticalHeader,
            "{crit}"
        );
    }
}

#[test]
fn malformed_json_is_rejected_although_it_is_signed() {
    let header = r#"{"alg":"ES256"}"#;
    let claims = r#"{"sub":"alice"}"#;
    let texts = [
        ("duplicate alg", r#"{"alg":"none","alg":"ES256"}"#, claims),
        (
            "duplicate alg, escaped",
            r#"{"\u0061lg":"none","alg":"ES256"}"#,
            claims,
        ),
        (
            "duplicate kid",
            r#"{"alg":"ES256","kid":"a","kid":"b"}"#,
            claims,
        ),
        ("duplicate sub", header, r#"{"sub":"alice","sub":"bob"}"#),
        (
            "duplicate exp",
            header,
            r#"{"sub":"a","exp":1,"exp":4000000000}"#,
        ),
        ("number out of range", header, r#"{"sub":"a","exp":1e400}"#),
        ("NaN", header, r#"{"sub":"a","exp":NaN}"#),
        (
            "hexadecimal number",
            header,
            r#"{"sub":"a","exp":0xffffffff}"#,
        ),
        ("header is a list", r#"[{"alg":"ES256"}]"#, claims),
        ("claims are a list", header, "[]"),
        ("claims are text", header, r#""alice""#),
        ("claims are empty", header, ""),
        ("text after the header", r#"{"alg":"ES256"}x"#, claims),
        ("two headers", r#"{"alg":"ES256"}{"alg":"ES256"}"#, claims),
        ("text after the claims", header, r#"{"sub":"alice"}]"#),
        ("trailing comma", r#"{"alg":"ES256",}"#, claims),
        ("comment", r#"{"alg":"ES256"/**/}"#, claims),
        ("byte order mark", "\u{feff}{\"alg\":\"ES256\"}", claims),
        ("NUL after the header", "{\"alg\":\"ES256\"}\0", claims),
        ("kid is a number", r#"{"alg":"ES256","kid":1}"#, claims),
        ("typ is a list", r#"{"alg":"ES256","typ":["JWT"]}"#, claims),
        ("alg in another case", r#"{"alg":"es256"}"#, claims),
        ("alg with a space", r#"{"alg":"ES256 "}"#, claims),
        ("Alg", r#"{"Alg":"ES256"}"#, claims),
    ];
    assert_rejected(texts.map(|(name, header, claims)| case(name, sign_texts(header, claims))));
    let deep = format!(r#"{{"sub":{}1{}}}"#, "[".repeat(500), "]".repeat(500));
    assert_rejected([
        case("deeply nested claims", sign_texts(header, &deep)),
        case("invalid UTF-8", {
            let message = format!("{}.{}", encode(header), encode(b"{\"sub\":\"\xff\"}"));
            let signature = sign_es256(message.as_bytes());
            format!("{message}.{}", encode(signature))
        }),
    ]);
}

/// Each encoding decodes to the signed bytes in a lenient decoder.
#[test]
fn other_spellings_of_a_token_are_rejected() {
    let token = valid_token(SignatureAlgorithm::Es256);
    let [header, claims, signature] = parts(&token);
    let standard = |text: &str| text.replace('-', "+").replace('_', "/");
    let mut cases = vec![
        case(
            "padding after the header",
            format!("{header}==.{claims}.{signature}"),
        ),
        case("padding after the signature", format!("{token}==")),
        case("space before", format!(" {token}")),
        case("space after", format!("{token} ")),
        case("line end after", format!("{token}\n")),
        case(
            "line end in the signature",
            format!("{header}.{claims}.{}\n{}", &signature[..4], &signature[4..]),
        ),
        case("NUL after", format!("{token}\0")),
        case("empty part after", format!("{token}.")),
        case("empty part before", format!(".{token}")),
        case("four parts", format!("{token}.{signature}")),
        case(
            "five parts, like a JWE",
            format!("{header}..{claims}.{signature}.AAAA"),
        ),
        case("two parts", format!("{header}.{claims}")),
        case(
            "JSON serialization",
            json!({ "protected": header, "payload": claims, "signature": signature }).to_string(),
        ),
        case("percent-encoded", token.replace('.', "%2E")),
        case("fullwidth dot", token.replace('.', "\u{ff0e}")),
    ];
    // The last character of 64 bytes has four unused bits, which must be zero.
    let last = signature.chars().last().unwrap();
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let value = alphabet.find(last).unwrap();
    for unused_bits in 1..16 {
        let other = alphabet.as_bytes()[value | unused_bits] as char;
        let signature = format!("{}{other}", &signature[..signature.len() - 1]);
        cases.push(case(
            format!("unused bits {unused_bits}"),
            format!("{header}.{claims}.{signature}"),
        ));
    }
    // Half of all signatures contain `-` or `_`; use one that does.
    let message = format!("{header}.{claims}");
    let url_safe = (0..1000)
        .map(|_| encode(sign_es256(message.as_bytes())))
        .find(|signature| signature.contains(['-', '_']))
        .unwrap();
    cases.push(case(
        "standard alphabet",
        format!("{message}.{}", standard(&url_safe)),
    ));
    assert_rejected(cases);
}
