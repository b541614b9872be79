use super::*;
use crate::{
    AuthorizationStep,
    client::{
        MemoryStore,
        tests::fake_http::{FakeHttp, ISSUER, SERVER, json_response, parameter},
    },
    fetch::FetchMethod,
};

const PAGE: &str = "https://bridge.example/connect/callback";
/// The redirect URI for `ISSUER`.
const REDIRECT_URI: &str = "https://bridge.example/connect/callback/93e20fbd9d9436f7";

/// An authorization server that issues the token `token of CODE`.
fn http() -> FakeHttp {
    FakeHttp::usual().rule(|request| {
        let is_code = request.url == format!("{ISSUER}/token");
        let code = is_code.then(|| request.field("code"))??;
        let body = format!(
            r#"{{"access_token":"token-of-{code}","refresh_token":"refresh-of-{code}","token_type":"Bearer","expires_in":300}}"#
        );
        Some(Ok(json_response(200, &body)))
    })
}

fn logins(http: &FakeHttp, store: &MemoryStore) -> UserLogins {
    UserLogins::new(OAuth::new(SERVER, Arc::new(http.clone())).store(store.clone()))
}

async fn sent_token(user: &UserCredentials) -> Option<String> {
    let request = UnsignedRequest::new("POST", SERVER);
    let credentials = user.credentials(request).await.unwrap();
    let header = credentials.headers.first();
    header.map(|(_, value)| value.expose().to_owned())
}

async fn log_in(user: &UserCredentials, code: &str) {
    let login = user.begin_login(PAGE).await.unwrap();
    let response = format!("code={code}&state={}&iss={ISSUER}", login.state().expose());
    user.complete_login(login, &response).await.unwrap();
}

fn registration_count(http: &FakeHttp) -> usize {
    let requests = http.requests();
    let registrations = requests.iter().filter(|it| it.url.ends_with("/register"));
    registrations.count()
}

async fn reject(user: &UserCredentials, challenge: &str) -> AuthorizationError {
    let request = UnsignedRequest::new("POST", SERVER);
    let generation = user.credentials(request).await.unwrap().generation;
    let challenges = Challenge::parse(challenge).unwrap();
    let response = UnauthorizedResponse::new(request, 401, &challenges, generation, 1);
    user.on_unauthorized(response).await.unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn each_user_has_a_login_of_its_own() {
    let (http, store) = (http(), MemoryStore::new());
    let users = logins(&http, &store);
    let (ada, bo) = (users.user("ada"), users.user("bo"));

    log_in(&ada, "a").await;
    assert_eq!(sent_token(&ada).await.unwrap(), "Bearer token-of-a");
    assert_eq!(sent_token(&bo).await, None);
    log_in(&bo, "b").await;

    assert_eq!(sent_token(&ada).await.unwrap(), "Bearer token-of-a");
    assert_eq!(
        sent_token(&users.user("bo")).await.unwrap(),
        "Bearer token-of-b"
    );
    let registrations = http.requests();
    let registrations = registrations
        .iter()
        .filter(|it| it.url.ends_with("/register"));
    assert_eq!(registrations.count(), 1);
    assert!(
        http.last_post(&format!("{ISSUER}/register"))
            .body
            .contains(REDIRECT_URI)
    );
}

#[tokio::test(start_paused = true)]
async fn a_login_is_found_in_the_store_after_a_restart() {
    let (http, store) = (http(), MemoryStore::new());
    log_in(&logins(&http, &store).user("ada"), "a").await;

    let restarted = logins(&http, &store);

    let ada = sent_token(&restarted.user("ada")).await;
    assert_eq!(ada.unwrap(), "Bearer token-of-a");
    assert_eq!(sent_token(&restarted.user("bo")).await, None);
    // The login of the program itself is another one.
    assert!(store.login(SERVER).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_login_requests_what_the_server_has_challenged() {
    let http = http();
    let ada = logins(&http, &MemoryStore::new()).user("ada");

    let failure = reject(&ada, r#"Bearer scope="notes""#).await;
    assert_eq!(failure.step(), AuthorizationStep::Authorization);
    let login = ada.begin_login(PAGE).await.unwrap();

    let parameter = |name| parameter(login.url(), name);
    assert_eq!(parameter("scope").as_deref(), Some("notes"));
    assert_eq!(parameter("redirect_uri").as_deref(), Some(REDIRECT_URI));
    assert_eq!(login.redirect_uri(), REDIRECT_URI);
    assert_eq!(parameter("resource").as_deref(), Some(SERVER));
    assert_eq!(parameter("code_challenge_method").as_deref(), Some("S256"));
    assert_eq!(login.issuer(), ISSUER);
    assert!(!format!("{login:?}").contains(login.state().expose()));
}

#[tokio::test(start_paused = true)]
async fn a_response_with_another_state_or_issuer_is_refused() {
    let http = http();
    let ada = logins(&http, &MemoryStore::new()).user("ada");
    for (state, issuer) in [(None, ISSUER), (Some(()), "https://evil.example")] {
        let login = ada.begin_login(PAGE).await.unwrap();
        let own = login.state().expose().to_owned();
        let state = state.map_or("other".to_owned(), |()| own);
        let response = format!("code=a&state={state}&iss={issuer}");

        let failure = ada.complete_login(login, &response).await.unwrap_err();

        assert_eq!(failure.step(), AuthorizationStep::Callback);
        assert_eq!(sent_token(&ada).await, None);
    }
    let posts = http.requests();
    let mut posts = posts.iter().filter(|it| it.method == FetchMethod::Post);
    assert!(posts.all(|request| !request.url.ends_with("/token")));
}

#[tokio::test(start_paused = true)]
async fn a_denied_login_changes_nothing() {
    let http = http();
    let ada = logins(&http, &MemoryStore::new()).user("ada");
    log_in(&ada, "a").await;

    let login = ada.begin_login(PAGE).await.unwrap();
    let state = login.state().expose().to_owned();
    let response = format!("error=access_denied&state={state}&iss={ISSUER}");
    let failure = ada.complete_login(login, &response).await.unwrap_err();

    assert_eq!(failure.error_code(), Some("access_denied"));
    assert_eq!(sent_token(&ada).await.unwrap(), "Bearer token-of-a");
}

#[tokio::test(start_paused = true)]
async fn an_open_login_delays_no_request() {
    let http = http();
    let ada = logins(&http, &MemoryStore::new()).user("ada");
    let first = ada.begin_login(PAGE).await.unwrap();

    // Neither a request, nor another login, waits for the user.
    reject(&ada, "Bearer").await;
    log_in(&ada, "a").await;
    drop(first);

    assert_eq!(sent_token(&ada).await.unwrap(), "Bearer token-of-a");
}

#[tokio::test(start_paused = true)]
async fn a_registration_that_the_server_has_deleted_is_replaced_at_the_next_login() {
    let http = http().rule(|request| {
        let is_unknown = request.field("code")? == "unknown";
        is_unknown.then(|| Ok(json_response(401, r#"{"error":"invalid_client"}"#)))
    });
    let ada = logins(&http, &MemoryStore::new()).user("ada");
    log_in(&ada, "a").await;
    let login = ada.begin_login(PAGE).await.unwrap();
    let state = login.state().expose().to_owned();
    let response = format!("code=unknown&state={state}&iss={ISSUER}");
    ada.complete_login(login, &response).await.unwrap_err();

    ada.begin_login(PAGE).await.unwrap();

    assert_eq!(registration_count(&http), 2);
}

#[tokio::test(start_paused = true)]
async fn an_authorization_response_does_not_delete_the_registration_of_all_users() {
    let http = http();
    let users = logins(&http, &MemoryStore::new());
    log_in(&users.user("ada"), "a").await;
    for error in ["unauthorized_client", "invalid_client"] {
        let eve = users.user("eve");
        let login = eve.begin_login(PAGE).await.unwrap();
        let state = login.state().expose().to_owned();
        let response = format!("error={error}&state={state}&iss={ISSUER}");
        eve.complete_login(login, &response).await.unwrap_err();
    }

    users.user("ada").begin_login(PAGE).await.unwrap();

    assert_eq!(registration_count(&http), 1);
}

#[test]
fn a_key_of_the_store_has_the_url_of_the_server_and_the_digest_of_the_user() {
    let store = UserStore::new(Arc::new(MemoryStore::new()), "ada");
    let key = store.key(SERVER);

    let (url, user) = split_login_key(&key);

    assert_eq!((url, user.map(str::len)), (SERVER, Some(64)));
    assert_eq!(split_login_key(SERVER), (SERVER, None));
}

#[tokio::test(start_paused = true)]
async fn memory_for_users_is_bounded() {
    let (http, store) = (http(), MemoryStore::new());
    let users = logins(&http, &store);
    log_in(&users.user("ada"), "a").await;
    for number in 0..2 * MAX_USERS {
        tokio::time::advance(std::time::Duration::from_millis(1)).await;
        users.user(&number.to_string());
    }

    assert_eq!(lock(&users.users).len(), MAX_USERS);
    let ada = sent_token(&users.user("ada")).await;
    assert_eq!(ada.unwrap(), "Bearer token-of-a");
}
