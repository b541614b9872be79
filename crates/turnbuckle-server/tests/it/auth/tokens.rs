//! Tokens of an issuer over HTTP, with the authenticator of the auth crate.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use http::Method;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};
use turnbuckle_auth::{
    Challenge,
    fetch::{Fetch, FetchError, FetchRequest, FetchResponse},
    jwt::{Jwks, SigningKey},
    server::{ResourceServer, TrustedIssuer},
};
use turnbuckle_protocol::authenticator::BoxFuture;
use turnbuckle_server::{
    Context, Server, Tool,
    http::{CallerToken, Http, HttpSse},
};
use turnbuckle_spec_coverage::req;

use crate::{
    http::test_client::{HttpTestClient, HttpTestResponse, Stream, tool},
    http_sse::test_client::HttpSseClient,
};

const RESOURCE: &str = "https://api.example/mcp";
const ISSUER: &str = "https://auth.example";

/// Fetches nothing: the keys of the issuer are known.
struct Offline;

impl Fetch for Offline {
    fn fetch(&self, _: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>> {
        Box::pin(async { Err(FetchError::Unreachable("offline".into())) })
    }
}

/// An issuer, and a server that trusts it.
struct World {
    key: SigningKey,
    caller: HttpTestClient,
}

impl World {
    fn new() -> Self {
        Self::with(|guard| guard)
    }

    /// Changes the settings of the resource server.
    fn with(change: impl FnOnce(ResourceServer) -> ResourceServer) -> Self {
        let key = SigningKey::generate().unwrap();
        let keys = json!({ "keys": [key.public_jwk()] }).to_string();
        let keys = Jwks::parse(keys.as_bytes()).unwrap();
        let guard = ResourceServer::new(RESOURCE, Arc::new(Offline)).unwrap();
        let guard = guard
            .issuer(TrustedIssuer::jwt(ISSUER).jwks(keys))
            .require_scopes("mcp".parse().unwrap())
            .advertise_scopes("files:read files:write offline_access".parse().unwrap())
            .scope_implies("files:write", ["files:read"]);
        let plain = |name: &str| Tool::new(name, async || Ok("done".to_owned()));
        let server = Server::new("test", "1.0.0")
            .tool(plain("plain"))
            .tool(Tool::new("slow", async || {
                sleep(Duration::from_secs(3600)).await;
                Ok("done".to_owned())
            }))
            .tool(plain("read").scopes(["files:read"]))
            .tool(Tool::new("token", async |cx: Context| {
                let token = cx.get::<CallerToken>();
                let text = token.map(|token| format!("{token:?} {}", token.secret().expose()));
                Ok(text.unwrap_or_default())
            }));
        Self {
            key,
            caller: HttpTestClient::with_options(
                Http::new(server)
                    .authenticator(change(guard))
                    .http_sse(HttpSse::new()),
            ),
        }
    }

    /// A token with default claims, overridden by `claims`.
    fn token(&self, otherwise: Value) -> String {
        let mut claims = json!({
            "iss": ISSUER, "sub": "ada", "client_id": "desk", "aud": RESOURCE,
            "exp": seconds(60), "scope": "mcp",
        });
        let Value::Object(otherwise) = otherwise else {
            panic!("claims are an object")
        };
        claims.as_object_mut().unwrap().extend(otherwise);
        let header = Map::from_iter([("typ".to_owned(), json!("at+jwt"))]);
        self.key.sign(header, &claims).unwrap()
    }

    async fn call(&self, token: &str, tool: &str) -> HttpTestResponse {
        let caller = self.caller_with(token);
        caller.modern_tool(tool, json!({})).await
    }

    fn caller_with(&self, token: &str) -> HttpTestClient {
        let mut caller = self.caller.clone();
        caller.authorization = Some(format!("Bearer {token}"));
        caller
    }
}

fn seconds(from_now: i64) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(Duration::as_secs(&now)).unwrap() + from_now
}

fn challenge(http_response: &HttpTestResponse) -> Challenge {
    let header = http_response.header("www-authenticate").unwrap();
    let mut challenges = Challenge::parse(header).unwrap();
    assert_eq!(challenges.len(), 1, "{header}");
    challenges.remove(0)
}

#[tokio::test]
async fn only_tokens_for_this_audience_are_accepted() {
    req!(
        "auth.token.validate",
        "auth.token.audience",
        "auth.token.error",
        "auth.token.own-resources",
        "auth.token.no-transit",
        "auth.401.invalid-token"
    );
    let world = World::new();
    let good = world.token(json!({}));
    assert_eq!(world.call(&good, "plain").await.status(), 200);
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let other_issuer = World::new();

    let bad = [
        world.token(json!({ "aud": "https://other.example/mcp" })),
        world.token(json!({ "aud": ["https://api.example/mcp/below"] })),
        world.token(json!({ "iss": "https://auth.example/" })),
        world.token(json!({ "exp": seconds(-600) })),
        world.token(json!({ "nbf": seconds(600) })),
        other_issuer.token(json!({})),
        format!("{signed}."),
        format!("e30.{signature}"),
        "opaque".to_owned(),
    ];
    for token in bad {
        let http_response = world.call(&token, "plain").await;
        assert_eq!(http_response.status(), 401, "{token}");
        assert_eq!(
            challenge(&http_response).parameter("error"),
            Some("invalid_token")
        );
    }
}

#[tokio::test]
async fn the_challenge_names_the_issuer() {
    req!(
        "auth.prm.server",
        "auth.prm.authorization-servers",
        "auth.www-authenticate.2025-06-18",
        "auth.refresh.server-no-offline"
    );
    let world = World::new();

    let http_response = world.caller.modern_tool("plain", json!({})).await;
    assert_eq!(http_response.status(), 401);
    let challenge = challenge(&http_response);
    assert_eq!(challenge.parameter("scope"), Some("mcp"));
    let url = challenge.parameter("resource_metadata").unwrap().to_owned();
    let path = url.strip_prefix("https://api.example").unwrap();

    for path in [
        path,
        "/.well-known/oauth-protected-resource",
        "/mcp/.well-known/oauth-protected-resource",
    ] {
        let request = http::Request::builder()
            .method(Method::GET)
            .uri(path)
            .header("host", "localhost");
        let metadata = world.caller.send(request, "").await;
        assert_eq!(metadata.status(), 200, "{path}");
        let metadata = metadata.json().await;
        assert_eq!(metadata["resource"], RESOURCE);
        assert_eq!(metadata["authorization_servers"], json!([ISSUER]));
        let scopes = json!(["files:read", "files:write", "mcp"]);
        assert_eq!(metadata["scopes_supported"], scopes);
    }
}

#[tokio::test]
async fn one_challenge_names_all_required_scopes_and_additional_scopes_are_accepted() {
    req!(
        "auth.scope.403",
        "auth.scope.403-include",
        "auth.scope.403-single",
        "auth.scope.hierarchy",
        "auth.status-codes"
    );
    let world = World::new();

    let http_response = world.call(&world.token(json!({})), "read").await;
    assert_eq!(http_response.status(), 403);
    let challenge = challenge(&http_response);
    assert_eq!(challenge.parameter("error"), Some("insufficient_scope"));
    assert_eq!(challenge.parameter("scope"), Some("files:read mcp"));
    assert!(challenge.parameter("resource_metadata").is_some());

    let nothing = world.token(json!({ "scope": "" }));
    assert_eq!(world.call(&nothing, "plain").await.status(), 403);
    let broader = world.token(json!({ "scope": "mcp files:write" }));
    assert_eq!(world.call(&broader, "read").await.status(), 200);
}

#[tokio::test]
async fn malformed_bearer_tokens_are_answered_with_400() {
    req!("auth.status-codes");
    let world = World::new();

    for malformed in ["Bearer", "Bearer a b"] {
        let mut caller = world.caller.clone();
        caller.authorization = Some(malformed.to_owned());
        let http_response = caller.modern_tool("plain", json!({})).await;
        assert_eq!(http_response.status(), 400, "{malformed}");
    }
}

/// Reads a stream to its end, and checks that it ends with the token: after its lifetime and the leeway.
async fn assert_ends_with_the_token(mut stream: Stream, opened: Instant) {
    while let Some(event) = stream.event().await {
        assert!(!event.data.contains("result"), "{}", event.data);
    }
    let seconds = opened.elapsed().as_secs();
    assert!((118..=121).contains(&seconds), "{seconds}");
}

#[tokio::test(start_paused = true)]
async fn a_get_stream_ends_with_its_token_and_is_resumed_with_another() {
    let world = World::new();
    let mut caller = world.caller_with(&world.token(json!({})));
    caller = caller.in_session("2025-11-25").await;
    let opened = Instant::now();
    let (stream, last_id) = caller.opened().await;

    assert_ends_with_the_token(stream, opened).await;

    let later = world.token(json!({ "exp": seconds(600) }));
    caller.authorization = Some(format!("Bearer {later}"));
    let resumed = caller.get(Some(&last_id)).await;
    assert_eq!(resumed.status(), 200);
    let (opened, mut stream) = (Instant::now(), resumed.stream());
    while stream.bytes().await.is_some() {}
    assert!(opened.elapsed() > Duration::from_secs(600));
}

#[tokio::test(start_paused = true)]
async fn a_subscription_ends_with_its_token_and_without_a_result() {
    let world = World::new();
    let caller = world.caller_with(&world.token(json!({})));
    let listen = json!({ "notifications": { "toolsListChanged": true } });
    let opened = Instant::now();
    let stream = caller.modern("subscriptions/listen", listen).await.stream();

    assert_ends_with_the_token(stream, opened).await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_http_sse_ends_with_its_token() {
    let world = World::new();
    let caller = world.caller_with(&world.token(json!({})));
    let opened = Instant::now();
    let peer = HttpSseClient::open(&caller).await;

    assert_ends_with_the_token(peer.stream, opened).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_outlives_its_token_gets_its_result() {
    let world = World::new();

    let response = world.call(&world.token(json!({})), "slow").await;

    let mut messages = response.stream().messages().await;
    let result = messages.pop().unwrap();
    assert_eq!(result["result"]["content"][0]["text"], "done");
}

#[tokio::test(start_paused = true)]
async fn a_handler_gets_the_token_only_if_its_exchange_is_allowed() {
    for allowed in [false, true] {
        let world = World::with(|guard| guard.allow_token_exchange(allowed));
        let token = world.token(json!({}));
        let caller = world.caller_with(&token);
        let mut results = vec![caller.modern_tool("token", json!({})).await.json().await];
        let session = caller.clone().in_session("2025-11-25").await;
        results.push(session.tool(1, "token", json!({})).await.json().await);
        let mut peer = HttpSseClient::initialized(&caller, "2024-11-05").await;
        results.push(peer.request(&tool(2, "token", &json!({}))).await);

        for result in results {
            let text = result["result"]["content"][0]["text"].as_str().unwrap();
            let expected = allowed.then(|| format!("CallerToken(***) {token}"));
            assert_eq!(text, expected.unwrap_or_default());
        }
    }
}
