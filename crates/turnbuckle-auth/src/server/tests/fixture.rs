//! An issuer, a network in memory, and a manual clock.

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

/// The environment of a resource server.
#[derive(Clone)]
pub(super) struct AuthFixture {
    pub(super) key: SigningKey,
    pub(super) network: Arc<FakeNetwork>,
    now: Arc<AtomicU64>,
}

/// Responds by URL, and records requests.
#[derive(Default)]
pub(super) struct FakeNetwork {
    responses: Mutex<HashMap<String, (u16, Vec<u8>)>>,
    requests: Mutex<Vec<FetchRequest>>,
}

impl AuthFixture {
    /// Creates an issuer with one published key.
    pub(super) fn new() -> Self {
        let pem = include_str!("../../jwt/keys_for_tests/rsa2048.pem");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let fixture = Self {
            key: SigningKey::from_pem(pem, SignatureAlgorithm::Rs256).unwrap(),
            network: Arc::default(),
            now: Arc::new(AtomicU64::new(now.as_secs())),
        };
        fixture.publish_metadata();
        fixture.publish(&[("one", &fixture.key)]);
        fixture
    }

    /// Publishes the issuer metadata.
    pub(super) fn publish_metadata(&self) {
        let metadata = json!({ "issuer": ISSUER, "jwks_uri": JWKS });
        self.network.respond(METADATA, 200, &metadata);
    }

    /// Publishes exactly these keys.
    pub(super) fn publish(&self, keys: &[(&str, &SigningKey)]) {
        let keys: Vec<_> = keys
            .iter()
            .map(|(id, key)| {
                let mut jwk = key.public_jwk();
                jwk.insert("kid".into(), Value::from(*id));
                jwk
            })
            .collect();
        self.network.respond(JWKS, 200, &json!({ "keys": keys }));
    }

    /// Returns a server that trusts the issuer.
    pub(super) fn server(&self) -> ResourceServer {
        self.empty_server().issuer(TrustedIssuer::jwt(ISSUER))
    }

    /// Returns a server without trusted issuers.
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

    /// Returns the claims of a token that is valid for ten minutes.
    pub(super) fn claims(&self) -> Map<String, Value> {
        let claims = json!({
            "iss": ISSUER, "aud": RESOURCE, "sub": "alice", "client_id": "editor",
            "scope": "files:read mcp", "iat": self.now(), "exp": self.now() + 600,
        });
        claims.as_object().unwrap().clone()
    }

    /// Returns a token with changed claims; null removes one.
    pub(super) fn token(&self, changes: Value) -> String {
        self.token_with(json!({}), changes)
    }

    /// Returns a token with changed header members and claims.
    pub(super) fn token_with(&self, header: Value, changes: Value) -> String {
        self.sign_token(&self.key, header, changes)
    }

    /// Returns a token of the issuer, signed with any key.
    pub(super) fn sign_token(&self, key: &SigningKey, header: Value, changes: Value) -> String {
        let mut all = json!({ "typ": "at+jwt", "kid": "one" });
        merge(all.as_object_mut().unwrap(), header);
        let mut claims = self.claims();
        merge(&mut claims, changes);
        key.sign(all.as_object().unwrap().clone(), &claims).unwrap()
    }
}

pub(super) fn merge(into: &mut Map<String, Value>, changes: Value) {
    let Value::Object(changes) = changes else {
        panic!("{changes} is not an object");
    };
    for (name, value) in changes {
        match value {
            Value::Null => into.remove(&name),
            value => into.insert(name, value),
        };
    }
}

impl FakeNetwork {
    pub(super) fn respond(&self, url: &str, status: u16, body: &Value) {
        self.respond_bytes(url, status, body.to_string().into_bytes());
    }

    pub(super) fn respond_bytes(&self, url: &str, status: u16, body: Vec<u8>) {
        self.responses
            .lock()
            .unwrap()
            .insert(url.to_owned(), (status, body));
    }

    pub(super) fn remove(&self, url: &str) {
        self.responses.lock().unwrap().remove(url);
    }

    /// Returns the number of requests to this URL.
    pub(super) fn request_count(&self, url: &str) -> usize {
        let request = self.requests.lock().unwrap();
        request.iter().filter(|request| request.url == url).count()
    }

    /// Returns the number of all requests.
    pub(super) fn total_requests(&self) -> usize {
        self.requests.lock().unwrap().len()
    }

    pub(super) fn last_request(&self) -> FetchRequest {
        self.requests.lock().unwrap().last().cloned().unwrap()
    }
}

impl Fetch for FakeNetwork {
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>> {
        Box::pin(async move {
            let url = request.url.clone();
            self.requests.lock().unwrap().push(request);
            // Like a network, lets other tasks run.
            tokio::task::yield_now().await;
            let responses = self.responses.lock().unwrap();
            match responses.get(&url) {
                Some((status, body)) => Ok(FetchResponse::new(*status, Vec::new(), body.clone())),
                None => Err(FetchError::Unreachable("no such host".into())),
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

/// Sends a token in the `Authorization` header.
pub(super) async fn bearer(
    server: &ResourceServer,
    token: &str,
) -> Result<Arc<Principal>, AuthRejection> {
    send(server, &[&format!("Bearer {token}")]).await
}

/// Returns the only challenge of a rejection.
pub(super) fn challenge(rejection: &AuthRejection) -> Challenge {
    let [header] = &rejection.challenges[..] else {
        panic!("one challenge is expected: {rejection:?}");
    };
    Challenge::parse(header).unwrap().remove(0)
}
