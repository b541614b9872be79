//! An issuer, a network in memory, and a clock that is set by hand.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::{Map, Value, json};
use turnbuckle_protocol::{
    Principal,
    authenticator::{AuthRejection, AuthRequest, Authenticator, BoxFuture},
};

use crate::{
    Challenge,
    fetch::{Fetch, FetchError, FetchRequest, FetchResponse},
    jwt::{SignatureAlgorithm, SigningKey},
    server::{ResourceServer, TrustedIssuer},
};

pub(super) const RESOURCE: &str = "https://api.example/mcp";
pub(super) const ISSUER: &str = "https://auth.example";
pub(super) const JWKS: &str = "https://auth.example/jwks";
pub(super) const METADATA: &str = "https://auth.example/.well-known/oauth-authorization-server";

/// What there is besides the server that is tested.
#[derive(Clone)]
pub(super) struct World {
    pub(super) key: SigningKey,
    pub(super) network: Arc<Network>,
    now: Arc<AtomicU64>,
}

/// Answers by URL, and remembers what it was asked.
#[derive(Default)]
pub(super) struct Network {
    answers: Mutex<HashMap<String, (u16, Vec<u8>)>>,
    asked: Mutex<Vec<FetchRequest>>,
}

impl World {
    /// An issuer with one key, which is published.
    pub(super) fn new() -> Self {
        let pem = include_str!("../../jwt/keys_for_tests/rsa2048.pem");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let world = Self {
            key: SigningKey::from_pem(pem, SignatureAlgorithm::Rs256).unwrap(),
            network: Arc::default(),
            now: Arc::new(AtomicU64::new(now.as_secs())),
        };
        world.publish_metadata();
        world.publish(&[("one", &world.key)]);
        world
    }

    /// Has the issuer say where its keys are.
    pub(super) fn publish_metadata(&self) {
        let metadata = json!({ "issuer": ISSUER, "jwks_uri": JWKS });
        self.network.answer(METADATA, 200, &metadata);
    }

    /// Has the issuer publish these keys and no others.
    pub(super) fn publish(&self, keys: &[(&str, &SigningKey)]) {
        let keys: Vec<_> = keys
            .iter()
            .map(|(id, key)| {
                let mut jwk = key.public_jwk();
                jwk.insert("kid".into(), Value::from(*id));
                jwk
            })
            .collect();
        self.network.answer(JWKS, 200, &json!({ "keys": keys }));
    }

    /// A server that trusts the issuer.
    pub(super) fn server(&self) -> ResourceServer {
        self.empty_server().issuer(TrustedIssuer::jwt(ISSUER))
    }

    /// A server that trusts nobody.
    pub(super) fn empty_server(&self) -> ResourceServer {
        let (network, now) = (Arc::clone(&self.network), Arc::clone(&self.now));
        ResourceServer::new(RESOURCE, network)
            .unwrap()
            .clock(move || UNIX_EPOCH + Duration::from_secs(now.load(Ordering::SeqCst)))
    }

    pub(super) fn now(&self) -> u64 {
        self.now.load(Ordering::SeqCst)
    }

    pub(super) fn advance(&self, seconds: u64) {
        self.now.fetch_add(seconds, Ordering::SeqCst);
    }

    /// The claims of a token that is good for ten minutes.
    pub(super) fn claims(&self) -> Map<String, Value> {
        let claims = json!({
            "iss": ISSUER, "aud": RESOURCE, "sub": "alice", "client_id": "editor",
            "scope": "files:read mcp", "iat": self.now(), "exp": self.now() + 600,
        });
        claims.as_object().unwrap().clone()
    }

    /// A token with some claims changed; what is null is left out.
    pub(super) fn token(&self, changes: Value) -> String {
        self.token_with(json!({}), changes)
    }

    /// A token with some of its header and some claims changed.
    pub(super) fn token_with(&self, header: Value, changes: Value) -> String {
        self.by(&self.key, header, changes)
    }

    /// A token as the issuer writes it, signed by whatever key.
    pub(super) fn by(&self, key: &SigningKey, header: Value, changes: Value) -> String {
        let mut all = json!({ "typ": "at+jwt", "kid": "one" });
        merge(all.as_object_mut().unwrap(), header);
        let mut claims = self.claims();
        merge(&mut claims, changes);
        key.sign(all.as_object().unwrap().clone(), &claims).unwrap()
    }
}

pub(super) fn merge(into: &mut Map<String, Value>, changes: Value) {
    let Value::Object(changes) = changes else {
        panic!("{changes} is no object");
    };
    for (name, value) in changes {
        match value {
            Value::Null => into.remove(&name),
            value => into.insert(name, value),
        };
    }
}

impl Network {
    pub(super) fn answer(&self, url: &str, status: u16, body: &Value) {
        self.answer_bytes(url, status, body.to_string().into_bytes());
    }

    pub(super) fn answer_bytes(&self, url: &str, status: u16, body: Vec<u8>) {
        self.answers
            .lock()
            .unwrap()
            .insert(url.to_owned(), (status, body));
    }

    pub(super) fn vanish(&self, url: &str) {
        self.answers.lock().unwrap().remove(url);
    }

    /// How often this URL was asked.
    pub(super) fn asked(&self, url: &str) -> usize {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|request| request.url == url).count()
    }

    /// How often anything was asked.
    pub(super) fn total(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    pub(super) fn last(&self) -> FetchRequest {
        self.asked.lock().unwrap().last().cloned().unwrap()
    }
}

impl Fetch for Network {
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>> {
        Box::pin(async move {
            let url = request.url.clone();
            self.asked.lock().unwrap().push(request);
            // As slow as a network: everybody else gets a turn.
            tokio::task::yield_now().await;
            let answers = self.answers.lock().unwrap();
            match answers.get(&url) {
                Some((status, body)) => Ok(FetchResponse::new(*status, Vec::new(), body.clone())),
                None => Err(FetchError::Unreachable("nobody there".into())),
            }
        })
    }
}

/// Sends these `Authorization` headers.
pub(super) async fn send(
    server: &ResourceServer,
    authorization: &[&str],
) -> Result<Arc<Principal>, AuthRejection> {
    server
        .authenticate(AuthRequest::new("POST", "/mcp", authorization, &[]))
        .await
}

/// Sends a token in the usual way.
pub(super) async fn bearer(
    server: &ResourceServer,
    token: &str,
) -> Result<Arc<Principal>, AuthRejection> {
    send(server, &[&format!("Bearer {token}")]).await
}

/// The only challenge of a refusal.
pub(super) fn challenge(refusal: &AuthRejection) -> Challenge {
    let [header] = &refusal.challenges[..] else {
        panic!("one challenge is expected: {refusal:?}");
    };
    Challenge::parse(header).unwrap().remove(0)
}
