//! As whom: registrations, client ids, and the issuers that they belong to.

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

/// A second authorization server, which gives tokens that the server then takes.
fn with_other(web: Web) -> Web {
    let metadata = with(
        metadata(),
        &json!({
            "issuer": OTHER,
            "authorization_endpoint": "https://other.example/authorize",
            "token_endpoint": "https://other.example/token",
            "registration_endpoint": "https://other.example/register",
        }),
    );
    web.get(
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
fn moved(web: Web) -> Web {
    web.get(
        "https://mcp.example/.well-known/oauth-protected-resource/mcp",
        &json!({ "resource": SERVER, "authorization_servers": [OTHER] }),
    )
}

/// Logs in wherever the URL leads.
fn anywhere() -> Person {
    Person::saying(|url| {
        let state = parameter(url, "state").unwrap();
        let issuer = url.split("/authorize").next().unwrap();
        Ok(format!("code=code&state={state}&iss={issuer}"))
    })
}

fn bearing(token: &'static str) -> impl Fn(&Sent) -> Judgement {
    move |sent| {
        if sent.authorization.as_deref() == Some(&format!("Bearer {token}")) {
            Ok(())
        } else {
            Err((401, "Bearer".to_owned()))
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_moves_to_another_issuer_gets_a_new_client_and_a_new_login() {
    req!("auth.as.separate-state");
    req!("auth.as.no-cross-credentials");
    req!("auth.binding.issuer");
    req!("auth.binding.no-reuse");
    req!("auth.binding.re-register");
    let (issuer, person, store) = (Issuer::default(), anywhere(), MemoryStore::new());
    let web = with_other(issuer.tokens(Web::usual()));
    let oauth = client(&web, &person).store(store.clone());
    call(&oauth, |sent| issuer.judge(sent)).await.unwrap();

    let web = moved(web);
    let ended = call(&oauth, bearing("other-access")).await.unwrap();

    assert_eq!(ended, Ended::In);
    let asked = person.seen().pop().unwrap();
    assert_eq!(
        parameter(&asked, "client_id").as_deref(),
        Some("other-client")
    );
    for heard in web.heard().iter().filter(|it| it.url.starts_with(OTHER)) {
        assert!(!heard.body.contains("registered"), "{heard:?}");
        assert!(!heard.body.contains("refresh-1"), "{heard:?}");
    }
    let first = store.registration(ISSUER).await.unwrap().unwrap();
    let second = store.registration(OTHER).await.unwrap().unwrap();
    assert_eq!((&*first.id, &*second.id), ("registered", "other-client"));
}

#[tokio::test(start_paused = true)]
async fn a_client_id_that_was_given_is_shown_to_the_issuer_that_gave_it_and_to_no_other() {
    req!("auth.preregistration");
    req!("auth.binding.error");
    let (issuer, person, store) = (Issuer::default(), anywhere(), MemoryStore::new());
    let web = with_other(issuer.tokens(Web::usual()));
    let ours = || client(&web, &person).store(store.clone());
    let given = ours()
        .client_id("given")
        .client_secret(Secret::new("sesame"));
    call(&given, |sent| issuer.judge(sent)).await.unwrap();
    assert_eq!(
        parameter(&person.seen()[0], "client_id").as_deref(),
        Some("given")
    );
    assert!(
        web.posted("https://as.example/token")
            .header("authorization")
            .is_some()
    );

    let _moved = moved(web.clone());
    // Whoever configured the id, whoever finds it in the store, and whoever said whose it is.
    let bound = client(&web, &person).client_id("given").issuer(ISSUER);
    for oauth in [given, ours(), bound] {
        let failure = call(&oauth, bearing("other-access")).await.unwrap_err();
        assert_eq!(failure.step(), AuthorizationStep::Registration);
        assert!(failure.reason().contains(OTHER), "{failure}");
    }

    assert_eq!(person.seen().len(), 1);
    let heard = web.heard();
    let shown = heard
        .iter()
        .filter(|it| it.method == crate::fetch::FetchMethod::Post);
    assert!(!shown.into_iter().any(|it| it.url.starts_with(OTHER)));
}

#[tokio::test(start_paused = true)]
async fn a_registration_is_used_again_and_made_anew_for_another_redirect_uri() {
    req!("auth.redirect.registered");
    let (issuer, person, store) = (Issuer::default(), Person::willing(), MemoryStore::new());
    let web = issuer.tokens(Web::usual());
    let oauth = client(&web, &person).store(store.clone());
    let registered = || {
        let heard = web
            .heard()
            .into_iter()
            .filter(|it| it.url.ends_with("/register"));
        heard.map(|it| it.body).collect::<Vec<_>>()
    };

    oauth.log_in(&[]).await.unwrap();
    oauth.log_in(&[]).await.unwrap();
    assert_eq!(registered().len(), 1);

    // The port is taken by now.
    person.port.store(7002, Ordering::Relaxed);
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
async fn a_registration_that_has_ended_or_that_nobody_came_back_with_is_made_anew() {
    let (issuer, store) = (Issuer::default(), MemoryStore::new());
    let web = issuer.tokens(Web::usual());
    let away = Person::saying(|_| {
        Err(AuthorizationError::new(
            AuthorizationStep::Callback,
            "nobody came",
        ))
    });
    let willing = Person::willing();
    let registered = || {
        let urls = web.urls().into_iter();
        urls.filter(|url| url.ends_with("/register")).count()
    };
    let log_in = async |person: &Person| {
        let oauth = client(&web, person).store(store.clone());
        oauth.log_in(&[]).await
    };
    log_in(&willing).await.unwrap();
    assert_eq!(registered(), 1);

    let mut ended = store.registration(ISSUER).await.unwrap().unwrap();
    ended.expires = Some(1);
    store.save_registration(ISSUER, Some(&ended)).await.unwrap();
    log_in(&willing).await.unwrap();
    assert_eq!(registered(), 2);

    // The browser may have shown that the client is not known: nobody tells us.
    log_in(&away).await.unwrap_err();
    assert_eq!(registered(), 2);
    log_in(&willing).await.unwrap();
    assert_eq!(registered(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_registration_that_the_server_has_forgotten_is_made_anew_once() {
    let (issuer, person, store) = (Issuer::default(), Person::willing(), MemoryStore::new());
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let web = issuer.tokens(Web::usual()).rule(move |heard| {
        (heard.url == "https://as.example/register").then(|| {
            let id = counted.fetch_add(1, Ordering::Relaxed);
            Ok(json_response(
                201,
                &format!(r#"{{"client_id":"client-{id}"}}"#),
            ))
        })
    });
    let oauth = client(&web, &person).store(store.clone());
    oauth.log_in(&[]).await.unwrap();

    // It knows only the newest one from now on.
    let newest = Arc::clone(&count);
    let web = web.rule(move |heard| {
        let known = format!("client-{}", newest.load(Ordering::Relaxed) - 1);
        let is_reused = heard
            .field("client_id")
            .is_some_and(|id| id != known || known == "client-0");
        (heard.url == "https://as.example/token" && is_reused)
            .then(|| Ok(json_response(401, r#"{"error":"invalid_client"}"#)))
    });
    oauth.log_in(&[]).await.unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 2);
    let kept = store.registration(ISSUER).await.unwrap().unwrap();
    assert_eq!(kept.id, "client-1");

    // One that knows nobody is left.
    let _deaf = web.rule(|heard| {
        (heard.url == "https://as.example/token")
            .then(|| Ok(json_response(401, r#"{"error":"invalid_client"}"#)))
    });
    let failure = oauth.log_in(&[]).await.unwrap_err();
    assert_eq!(failure.error_code(), Some("invalid_client"));
    assert_eq!(count.load(Ordering::Relaxed), 3);
}

#[tokio::test(start_paused = true)]
async fn a_refresh_that_the_server_does_not_know_us_for_registers_anew() {
    let (issuer, person, store) = (Issuer::default(), Person::willing(), MemoryStore::new());
    let web = issuer.tokens(Web::usual());
    let oauth = client(&web, &person).store(store.clone());
    call(&oauth, |sent| issuer.judge(sent)).await.unwrap();
    issuer.end_access();
    tokio::time::advance(Duration::from_secs(61)).await;
    let web = web.rule(|heard| {
        heard
            .field("refresh_token")
            .map(|_| Ok(json_response(401, r#"{"error":"invalid_client"}"#)))
    });

    let ended = call(&oauth, |sent| issuer.judge(sent)).await.unwrap();

    assert_eq!(ended, Ended::In);
    let registered = web
        .urls()
        .into_iter()
        .filter(|url| url.ends_with("/register"));
    assert_eq!(registered.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_url_of_a_document_is_the_id_where_that_is_understood() {
    req!("auth.cimd.check");
    req!("auth.cimd.fallback");
    let document = "https://client.example/metadata.json";
    let understood = with(
        metadata(),
        &json!({ "client_id_metadata_document_supported": true }),
    );
    let url = "https://as.example/.well-known/oauth-authorization-server";
    for (web, id) in [
        (Web::usual().get(url, &understood), document),
        (Web::usual(), "registered"),
    ] {
        let (issuer, person) = (Issuer::default(), Person::willing());
        let oauth = client(&issuer.tokens(web), &person).client_metadata_url(document);

        call(&oauth, |sent| issuer.judge(sent)).await.unwrap();

        assert_eq!(
            parameter(&person.seen()[0], "client_id").as_deref(),
            Some(id)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn where_nobody_can_register_the_failure_says_so() {
    let lonely = with(metadata(), &json!({ "registration_endpoint": null }));
    let web = Web::usual().get(
        "https://as.example/.well-known/oauth-authorization-server",
        &lonely,
    );
    let person = Person::willing();

    let failure = call(&client(&web, &person), bearing("x"))
        .await
        .unwrap_err();

    assert_eq!(failure.step(), AuthorizationStep::Registration);
    assert!(failure.hint().unwrap().contains("client id"));
}

#[tokio::test(start_paused = true)]
async fn machines_get_tokens_without_a_person() {
    req!("auth.scope.stepup-machine");
    let issuer = Issuer::default();
    let web = issuer.tokens(Web::usual());
    let key = crate::jwt::SigningKey::generate().unwrap();
    let workload = GrantType::WorkloadIdentity {
        assertion: Secret::new("a.b.c"),
    };
    for (grant, named) in [
        (GrantType::ClientCredentials, "client_credentials"),
        (GrantType::ClientCredentialsJwt(key), "client_credentials"),
        (workload, "urn:ietf:params:oauth:grant-type:jwt-bearer"),
    ] {
        let oauth = OAuth::new(SERVER, Arc::new(web.clone()))
            .client_id("machine")
            .client_secret(Secret::new("sesame"))
            .grant(grant);
        issuer.end_access();

        let ended = call(&oauth, |sent| issuer.judge(sent)).await.unwrap();

        assert_eq!(ended, Ended::In, "{named}");
        let asked = web.posted("https://as.example/token");
        assert_eq!(asked.field("grant_type").as_deref(), Some(named));
        assert_eq!(asked.field("scope").as_deref(), Some("read"));
    }
}

#[tokio::test(start_paused = true)]
async fn an_enterprise_asks_its_identity_provider_first() {
    let issuer = Issuer::default();
    let web = issuer.tokens(Web::usual()).post(
        "https://idp.example/token",
        200,
        &json!({
            "access_token": "jag",
            "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag",
            "token_type": "N_A",
        }),
    );
    let oauth = OAuth::new(SERVER, Arc::new(web.clone()))
        .client_id("ours")
        .client_secret(Secret::new("sesame"))
        .grant(GrantType::EnterpriseManaged {
            idp_token_endpoint: "https://idp.example/token".to_owned(),
            idp_client_id: "idp-client".to_owned(),
            idp_client_secret: None,
            id_token: Secret::new("id"),
        });

    let ended = call(&oauth, |sent| issuer.judge(sent)).await.unwrap();

    assert_eq!(ended, Ended::In);
    let exchange = web.posted("https://idp.example/token");
    assert_eq!(exchange.field("audience").as_deref(), Some(ISSUER));
    assert_eq!(exchange.field("client_id").as_deref(), Some("idp-client"));
    let asked = web.posted("https://as.example/token");
    assert_eq!(asked.field("assertion").as_deref(), Some("jag"));
    assert!(asked.header("authorization").unwrap().starts_with("Basic "));
}

#[tokio::test(start_paused = true)]
async fn a_login_on_another_device_is_awaited() {
    let (issuer, person) = (Issuer::default(), Person::willing());
    let polls = AtomicUsize::new(0);
    let web = issuer
        .tokens(Web::usual())
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
        .rule(move |heard| {
            let is_poll = heard.field("device_code").is_some();
            let is_early = is_poll && polls.fetch_add(1, Ordering::Relaxed) < 2;
            is_early.then(|| Ok(json_response(400, r#"{"error":"authorization_pending"}"#)))
        });
    let oauth = client(&web, &person).grant(GrantType::DeviceCode);

    let ended = call(&oauth, |sent| issuer.judge(sent)).await.unwrap();

    assert_eq!(ended, Ended::In);
    assert_eq!(person.seen(), ["ABCD-EFGH"]);
}

#[tokio::test(start_paused = true)]
async fn no_client_is_registered_where_the_login_would_be_refused() {
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
        let (issuer, person) = (Issuer::default(), Person::willing());
        let raw_url = "https://as.example/.well-known/oauth-authorization-server";
        let web = issuer.tokens(Web::usual()).get(raw_url, &unsafe_metadata);

        let outcome = call(&client(&web, &person), |sent| issuer.judge(sent)).await;

        let failure = outcome.unwrap_err();
        assert_eq!(failure.step(), AuthorizationStep::Authorization);
        assert!(failure.reason().contains("PKCE"), "{failure}");
        assert!(person.seen().is_empty());
        let heard = web.heard();
        assert!(!heard.iter().any(|heard| heard.url.ends_with("/register")));
    }
}
