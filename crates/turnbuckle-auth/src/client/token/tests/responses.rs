//! Responses of token endpoints: accepted and rejected.

use std::{
    fmt::Write as _,
    sync::{Arc, Mutex},
};

use turnbuckle_protocol::authenticator::BoxFuture;

use super::*;
use crate::{
    client::tests::fake_http::json_response,
    fetch::{Fetch, FetchError, FetchRequest, FetchResponse},
};

async fn response_to(status: u16, response: &Value) -> Result<Tokens, AuthorizationError> {
    let http = FakeHttp::usual().post(TOKEN, status, response);
    request_tokens(&http).await
}

async fn request_tokens(http: &FakeHttp) -> Result<Tokens, AuthorizationError> {
    let (server, client) = (server(), confidential());
    let scopes = "asked for".parse().unwrap();
    let endpoint = TokenEndpoint::new(&server, &client);
    let assertion = Secret::new("the-assertion");
    jwt_bearer(http, &endpoint, &assertion, SERVER, Some(&scopes), None).await
}

fn good(changes: &Value) -> Value {
    with(
        json!({ "access_token": "access", "token_type": "Bearer" }),
        changes,
    )
}

#[tokio::test]
async fn the_token_type_is_case_insensitive() {
    for kind in [
        json!("Bearer"),
        json!("bearer"),
        json!("BEARER"),
        json!(null),
    ] {
        let tokens = response_to(200, &good(&json!({ "token_type": kind })))
            .await
            .unwrap();
        assert_eq!(tokens.kind, TokenKind::Bearer);
    }
    for kind in ["mac", "DPoP", "N_A", ""] {
        assert!(
            response_to(200, &good(&json!({ "token_type": kind })))
                .await
                .is_err(),
            "{kind}"
        );
    }
}

#[tokio::test]
async fn expires_in_is_read_from_numbers_and_strings() {
    let expires = async |expires: Value| {
        let tokens = response_to(200, &good(&json!({ "expires_in": expires })))
            .await
            .unwrap();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = now.unwrap().as_secs();
        tokens.expires.map(|at| at.saturating_sub(now))
    };

    for (found, seconds) in [
        (json!(300), 300),
        (json!("300"), 300),
        (json!(" 300 "), 300),
        (json!(299.9), 299),
        (json!(0), 0),
        (json!(-5), 0),
        (json!(1e300), 315_360_000),
        (json!("99999999999999999999999"), 315_360_000),
    ] {
        let left = expires(found.clone()).await.unwrap();
        assert!(seconds - left <= 2, "{found}: {left}");
    }
    for found in [json!(null), json!("soon"), json!([1]), json!({})] {
        assert_eq!(expires(found.clone()).await, None, "{found}");
    }
}

#[tokio::test]
async fn scopes_are_the_granted_or_else_the_requested_ones() {
    let granted = async |scope: Value| {
        let tokens = response_to(200, &good(&json!({ "scope": scope })))
            .await
            .unwrap();
        tokens.scopes.unwrap().to_string()
    };

    assert_eq!(granted(json!("b a")).await, "a b");
    for nothing in [json!(null), json!(""), json!("\"")] {
        assert_eq!(granted(nothing).await, "asked for");
    }
}

#[tokio::test]
async fn unusable_token_responses_are_rejected() {
    for response in [
        json!({}),
        json!([]),
        json!("access"),
        json!({ "token_type": "Bearer" }),
        good(&json!({ "access_token": "" })),
        good(&json!({ "access_token": 1 })),
        good(&json!({ "access_token": "a b" })),
        good(&json!({ "access_token": "a\r\nx-injected: 1" })),
        good(&json!({ "access_token": "ä" })),
        good(&json!({ "access_token": "x".repeat(300 * 1024) })),
        json!({ "error": "invalid_grant" }),
        good(&json!({ "error": "invalid_grant" })),
    ] {
        let error = response_to(200, &response).await.unwrap_err();

        assert_eq!(error.step(), AuthorizationStep::Token);
        assert_eq!(error.request(), Some("POST https://as.example/token"));
        assert!(error.hint().is_some());
        assert!(format!("{error:?}").len() < 1000);
    }
    let page = FakeHttp::usual().rule(|_| Some(Ok(FetchResponse::new(200, Vec::new(), "<html>"))));
    assert!(request_tokens(&page).await.is_err());
}

#[tokio::test]
async fn each_error_code_has_its_hint() {
    for (status, code, reason) in [
        (400, "invalid_grant", "invalid or expired"),
        (401, "invalid_client", "does not know this client"),
        (400, "unauthorized_client", "does not allow this grant"),
        (400, "unsupported_grant_type", "does not support this grant"),
        (400, "invalid_scope", "scopes"),
        (400, "invalid_target", "does not issue tokens"),
        (400, "invalid_request", "considers the request invalid"),
        (400, "invalid_dpop_proof", "proof"),
        (403, "access_denied", "denied"),
        (503, "x", "server failed"),
        (429, "x", "too many requests"),
        (400, "x", "did not issue a token"),
    ] {
        let error = response_to(status, &json!({ "error": code }))
            .await
            .unwrap_err();

        assert_eq!(error.error_code(), Some(code));
        assert_eq!(error.response(), Some(&*format!("{status} {code}")));
        assert!(error.reason().contains(reason), "{error}");
        assert!(error.hint().is_some());
    }
}

#[tokio::test]
async fn an_error_never_contains_a_secret_quoted_by_the_server() {
    req!("ext-ema.no-log");
    let echo = |request: &RecordedRequest| {
        let secrets = "the-assertion and s:e%s+a me";
        let body = json!({ "error": "invalid_grant", "error_description": format!("{secrets} {}", "x".repeat(500)) });
        (request.url == TOKEN).then(|| Ok(json_response(400, &body.to_string())))
    };

    let error = request_tokens(&FakeHttp::usual().rule(echo))
        .await
        .unwrap_err();

    let text = format!("{error:?} {error}");
    assert!(
        !text.contains("the-assertion") && !text.contains("s:e%s"),
        "{text}"
    );
    assert!(text.contains("*** and ***"), "{text}");
}

/// Records the debug output of every request and response, as a program that logs its requests does.
struct LoggingFetch {
    http: FakeHttp,
    log: Arc<Mutex<String>>,
}

impl Fetch for LoggingFetch {
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>> {
        let mut log = self.log.lock().unwrap();
        writeln!(log, "{request:?} {:?}", request.headers).unwrap();
        drop(log);
        Box::pin(async move {
            let response = self.http.fetch(request).await?;
            writeln!(self.log.lock().unwrap(), "{response:?}").unwrap();
            Ok(response)
        })
    }
}

#[tokio::test]
async fn logged_requests_contain_no_grant() {
    req!("ext-ema.no-log");
    let granted = json!({
        "access_token": "the.id.jag", "token_type": "N_A", "expires_in": 300,
        "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag",
    });
    let idp = "https://idp.example/token";
    let http = FakeHttp::usual().post(TOKEN, 200, &good(&json!({})));
    let http = http.post(idp, 200, &granted);
    let log = Arc::new(Mutex::new(String::new()));
    let fetch = LoggingFetch {
        http,
        log: log.clone(),
    };
    let provider = IdentityProvider::new(idp, "at-the-idp", Some(Secret::new("idp-secret")));
    let id_token = Secret::new("the-id-token");
    let (server, client) = (server(), confidential());
    let endpoint = TokenEndpoint::new(&server, &client);

    let exchange = request_id_jag(
        &fetch,
        &provider,
        &id_token,
        "https://as.example",
        SERVER,
        None,
    );
    let grant = exchange.await.unwrap();
    let tokens = jwt_bearer(&fetch, &endpoint, &grant, SERVER, None, None);
    let tokens = tokens.await.unwrap();

    let log = format!(
        "{}{grant:?} {id_token:?} {tokens:?} {provider:?}",
        log.lock().unwrap()
    );
    assert!(log.contains("https://as.example/token"), "{log}");
    for secret in [
        "the.id.jag",
        "the-id-token",
        "idp-secret",
        "s:e%s",
        "access_token",
    ] {
        assert!(!log.contains(secret), "{secret}: {log}");
    }
    assert_eq!(grant.expose(), "the.id.jag", "the assertion was returned");
}

#[tokio::test]
async fn an_unreachable_server_is_an_error() {
    let broken =
        |_: &RecordedRequest| Some(Err(FetchError::Unreachable("connection refused".into())));
    let error = request_tokens(&FakeHttp::usual().rule(broken))
        .await
        .unwrap_err();
    assert_eq!(error.reason(), "connection refused");
    assert_eq!(error.request(), Some("POST https://as.example/token"));
    assert!(error.hint().is_some());

    let away = |_: &RecordedRequest| {
        Some(Err(FetchError::Redirect {
            to: "https://evil.example/".into(),
        }))
    };
    assert!(request_tokens(&FakeHttp::usual().rule(away)).await.is_err());
}

#[test]
fn tokens_survive_serialization_and_are_not_printed() {
    let tokens = Tokens {
        access: Secret::new("sesame"),
        kind: TokenKind::Dpop,
        refresh: Some(Secret::new("open")),
        expires: Some(5),
        scopes: Some("b a".parse().unwrap()),
        id_token: None,
    };

    let stored = serde_json::to_string(&tokens).unwrap();
    let read: Tokens = serde_json::from_str(&stored).unwrap();

    assert_eq!(
        stored,
        r#"{"access":"sesame","kind":"dpop","refresh":"open","expires":5,"scopes":"a b"}"#
    );
    assert_eq!(serde_json::to_string(&read).unwrap(), stored);
    let printed = format!("{tokens:?}");
    assert!(
        !printed.contains("sesame") && !printed.contains("open"),
        "{printed}"
    );
}
