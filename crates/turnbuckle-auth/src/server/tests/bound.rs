//! DPoP-bound tokens and proofs.

use serde_json::{Value, json};
use turnbuckle_protocol::{
    Principal,
    authenticator::{AuthRejection, AuthRequest, Authenticator as _},
};

use super::fixture::{AuthFixture, RESOURCE, bearer, challenge, merge};
use crate::{
    Secret,
    dpop::DpopProver,
    jwt::{SigningKey, encode},
    server::{DpopPolicy, ResourceServer},
};

type Admitted = Result<std::sync::Arc<Principal>, AuthRejection>;

/// A client with a key, and a token that is bound to it.
struct Client {
    fixture: AuthFixture,
    prover: DpopProver,
    token: String,
}

impl Client {
    fn new() -> Self {
        let (fixture, prover) = (
            AuthFixture::new(),
            DpopProver::new(SigningKey::generate().unwrap()),
        );
        let token = fixture.token(json!({ "cnf": { "jkt": prover.thumbprint() } }));
        Self {
            fixture,
            prover,
            token,
        }
    }

    /// Returns a valid proof.
    fn proof(&self) -> String {
        self.proof_with_nonce(None)
    }

    fn proof_with_nonce(&self, nonce: Option<&str>) -> String {
        let token = Secret::new(&self.token);
        self.prover
            .proof("POST", RESOURCE, Some(&token), nonce)
            .unwrap()
    }

    /// Returns a proof with changed members; null removes one.
    fn proof_with(&self, header: Value, changes: Value) -> String {
        let part = |at| {
            let proof = self.proof();
            let part = crate::jwt::decode(proof.split('.').nth(at).unwrap()).unwrap();
            serde_json::from_slice::<serde_json::Map<String, Value>>(&part).unwrap()
        };
        let (mut own, mut claims) = (part(0), part(1));
        merge(&mut own, header);
        merge(&mut claims, changes);
        self.prover.key().sign(own, &claims).unwrap()
    }

    async fn send(&self, server: &ResourceServer, proofs: &[&str]) -> Admitted {
        let authorization = format!("DPoP {}", self.token);
        server
            .authenticate(AuthRequest::new("POST", "/mcp", &[&authorization], proofs))
            .await
    }
}

fn assert_rejected(admitted: Admitted, error: &str, reason: &str) {
    let rejection = admitted.expect_err(reason);
    let challenge = challenge(&rejection);
    let reason_text = challenge.parameter("error_description").unwrap_or_default();
    assert_eq!(
        (rejection.status, challenge.parameter("error")),
        (401, Some(error)),
        "{reason_text}"
    );
    assert!(
        reason_text.contains(reason),
        "{reason_text:?} is not {reason:?}"
    );
    assert!(challenge.is_scheme("DPoP"));
    assert!(challenge.parameter("algs").unwrap().contains("ES256"));
}

#[tokio::test]
async fn a_valid_proof_is_accepted() {
    let client = Client::new();
    let server = client.fixture.server();

    for _ in 0..3 {
        let caller = client.send(&server, &[&client.proof()]).await.unwrap();
        assert_eq!(caller.subject, "alice");
    }
    let lacking = server.insufficient_scope(
        &client.send(&server, &[&client.proof()]).await.unwrap(),
        &["x".to_owned()].into(),
    );
    assert!(challenge(&lacking).is_scheme("DPoP"));
}

#[tokio::test]
async fn a_bound_token_without_a_proof_of_its_key_is_rejected() {
    let client = Client::new();
    let server = client.fixture.server();
    let thief = DpopProver::new(SigningKey::generate().unwrap());
    let token = Secret::new(&client.token);
    let own = thief.proof("POST", RESOURCE, Some(&token), None).unwrap();

    assert_rejected(
        bearer(&server, &client.token).await,
        "invalid_token",
        "DPoP scheme",
    );
    let header = format!("Bearer {}", client.token);
    assert_rejected(
        server
            .authenticate(AuthRequest::new("POST", "/mcp", &[&header], &[&own]))
            .await,
        "invalid_token",
        "DPoP scheme",
    );
    assert_rejected(
        client.send(&server, &[]).await,
        "invalid_dpop_proof",
        "exactly one",
    );
    assert_rejected(
        client.send(&server, &[&own]).await,
        "invalid_token",
        "another key",
    );
    // The key of the owner in the header, the signature of the thief.
    let forged = {
        let proof = client.proof();
        let (signed, _) = proof.rsplit_once('.').unwrap();
        format!("{signed}.{}", own.rsplit('.').next().unwrap())
    };
    assert_rejected(
        client.send(&server, &[&forged]).await,
        "invalid_dpop_proof",
        "not signed",
    );
}

#[tokio::test]
async fn a_replayed_proof_is_rejected() {
    let client = Client::new();
    let server = client.fixture.server();
    let proof = client.proof();
    client.send(&server, &[&proof]).await.unwrap();

    for _ in 0..3 {
        assert_rejected(
            client.send(&server, &[&proof]).await,
            "invalid_dpop_proof",
            "already used",
        );
    }
    let (one, two) = (client.proof(), client.proof());
    assert_rejected(
        client.send(&server, &[&one, &two]).await,
        "invalid_dpop_proof",
        "exactly one",
    );
    client.fixture.advance(61);
    assert_rejected(
        client.send(&server, &[&proof]).await,
        "invalid_dpop_proof",
        "too old or in the future",
    );
}

#[tokio::test]
async fn a_proof_with_wrong_claims_is_rejected() {
    let client = Client::new();
    let server = client.fixture.server();
    let now = client.fixture.now();
    let private = {
        let mut jwk = client.prover.key().public_jwk();
        jwk.insert("d".into(), json!(encode([1; 32])));
        jwk
    };
    for (header, claims, reason) in [
        (json!({}), json!({ "htm": "GET" }), "another method"),
        (json!({}), json!({ "htm": "post" }), "another method"),
        (json!({}), json!({ "htm": null }), "another method"),
        (
            json!({}),
            json!({ "htu": "https://other.example/mcp" }),
            "another URL",
        ),
        (
            json!({}),
            json!({ "htu": "http://api.example/mcp" }),
            "another URL",
        ),
        (
            json!({}),
            json!({ "htu": "https://api.example/other" }),
            "another URL",
        ),
        (
            json!({}),
            json!({ "htu": "https://api.example" }),
            "another URL",
        ),
        (json!({}), json!({ "htu": "/mcp" }), "another URL"),
        (json!({}), json!({ "htu": null }), "another URL"),
        (
            json!({}),
            json!({ "iat": now - 62 }),
            "too old or in the future",
        ),
        (
            json!({}),
            json!({ "iat": now + 62 }),
            "too old or in the future",
        ),
        (
            json!({}),
            json!({ "iat": now.to_string() }),
            "too old or in the future",
        ),
        (
            json!({}),
            json!({ "iat": null }),
            "too old or in the future",
        ),
        (
            json!({}),
            json!({ "ath": encode([0; 32]) }),
            "another token",
        ),
        (json!({}), json!({ "ath": null }), "another token"),
        (json!({}), json!({ "jti": null }), "jti"),
        (json!({}), json!({ "jti": "" }), "jti"),
        (json!({}), json!({ "jti": 1 }), "jti"),
        (json!({}), json!({ "jti": "a".repeat(513) }), "jti"),
        (json!({ "typ": "JWT" }), json!({}), "dpop+jwt"),
        (json!({ "typ": "at+jwt" }), json!({}), "dpop+jwt"),
        (json!({ "typ": null }), json!({}), "dpop+jwt"),
        (json!({ "jwk": null }), json!({}), "key in the proof"),
        (json!({ "jwk": private }), json!({}), "not public"),
        (json!({ "crit": ["x"] }), json!({}), "extension"),
    ] {
        let proof = client.proof_with(header, claims);
        assert_rejected(
            client.send(&server, &[&proof]).await,
            "invalid_dpop_proof",
            reason,
        );
    }
    for proof in ["", "a.b.c", "\u{0}"] {
        assert_rejected(
            client.send(&server, &[proof]).await,
            "invalid_dpop_proof",
            "invalid proof",
        );
    }
    let none = json!({ "typ": "dpop+jwt", "alg": "none", "jwk": client.prover.key().public_jwk() });
    let none = format!(
        "{}.{}.",
        encode(none.to_string()),
        client.proof().split('.').nth(1).unwrap()
    );
    assert_rejected(
        client.send(&server, &[&none]).await,
        "invalid_dpop_proof",
        "invalid proof",
    );

    for htu in [
        "HTTPS://API.example:443/mcp",
        "https://api.example/mcp/",
        "https://api.example/mcp?x=1#y",
    ] {
        let proof = client.proof_with(json!({}), json!({ "htu": htu }));
        client.send(&server, &[&proof]).await.unwrap();
    }
}

#[tokio::test]
async fn a_proof_needs_a_nonce_of_this_server() {
    let client = Client::new();
    let server = client.fixture.server().require_dpop_nonce().unwrap();
    let elsewhere = client.fixture.server().require_dpop_nonce().unwrap();

    let rejection = client.send(&server, &[&client.proof()]).await.unwrap_err();
    let nonce = rejection.nonce.clone().unwrap();
    assert_rejected(Err(rejection), "use_dpop_nonce", "nonce");
    for wrong in [
        client.proof_with_nonce(Some("mine")),
        client.proof_with_nonce(Some("")),
    ] {
        assert_rejected(
            client.send(&server, &[&wrong]).await,
            "use_dpop_nonce",
            "nonce",
        );
    }
    let foreign = client.proof_with_nonce(Some(&nonce));
    assert_rejected(
        client.send(&elsewhere, &[&foreign]).await,
        "use_dpop_nonce",
        "nonce",
    );

    for _ in 0..2 {
        client
            .send(&server, &[&client.proof_with_nonce(Some(&nonce))])
            .await
            .unwrap();
    }
    client.fixture.advance(300);
    let late = json!({ "iat": client.fixture.now(), "nonce": nonce });
    let late = client.proof_with(json!({}), late);
    assert_rejected(
        client.send(&server, &[&late]).await,
        "use_dpop_nonce",
        "nonce",
    );
}

#[tokio::test]
async fn an_unbound_token_with_a_proof_is_rejected() {
    let mut client = Client::new();
    client.token = client.fixture.token(json!({}));
    let server = client
        .fixture
        .server()
        .static_token(Secret::new("known"), Principal::new("a", "b"));

    let rejection = client.send(&server, &[&client.proof()]).await.unwrap_err();
    assert!(rejection.message.contains("not bound"), "{rejection:?}");
    assert!(
        challenge(&rejection).is_scheme("Bearer"),
        "the token alone is accepted"
    );
    client.token = "known".to_owned();
    assert_eq!(
        client
            .send(&server, &[&client.proof()])
            .await
            .unwrap_err()
            .status,
        401
    );
}

#[tokio::test]
async fn dpop_can_be_required_or_disabled() {
    let client = Client::new();
    let plain = client.fixture.token(json!({}));

    let strict = client.fixture.server().dpop(DpopPolicy::Require);
    assert_rejected(
        bearer(&strict, &plain).await,
        "invalid_token",
        "must be bound",
    );
    let nothing = strict
        .authenticate(AuthRequest::new("POST", "/mcp", &[], &[]))
        .await
        .unwrap_err();
    assert!(challenge(&nothing).is_scheme("DPoP"));
    client.send(&strict, &[&client.proof()]).await.unwrap();

    let simple = client.fixture.server().dpop(DpopPolicy::Reject);
    bearer(&simple, &plain).await.unwrap();
    let rejection = client.send(&simple, &[&client.proof()]).await.unwrap_err();
    assert_eq!(
        (rejection.status, challenge(&rejection).is_scheme("Bearer")),
        (401, true)
    );
    let rejection = bearer(&simple, &client.token).await.unwrap_err();
    assert_eq!(
        (rejection.status, challenge(&rejection).is_scheme("Bearer")),
        (401, true)
    );
}
