//! The stateful exchange, with the time under control of the test.

use serde_json::json;

use super::*;
use crate::client::tests::fake_http::{FakeHttp, ISSUER, SERVER, json_response};

const TOKEN: &str = "https://as.example/token";

/// An authorization server that numbers the tokens that it issues, with this lifetime.
fn numbered(lifetime: u64) -> FakeHttp {
    let issued = AtomicU64::new(0);
    FakeHttp::usual().rule(move |request| {
        let number = (request.url == TOKEN).then(|| issued.fetch_add(1, Ordering::SeqCst) + 1)?;
        let token = json!({
            "access_token": format!("issued-{number}"), "token_type": "Bearer", "expires_in": lifetime,
        });
        Some(Ok(json_response(200, &token.to_string())))
    })
}

fn exchange(http: &FakeHttp) -> TokenExchange {
    TokenExchange::new(SERVER, ISSUER, "gateway", Arc::new(http.clone()))
        .client_secret(Secret::new("sesame"))
}

fn caller(exchange: &TokenExchange, key: &str) -> CallerCredentials {
    let token = format!("token-of-{key}");
    exchange.caller(key, move || Some(Secret::new(&*token)))
}

async fn token(caller: &CallerCredentials) -> String {
    let request = UnsignedRequest::new("POST", SERVER);
    let credentials = caller.credentials(request).await.unwrap();
    let [("authorization", value)] = &*credentials.headers else {
        panic!("{credentials:?}");
    };
    value.expose().strip_prefix("Bearer ").unwrap().to_owned()
}

async fn generation(caller: &CallerCredentials) -> u64 {
    let request = UnsignedRequest::new("POST", SERVER);
    caller.credentials(request).await.unwrap().generation
}

async fn reject(caller: &CallerCredentials, status: u16, attempts: u32) -> RetryDecision {
    let request = UnsignedRequest::new("POST", SERVER);
    let generation = generation(caller).await;
    let response = UnauthorizedResponse::new(request, status, &[], generation, attempts);
    caller.on_unauthorized(response).await.unwrap()
}

fn exchanges(http: &FakeHttp) -> Vec<Option<String>> {
    let requests = http.requests();
    let posts = requests.iter().filter(|request| request.url == TOKEN);
    posts
        .map(|request| request.field("subject_token"))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_token_is_kept_until_shortly_before_it_expires() {
    let http = numbered(600);
    let ada = caller(&exchange(&http), "ada");

    assert_eq!(token(&ada).await, "issued-1");
    tokio::time::advance(Duration::from_secs(560)).await;
    assert_eq!(token(&ada).await, "issued-1");
    tokio::time::advance(Duration::from_secs(15)).await;
    assert_eq!(token(&ada).await, "issued-2");

    let metadata = http.urls();
    let metadata = metadata.iter().filter(|url| url.contains(".well-known"));
    assert_eq!(metadata.count(), 1);
    assert_eq!(
        http.last_post(TOKEN).field("resource").as_deref(),
        Some(SERVER)
    );
}

#[tokio::test(start_paused = true)]
async fn callers_get_tokens_of_their_own_and_concurrent_requests_one() {
    let http = numbered(600);
    let exchange = exchange(&http);
    let (ada, bo) = (caller(&exchange, "ada"), caller(&exchange, "bo"));

    let (first, second) = tokio::join!(token(&ada), token(&ada));
    assert_eq!(first, second);
    assert_ne!(token(&bo).await, first);
    assert_eq!(token(&caller(&exchange, "ada")).await, first);
    let subjects = ["ada", "bo"].map(|key| Some(format!("token-of-{key}")));
    assert_eq!(exchanges(&http), subjects);
}

#[tokio::test(start_paused = true)]
async fn a_rejected_token_is_replaced_once() {
    let http = numbered(600);
    let ada = caller(&exchange(&http), "ada");
    assert_eq!(token(&ada).await, "issued-1");

    assert_eq!(reject(&ada, 403, 1).await, RetryDecision::GiveUp);
    assert_eq!(reject(&ada, 401, 1).await, RetryDecision::Retry);
    assert_eq!(token(&ada).await, "issued-2");
    assert_eq!(reject(&ada, 401, 2).await, RetryDecision::GiveUp);
    assert_eq!(reject(&ada, 401, 1).await, RetryDecision::GiveUp);
    assert_eq!(exchanges(&http).len(), 2);

    tokio::time::advance(REJECTION_INTERVAL).await;
    assert_eq!(reject(&ada, 401, 1).await, RetryDecision::Retry);
    assert_eq!(token(&ada).await, "issued-3");
}

#[tokio::test(start_paused = true)]
async fn a_request_with_an_older_token_is_sent_again_without_an_exchange() {
    let http = numbered(600);
    let ada = caller(&exchange(&http), "ada");
    let old = generation(&ada).await;
    assert_eq!(reject(&ada, 401, 1).await, RetryDecision::Retry);

    let request = UnsignedRequest::new("POST", SERVER);
    let response = UnauthorizedResponse::new(request, 401, &[], old, 1);
    let decision = ada.on_unauthorized(response).await.unwrap();

    assert_eq!(decision, RetryDecision::Retry);
    assert_eq!(exchanges(&http).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_failed_exchange_is_repeated_later_or_with_another_token() {
    let refused = json!({ "error": "invalid_grant" });
    let http = FakeHttp::usual().post(TOKEN, 400, &refused);
    let newest = Arc::new(Mutex::new("first"));
    let shared = Arc::clone(&newest);
    let ada = exchange(&http).caller("ada", move || Some(Secret::new(*shared.lock().unwrap())));
    let fails = async || {
        let request = UnsignedRequest::new("POST", SERVER);
        ada.credentials(request).await.unwrap_err()
    };

    for _ in 0..5 {
        assert_eq!(fails().await.error_code(), Some("invalid_grant"));
    }
    assert_eq!(exchanges(&http).len(), 1);
    *newest.lock().unwrap() = "second";
    fails().await;
    assert_eq!(exchanges(&http).len(), 2);
    tokio::time::advance(FAILURE_LIFETIME).await;
    fails().await;
    assert_eq!(exchanges(&http).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_number_of_callers_is_limited() {
    let http = numbered(600);
    let exchange = exchange(&http).max_callers(2);
    let callers = ["ada", "bo", "cy"].map(|key| caller(&exchange, key));
    for caller in &callers {
        token(caller).await;
        tokio::time::advance(Duration::from_secs(1)).await;
    }

    assert_eq!(exchange.state.callers().len(), 2);
    token(&callers[2]).await;
    token(&callers[1]).await;
    assert_eq!(exchanges(&http).len(), 3);
    token(&callers[0]).await;
    assert_eq!(exchanges(&http).len(), 4);
}

#[tokio::test(start_paused = true)]
async fn no_token_leaves_for_another_origin_or_without_a_caller() {
    let http = numbered(600);
    let exchange = exchange(&http);

    let request = UnsignedRequest::new("POST", "https://other.example/mcp");
    let ada = caller(&exchange, "ada");
    assert!(ada.credentials(request).await.is_err());
    let without_token = exchange.caller("bo", || None);
    let request = UnsignedRequest::new("POST", SERVER);
    assert!(without_token.credentials(request).await.is_err());

    assert!(http.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn nothing_that_is_printed_has_a_token() {
    let http = numbered(600);
    let exchange = exchange(&http);
    let ada = caller(&exchange, "ada");
    token(&ada).await;
    let request = UnsignedRequest::new("POST", SERVER);
    let credentials = ada.credentials(request).await.unwrap();

    let printed = format!("{exchange:?} {ada:?} {credentials:?}");
    for secret in ["issued-1", "token-of-ada", "sesame"] {
        assert!(!printed.contains(secret), "{printed}");
    }
}
