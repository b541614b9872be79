//! Accepted and rejected credentials, and the challenges for rejected ones.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use http::Method;
use serde_json::json;
use turnbuckle_protocol::Principal;
use turnbuckle_server::{
    Context, Server, Tool,
    http::{Http, HttpSse},
};
use turnbuckle_spec_coverage::req;

use crate::{
    auth::test_authenticator::{
        METADATA, NameAuthenticator, caller, challenge, with_authenticator,
    },
    http::test_client::{HttpTestClient, SESSIONS, initialize, server},
    http_sse::test_client::{HttpSseClient, get, ping, post},
};

#[tokio::test]
async fn a_request_without_credentials_gets_a_challenge() {
    req!(
        "auth.401.required",
        "auth.www-authenticate.2025-06-18",
        "auth.www-authenticate.or-well-known",
        "http.authenticate"
    );
    let caller = HttpTestClient::with_options(with_authenticator(server()));

    for http_response in [
        caller.modern("tools/list", json!({})).await,
        caller.post(&initialize("2025-06-18")).await,
    ] {
        assert_eq!(
            http_response.header("www-authenticate"),
            Some(&*challenge("")),
            "{:?}",
            http_response.status()
        );
        assert_eq!(http_response.status_and_code().await, (401, -32600));
    }
}

#[tokio::test]
async fn an_error_response_contains_the_whole_rejection() {
    req!("auth.401.invalid-token", "auth.status-codes");
    let caller = HttpTestClient::with_options(with_authenticator(server()));

    let unknown_caller = caller
        .named("unknown")
        .modern("tools/list", json!({}))
        .await;
    let challenges: Vec<_> = unknown_caller
        .headers()
        .get_all("www-authenticate")
        .iter()
        .collect();
    assert_eq!(
        challenges,
        [
            &*challenge(r#"error="invalid_token", "#),
            r#"DPoP algs="ES256""#
        ]
    );
    assert_eq!(unknown_caller.header("dpop-nonce"), Some("n-1"));
    assert_eq!(unknown_caller.status(), 401);
    assert_eq!(
        unknown_caller.json().await["error"]["message"],
        "unknown caller"
    );

    let mut malformed = caller.clone();
    malformed.authorization = Some("Basic YTpi".to_owned());
    assert_eq!(
        malformed.modern("tools/list", json!({})).await.status(),
        400
    );

    let nobody_can_tell = caller.named("oracle").modern("tools/list", json!({})).await;
    assert_eq!(nobody_can_tell.status(), 503);
    assert_eq!(nobody_can_tell.header("retry-after"), Some("5"));
}

#[tokio::test]
async fn every_request_of_a_session_is_authenticated() {
    req!(
        "security.session.verify-requests",
        "http.session.not-auth",
        "stateless.auth-every-request"
    );

    for revision in SESSIONS {
        let guard = Arc::new(NameAuthenticator::default());
        let plain = HttpTestClient::with_options(Http::new(server()).authenticator(guard.clone()))
            .named("ada");
        let caller = plain.clone().in_session(revision).await;
        let before = guard.request_count();

        assert_eq!(caller.post(&ping(1)).await.status(), 200);
        assert_eq!(caller.get(None).await.status(), 200);
        assert_eq!(guard.request_count(), before + 2);

        for refused in [caller.without_credentials(), caller.named("unknown")] {
            assert_eq!(refused.post(&ping(2)).await.status(), 401);
            assert_eq!(refused.get(None).await.status(), 401);
            assert_eq!(refused.delete().await.status(), 401);
            assert_eq!(
                refused.modern("server/discover", json!({})).await.status(),
                401
            );
        }
        // A stateless request is authenticated each time, too.
        assert_eq!(plain.modern("tools/list", json!({})).await.status(), 200);
        let refused = plain
            .without_credentials()
            .modern("tools/list", json!({}))
            .await;
        assert_eq!(refused.status(), 401);
        assert_eq!(caller.delete().await.status(), 204);
    }
}

#[tokio::test]
async fn a_token_in_the_query_is_ignored() {
    let caller = HttpTestClient::with_options(with_authenticator(server()));
    let request = http::Request::post("/mcp?access_token=ada")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");

    let http_response = caller.send(request, ping(1).to_string()).await;

    assert_eq!(http_response.status(), 401);
}

#[tokio::test]
async fn duplicate_credentials_are_passed_to_the_authenticator() {
    let caller = HttpTestClient::with_options(with_authenticator(server()));
    let request = caller
        .request(Method::POST)
        .header("authorization", "Bearer ada")
        .header("authorization", "Bearer bo");

    let http_response = caller.send(request, ping(1).to_string()).await;

    assert_eq!(http_response.status(), 400);
}

#[tokio::test]
async fn both_http_sse_paths_require_authentication() {
    let caller =
        HttpTestClient::with_options(with_authenticator(server()).http_sse(HttpSse::new()));

    assert_eq!(caller.send(get("/sse"), "").await.status(), 401);
    let ada = caller.named("ada");
    let mut peer = HttpSseClient::open(&ada).await;
    assert_eq!(peer.request(&ping(1)).await["id"], 1);

    let without_credentials = caller.send(post(&peer.uri), ping(2).to_string()).await;
    assert_eq!(without_credentials.status(), 401);
    let foreign = caller.named("bo");
    let foreign = foreign.send(post(&peer.uri), ping(3).to_string()).await;
    assert_eq!(foreign.status_and_code().await, (404, -32600));
}

#[tokio::test]
async fn a_request_is_authenticated_before_its_body_is_read() {
    req!("auth.token.before-processing");
    let ran = Arc::new(AtomicBool::new(false));
    let runs = ran.clone();
    let tool = Tool::new("run", move || {
        runs.store(true, Ordering::Relaxed);
        std::future::ready(Ok("ran".to_owned()))
    });
    let caller =
        HttpTestClient::with_options(with_authenticator(Server::new("test", "1.0.0").tool(tool)));

    // The reason is not revealed to an unauthenticated caller.
    let broken = caller.send(caller.request(Method::POST), "{").await;
    assert_eq!(broken.status(), 401);
    let unknown = caller.modern("no/such/method", json!({})).await;
    assert_eq!(unknown.status(), 401);
    let put = caller.send(caller.request(Method::PUT), "").await;
    assert_eq!(put.status(), 401);
    let call = caller.modern_tool("run", json!({})).await;
    assert_eq!(call.status(), 401);
    for revision in SESSIONS {
        let session = caller.named("ada").in_session(revision).await;
        for unknown_caller in [session.without_credentials(), session.named("unknown")] {
            let call = unknown_caller.tool(1, "run", json!({})).await;
            assert_eq!(call.status(), 401, "{revision}");
        }
    }
    assert!(!ran.load(Ordering::Relaxed));

    assert_eq!(
        caller
            .named("ada")
            .modern_tool("run", json!({}))
            .await
            .status(),
        200
    );
    assert!(ran.load(Ordering::Relaxed));
}

#[tokio::test]
async fn a_foreign_host_is_rejected_before_authentication() {
    let guard = Arc::new(NameAuthenticator::default());
    let caller =
        HttpTestClient::with_options(Http::new(server()).authenticator(guard.clone())).named("ada");
    let request = http::Request::post("/mcp").header("host", "evil.example");

    assert_eq!(caller.send(request, "{}").await.status(), 403);
    let page = caller
        .request(Method::POST)
        .header("origin", "https://evil.example");
    assert_eq!(caller.send(page, "{}").await.status(), 403);

    assert_eq!(guard.request_count(), 0);
}

#[tokio::test]
async fn handlers_see_the_principal_and_no_token() {
    req!("auth.token.no-passthrough");
    let seen = Arc::new(Mutex::new(None));
    let sees = seen.clone();
    let tool = Tool::new("look", move |cx: Context| {
        let who = cx.principal().unwrap();
        let headers = cx.get::<http::HeaderMap>().unwrap();
        let has_token = headers.contains_key("authorization") || headers.contains_key("dpop");
        *sees.lock().unwrap() = Some((who.subject.clone(), who.scopes.len(), has_token));
        std::future::ready(Ok(String::new()))
    });
    let mut caller = caller(Server::new("test", "1.0.0").tool(tool), "ada:read+write");
    // A principal set by another layer is ignored.
    caller.principal = Some(Principal::new("elsewhere", "eve"));
    let session = caller.clone().in_session("2025-11-25").await;

    caller.modern_tool("look", json!({})).await;
    assert_eq!(
        seen.lock().unwrap().take(),
        Some(("ada".to_owned(), 2, false))
    );
    session.tool(1, "look", json!({})).await;
    assert_eq!(
        seen.lock().unwrap().take(),
        Some(("ada".to_owned(), 2, false))
    );
}

#[tokio::test]
async fn the_metadata_document_is_public() {
    let caller = HttpTestClient::with_options(with_authenticator(server()));
    let open = |method| {
        http::Request::builder()
            .method(method)
            .uri(METADATA)
            .header("host", "localhost")
    };

    let read = caller.send(open(Method::GET), "").await;
    assert_eq!(read.status(), 200);
    assert_eq!(read.header("content-type"), Some("application/json"));
    assert_eq!(read.header("cache-control"), Some("public, max-age=300"));
    assert_eq!(read.json().await["resource"], "http://localhost:8080/mcp");

    assert_eq!(caller.send(open(Method::HEAD), "").await.status(), 200);
    let posted = caller.send(open(Method::POST), "").await;
    assert_eq!(posted.status(), 405);
    assert_eq!(posted.header("allow"), Some("GET, HEAD"));
    let elsewhere = http::Request::get("/.well-known/other").header("host", "localhost");
    assert_eq!(caller.send(elsewhere, "").await.status(), 404);
    let health = http::Request::get("/health").header("host", "10.0.0.1");
    assert_eq!(caller.send(health, "").await.status(), 200);
}

#[tokio::test]
async fn a_cors_preflight_is_answered_and_the_challenge_is_readable() {
    let caller = HttpTestClient::with_options(with_authenticator(server()));
    for path in ["/mcp", METADATA] {
        let ask = http::Request::options(path)
            .header("host", "localhost")
            .header("origin", "http://localhost:6274")
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "authorization, dpop");
        let asked = caller.send(ask, "").await;
        assert_eq!(asked.status(), 204, "{path}");
        let allowed = asked.header("access-control-allow-headers").unwrap();
        assert!(allowed.contains("authorization, dpop"), "{allowed}");
    }

    let page = caller
        .request(Method::POST)
        .header("origin", "http://localhost:6274");
    let refused = caller.send(page, "{}").await;

    assert_eq!(refused.status(), 401);
    let exposed = refused.header("access-control-expose-headers").unwrap();
    assert!(
        exposed.contains("WWW-Authenticate, DPoP-Nonce"),
        "{exposed}"
    );
}

#[tokio::test(start_paused = true)]
async fn requests_under_authentication_count_as_in_flight() {
    let http = with_authenticator(server()).max_in_flight(1);
    let caller = HttpTestClient::with_options(http).named("ada");

    let ((), second) = tokio::join!(
        async {
            let first = caller.modern_tool("sleep", json!({})).await;
            assert!(first.is_stream());
        },
        async {
            tokio::task::yield_now().await;
            caller
                .named("unknown")
                .modern("tools/list", json!({}))
                .await
        }
    );

    assert_eq!(second.status(), 503);
}
