//! Credentials of each caller at an upstream server, by token exchange.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use turnbuckle_auth::{
    Secret,
    client::TokenExchange,
    fetch::{Fetch, FetchError, FetchRequest, FetchResponse},
};
use turnbuckle_client::LifecycleMode;
use turnbuckle_gateway::{Gateway, RunningGateway, Sharing, StartError, Upstream, UpstreamState};
use turnbuckle_protocol::{
    Principal,
    authenticator::{AuthRejection, AuthRequest, Authenticator, BoxFuture, MetadataDocument},
};
use turnbuckle_server::{
    http::Http,
    testing::{self, TestHttpClient},
};

use crate::{
    failing_server::{HTTP_URL, Scripted, Step, result},
    policy::{session_call, stateless_call},
    upstreams::{ERAS, desk, upstream},
};

const ISSUER: &str = "https://as.example";
/// The lifetime of exchanged tokens in seconds.
const LIFETIME: u64 = 600;

/// The authorization server: issues numbered tokens, and records the tokens that it gets in exchange.
#[derive(Clone, Default)]
struct AuthorizationServer(Arc<AuthorizationServerState>);

#[derive(Default)]
struct AuthorizationServerState {
    subjects: Mutex<Vec<String>>,
    rejects: AtomicBool,
}

impl AuthorizationServer {
    fn subjects(&self) -> Vec<String> {
        self.0.subjects.lock().unwrap().clone()
    }

    fn exchange(&self) -> TokenExchange {
        TokenExchange::new(HTTP_URL, ISSUER, "gateway", Arc::new(self.clone()))
            .client_secret(Secret::new("sesame"))
    }

    fn respond(&self, request: &FetchRequest) -> (u16, Value) {
        if request
            .url
            .ends_with("/.well-known/oauth-authorization-server")
        {
            let token_endpoint = format!("{ISSUER}/token");
            return (
                200,
                json!({ "issuer": ISSUER, "token_endpoint": token_endpoint }),
            );
        }
        let form = String::from_utf8(request.body.clone()).unwrap();
        let mut fields = form.split('&').filter_map(|field| field.split_once('='));
        let subject = fields.find(|(name, _)| *name == "subject_token").unwrap().1;
        let mut subjects = self.0.subjects.lock().unwrap();
        subjects.push(subject.to_owned());
        if self.0.rejects.load(Ordering::SeqCst) {
            return (400, json!({ "error": "invalid_grant" }));
        }
        let token = format!("issued-{}", subjects.len());
        let kind = "urn:ietf:params:oauth:token-type:access_token";
        let issued = json!({ "access_token": token, "token_type": "Bearer",
            "issued_token_type": kind, "expires_in": LIFETIME });
        (200, issued)
    }
}

impl Fetch for AuthorizationServer {
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>> {
        let (status, body) = self.respond(&request);
        let kind = ("content-type".to_owned(), "application/json".to_owned());
        let response = FetchResponse::new(status, vec![kind], body.to_string());
        Box::pin(async move { Ok(response) })
    }
}

/// Accepts `Bearer caller-NAME-SCOPE-NUMBER`, and allows the exchange of all but `static`.
pub(crate) struct TokenAuthenticator;

impl TokenAuthenticator {
    fn token<'a>(request: AuthRequest<'a>) -> &'a str {
        request.authorization[0].strip_prefix("Bearer ").unwrap()
    }
}

impl Authenticator for TokenAuthenticator {
    fn authenticate<'a>(
        &'a self,
        request: AuthRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<Principal>, AuthRejection>> {
        let parts: Vec<_> = Self::token(request).split('-').collect();
        let mut principal = Principal::new("https://issuer.example", parts[1]);
        principal.scopes = BTreeSet::from([parts[2].to_owned()]);
        // Later tokens expire later.
        principal.expires_at = Some(4_000_000_000 + parts[3].parse::<u64>().unwrap());
        Box::pin(async move { Ok(Arc::new(principal)) })
    }

    fn insufficient_scope(&self, _: &Principal, _: &BTreeSet<String>) -> AuthRejection {
        AuthRejection::new(403, "more scopes are needed")
    }

    fn metadata_document<'a>(&'a self, _: &'a str) -> Option<BoxFuture<'a, MetadataDocument>> {
        None
    }

    fn exchangeable_token<'a>(
        &self,
        request: AuthRequest<'a>,
        caller: &Principal,
    ) -> Option<&'a str> {
        (caller.subject != "static").then(|| Self::token(request))
    }
}

fn server(mode: LifecycleMode) -> Scripted {
    Scripted::new(mode, |_: &Value, _| Step::Default)
}

async fn start(upstreams: impl IntoIterator<Item = Upstream>) -> RunningGateway {
    let gateway = Gateway::new("gateway", "1").authenticated_callers(true);
    let gateway = upstreams.into_iter().fold(gateway, Gateway::upstream);
    gateway.start().await.unwrap()
}

/// A client that calls tools in its era.
struct Caller {
    client: TestHttpClient,
    call: fn(&str) -> Value,
}

impl Caller {
    async fn new(gateway: &RunningGateway, mode: LifecycleMode, token: &str) -> Self {
        let http = Http::new(gateway.server()).authenticator(TokenAuthenticator);
        let mut client = testing::http(http);
        client.authorization = Some(format!("Bearer {token}"));
        if mode == LifecycleMode::Legacy {
            let client = client.in_session("2025-11-25").await;
            return Self {
                client,
                call: session_call,
            };
        }
        Self {
            client,
            call: stateless_call,
        }
    }

    async fn call(&self, tool: &str) -> Value {
        self.client.post(&(self.call)(tool)).await.json().await
    }

    async fn request(&self, method: &str, mut params: Value) -> Value {
        if let Some(meta) = (self.call)("x")["params"].get("_meta") {
            params["_meta"] = meta.clone();
        }
        let request = json!({ "jsonrpc": "2.0", "id": 2, "method": method, "params": params });
        self.client.post(&request).await.json().await
    }

    async fn expect_done(&self, tool: &str) {
        let response = self.call(tool).await;
        let text = &response["result"]["content"][0]["text"];
        assert_eq!(text, "done", "{response}");
    }
}

/// Both eras of the client, with both of the server.
fn pairs() -> impl Iterator<Item = (LifecycleMode, LifecycleMode)> {
    ERAS.into_iter().flat_map(|down| ERAS.map(|up| (down, up)))
}

#[tokio::test(start_paused = true)]
async fn a_token_is_exchanged_once_for_many_calls_and_again_after_its_expiry() {
    for (down, up) in pairs() {
        let (issuer, server) = (AuthorizationServer::default(), server(up));
        let gateway = start([server.exchanging_upstream("x", issuer.exchange())]).await;
        let ada = Caller::new(&gateway, down, "caller-ada-read-1").await;

        for _ in 0..3 {
            ada.expect_done("x").await;
        }
        assert_eq!(issuer.subjects(), ["caller-ada-read-1"], "{down:?} {up:?}");
        assert_eq!(server.tokens("tools/call"), ["Bearer issued-1"; 3]);

        tokio::time::sleep(Duration::from_secs(LIFETIME)).await;
        let mut ada = ada;
        // The caller has renewed its token, too.
        ada.client.authorization = Some("Bearer caller-ada-read-2".to_owned());
        ada.expect_done("x").await;
        assert_eq!(
            issuer.subjects(),
            ["caller-ada-read-1", "caller-ada-read-2"]
        );
        assert_eq!(server.tokens("tools/call")[3], "Bearer issued-2");
        let everything = server.everything();
        assert!(!everything.contains("caller-"), "{everything}");
        assert!(!format!("{gateway:?}").contains("caller-ada"));
    }
}

#[tokio::test(start_paused = true)]
async fn an_open_connection_exchanges_the_newest_token_of_its_caller() {
    let (issuer, server) = (
        AuthorizationServer::default(),
        server(LifecycleMode::Modern),
    );
    let gateway = start([server.exchanging_upstream("x", issuer.exchange())]).await;
    let mut ada = Caller::new(&gateway, LifecycleMode::Modern, "caller-ada-read-1").await;
    for number in [1, 2, 3] {
        ada.client.authorization = Some(format!("Bearer caller-ada-read-{number}"));
        ada.expect_done("x").await;
        tokio::time::sleep(Duration::from_secs(LIFETIME / 3)).await;
    }

    // A request that was sent with an older token.
    ada.client.authorization = Some("Bearer caller-ada-read-1".to_owned());
    ada.expect_done("x").await;

    assert_eq!(
        issuer.subjects(),
        ["caller-ada-read-1", "caller-ada-read-3"]
    );
    assert_eq!(server.received("server/discover").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn callers_and_scopes_have_tokens_and_connections_of_their_own() {
    for (down, up) in pairs() {
        let sharings = [
            Sharing::Auto,
            Sharing::Principal,
            Sharing::Session,
            Sharing::Call,
        ];
        for sharing in sharings {
            let (issuer, server) = (AuthorizationServer::default(), server(up));
            let x = server.exchanging_upstream("x", issuer.exchange());
            let gateway = start([x.sharing(sharing)]).await;
            let tokens = [
                "caller-ada-read-1",
                "caller-bo-read-1",
                "caller-ada-write-1",
            ];
            for token in tokens {
                let caller = Caller::new(&gateway, down, token).await;
                caller.expect_done("x").await;
                caller.expect_done("x").await;
            }

            assert_eq!(issuer.subjects(), tokens, "{down:?} {up:?} {sharing:?}");
            let expected = [1, 1, 2, 2, 3, 3].map(|number| format!("Bearer issued-{number}"));
            assert_eq!(server.tokens("tools/call"), expected);
            let everything = server.everything();
            assert!(!everything.contains("caller-"), "{everything}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_never_uses_a_connection_with_other_scopes() {
    let (issuer, server) = (
        AuthorizationServer::default(),
        server(LifecycleMode::Legacy),
    );
    let gateway = start([server.exchanging_upstream("x", issuer.exchange())]).await;
    let mut ada = Caller::new(&gateway, LifecycleMode::Legacy, "caller-ada-write-1").await;
    ada.expect_done("x").await;
    ada.client.authorization = Some("Bearer caller-ada-read-1".to_owned());
    ada.expect_done("x").await;

    assert_eq!(
        server.tokens("tools/call"),
        ["Bearer issued-1", "Bearer issued-2"]
    );
    assert_eq!(
        issuer.subjects(),
        ["caller-ada-write-1", "caller-ada-read-1"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_rejected_token_is_exchanged_again_once() {
    for (down, up) in pairs() {
        let issuer = AuthorizationServer::default();
        let revoked = Arc::new(AtomicUsize::new(0));
        let least = Arc::clone(&revoked);
        let server = server(up).token_check(move |_: &str, token: &str| {
            let number = token.strip_prefix("Bearer issued-").unwrap();
            number.parse::<usize>().unwrap() > least.load(Ordering::SeqCst)
        });
        let gateway = start([server.exchanging_upstream("x", issuer.exchange())]).await;
        let ada = Caller::new(&gateway, down, "caller-ada-read-1").await;
        ada.expect_done("x").await;

        revoked.store(1, Ordering::SeqCst);
        ada.expect_done("x").await;
        assert_eq!(issuer.subjects().len(), 2, "{down:?} {up:?}");

        revoked.store(usize::MAX, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_secs(60)).await;
        for _ in 0..3 {
            let refused = ada.call("x").await;
            assert_eq!(refused["result"]["isError"], true, "{refused}");
            let text = refused.to_string();
            assert!(text.contains("requires a login"), "{text}");
            assert!(!text.contains("issued-"), "{text}");
        }
        assert_eq!(issuer.subjects().len(), 3, "one more for three calls");
        let everything = server.everything();
        assert!(!everything.contains("caller-"), "{everything}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_exchange_is_an_error_for_its_caller_only() {
    for (down, up) in pairs() {
        let (issuer, server) = (AuthorizationServer::default(), server(up));
        let x = server.exchanging_upstream("x", issuer.exchange());
        let gateway = start([x.login_hint("read the log")]).await;
        issuer.0.rejects.store(true, Ordering::SeqCst);
        let ada = Caller::new(&gateway, down, "caller-ada-read-1").await;

        let refused = ada.call("x").await;
        assert_eq!(refused["result"]["isError"], true, "{refused}");
        let text = &refused["result"]["content"][0]["text"];
        assert_eq!(text, "server `x` requires a login; read the log");
        let refused = ada.request("prompts/get", json!({ "name": "a" })).await;
        assert_eq!(refused["error"]["data"]["kind"], "login", "{refused}");
        assert_eq!(gateway.status()[0].state, UpstreamState::Up);
        assert!(server.received("tools/call").is_empty());

        issuer.0.rejects.store(false, Ordering::SeqCst);
        let bo = Caller::new(&gateway, down, "caller-bo-read-1").await;
        bo.expect_done("x").await;
        tokio::time::sleep(Duration::from_secs(30)).await;
        ada.expect_done("x").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_without_an_exchangeable_token_gets_an_error() {
    let (issuer, server) = (
        AuthorizationServer::default(),
        server(LifecycleMode::Modern),
    );
    let gateway = start([server.exchanging_upstream("x", issuer.exchange())]).await;
    let other = Caller::new(&gateway, LifecycleMode::Modern, "caller-static-read-1").await;

    let refused = other.call("x").await;

    assert_eq!(refused["result"]["isError"], true, "{refused}");
    assert!(issuer.subjects().is_empty());
    assert_eq!(server.everything(), "[]");
}

#[tokio::test(start_paused = true)]
async fn lists_of_one_caller_are_not_shown_to_others() {
    for (down, up) in pairs() {
        let issuer = AuthorizationServer::default();
        // The first token sees another tool.
        let is_first = Arc::new(AtomicBool::new(false));
        let first = Arc::clone(&is_first);
        let script = move |message: &Value, _| {
            if message["method"] != "tools/list" || !first.load(Ordering::SeqCst) {
                return Step::Default;
            }
            let tools = json!([{ "name": "secret", "inputSchema": { "type": "object" } }]);
            let listed = json!({ "tools": tools, "cacheScope": "public", "ttlMs": 60_000 });
            Step::Messages(vec![result(message, &listed)])
        };
        let server = Scripted::new(up, script).token_check(move |_: &str, token: &str| {
            is_first.store(token.ends_with("issued-1"), Ordering::SeqCst);
            true
        });
        let x = server.exchanging_upstream("x", issuer.exchange());
        for sharing in [Sharing::Auto, Sharing::Call] {
            let other = upstream("desk", LifecycleMode::Modern, desk());
            let gateway = start([x.clone().sharing(sharing), other]).await;
            let mut lists = Vec::new();
            for token in ["caller-ada-read-1", "caller-bo-read-1"] {
                let caller = Caller::new(&gateway, down, token).await;
                let listed = caller.request("tools/list", json!({})).await;
                if down == LifecycleMode::Modern {
                    assert_eq!(listed["result"]["cacheScope"], "private", "{listed}");
                }
                lists.push(listed["result"]["tools"].to_string());
            }
            assert!(lists[0].contains("x_secret"), "{}", lists[0]);
            assert!(!lists[1].contains("x_secret"), "{}", lists[1]);
            assert!(lists[1].contains("\"x_x\""), "{}", lists[1]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_gateway_does_not_start_without_callers_or_with_shared_connections() {
    let x = || {
        server(LifecycleMode::Modern)
            .exchanging_upstream("x", AuthorizationServer::default().exchange())
    };

    let started = Gateway::new("gateway", "1").upstream(x()).start().await;
    assert!(matches!(started, Err(StartError::UnauthenticatedCallers(name)) if name == "x"));
    let shared = Gateway::new("gateway", "1")
        .authenticated_callers(true)
        .upstream(x().sharing(Sharing::All));
    let started = shared.start().await;
    assert!(matches!(started, Err(StartError::SharedCredentials(name)) if name == "x"));
}

#[tokio::test(start_paused = true)]
async fn a_server_of_callers_is_ready_before_the_first_and_down_after_a_failure() {
    let issuer = AuthorizationServer::default();
    let is_broken = Arc::new(AtomicBool::new(true));
    let broken = Arc::clone(&is_broken);
    let server = Scripted::new(LifecycleMode::Legacy, move |_: &Value, _| {
        if broken.load(Ordering::SeqCst) {
            return Step::Status(500, "");
        }
        Step::Default
    });
    let x = server.exchanging_upstream("x", issuer.exchange());
    let gateway = start([x.required(true)]).await;
    assert!(gateway.is_ready());
    assert_eq!(server.everything(), "[]");
    let ada = Caller::new(&gateway, LifecycleMode::Modern, "caller-ada-read-1").await;

    let failed = ada.call("x").await;
    assert!(
        failed["result"].is_null() || failed["result"]["isError"] == true,
        "{failed}"
    );
    assert_eq!(gateway.status()[0].state, UpstreamState::Down);
    assert!(!gateway.is_ready());

    is_broken.store(false, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(gateway.is_ready());
    ada.expect_done("x").await;
    assert_eq!(gateway.status()[0].state, UpstreamState::Up);
}

#[tokio::test(start_paused = true)]
async fn instructions_for_one_caller_are_not_shown_to_others() {
    for up in ERAS {
        let issuer = AuthorizationServer::default();
        let server = Scripted::new(up, |message: &Value, _| {
            let method = message["method"].as_str().unwrap_or_default();
            let info = json!({ "name": "scripted", "version": "1" });
            let mut described =
                json!({ "capabilities": { "tools": {} }, "instructions": "Hello Ada." });
            match method {
                "initialize" => {
                    described["protocolVersion"] = "2025-11-25".into();
                    described["serverInfo"] = info;
                }
                "server/discover" => {
                    described["supportedVersions"] = json!(["2026-07-28"]);
                    described["_meta"] = json!({ "io.modelcontextprotocol/serverInfo": info });
                }
                _ => return Step::Default,
            }
            Step::Messages(vec![result(message, &described)])
        });
        let gateway = start([server.exchanging_upstream("x", issuer.exchange())]).await;
        let ada = Caller::new(&gateway, LifecycleMode::Modern, "caller-ada-read-1").await;
        ada.expect_done("x").await;

        let bo = Caller::new(&gateway, LifecycleMode::Modern, "caller-bo-read-1").await;
        let discovered = bo.request("server/discover", json!({})).await;

        assert!(discovered["result"].is_object(), "{discovered}");
        assert!(!discovered.to_string().contains("Ada"), "{discovered}");
    }
}
