//! Logins of callers with accounts of their own at an upstream server.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use turnbuckle_auth::{
    AuthorizationError, AuthorizationStep, CredentialProvider, Credentials, RetryDecision, Secret,
    UnauthorizedResponse, UnsignedRequest,
};
use turnbuckle_client::LifecycleMode;
use turnbuckle_gateway::{
    CallerLogin, CallerLogins, Gateway, LoginCompletion, RunningGateway, Upstream, UpstreamCaller,
    UpstreamState,
};
use turnbuckle_protocol::authenticator::BoxFuture;
use turnbuckle_server::{http::Http, testing, testing::TestHttpClient};

use crate::{
    failing_server::{Scripted, Step},
    token_exchange::TokenAuthenticator,
    upstreams::{ERAS, desk, upstream},
};

const ADA: &str = "caller-ada-read-1";
const BO: &str = "caller-bo-read-1";

/// The logins at the server: each user is known by its subject, and has the token `token-of-SUBJECT` after the login.
#[derive(Clone, Default)]
struct Accounts(Arc<Mutex<AccountsState>>);

#[derive(Default)]
struct AccountsState {
    tokens: BTreeMap<String, u64>,
    open: BTreeMap<String, (CallerLogin, Option<LoginCompletion>)>,
    links: usize,
    is_full: bool,
}

impl Accounts {
    /// The user has logged in.
    fn complete(&self, subject: &str) {
        let mut state = self.0.lock().unwrap();
        *state.tokens.entry(subject.to_owned()).or_default() += 1;
        let (_, completion) = state.open.remove(subject).unwrap();
        completion.unwrap().complete();
    }

    /// The login ends without success.
    fn fail(&self, subject: &str) {
        self.0.lock().unwrap().open.remove(subject);
    }

    fn log_out(&self, subject: &str) {
        self.0.lock().unwrap().tokens.remove(subject);
    }

    fn links(&self) -> usize {
        self.0.lock().unwrap().links
    }
}

impl CallerLogins for Accounts {
    fn begin_login(&self, caller: &UpstreamCaller) -> Option<CallerLogin> {
        if let Some(open) = self.open_login(caller) {
            return Some(open);
        }
        let mut state = self.0.lock().unwrap();
        if state.is_full {
            return None;
        }
        state.links += 1;
        let subject = caller.principal().subject.clone();
        let url = format!("https://bridge.example/connect/{}-{subject}", state.links);
        let (login, completion) = CallerLogin::new(url);
        state
            .open
            .insert(subject, (login.clone(), Some(completion)));
        Some(login)
    }

    fn open_login(&self, caller: &UpstreamCaller) -> Option<CallerLogin> {
        let state = self.0.lock().unwrap();
        let open = state.open.get(&caller.principal().subject)?;
        Some(open.0.clone())
    }
}

/// The credentials of a user.
struct AccountCredentials {
    accounts: Accounts,
    subject: String,
}

impl CredentialProvider for AccountCredentials {
    fn credentials<'a>(
        &'a self,
        _: UnsignedRequest<'a>,
    ) -> BoxFuture<'a, Result<Credentials, AuthorizationError>> {
        let state = self.accounts.0.lock().unwrap();
        let number = state.tokens.get(&self.subject).copied();
        let header = |_| {
            let token = format!("Bearer token-of-{}", self.subject);
            ("authorization", Secret::new(token))
        };
        let headers = number.map(header).into_iter().collect();
        Box::pin(std::future::ready(Ok(Credentials::new(
            number.unwrap_or_default(),
            headers,
        ))))
    }

    fn on_unauthorized<'a>(
        &'a self,
        _: UnauthorizedResponse<'a>,
    ) -> BoxFuture<'a, Result<RetryDecision, AuthorizationError>> {
        let error = AuthorizationError::new(AuthorizationStep::Authorization, "log in");
        Box::pin(std::future::ready(Err(error)))
    }
}

/// Returns a server that requires a token, and the accounts there.
fn server(mode: LifecycleMode) -> (Scripted, Accounts) {
    server_with_open_methods(mode, |_| false)
}

/// Returns a server that requires a token for methods that are not open, and the accounts there.
fn server_with_open_methods(
    mode: LifecycleMode,
    is_open: fn(&str) -> bool,
) -> (Scripted, Accounts) {
    let accounts = Accounts::default();
    let known = accounts.clone();
    let server = Scripted::new(mode, |_: &Value, _| Step::Default);
    let server = server.token_check(move |method: &str, token: &str| {
        let subject = token.strip_prefix("Bearer token-of-");
        is_open(method)
            || subject.is_some_and(|subject| known.0.lock().unwrap().tokens.contains_key(subject))
    });
    (server, accounts)
}

fn per_user(server: &Scripted, name: &str, accounts: &Accounts) -> Upstream {
    let of = accounts.clone();
    let credentials = move |caller: &UpstreamCaller| AccountCredentials {
        accounts: of.clone(),
        subject: caller.principal().subject.clone(),
    };
    let upstream = server.upstream_of_callers(name, credentials);
    upstream.caller_logins(Arc::new(accounts.clone()))
}

async fn start(upstreams: impl IntoIterator<Item = Upstream>) -> RunningGateway {
    let gateway = Gateway::new("gateway", "1").authenticated_callers(true);
    let gateway = upstreams.into_iter().fold(gateway, Gateway::upstream);
    gateway.start().await.unwrap()
}

fn with_urls() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} } })
}

/// A client with an authenticated user.
struct Caller {
    client: TestHttpClient,
    is_modern: bool,
    capabilities: Value,
}

impl Caller {
    async fn new(
        gateway: &RunningGateway,
        mode: LifecycleMode,
        token: &str,
        capabilities: Value,
    ) -> Self {
        let http = Http::new(gateway.server()).authenticator(TokenAuthenticator);
        let mut client = testing::http(http);
        client.authorization = Some(format!("Bearer {token}"));
        let is_modern = mode == LifecycleMode::Modern;
        if !is_modern {
            begin_session(&mut client, &capabilities).await;
        }
        Self {
            client,
            is_modern,
            capabilities,
        }
    }

    async fn request(&self, method: &str, mut params: Value) -> Value {
        if self.is_modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "0" },
                "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            });
        }
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let response = self.client.post(&request).await;
        if response.is_stream() {
            // A response that takes a while.
            return response.events().message().await.unwrap();
        }
        response.json().await
    }

    async fn call(&self, tool: &str) -> Value {
        self.request("tools/call", json!({ "name": tool, "arguments": {} }))
            .await
    }

    /// Repeats a call with the response of the user.
    async fn retry(&self, tool: &str, required: &Value, action: &str) -> Value {
        let params = json!({ "name": tool, "arguments": {},
            "requestState": required["result"]["requestState"],
            "inputResponses": { "login": { "action": action } } });
        self.request("tools/call", params).await
    }

    async fn expect_done(&self, tool: &str) {
        expect_done(&self.call(tool).await);
    }
}

/// Initializes a session with these capabilities.
async fn begin_session(client: &mut TestHttpClient, capabilities: &Value) {
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities,
        "clientInfo": { "name": "test", "version": "0" } });
    let initialize = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
    let response = client.post(&initialize).await;
    client.session = response.header("mcp-session-id").map(str::to_owned);
    client.version = Some("2025-11-25".to_owned());
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(client.post(&initialized).await.status(), 202);
}

fn expect_done(response: &Value) {
    let text = &response["result"]["content"][0]["text"];
    assert_eq!(text, "done", "{response}");
}

fn pairs() -> impl Iterator<Item = (LifecycleMode, LifecycleMode)> {
    ERAS.into_iter().flat_map(|down| ERAS.map(|up| (down, up)))
}

#[tokio::test(start_paused = true)]
async fn a_modern_client_gets_the_link_in_a_round_trip_and_its_retry_waits_for_the_login() {
    for up in ERAS {
        let (server, accounts) = server(up);
        let gateway = start([per_user(&server, "x", &accounts)]).await;
        let ada = Caller::new(&gateway, LifecycleMode::Modern, ADA, with_urls()).await;

        let required = ada.call("a").await;
        let asked = &required["result"]["inputRequests"]["login"];
        assert_eq!(
            required["result"]["resultType"], "input_required",
            "{required}"
        );
        assert_eq!(asked["method"], "elicitation/create");
        assert_eq!(asked["params"]["mode"], "url");
        assert_eq!(
            asked["params"]["url"],
            "https://bridge.example/connect/1-ada"
        );

        let user = async {
            tokio::time::sleep(Duration::from_secs(20)).await;
            accounts.complete("ada");
        };
        let (retried, ()) = tokio::join!(ada.retry("a", &required, "accept"), user);
        expect_done(&retried);
        ada.expect_done("a").await;
        assert_eq!(server.tokens("tools/call"), ["Bearer token-of-ada"; 2]);
        assert_eq!(accounts.links(), 1);
        assert!(!server.everything().contains("caller-"));
        assert!(!server.everything().contains("inputResponses"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_gets_the_link_in_an_error_and_a_notification_of_the_login() {
    for up in ERAS {
        let (server, accounts) = server(up);
        let gateway = start([per_user(&server, "x", &accounts)]).await;
        let ada = Caller::new(&gateway, LifecycleMode::Legacy, ADA, with_urls()).await;
        let other = Caller::new(&gateway, LifecycleMode::Legacy, ADA, with_urls()).await;
        let mut events = ada.client.get(None).await.events();
        let mut other_events = other.client.get(None).await.events();

        let required = ada.call("a").await;
        assert_eq!(required["error"]["code"], -32042, "{required}");
        let elicitation = &required["error"]["data"]["elicitations"][0];
        assert_eq!(elicitation["mode"], "url");
        assert_eq!(elicitation["url"], "https://bridge.example/connect/1-ada");
        accounts.complete("ada");

        let id = elicitation["elicitationId"].as_str().unwrap();
        let mut notified = Vec::new();
        while notified.len() < 4 {
            notified.push(events.message().await.unwrap());
        }
        let completed = json!({ "elicitationId": id });
        let is_completed = |message: &Value| {
            message["method"] == "notifications/elicitation/complete"
                && message["params"] == completed
        };
        assert_eq!(
            notified.iter().filter(|it| is_completed(it)).count(),
            1,
            "{notified:?}"
        );
        let is_list = |message: &Value| message["method"] == "notifications/tools/list_changed";
        assert!(notified.iter().any(is_list), "{notified:?}");
        // Only the session that was asked is notified of the elicitation.
        let first = other_events.message().await.unwrap();
        assert!(!is_completed(&first), "{first}");
        ada.expect_done("a").await;
        assert_eq!(accounts.links(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_without_url_elicitation_gets_the_link_as_text() {
    for (down, up) in pairs() {
        let (server, accounts) = server(up);
        let gateway = start([per_user(&server, "x", &accounts)]).await;
        let ada = Caller::new(&gateway, down, ADA, json!({})).await;

        let refused = ada.call("a").await;
        assert_eq!(refused["result"]["isError"], true, "{refused}");
        let text = refused["result"]["content"][0]["text"].as_str().unwrap();
        assert_eq!(
            text,
            "server `x` requires a login; the user has to open https://bridge.example/connect/1-ada in a browser and log in, then call again"
        );
        let refused = ada.request("prompts/get", json!({ "name": "p" })).await;
        assert_eq!(refused["error"]["code"], -32603, "{refused}");
        assert_eq!(gateway.status()[0].state, UpstreamState::Up);

        accounts.complete("ada");
        tokio::time::sleep(Duration::from_millis(1)).await;
        ada.expect_done("a").await;
    }
}

#[tokio::test(start_paused = true)]
async fn callers_have_links_and_tokens_of_their_own() {
    for (down, up) in pairs() {
        let (server, accounts) = server(up);
        let gateway = start([per_user(&server, "x", &accounts)]).await;
        let ada = Caller::new(&gateway, down, ADA, json!({})).await;
        let bo = Caller::new(&gateway, down, BO, json!({})).await;
        let links = [ada.call("a").await, bo.call("a").await].map(|refused| refused.to_string());
        assert!(links[0].contains("-ada") && !links[0].contains("-bo"));
        assert!(links[1].contains("-bo") && !links[1].contains("-ada"));

        accounts.complete("ada");
        tokio::time::sleep(Duration::from_millis(1)).await;
        ada.expect_done("a").await;
        let refused = bo.call("a").await;
        assert_eq!(refused["result"]["isError"], true, "{refused}");
        accounts.complete("bo");
        tokio::time::sleep(Duration::from_millis(1)).await;
        bo.expect_done("a").await;
        ada.expect_done("a").await;

        let tokens = server.tokens("tools/call");
        let tokens = tokens
            .iter()
            .map(|token| token.strip_prefix("Bearer token-of-").unwrap());
        assert_eq!(tokens.collect::<Vec<_>>(), ["ada", "bo", "ada"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_login_that_the_user_declines_ends_the_call() {
    let (server, accounts) = server(LifecycleMode::Modern);
    let gateway = start([per_user(&server, "x", &accounts)]).await;
    let ada = Caller::new(&gateway, LifecycleMode::Modern, ADA, with_urls()).await;
    for action in ["decline", "cancel"] {
        let required = ada.call("a").await;

        let refused = ada.retry("a", &required, action).await;

        assert_eq!(refused["result"]["isError"], true, "{refused}");
        assert!(refused.to_string().contains("declined"), "{refused}");
    }
    assert!(server.received("tools/call").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_retry_before_the_login_is_completed_gets_the_link_again() {
    let (server, accounts) = server(LifecycleMode::Modern);
    let gateway = start([per_user(&server, "x", &accounts)]).await;
    let ada = Caller::new(&gateway, LifecycleMode::Modern, ADA, with_urls()).await;
    let required = ada.call("a").await;

    let again = ada.retry("a", &required, "accept").await;
    assert_eq!(again["result"]["resultType"], "input_required", "{again}");
    assert_eq!(accounts.links(), 1);
    accounts.fail("ada");
    let again = ada.retry("a", &again, "accept").await;
    assert_eq!(again["result"]["resultType"], "input_required", "{again}");
    assert_eq!(accounts.links(), 2);

    accounts.complete("ada");
    expect_done(&ada.retry("a", &again, "accept").await);
}

#[tokio::test(start_paused = true)]
async fn the_state_of_one_caller_or_call_is_not_one_of_another() {
    let (server, accounts) = server(LifecycleMode::Modern);
    let gateway = start([per_user(&server, "x", &accounts)]).await;
    let ada = Caller::new(&gateway, LifecycleMode::Modern, ADA, with_urls()).await;
    let bo = Caller::new(&gateway, LifecycleMode::Modern, BO, with_urls()).await;
    let required = ada.call("a").await;
    bo.call("a").await;
    accounts.complete("ada");
    accounts.complete("bo");
    tokio::time::sleep(Duration::from_millis(1)).await;

    for refused in [
        bo.retry("a", &required, "accept").await,
        ada.retry("b", &required, "accept").await,
    ] {
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    assert!(server.received("tools/call").is_empty());
    expect_done(&ada.retry("a", &required, "accept").await);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_is_not_logged_in_sees_a_tool_for_it() {
    for (down, up) in pairs() {
        let (server, accounts) = server(up);
        let x = per_user(&server, "x", &accounts);
        let gateway = start([x, upstream("desk", up, desk())]).await;
        let ada = Caller::new(&gateway, down, ADA, json!({})).await;
        let names = |listed: &Value| -> Vec<String> {
            let tools = listed["result"]["tools"].as_array().unwrap().iter();
            tools
                .map(|tool| tool["name"].as_str().unwrap().to_owned())
                .collect()
        };

        let before = names(&ada.request("tools/list", json!({})).await);
        assert!(
            before.contains(&"x_turnbuckle_log_in".to_owned()),
            "{before:?}"
        );
        let refused = ada.call("x_turnbuckle_log_in").await;
        assert!(refused.to_string().contains("/connect/1-ada"), "{refused}");
        accounts.complete("ada");
        tokio::time::sleep(Duration::from_secs(1)).await;

        let done = ada.call("x_turnbuckle_log_in").await;
        assert!(done.to_string().contains("is logged in"), "{done}");
        let after = names(&ada.request("tools/list", json!({})).await);
        assert!(
            !after.contains(&"x_turnbuckle_log_in".to_owned()),
            "{after:?}"
        );
        assert!(after.iter().any(|name| name.starts_with("x_")), "{after:?}");
        assert!(server.received("tools/call").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn the_login_tool_requires_a_login_at_a_server_that_checks_tokens_only_for_tools() {
    for (down, up) in pairs() {
        let (server, accounts) =
            server_with_open_methods(up, |method| !method.starts_with("tools/"));
        let gateway = start([per_user(&server, "x", &accounts)]).await;
        let ada = Caller::new(&gateway, down, ADA, json!({})).await;
        let listed = ada.request("tools/list", json!({})).await;
        let name = &listed["result"]["tools"][0]["name"];
        assert_eq!(name, "turnbuckle_log_in", "{listed}");

        let refused = ada.call("turnbuckle_log_in").await;
        assert_eq!(refused["result"]["isError"], true, "{refused}");
        assert!(refused.to_string().contains("/connect/1-ada"), "{refused}");
        accounts.complete("ada");
        tokio::time::sleep(Duration::from_millis(1)).await;

        let listed = ada.request("tools/list", json!({})).await;
        assert_eq!(listed["result"]["tools"][0]["name"], "x", "{listed}");
        let done = ada.call("turnbuckle_log_in").await;
        assert!(done.to_string().contains("is logged in"), "{done}");
        // Lists that are in memory do not show a login that has ended.
        accounts.log_out("ada");
        let refused = ada.call("turnbuckle_log_in").await;
        assert!(refused.to_string().contains("/connect/2-ada"), "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn lists_of_the_only_server_are_not_an_error_before_the_login() {
    for (down, up) in pairs() {
        let (server, accounts) = server(up);
        let gateway = start([per_user(&server, "x", &accounts)]).await;
        let ada = Caller::new(&gateway, down, ADA, json!({})).await;

        let tools = ada.request("tools/list", json!({})).await;
        assert_eq!(
            tools["result"]["tools"][0]["name"], "turnbuckle_log_in",
            "{tools}"
        );
        let prompts = ada.request("prompts/list", json!({})).await;
        assert_eq!(prompts["result"]["prompts"], json!([]), "{prompts}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_login_that_has_ended_is_requested_again() {
    for (down, up) in pairs() {
        let (server, accounts) = server(up);
        let gateway = start([per_user(&server, "x", &accounts)]).await;
        let ada = Caller::new(&gateway, down, ADA, json!({})).await;
        ada.call("a").await;
        accounts.complete("ada");
        tokio::time::sleep(Duration::from_millis(1)).await;
        ada.expect_done("a").await;

        accounts.log_out("ada");
        let refused = ada.call("a").await;
        assert!(refused.to_string().contains("/connect/2-ada"), "{refused}");
        accounts.complete("ada");
        tokio::time::sleep(Duration::from_secs(30)).await;
        ada.expect_done("a").await;
    }
}

#[tokio::test(start_paused = true)]
async fn without_room_for_a_login_the_call_is_an_error_without_a_link() {
    let (server, accounts) = server(LifecycleMode::Modern);
    let x = per_user(&server, "x", &accounts).login_hint("try again later");
    let gateway = start([x]).await;
    accounts.0.lock().unwrap().is_full = true;
    let ada = Caller::new(&gateway, LifecycleMode::Modern, ADA, with_urls()).await;

    let refused = ada.call("a").await;

    let text = &refused["result"]["content"][0]["text"];
    assert_eq!(text, "server `x` requires a login; try again later");
}

#[tokio::test(start_paused = true)]
async fn callers_without_authentication_are_the_local_user() {
    let (server, accounts) = server(LifecycleMode::Modern);
    let x = per_user(&server, "x", &accounts).local_user(true);
    let gateway = Gateway::new("gateway", "1").upstream(x);
    let gateway = gateway.start().await.unwrap();
    let local = Caller {
        client: testing::http(Http::new(gateway.server())),
        is_modern: true,
        capabilities: json!({}),
    };

    let refused = local.call("a").await;
    assert!(refused.to_string().contains("/connect/1-"), "{refused}");
    accounts.complete("");
    tokio::time::sleep(Duration::from_millis(1)).await;
    local.expect_done("a").await;
}
