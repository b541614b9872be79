use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::{Map, Value, json};
use turnbuckle_auth::{
    CredentialProvider as _, UnsignedRequest,
    client::{MemoryStore, OAuth},
    fetch::{Fetch, FetchError, FetchRequest, FetchResponse},
    jwt::SigningKey,
};

use super::{
    table::{LIFETIME, MAX_PER_USER, MAX_TOTAL},
    *,
};

const FRONT: &str = "https://bridge.example";
const AUDIENCE: &str = "https://bridge.example/mcp";
const ISSUER: &str = "https://as.example";
const SERVER: &str = "https://weather.example/mcp";
/// The authorization server of the server.
const LOGIN: &str = "https://login.example";
/// The redirect URIs for `ISSUER` and `LOGIN`.
const CALLBACK_URL: &str = "https://bridge.example/connect/callback";
const LOGIN_CALLBACK_URL: &str = "https://bridge.example/connect/callback/ced4229bf4ad3faa";

/// The issuer of callers, and the authorization server of the server `weather`. The code of a login is the name of the user.
struct Network {
    key: SigningKey,
    requests: Mutex<Vec<String>>,
    /// Whether `LOGIN` is hostile: it sends browsers to `ISSUER`, with the client id of the bridge there.
    is_hostile: AtomicBool,
}

impl Network {
    fn respond(&self, request: &FetchRequest) -> (u16, Value) {
        let url = &*request.url;
        let body = String::from_utf8_lossy(&request.body).into_owned();
        lock(&self.requests).push(format!("{url} {body}"));
        let field = |name: &str| {
            let mut pairs = turnbuckle_text::percent::form_pairs(&body);
            pairs.find(|(own, _)| own == name).map(|(_, value)| value)
        };
        let metadata = |issuer: &str| {
            json!({
                "issuer": issuer,
                "authorization_endpoint": format!("{issuer}/authorize"),
                "token_endpoint": format!("{issuer}/token"),
                "registration_endpoint": format!("{issuer}/register"),
                "jwks_uri": format!("{issuer}/keys"),
                "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": true,
            })
        };
        let is_hostile = self.is_hostile.load(Ordering::Relaxed);
        let found = match url {
            "https://login.example/.well-known/oauth-authorization-server" if is_hostile => {
                let mut metadata = metadata(LOGIN);
                metadata["authorization_endpoint"] = json!(format!("{ISSUER}/authorize"));
                metadata["authorization_response_iss_parameter_supported"] = json!(false);
                metadata
            }
            "https://login.example/register" if is_hostile => {
                json!({ "client_id": "bridge", "token_endpoint_auth_method": "none" })
            }
            "https://as.example/.well-known/oauth-authorization-server" => metadata(ISSUER),
            "https://login.example/.well-known/oauth-authorization-server" => metadata(LOGIN),
            "https://weather.example/.well-known/oauth-protected-resource/mcp" => {
                json!({ "resource": SERVER, "authorization_servers": [LOGIN] })
            }
            "https://as.example/keys" => json!({ "keys": [self.key.public_jwk()] }),
            "https://login.example/register" => {
                json!({ "client_id": "registered", "token_endpoint_auth_method": "none" })
            }
            "https://as.example/token" => {
                json!({ "access_token": self.token(&field("code").unwrap()), "token_type": "Bearer" })
            }
            "https://login.example/token" => {
                let token = format!("weather-of-{}", field("code").unwrap());
                json!({ "access_token": token, "token_type": "Bearer", "expires_in": 600 })
            }
            _ => return (404, json!({})),
        };
        (200, found)
    }

    fn token(&self, subject: &str) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let claims = json!({ "iss": ISSUER, "sub": subject, "aud": AUDIENCE,
            "exp": now.as_secs() + 600 });
        let header = Map::from_iter([("typ".to_owned(), json!("at+jwt"))]);
        self.key.sign(header, &claims).unwrap()
    }
}

impl Fetch for Network {
    fn fetch(
        &self,
        request: FetchRequest,
    ) -> BoxFuture<'_, std::result::Result<FetchResponse, FetchError>> {
        let (status, body) = self.respond(&request);
        let kind = ("content-type".to_owned(), "application/json".to_owned());
        let response = FetchResponse::new(status, vec![kind], body.to_string());
        Box::pin(async move { Ok(response) })
    }
}

/// The pages of a bridge, and its logins at the server `weather`.
struct Bridge {
    pages: ConnectPages,
    weather: Arc<ServerLogins>,
    network: Arc<Network>,
    store: MemoryStore,
}

/// The result of a request of a browser.
#[derive(Clone)]
struct BrowserResponse {
    status: u16,
    location: String,
    cookie: Option<String>,
    text: String,
    headers: http::HeaderMap,
}

impl Bridge {
    fn new(has_issuer: bool) -> Self {
        Self::with_store(has_issuer, MemoryStore::new())
    }

    fn with_store(has_issuer: bool, store: MemoryStore) -> Self {
        let network = Arc::new(Network {
            key: SigningKey::generate().unwrap(),
            requests: Mutex::default(),
            is_hostile: AtomicBool::new(false),
        });
        let identity = if has_issuer {
            let fetch = Arc::clone(&network) as Arc<dyn Fetch>;
            let issuer = IssuerIdentity::new(ISSUER, AUDIENCE, "bridge", None, fetch).unwrap();
            BrowserIdentity::Issuer(Box::new(issuer))
        } else {
            BrowserIdentity::LocalUser
        };
        let pages = ConnectPages::new(identity);
        pages.set_origin(FRONT.to_owned());
        let client = OAuth::new(SERVER, Arc::clone(&network) as Arc<dyn Fetch>);
        let logins = UserLogins::new(client.store(store.clone()));
        Self {
            weather: pages.of_server("weather", logins),
            pages,
            network,
            store,
        }
    }

    fn offer(&self, user: &User) -> CallerLogin {
        self.weather.begin_for(user.clone()).unwrap()
    }

    /// Lets time pass for open logins.
    fn pass(&self, time: Duration) {
        lock(&self.pages.0.table).pass(time);
    }

    async fn visit(&self, url: &str, cookie: Option<&str>) -> BrowserResponse {
        let path = url.strip_prefix(FRONT).unwrap();
        let mut request = Request::builder().uri(path);
        if let Some(cookie) = cookie {
            request = request.header("cookie", cookie);
        }
        assert!(self.pages.has_path(path.split('?').next().unwrap()));
        let response = self.pages.respond(request.body(()).unwrap()).await;
        let headers = response.headers().clone();
        let header = |name: &str| {
            headers
                .get(name)
                .map(|value| value.to_str().unwrap().to_owned())
        };
        BrowserResponse {
            status: response.status().as_u16(),
            location: header("location").unwrap_or_default(),
            cookie: header("set-cookie"),
            text: String::from_utf8(response.into_body().to_vec()).unwrap(),
            headers,
        }
    }

    /// Sends the browser back from an authorization server.
    async fn return_from(
        &self,
        at: &BrowserResponse,
        issuer: &str,
        answer: &str,
        cookie: Option<&str>,
    ) -> BrowserResponse {
        assert!(
            at.location.starts_with(&format!("{issuer}/authorize?")),
            "{}",
            at.location
        );
        let state = parameter(&at.location, "state");
        let callback = parameter(&at.location, "redirect_uri");
        let own = if issuer == ISSUER {
            CALLBACK_URL
        } else {
            LOGIN_CALLBACK_URL
        };
        assert_eq!(callback, own);
        let url = format!("{callback}?{answer}&state={state}&iss={issuer}");
        self.visit(&url, cookie).await
    }

    async fn token_of(&self, user: &User) -> Option<String> {
        let credentials = self.weather.logins.user(&user.key());
        let request = UnsignedRequest::new("POST", SERVER);
        let credentials = credentials.credentials(request).await.unwrap();
        let (_, value) = credentials.headers.first()?;
        Some(value.expose().to_owned())
    }

    fn requests_to(&self, prefix: &str) -> usize {
        let requests = lock(&self.network.requests);
        requests
            .iter()
            .filter(|request| request.starts_with(prefix))
            .count()
    }
}

impl BrowserResponse {
    /// The cookie that the page sets, as the browser sends it.
    fn sent_cookie(&self) -> String {
        let cookie = self.cookie.as_ref().unwrap();
        cookie.split(';').next().unwrap().to_owned()
    }
}

fn parameter(url: &str, name: &str) -> String {
    let (_, query) = url.split_once('?').unwrap();
    let mut pairs = turnbuckle_text::percent::form_pairs(query);
    pairs.find(|(own, _)| own == name).unwrap().1
}

fn user(subject: &str) -> User {
    User {
        issuer: ISSUER.to_owned(),
        subject: subject.to_owned(),
    }
}

/// Logs a user in, and returns the visits of its browser.
async fn log_in(bridge: &Bridge, subject: &str) -> [BrowserResponse; 3] {
    let login = bridge.offer(&user(subject));
    let opened = bridge.visit(login.url(), None).await;
    let cookie = opened.sent_cookie();
    let code = format!("code={subject}");
    let identified = bridge
        .return_from(&opened, ISSUER, &code, Some(&cookie))
        .await;
    let done = bridge
        .return_from(&identified, LOGIN, &code, Some(&cookie))
        .await;
    assert_eq!(done.status, 200, "{}", done.text);
    assert!(login.ended().await);
    [opened, identified, done]
}

#[tokio::test]
async fn a_user_logs_in_at_the_issuer_and_then_at_the_server() {
    let bridge = Bridge::new(true);

    let [opened, identified, done] = log_in(&bridge, "ada").await;

    let asked = |visit: &BrowserResponse, name| parameter(&visit.location, name);
    assert_eq!((opened.status, identified.status), (303, 303));
    assert_eq!(asked(&opened, "client_id"), "bridge");
    assert_eq!(asked(&opened, "resource"), AUDIENCE);
    assert_eq!(asked(&identified, "resource"), SERVER);
    for visit in [&opened, &identified] {
        assert_eq!(asked(visit, "code_challenge_method"), "S256");
    }
    let cookie = opened.cookie.as_deref().unwrap();
    assert!(cookie.starts_with("__Host-turnbuckle-login-1="), "{cookie}");
    assert!(
        cookie.ends_with("; Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure"),
        "{cookie}"
    );
    assert!(
        done.text.contains("You are logged in to `weather`."),
        "{}",
        done.text
    );
    let token = bridge.token_of(&user("ada")).await;
    assert_eq!(token.unwrap(), "Bearer weather-of-ada");
    // The token of the issuer was used for nothing else.
    assert!(
        !lock(&bridge.network.requests)
            .iter()
            .any(|request| request.contains("eyJ"))
    );
}

#[tokio::test]
async fn users_have_tokens_of_their_own_also_after_a_restart() {
    let bridge = Bridge::new(true);
    log_in(&bridge, "ada").await;
    assert_eq!(bridge.token_of(&user("bo")).await, None);
    log_in(&bridge, "bo").await;

    let restarted = Bridge::with_store(true, bridge.store.clone());

    for subject in ["ada", "bo"] {
        let token = restarted.token_of(&user(subject)).await.unwrap();
        assert_eq!(token, format!("Bearer weather-of-{subject}"));
    }
    assert_eq!(restarted.token_of(&user("eve")).await, None);
    // The same subject of another issuer is another user.
    let other = User {
        issuer: "https://other.example".to_owned(),
        subject: "ada".to_owned(),
    };
    assert_eq!(restarted.token_of(&other).await, None);
}

#[tokio::test]
async fn another_user_cannot_use_a_link() {
    let bridge = Bridge::new(true);
    let login = bridge.offer(&user("ada"));
    let opened = bridge.visit(login.url(), None).await;
    let cookie = opened.sent_cookie();

    let refused = bridge
        .return_from(&opened, ISSUER, "code=bo", Some(&cookie))
        .await;

    assert_eq!(refused.status, 403);
    assert!(
        refused.text.contains("was made for another user"),
        "{}",
        refused.text
    );
    assert!(!login.ended().await);
    assert_eq!(bridge.requests_to(LOGIN), 0);
    for subject in ["ada", "bo"] {
        assert_eq!(bridge.token_of(&user(subject)).await, None);
    }
}

#[tokio::test]
async fn a_login_cannot_go_on_in_another_browser() {
    for is_second_step in [false, true] {
        for other in [
            None,
            Some("x=y; __Host-turnbuckle-login-1=00"),
            Some("turnbuckle-login-1=00"),
        ] {
            let bridge = Bridge::new(true);
            let login = bridge.offer(&user("ada"));
            let opened = bridge.visit(login.url(), None).await;
            let cookie = opened.sent_cookie();
            let refused = if is_second_step {
                let own = Some(&*cookie);
                let identified = bridge.return_from(&opened, ISSUER, "code=ada", own).await;
                bridge
                    .return_from(&identified, LOGIN, "code=bo", other)
                    .await
            } else {
                bridge.return_from(&opened, ISSUER, "code=ada", other).await
            };

            assert_eq!(refused.status, 403);
            assert!(!login.ended().await);
            assert_eq!(bridge.token_of(&user("ada")).await, None);
            assert_eq!(bridge.requests_to(&format!("{LOGIN}/token")), 0);
        }
    }
}

#[tokio::test]
async fn an_authorization_server_gets_no_code_of_another_one() {
    for has_other_path in [false, true] {
        let bridge = Bridge::new(true);
        bridge.network.is_hostile.store(true, Ordering::Relaxed);
        let login = bridge.offer(&user("ada"));
        let opened = bridge.visit(login.url(), None).await;
        let cookie = opened.sent_cookie();
        let own = Some(&*cookie);
        let at_issuer = bridge.return_from(&opened, ISSUER, "code=ada", own).await;

        // The issuer refuses the redirect URI, which is not that of its client `bridge`.
        let sent = |name| parameter(&at_issuer.location, name);
        assert!(at_issuer.location.starts_with("https://as.example/"));
        assert_eq!(sent("client_id"), "bridge");
        assert_eq!(sent("redirect_uri"), LOGIN_CALLBACK_URL);
        // It sends the browser to a redirect URI that it knows.
        let state = sent("state");
        let url = if has_other_path {
            format!("{CALLBACK_URL}/0123456789abcdef?code=ada&state={state}")
        } else {
            format!("{CALLBACK_URL}?code=ada&state={state}")
        };
        let refused = bridge.visit(&url, own).await;

        assert_eq!(refused.status, 403);
        assert!(
            refused.text.contains("another authorization server"),
            "{}",
            refused.text
        );
        assert!(!login.ended().await);
        assert_eq!(bridge.requests_to(&format!("{LOGIN}/token")), 0);
        let url = format!("{LOGIN_CALLBACK_URL}?code=ada&state={state}");
        assert_eq!(bridge.visit(&url, own).await.status, 404);
    }
}

#[tokio::test]
async fn a_response_of_the_issuer_at_the_page_of_a_server_is_refused() {
    let bridge = Bridge::new(true);
    let login = bridge.offer(&user("ada"));
    let opened = bridge.visit(login.url(), None).await;
    let cookie = opened.sent_cookie();
    let state = parameter(&opened.location, "state");

    let url = format!("{LOGIN_CALLBACK_URL}?code=ada&state={state}&iss={ISSUER}");
    let refused = bridge.visit(&url, Some(&cookie)).await;

    assert_eq!(refused.status, 403);
    assert!(!login.ended().await);
    assert_eq!(bridge.requests_to(&format!("{ISSUER}/token")), 0);
}

#[tokio::test]
async fn links_and_responses_can_be_used_once() {
    let bridge = Bridge::new(true);
    let login = bridge.offer(&user("ada"));
    let opened = bridge.visit(login.url(), None).await;
    let cookie = opened.sent_cookie();
    assert_eq!(bridge.visit(login.url(), Some(&cookie)).await.status, 404);

    let identified = bridge
        .return_from(&opened, ISSUER, "code=ada", Some(&cookie))
        .await;
    let again = bridge
        .return_from(&opened, ISSUER, "code=ada", Some(&cookie))
        .await;
    assert_eq!(again.status, 404);
    bridge
        .return_from(&identified, LOGIN, "code=ada", Some(&cookie))
        .await;
    let again = bridge
        .return_from(&identified, LOGIN, "code=ada", Some(&cookie))
        .await;
    assert_eq!(again.status, 404);
    for path in [
        "",
        "callback",
        "callback?state=",
        "0123456789abcdef0123456789abcdef",
        "a/b",
    ] {
        let unknown = bridge.visit(&format!("{FRONT}/connect/{path}"), None).await;
        assert_eq!(unknown.status, 404, "{path}");
    }
}

#[tokio::test]
async fn links_and_logins_expire() {
    let bridge = Bridge::new(true);
    let login = bridge.offer(&user("ada"));
    bridge.pass(LIFETIME);
    assert_eq!(bridge.visit(login.url(), None).await.status, 404);
    assert!(!login.ended().await);

    let login = bridge.offer(&user("ada"));
    let opened = bridge.visit(login.url(), None).await;
    bridge.pass(LIFETIME - Duration::from_secs(5));
    let cookie = opened.sent_cookie();
    let identified = bridge
        .return_from(&opened, ISSUER, "code=ada", Some(&cookie))
        .await;
    bridge.pass(Duration::from_secs(5));
    let late = bridge
        .return_from(&identified, LOGIN, "code=ada", Some(&cookie))
        .await;
    assert_eq!(late.status, 404);
    assert_eq!(bridge.token_of(&user("ada")).await, None);
}

#[tokio::test]
async fn a_denied_login_ends_with_a_reason() {
    for is_second_step in [false, true] {
        let bridge = Bridge::new(true);
        let login = bridge.offer(&user("ada"));
        let opened = bridge.visit(login.url(), None).await;
        let cookie = opened.sent_cookie();
        let denied = "error=access_denied&error_description=%3Cscript%3E";
        let refused = if is_second_step {
            let own = Some(&*cookie);
            let identified = bridge.return_from(&opened, ISSUER, "code=ada", own).await;
            bridge.return_from(&identified, LOGIN, denied, own).await
        } else {
            bridge
                .return_from(&opened, ISSUER, denied, Some(&cookie))
                .await
        };

        assert_eq!(refused.status, 502);
        assert!(
            refused.text.contains("access was denied"),
            "{}",
            refused.text
        );
        assert!(!refused.text.contains("<script>"));
        assert!(!login.ended().await);
        assert_eq!(bridge.token_of(&user("ada")).await, None);
        // The user can try again.
        log_in(&bridge, "ada").await;
    }
}

#[tokio::test]
async fn a_link_that_was_not_opened_is_offered_again() {
    let bridge = Bridge::new(true);
    let login = bridge.offer(&user("ada"));
    assert_eq!(bridge.offer(&user("ada")).url(), login.url());
    assert_ne!(bridge.offer(&user("bo")).url(), login.url());
    let id = login.url().rsplit('/').next().unwrap();
    assert_eq!(id.len(), 32);
    assert!(!login.url().contains("ada"));

    bridge.visit(login.url(), None).await;
    assert_ne!(bridge.offer(&user("ada")).url(), login.url());
}

#[tokio::test]
async fn open_logins_are_limited_for_each_user_and_in_all() {
    let bridge = Bridge::new(false);
    let local = User::default();
    for _ in 0..2 * MAX_PER_USER {
        let login = bridge.offer(&local);
        assert_eq!(bridge.visit(login.url(), None).await.status, 303);
    }
    let open = || lock(&bridge.pages.0.table).len();
    assert_eq!(open(), MAX_PER_USER);

    let bridge = Bridge::new(true);
    for number in 0..MAX_TOTAL {
        bridge.offer(&user(&number.to_string()));
    }
    assert!(bridge.weather.begin_for(user("ada")).is_none());
    bridge.pass(LIFETIME);
    bridge.offer(&user("ada"));
    assert_eq!(lock(&bridge.pages.0.table).len(), 1);
}

#[tokio::test]
async fn the_local_user_logs_in_at_the_server_at_once() {
    let bridge = Bridge::new(false);
    let login = bridge.offer(&User::default());

    let opened = bridge.visit(login.url(), None).await;
    let cookie = opened.sent_cookie();
    let refused = bridge.weather.begin_for(user("ada"));
    let done = bridge
        .return_from(&opened, LOGIN, "code=ada", Some(&cookie))
        .await;

    assert!(refused.is_none());
    assert_eq!(done.status, 200);
    assert!(login.ended().await);
    let token = bridge.token_of(&User::default()).await;
    assert_eq!(token.unwrap(), "Bearer weather-of-ada");
}

#[tokio::test]
async fn a_login_completes_the_other_open_logins_of_the_user() {
    let bridge = Bridge::new(true);
    let abandoned = bridge.offer(&user("ada"));
    bridge.visit(abandoned.url(), None).await;
    let other_user = bridge.offer(&user("bo"));

    log_in(&bridge, "ada").await;

    let open = |user: &User| lock(&bridge.pages.0.table).open_login(user, &bridge.weather.server);
    assert!(open(&user("ada")).is_none());
    assert!(abandoned.ended().await);
    assert_eq!(open(&user("bo")).unwrap().url(), other_user.url());
}

#[tokio::test]
async fn a_login_is_completed_although_the_browser_has_disconnected() {
    let bridge = Bridge::new(true);
    let login = bridge.offer(&user("ada"));
    let opened = bridge.visit(login.url(), None).await;
    let cookie = opened.sent_cookie();
    let own = Some(&*cookie);
    let identified = bridge.return_from(&opened, ISSUER, "code=ada", own).await;

    let mut visit = Box::pin(bridge.return_from(&identified, LOGIN, "code=ada", own));
    let response = tokio::select! {
        biased;
        response = &mut visit => Some(response),
        () = std::future::ready(()) => None,
    };
    drop(visit);

    assert!(response.is_none());
    // It elapses only if the login is not completed.
    let ended = tokio::time::timeout(Duration::from_secs(20), login.ended()).await;
    assert!(ended.unwrap());
    let token = bridge.token_of(&user("ada")).await;
    assert_eq!(token.unwrap(), "Bearer weather-of-ada");
}

#[tokio::test]
async fn a_prefetch_does_not_open_a_link() {
    let bridge = Bridge::new(true);
    let login = bridge.offer(&user("ada"));
    for (name, value) in [
        ("sec-purpose", "prefetch"),
        ("sec-purpose", "prefetch;prerender"),
        ("purpose", "Prefetch"),
    ] {
        let path = login.url().strip_prefix(FRONT).unwrap();
        let request = Request::builder().uri(path).header(name, value);
        let response = bridge.pages.respond(request.body(()).unwrap()).await;

        assert_eq!(response.status(), 403, "{name}: {value}");
        assert_eq!(response.headers()["cache-control"], "no-store");
        assert!(!response.headers().contains_key("set-cookie"));
    }

    assert_eq!(bridge.visit(login.url(), None).await.status, 303);
}

#[tokio::test]
async fn a_login_at_a_server_ends_the_links_to_the_one_that_it_replaced() {
    let bridge = Bridge::new(true);
    let login = bridge.offer(&user("ada"));
    let client = OAuth::new(
        "https://weather2.example/mcp",
        Arc::clone(&bridge.network) as Arc<dyn Fetch>,
    );
    let weather = bridge.pages.of_server("weather", UserLogins::new(client));

    let open = lock(&bridge.pages.0.table).open_login(&user("ada"), &weather.server);
    assert!(open.is_none());
    let other = weather.begin_for(user("ada")).unwrap();

    assert_ne!(other.url(), login.url());
    assert!(!login.ended().await);
    assert_eq!(bridge.visit(login.url(), None).await.status, 404);
    assert_eq!(bridge.visit(other.url(), None).await.status, 303);
}

#[tokio::test]
async fn users_of_another_issuer_get_no_link() {
    let bridge = Bridge::new(true);
    for issuer in ["token-file", "", "https://as.example/"] {
        let other = User {
            issuer: issuer.to_owned(),
            subject: "ada".to_owned(),
        };
        assert!(bridge.weather.begin_for(other).is_none(), "{issuer}");
    }
}

#[tokio::test]
async fn pages_cannot_be_stored_framed_or_named_to_others() {
    let bridge = Bridge::new(true);
    let mut visits = log_in(&bridge, "ada").await.to_vec();
    visits.push(bridge.visit(&format!("{FRONT}/connect/x"), None).await);
    for visit in visits {
        let header = |name: &str| visit.headers[name].to_str().unwrap().to_owned();
        assert_eq!(header("cache-control"), "no-store");
        assert_eq!(header("referrer-policy"), "no-referrer");
        assert!(header("content-security-policy").starts_with("default-src 'none'; "));
        assert_eq!(header("x-content-type-options"), "nosniff");
    }
    let page = Page::done("<img src=x>&\"'").into_response();
    let text = String::from_utf8(page.into_body().to_vec()).unwrap();
    assert!(
        text.contains("`&lt;img src=x&gt;&amp;&quot;&#39;`"),
        "{text}"
    );
}
