//! From a 401 response to a token.

use turnbuckle_spec_coverage::req;

use super::*;
use crate::{
    AuthorizationStep,
    client::{
        oauth::Revocation,
        store::MemoryStore,
        tests::fake_http::{metadata, with},
    },
};

#[tokio::test(start_paused = true)]
async fn a_401_leads_to_a_login_and_a_retry() {
    req!("auth.www-authenticate.parse");
    req!("auth.token.header");
    let (issuer, user) = (Issuer::default(), FakeUser::willing());
    let http = issuer.tokens(FakeHttp::usual());
    let oauth = client(&http, &user);

    let ended = call(&oauth, |sent| issuer.authenticate(sent))
        .await
        .unwrap();

    assert_eq!(ended, CallEnd::Accepted);
    let seen = user.shown();
    assert_eq!(seen.len(), 1);
    assert!(seen[0].starts_with("https://as.example/authorize?"));
    assert_eq!(parameter(&seen[0], "resource").as_deref(), Some(SERVER));
    assert_eq!(user.requested_scopes(), Some(scopes("read")));
    let login = oauth.stored_login().await.unwrap().unwrap();
    assert_eq!((login.issuer(), &*login.resource), (ISSUER, SERVER));
    assert_eq!(login.requested_scopes, Some(scopes("read")));
}

#[tokio::test(start_paused = true)]
async fn later_requests_use_the_token_without_another_login() {
    req!("auth.token.every-request");
    req!("auth.token.not-in-query");
    let (issuer, user) = (Issuer::default(), FakeUser::willing());
    let http = issuer.tokens(FakeHttp::usual());
    let oauth = client(&http, &user);
    for _ in 0..5 {
        call(&oauth, |sent| issuer.authenticate(sent))
            .await
            .unwrap();
    }

    assert_eq!((user.shown().len(), issuer.count()), (1, 1));
    let urls = http.urls();
    assert_eq!(urls.len(), 4, "{urls:?}");
    let all = urls
        .iter()
        .chain(&user.shown())
        .any(|url| url.contains("access-1"));
    assert!(!all, "the token is in no URL");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_requested_before_a_401() {
    let user = FakeUser::willing();
    let http = FakeHttp::usual();
    let oauth = client(&http, &user);

    let ended = call(&oauth, |sent| {
        assert_eq!(sent.authorization, None);
        Ok(())
    });

    assert_eq!(ended.await.unwrap(), CallEnd::Accepted);
    assert!(http.urls().is_empty() && user.shown().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_token_is_sent_only_to_the_origin_of_the_server() {
    req!("auth.token.foreign-client");
    let (issuer, user) = (Issuer::default(), FakeUser::willing());
    let http = issuer.tokens(FakeHttp::usual());
    let oauth = client(&http, &user);
    call(&oauth, |sent| issuer.authenticate(sent))
        .await
        .unwrap();

    for url in [
        "https://evil.example/mcp",
        "https://mcp.example.evil.example/mcp",
        "https://mcp.example:8443/mcp",
        "http://mcp.example/mcp",
        "https://user@mcp.example/mcp",
        "mcp.example",
    ] {
        let error = oauth.credentials(UnsignedRequest::new("POST", url)).await;
        assert_eq!(error.unwrap_err().step(), AuthorizationStep::Use, "{url}");
        let error = UnauthorizedResponse::new(UnsignedRequest::new("POST", url), 401, &[], 1, 1);
        assert_eq!(
            oauth.on_unauthorized(error).await.unwrap(),
            RetryDecision::GiveUp
        );
    }
    for url in [
        "https://MCP.example:443/other",
        "https://mcp.example/mcp?x=1",
    ] {
        let credentials = oauth
            .credentials(UnsignedRequest::new("GET", url))
            .await
            .unwrap();
        assert_eq!(credentials.headers.len(), 1, "{url}");
    }
    assert_eq!(user.shown().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_denied_login_is_shared_by_waiting_requests() {
    let (issuer, user) = (Issuer::default(), FakeUser::denying());
    let http = issuer.tokens(FakeHttp::usual());
    let oauth = client(&http, &user);
    let calls = (0..20).map(|_| {
        let (oauth, issuer) = (oauth.clone(), issuer.clone());
        tokio::spawn(async move { call(&oauth, |sent| issuer.authenticate(sent)).await })
    });

    for ended in calls.collect::<Vec<_>>() {
        let error = ended.await.unwrap().unwrap_err();
        assert_eq!(error.step(), AuthorizationStep::Callback);
        assert_eq!(error.error_code(), Some("access_denied"));
    }
    assert_eq!((user.shown().len(), issuer.count()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn without_a_user_agent_the_error_has_a_hint() {
    let issuer = Issuer::default();
    let http = issuer.tokens(FakeHttp::usual());
    let oauth = OAuth::new(SERVER, Arc::new(http.clone()));

    let error = call(&oauth, |sent| issuer.authenticate(sent))
        .await
        .unwrap_err();

    assert_eq!(error.step(), AuthorizationStep::Authorization);
    assert!(error.reason().contains(ISSUER), "{error}");
    assert!(error.hint().unwrap().contains("log in once"));
    assert!(!http.urls().iter().any(|url| url.ends_with("/register")));
}

#[tokio::test(start_paused = true)]
async fn a_new_token_that_is_rejected_is_not_requested_again() {
    let (issuer, user) = (Issuer::default(), FakeUser::willing());
    let http = issuer.tokens(FakeHttp::usual());
    let oauth = client(&http, &user);
    let never = |_: &SentCredentials| Err((401, "Bearer".to_owned()));

    for _ in 0..3 {
        let error = call(&oauth, never).await.unwrap_err();
        assert_eq!(error.step(), AuthorizationStep::Use);
        assert!(error.hint().unwrap().contains("audience"));
    }
    assert_eq!((user.shown().len(), issuer.count()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn scopes_come_from_the_challenge_or_the_metadata() {
    req!("auth.scope.authoritative");
    req!("auth.scope.no-relation");
    let offering = |names: serde_json::Value| {
        FakeHttp::usual().get(
            "https://mcp.example/.well-known/oauth-protected-resource/mcp",
            &json!({ "resource": SERVER, "authorization_servers": [ISSUER], "scopes_supported": names }),
        )
    };
    for (http, challenge, request) in [
        (
            offering(json!(["a", "b"])),
            r#"Bearer scope="c""#,
            Some("c"),
        ),
        (offering(json!(["a", "b"])), "Bearer", Some("a b")),
        (FakeHttp::usual(), "Bearer", None),
    ] {
        let (issuer, user) = (Issuer::default(), FakeUser::willing());
        let oauth = client(&issuer.tokens(http), &user);

        let authenticate = |sent: &SentCredentials| {
            issuer
                .authenticate(sent)
                .map_err(|_| (401, challenge.to_owned()))
        };
        call(&oauth, authenticate).await.unwrap();

        assert_eq!(user.requested_scopes(), request.map(scopes), "{challenge}");
    }
}

#[tokio::test(start_paused = true)]
async fn log_in_and_log_out_work_without_a_401() {
    let (issuer, user) = (Issuer::default(), FakeUser::willing());
    let http = issuer.tokens(FakeHttp::usual());
    let store = MemoryStore::new();
    let oauth = client(&http, &user).store(store.clone());

    let login = oauth.log_in(&[]).await.unwrap();

    assert_eq!(login.tokens.access.expose(), "access-1");
    assert_eq!(
        call(&oauth, |sent| issuer.authenticate(sent))
            .await
            .unwrap(),
        CallEnd::Accepted
    );
    let revocation = oauth.log_out().await.unwrap();
    assert!(matches!(revocation, Some(Revocation::Unsupported)));
    assert!(oauth.log_out().await.unwrap().is_none());
    let credentials = oauth
        .credentials(UnsignedRequest::new("POST", SERVER))
        .await
        .unwrap();
    assert!(credentials.headers.is_empty());
}

#[tokio::test(start_paused = true)]
async fn debug_output_has_no_secrets() {
    let (issuer, user) = (Issuer::default(), FakeUser::willing());
    let http = issuer.tokens(FakeHttp::usual());
    let oauth = client(&http, &user);
    let login = oauth.log_in(&[]).await.unwrap();

    let printed = format!("{oauth:?} {login:?}");

    assert!(
        !printed.contains("access-1") && !printed.contains("refresh-1"),
        "{printed}"
    );
}

#[tokio::test(start_paused = true)]
async fn ever_changing_issuers_are_given_up() {
    let count = AtomicUsize::new(0);
    let http = FakeHttp::usual()
        .rule(move |request| {
            let path = "/.well-known/oauth-protected-resource/mcp";
            request.url.ends_with(path).then(|| {
                let issuer = format!("https://{}.example", count.fetch_add(1, Ordering::Relaxed));
                let body = json!({ "resource": SERVER, "authorization_servers": [issuer] });
                Ok(json_response(200, &body.to_string()))
            })
        })
        .rule(|request| {
            let issuer = request
                .url
                .strip_suffix("/.well-known/oauth-authorization-server")?;
            let body = json!({
                "issuer": issuer,
                "authorization_endpoint": format!("{issuer}/authorize"),
                "token_endpoint": format!("{issuer}/token"),
                "registration_endpoint": format!("{issuer}/register"),
                "code_challenge_methods_supported": ["S256"],
            });
            Some(Ok(json_response(200, &body.to_string())))
        })
        .rule(|request| {
            let body = r#"{"client_id":"c"}"#;
            request
                .url
                .ends_with("/register")
                .then(|| Ok(json_response(201, body)))
        })
        .rule(|request| {
            let body = r#"{"access_token":"a","token_type":"Bearer"}"#;
            request
                .url
                .ends_with("/token")
                .then(|| Ok(json_response(200, body)))
        });
    let user = FakeUser::responding(|url| {
        let state = parameter(url, "state").unwrap();
        Ok(format!("code=code&state={state}"))
    });
    let oauth = client(&http, &user);
    let never = |_: &SentCredentials| Err((401, "Bearer".to_owned()));

    for _ in 0..10 {
        let _ = call(&oauth, never).await;
    }

    let error = call(&oauth, never).await.unwrap_err();
    assert!(error.reason().contains("again and again"), "{error}");
    assert_eq!(user.shown().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_login_completes_after_the_request_is_dropped() {
    let (issuer, user) = (Issuer::default(), FakeUser::willing());
    let http = issuer.tokens(FakeHttp::usual());
    let slow = FakeUser {
        delay: Duration::from_secs(120),
        ..user.clone()
    };
    let oauth = client(&http, &slow);

    let minute = Duration::from_secs(60);
    let given_up = tokio::time::timeout(minute, call(&oauth, |sent| issuer.authenticate(sent)));
    given_up.await.unwrap_err();
    let ended = call(&oauth, |sent| issuer.authenticate(sent))
        .await
        .unwrap();

    assert_eq!(ended, CallEnd::Accepted);
    assert_eq!((user.shown().len(), issuer.count()), (1, 1));
}

const REVOKE: &str = "https://as.example/revoke";

/// Returns servers with a revocation endpoint.
fn with_revocation() -> FakeHttp {
    let metadata = with(metadata(), &json!({ "revocation_endpoint": REVOKE }));
    let place = "https://as.example/.well-known/oauth-authorization-server";
    FakeHttp::usual().get(place, &metadata)
}

#[tokio::test(start_paused = true)]
async fn a_logout_revokes_both_tokens() {
    let http = with_revocation().status(REVOKE, 200);
    let oauth = client(&http, &FakeUser::willing());
    oauth.log_in(&[]).await.unwrap();

    let revocation = oauth.log_out().await.unwrap();

    assert!(matches!(revocation, Some(Revocation::Revoked)));
    let requests = http.requests();
    let revoked = requests.iter().filter(|request| request.url == REVOKE);
    let revoked: Vec<_> = revoked
        .map(|request| ["token", "token_type_hint", "client_id"].map(|name| request.field(name)))
        .collect();
    let expected = [
        ["refresh", "refresh_token", "registered"],
        ["access", "access_token", "registered"],
    ];
    assert_eq!(
        revoked,
        expected.map(|fields| fields.map(|it| Some(it.to_owned())))
    );
}

#[tokio::test(start_paused = true)]
async fn a_login_is_deleted_even_if_its_tokens_cannot_be_revoked() {
    let error = json!({ "error": "server_error", "error_description": "no access and no refresh" });
    let http = with_revocation().post(REVOKE, 503, &error);
    let oauth = client(&http, &FakeUser::willing());
    oauth.log_in(&[]).await.unwrap();

    let Some(Revocation::Failed(failure)) = oauth.log_out().await.unwrap() else {
        panic!("the failure is not reported");
    };

    assert_eq!(failure.step(), AuthorizationStep::Revocation);
    assert_eq!(failure.request(), Some("POST https://as.example/revoke"));
    assert!(
        !format!("{failure:?}").contains("no refresh"),
        "{failure:?}"
    );
    assert!(oauth.stored_login().await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn access_tokens_that_cannot_be_revoked_are_accepted_beside_a_refresh_token() {
    let http = with_revocation().rule(|request| {
        (request.url == REVOKE).then(|| {
            Ok(match request.field("token_type_hint").as_deref() {
                Some("refresh_token") => json_response(200, ""),
                _ => json_response(400, r#"{"error":"unsupported_token_type"}"#),
            })
        })
    });
    let oauth = client(&http, &FakeUser::willing());
    oauth.log_in(&[]).await.unwrap();

    let revocation = oauth.log_out().await.unwrap();

    assert!(matches!(revocation, Some(Revocation::Revoked)));
}

#[tokio::test(start_paused = true)]
async fn tokens_are_not_sent_to_an_insecure_revocation_endpoint() {
    let metadata = with(
        metadata(),
        &json!({ "revocation_endpoint": "http://as.example/revoke" }),
    );
    let place = "https://as.example/.well-known/oauth-authorization-server";
    let http = FakeHttp::usual().get(place, &metadata);
    let oauth = client(&http, &FakeUser::willing());
    oauth.log_in(&[]).await.unwrap();

    let revocation = oauth.log_out().await.unwrap();

    assert!(matches!(revocation, Some(Revocation::Failed(_))));
    assert!(!http.urls().contains(&"http://as.example/revoke".to_owned()));
}
