//! Only a token that the issuer signed for this server is accepted.
//!
//! The first line is `Authorization`, the second `DPoP`; an empty one is left out. The third and the fourth are the header and
//! the claims of a token that the issuer signs, whatever they are. Marks: `@state@` is a good token, `@head@`, `@body@` and
//! `@seal@` are its parts; `@own@` is the token of the last two lines; `@bound@` is a token that is bound to a key, and
//! `@proof@` a proof for it.
#![no_main]

use std::{
    sync::{Arc, LazyLock},
    time::{SystemTime, UNIX_EPOCH},
};

use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value, json};
use turnbuckle_auth::{
    Secret,
    dpop::DpopProver,
    fetch::{Fetch, FetchError, FetchRequest, FetchResponse},
    is_same_resource,
    jwt::{Jwk, SignatureAlgorithm, SigningKey},
    server::{ResourceServer, TrustedIssuer},
};
use turnbuckle_fuzz::{bounded, marks::Marks};
use turnbuckle_protocol::authenticator::{AuthRequest, Authenticator, BoxFuture};

const RESOURCE: &str = "https://api.example/mcp";
const ISSUER: &str = "https://auth.example";

// Signatures of this kind are not random: an input does the same each time.
static KEY: LazyLock<SigningKey> = LazyLock::new(|| {
    let pem = include_str!("../../crates/turnbuckle-auth/src/jwt/keys_for_tests/ed25519.pem");
    SigningKey::from_pem(pem, SignatureAlgorithm::EdDsa).expect("it is a key")
});
static PROVER: LazyLock<DpopProver> = LazyLock::new(|| {
    let pem = include_str!("../../crates/turnbuckle-auth/src/jwt/keys_for_tests/p256.pem");
    DpopProver::new(SigningKey::from_pem(pem, SignatureAlgorithm::Es256).expect("it is a key"))
});

fuzz_target!(|input: &str| bounded::run(run(input)));

async fn run(input: &str) {
    let mut lines = input.lines();
    let [authorization, dpop, header, claims] = [(); 4].map(|()| lines.next().unwrap_or_default());
    let good = sign(&Map::new(), &good_claims());
    let bound = {
        let mut claims = good_claims();
        claims.insert("cnf".into(), json!({ "jkt": PROVER.thumbprint() }));
        sign(&Map::new(), &claims)
    };
    let own = Own::read(header, claims);
    let proof = PROVER.proof("POST", RESOURCE, Some(&Secret::new(&bound)), None);
    let proof = proof.expect("it can be signed");

    let mut marks = Marks::default();
    let mut parts = good.split('.');
    for (name, part) in ["head", "body", "seal"].into_iter().zip(&mut parts) {
        marks.note(name, part);
    }
    marks.note("state", &good);
    marks.note("bound", &bound);
    marks.note("proof", &proof);
    if let Some(own) = &own {
        marks.note("own", &own.token);
    }
    let fill = |line: &str| String::from_utf8_lossy(&marks.fill(line.as_bytes())).into_owned();
    let [authorization, dpop] = [authorization, dpop].map(fill);

    let one = |header| Vec::from_iter(Some(header).filter(|header: &&str| !header.is_empty()));
    let (headers, proofs) = (one(&*authorization), one(&*dpop));
    let request = AuthRequest::new("POST", "/mcp", &headers, &proofs);
    match server().authenticate(request).await {
        Ok(_) => {
            let (scheme, token) = authorization
                .trim()
                .split_once(' ')
                .expect("there are both");
            let token = token.trim();
            if scheme.eq_ignore_ascii_case("dpop") {
                assert!(dpop == proof || own.is_some(), "without a proof: {dpop}");
                assert!(token == bound || own.is_some_and(|own| own.token == token));
            } else {
                let is_own = own.is_some_and(|own| own.token == token && own.may_be_accepted());
                assert!(token == good || is_own, "accepted: {authorization}");
            }
        }
        Err(rejection) => {
            assert!(matches!(rejection.status, 400 | 401), "{rejection:?}");
            let is_proven = authorization == format!("DPoP {bound}") && dpop == proof;
            let is_good = authorization == format!("Bearer {good}");
            assert!(!is_good && !is_proven, "rejected: {rejection:?}");
        }
    }
}

/// A token that the issuer signed without any check.
struct Own {
    header: Map<String, Value>,
    claims: Map<String, Value>,
    token: String,
}

impl Own {
    fn read(header: &str, claims: &str) -> Option<Self> {
        let header = serde_json::from_str(header).ok()?;
        let claims = serde_json::from_str(claims).ok()?;
        let token = sign(&header, &claims);
        Some(Self {
            header,
            claims,
            token,
        })
    }

    /// Returns whether the token meets the minimal conditions of a valid one.
    fn may_be_accepted(&self) -> bool {
        let text = |name: &str| self.claims.get(name).and_then(Value::as_str);
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.expect("it is later than 1970").as_secs_f64();
        let audience = match self.claims.get("aud") {
            Some(Value::Array(list)) => list.clone(),
            Some(one) => vec![one.clone()],
            None => Vec::new(),
        };
        let mut audience = audience.iter().filter_map(Value::as_str);
        text("iss") == Some(ISSUER)
            && audience.any(|audience| is_same_resource(audience, RESOURCE))
            && self.claims["exp"]
                .as_f64()
                .is_some_and(|end| end + 61.0 > now)
            && ["sub", "client_id", "azp"]
                .into_iter()
                .any(|name| text(name).is_some())
            && !self.claims.contains_key("cnf")
            && !self.header.contains_key("crit")
    }
}

fn sign(header: &Map<String, Value>, claims: &Map<String, Value>) -> String {
    let token = KEY.sign(header.clone(), claims);
    token.expect("it can be signed")
}

fn good_claims() -> Map<String, Value> {
    let claims =
        json!({ "iss": ISSUER, "aud": RESOURCE, "sub": "alice", "exp": 9_999_999_999_u64 });
    claims.as_object().expect("it is one").clone()
}

fn server() -> ResourceServer {
    let key = Jwk::parse(&KEY.public_jwk()).expect("it is a key");
    let issuer = TrustedIssuer::jwt(ISSUER).jwks([key].into_iter().collect());
    let server = ResourceServer::new(RESOURCE, Arc::new(Offline)).expect("it is a URL");
    server.issuer(issuer)
}

struct Offline;

impl Fetch for Offline {
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>> {
        panic!("unexpected fetch: {request:?}");
    }
}
