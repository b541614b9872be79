//! Client identities: registrations, client ids and their issuers.

use serde_json::Value;
use turnbuckle_spec_coverage::req;

use super::*;
use crate::{
    AuthorizationStep, Secret,
    client::{
        oauth::GrantType,
        store::{MemoryStore, TokenStore},
        tests::fake_http::{metadata, with},
    },
};

const OTHER: &str = "https://other.example";

/// Adds a second authorization server, which issues tokens that the server accepts.
fn with_other(http: FakeHttp) -> FakeHttp {
    let metadata = with(
        metadata(),
        &json!({
            "issuer": OTHER,
            "authorization_endpoint": "https://other.example/authorize",
            "token_endpoint": "https://other.example/token",
            "registration_endpoint": "https://other.example/register",
        }),
    );
    http.get(
        "https://other.example/.well-known/oauth-authorization-server",
        &metadata,
    )
    .post(
        "https://other.example/register",
        201,
        &json!({ "client_id": "other-client" }),
    )
    .post(
        "https://other.example/token",
        200,
        &json!({ "access_token": "other-access", "token_type": "Bearer" }),
    )
}

/// Moves the server to the second authorization server.
fn moved(http: FakeHttp) -> FakeHttp {
    http.get(
        "https://mcp.example/.well-known/oauth-protected-resource/mcp",
        &json!({ "resource": SERVER, "authorization_servers": [OTHER] }),
    )
}

/// Logs in at any URL.
fn anywhere() -> FakeUser {
    FakeUser::responding(|url| {
        let state = parameter(url, "state").unwrap();
        let issuer = url.split("/authorize").next().unwrap();
        Ok(format!("code=code&state={state}&iss={issuer}"))
    })
}

fn bearing(token: &'static str) -> impl Fn(&SentCredentials) -> AuthDecision {
    move |sent| {
        if sent.authorization.as_deref() == Some(&format!("Bearer {token}")) {
            Ok(())
        } else {
            Err((401, "Bearer".to_owned()))
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_issuer_gets_a_new_registration_and_login() {
    req!("auth.as.separate-state");
    req!("auth.as.no-cross-credentials");
    req!("auth.binding.issuer");
    req!("auth.binding.no-reuse");
    req!("auth.binding.re-register");
    let (issuer, user, store) = (Issuer::default(), anywhere(), MemoryStore::new());
    let http = with_other(issuer.tokens(FakeHttp::usual()));
    let oauth = client(&http, &user).store(store.clone());
    call(&oauth, |sent| issuer.authenticate(sent))
        .await
        .unwrap();

    let http = moved(http);
    let ended = call(&oauth, bearing("other-access")).await.unwrap();

    assert_eq!(ended, CallEnd::Accepted);
    let request = user.shown().pop().unwrap();
    assert_eq!(
        parameter(&request, "client_id").as_deref(),
        Some("other-client")
    );
    for request in http
        .requests()
        .iter()
        .filter(|it| it.url.starts_with(OTHER))
    {
        assert!(!request.body.contains("registered"), "{request:?}");
        assert!(!request.body.contains("refresh-1"), "{request:?}");
    }
    let first = store.registration(ISSUER).await.unwrap().unwrap();
    let second = store.registration(OTHER).await.unwrap().unwrap();
    assert_eq!((&*first.id, &*second.id), ("registered", "other-client"));
}

#[tokio::test(start_paused = true)]
async fn a_configured_client_id_is_sent_only_to_its_issuer() {
    req!("auth.preregistration");
    req!("auth.binding.error");
    let (issuer, user, store) = (Issuer::default(), anywhere(), MemoryStore::new());
    let http = with_other(issuer.tokens(FakeHttp::usual()));
    let ours = || client(&http, &user).store(store.clone());
    let given = ours()
        .client_id("given")
        .client_secret(Secret::new("sesame"));
    call(&given, |sent| issuer.authenticate(sent))
        .await
        .unwrap();
    assert_eq!(
        parameter(&user.shown()[0], "client_id").as_deref(),
        Some("given")
    );
    assert!(
        http.last_post("https://as.example/token")
            .header("authorization")
            .is_some()
    );

    let _moved = moved(http.clone());
    // The id is configured, is in the store, or is configured with its issuer.
    let bound = client(&http, &user).client_id("given").issuer(ISSUER);
    for oauth in [given, ours(), bound] {
        let error = call(&oauth, bearing("other-access")).await.unwrap_err();
        assert_eq!(error.step(), AuthorizationStep::Registration);
        assert!(error.reason().contains(OTHER), "{error}");
    }

    assert_eq!(user.shown().len(), 1);
    let request = http.requests();
    let shown = request
        .iter()
        .filter(|it| it.method == crate::fetch::FetchMethod::Post);
    assert!(!shown.into_iter().any(|it| it.url.starts_with(OTHER)));
}

#[tokio::test(start_paused = true)]
async fn a_registration_is_reused_unless_the_redirect_uri_changes() {
    req!("auth.redirect.registered");
    let (issuer, user, store) = (Issuer::default(), FakeUser::willing(), MemoryStore::new());
    let http = issuer.tokens(FakeHttp::usual());
    let oauth = client(&http, &user).store(store.clone());
    let registered = || {
        let request = http
            .requests()
            .into_iter()
            .filter(|it| it.url.ends_with("/register"));
        request.map(|it| it.body).collect::<Vec<_>>()
    };

    oauth.log_in(&[]).await.unwrap();
    oauth.log_in(&[]).await.unwrap();
    assert_eq!(registered().len(), 1);

    // The port is in use now.
    user.port.store(7002, Ordering::Relaxed);
    oauth.log_in(&[]).await.unwrap();
    let registered = registered();
    assert_eq!(registered.len(), 2);
    let last: Value = serde_json::from_str(&registered[1]).unwrap();
    assert_eq!(
        last["redirect_uris"],
        json!(["http://127.0.0.1:7002/callback"])
    );
    assert_eq!(last["application_type"], "native");
}

#[tokio::test(start_paused = true)]
async fn an_expired_or_unused_registration_is_replaced() {
    let (issuer, store) = (Issuer::default(), MemoryStore::new());
    let http = issuer.tokens(FakeHttp::usual());
    let away = FakeUser::responding(|_| {
        Err(AuthorizationError::new(
            AuthorizationStep::Callback,
            "the login timed out",
        ))
    });
    let willing = FakeUser::willing();
    let registered = || {
        let urls = http.urls().into_iter();
        urls.filter(|url| url.ends_with("/register")).count()
    };
    let log_in = async |user: &FakeUser| {
        let oauth = client(&http, user).store(store.clone());
        oauth.log_in(&[]).await
    };
    log_in(&willing).await.unwrap();
    assert_eq!(registered(), 1);

    let mut ended = store.registration(ISSUER).await.unwrap().unwrap();
    ended.expires = Some(1);
    store.save_registration(ISSUER, Some(&ended)).await.unwrap();
    log_in(&willing).await.unwrap();
    assert_eq!(registered(), 2);

    // The browser may have shown an unknown-client error, which the client does not see.
    log_in(&away).await.unwrap_err();
    assert_eq!(registered(), 2);
    log_in(&willing).await.unwrap();
    assert_eq!(registered(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_registration_unknown_to_the_server_is_replaced_once() {
    let (issuer, user, store) = (Issuer::default(), FakeUser::willing(), MemoryStore::new());
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let http = issuer.tokens(FakeHttp::usual()).rule(move |request| {
        (request.url == "https://as.example/register").then(|| {
            let id = counted.fetch_add(1, Ordering::Relaxed);
            Ok(json_response(
                201,
                &format!(r#"{{"client_id":"client-{id}"}}"#),
            ))
        })
    });
    let oauth = client(&http, &user).store(store.clone());
    oauth.log_in(&[]).await.unwrap();

    // From now on it accepts only the newest registration.
    let newest = Arc::clone(&count);
    let http = http.rule(move |request| {
        let known = format!("client-{}", newest.load(Ordering::Relaxed) - 1);
        let is_reused = request
            .field("client_id")
            .is_some_and(|id| id != known || known == "client-0");
        (request.url == "https://as.example/token" && is_reused)
            .then(|| Ok(json_response(401, r#"{"error":"invalid_client"}"#)))
    });
    oauth.log_in(&[]).await.unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 2);
    let stored = store.registration(ISSUER).await.unwrap().unwrap();
    assert_eq!(stored.id, "client-1");

    // An authorization server that accepts no registration is given up.
    let _deaf = http.rule(|request| {
        (request.url == "https://as.example/token")
            .then(|| Ok(json_response(401, r#"{"error":"invalid_client"}"#)))
    });
    let error = oauth.log_in(&[]).await.unwrap_err();
    assert_eq!(error.error_code(), Some("invalid_client"));
    assert_eq!(count.load(Ordering::Relaxed), 3);
}

#[tokio::test(start_paused = true)]
async fn a_refresh_rejected_with_invalid_client_registers_again() {
    let (issuer, user, store) = (Issuer::default(), FakeUser::willing(), MemoryStore::new());
    let http = issuer.tokens(FakeHttp::usual());
    let oauth = client(&http, &user).store(store.clone());
    call(&oauth, |sent| issuer.authenticate(sent))
        .await
        .unwrap();
    issuer.end_access();
    tokio::time::advance(Duration::from_secs(61)).await;
    let http = http.rule(|request| {
        request
            .field("refresh_token")
            .map(|_| Ok(json_response(401, r#"{"error":"invalid_client"}"#)))
    });

    let ended = call(&oauth, |sent| issuer.authenticate(sent))
        .await
        .unwrap();

    assert_eq!(ended, CallEnd::Accepted);
    let registered = http
        .urls()
        .into_iter()
        .filter(|url| url.ends_with("/register"));
    assert_eq!(registered.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_metadata_document_url_is_the_client_id_if_supported() {
    req!("auth.cimd.check");
    req!("auth.cimd.fallback");
    let document = "https://client.example/metadata.json";
    let understood = with(
        metadata(),
        &json!({ "client_id_metadata_document_supported": true }),
    );
    let url = "https://as.example/.well-known/oauth-authorization-server";
    for (http, id) in [
        (FakeHttp::usual().get(url, &understood), document),
        (FakeHttp::usual(), "registered"),
    ] {
        let (issuer, user) = (Issuer::default(), FakeUser::willing());
        let oauth = client(&issuer.tokens(http), &user).client_metadata_url(document);

        call(&oauth, |sent| issuer.authenticate(sent))
            .await
            .unwrap();

        assert_eq!(
            parameter(&user.shown()[0], "client_id").as_deref(),
            Some(id)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn missing_registration_methods_are_an_error() {
    let lonely = with(metadata(), &json!({ "registration_endpoint": null }));
    let http = FakeHttp::usual().get(
        "https://as.example/.well-known/oauth-authorization-server",
        &lonely,
    );
    let user = FakeUser::willing();

    let error = call(&client(&http, &user), bearing("x")).await.unwrap_err();

    assert_eq!(error.step(), AuthorizationStep::Registration);
    assert!(error.hint().unwrap().contains("client id"));
}

#[tokio::test(start_paused = true)]
async fn client_credentials_need_no_user() {
    req!("auth.scope.stepup-machine");
    let issuer = Issuer::default();
    let http = issuer.tokens(FakeHttp::usual());
    let key = crate::jwt::SigningKey::generate().unwrap();
    let workload = GrantType::WorkloadIdentity {
        assertion: Secret::new("a.b.c"),
    };
    for (grant, named) in [
        (GrantType::ClientCredentials, "client_credentials"),
        (GrantType::ClientCredentialsJwt(key), "client_credentials"),
        (workload, "urn:ietf:params:oauth:grant-type:jwt-bearer"),
    ] {
        let oauth = OAuth::new(SERVER, Arc::new(http.clone()))
            .client_id("machine")
            .client_secret(Secret::new("sesame"))
            .grant(grant);
        issuer.end_access();

        let ended = call(&oauth, |sent| issuer.authenticate(sent))
            .await
            .unwrap();

        assert_eq!(ended, CallEnd::Accepted, "{named}");
        let request = http.last_post("https://as.example/token");
        assert_eq!(request.field("grant_type").as_deref(), Some(named));
        assert_eq!(request.field("scope").as_deref(), Some("read"));
    }
}

#[tokio::test(start_paused = true)]
async fn an_identity_assertion_is_fetched_before_the_token() {
    let issuer = Issuer::default();
    let http = issuer.tokens(FakeHttp::usual()).post(
        "https://idp.example/token",
        200,
        &json!({
            "access_token": "jag",
            "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag",
            "token_type": "N_A",
        }),
    );
    let oauth = OAuth::new(SERVER, Arc::new(http.clone()))
        .client_id("ours")
        .client_secret(Secret::new("sesame"))
        .grant(GrantType::EnterpriseManaged {
            idp_token_endpoint: "https://idp.example/token".to_owned(),
            idp_client_id: "idp-client".to_owned(),
            idp_client_secret: None,
            id_token: Secret::new("id"),
        });

    let ended = call(&oauth, |sent| issuer.authenticate(sent))
        .await
        .unwrap();

    assert_eq!(ended, CallEnd::Accepted);
    let exchange = http.last_post("https://idp.example/token");
    assert_eq!(exchange.field("audience").as_deref(), Some(ISSUER));
    assert_eq!(exchange.field("client_id").as_deref(), Some("idp-client"));
    let request = http.last_post("https://as.example/token");
    assert_eq!(request.field("assertion").as_deref(), Some("jag"));
    assert!(
        request
            .header("authorization")
            .unwrap()
            .starts_with("Basic ")
    );
}

#[tokio::test(start_paused = true)]
async fn a_device_login_is_polled() {
    let (issuer, user) = (Issuer::default(), FakeUser::willing());
    let polls = AtomicUsize::new(0);
    let http = issuer
        .tokens(FakeHttp::usual())
        .post(
            "https://as.example/device",
            200,
            &json!({
                "device_code": "device",
                "user_code": "ABCD-EFGH",
                "verification_uri": "https://as.example/activate",
                "expires_in": 600,
                "interval": 5,
            }),
        )
        .rule(move |request| {
            let is_poll = request.field("device_code").is_some();
            let is_early = is_poll && polls.fetch_add(1, Ordering::Relaxed) < 2;
            is_early.then(|| Ok(json_response(400, r#"{"error":"authorization_pending"}"#)))
        });
    let oauth = client(&http, &user).grant(GrantType::DeviceCode);

    let ended = call(&oauth, |sent| issuer.authenticate(sent))
        .await
        .unwrap();

    assert_eq!(ended, CallEnd::Accepted);
    assert_eq!(user.shown(), ["ABCD-EFGH"]);
}

#[tokio::test(start_paused = true)]
async fn no_client_is_registered_if_the_login_would_fail() {
    for unsafe_metadata in [
        with(
            metadata(),
            &json!({ "code_challenge_methods_supported": ["plain"] }),
        ),
        with(
            metadata(),
            &json!({ "code_challenge_methods_supported": [] }),
        ),
    ] {
        let (issuer, user) = (Issuer::default(), FakeUser::willing());
        let url = "https://as.example/.well-known/oauth-authorization-server";
        let http = issuer.tokens(FakeHttp::usual()).get(url, &unsafe_metadata);

        let outcome = call(&client(&http, &user), |sent| issuer.authenticate(sent)).await;

        let error = outcome.unwrap_err();
        assert_eq!(error.step(), AuthorizationStep::Authorization);
        assert!(error.reason().contains("PKCE"), "{error}");
        assert!(user.shown().is_empty());
        let request = http.requests();
        assert!(
            !request
                .iter()
                .any(|request| request.url.ends_with("/register"))
        );
    }
}
