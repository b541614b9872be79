//! From a refusal to a token.

use turnbuckle_spec_coverage::req;

use super::*;
use crate::{AuthorizationStep, client::store::MemoryStore};

#[tokio::test(start_paused = true)]
async fn a_refusal_leads_to_a_login_and_the_request_is_sent_again() {
    req!("auth.www-authenticate.parse");
    req!("auth.token.header");
    let (issuer, person) = (Issuer::default(), Person::willing());
    let web = issuer.tokens(Web::usual());
    let oauth = client(&web, &person);

    let ended = call(&oauth, |sent| issuer.judge(sent)).await.unwrap();

    assert_eq!(ended, Ended::In);
    let seen = person.seen();
    assert_eq!(seen.len(), 1);
    assert!(seen[0].starts_with("https://as.example/authorize?"));
    assert_eq!(parameter(&seen[0], "resource").as_deref(), Some(SERVER));
    assert_eq!(person.asked(), Some(scopes("read")));
    let login = oauth.stored_login().await.unwrap().unwrap();
    assert_eq!((login.issuer(), &*login.resource), (ISSUER, SERVER));
    assert_eq!(login.requested_scopes, Some(scopes("read")));
}

#[tokio::test(start_paused = true)]
async fn every_request_has_the_token_and_none_of_them_asks_again() {
    req!("auth.token.every-request");
    req!("auth.token.not-in-query");
    let (issuer, person) = (Issuer::default(), Person::willing());
    let web = issuer.tokens(Web::usual());
    let oauth = client(&web, &person);
    for _ in 0..5 {
        call(&oauth, |sent| issuer.judge(sent)).await.unwrap();
    }

    assert_eq!((person.seen().len(), issuer.count()), (1, 1));
    let urls = web.urls();
    assert_eq!(urls.len(), 4, "{urls:?}");
    let all = urls
        .iter()
        .chain(&person.seen())
        .any(|url| url.contains("access-1"));
    assert!(!all, "the token is in no URL");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_and_nobody_asked_before_the_server_refuses() {
    let person = Person::willing();
    let web = Web::usual();
    let oauth = client(&web, &person);

    let ended = call(&oauth, |sent| {
        assert_eq!(sent.authorization, None);
        Ok(())
    });

    assert_eq!(ended.await.unwrap(), Ended::In);
    assert!(web.urls().is_empty() && person.seen().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_token_goes_to_the_origin_of_the_server_and_nowhere_else() {
    req!("auth.token.foreign-client");
    let (issuer, person) = (Issuer::default(), Person::willing());
    let web = issuer.tokens(Web::usual());
    let oauth = client(&web, &person);
    call(&oauth, |sent| issuer.judge(sent)).await.unwrap();

    for url in [
        "https://evil.example/mcp",
        "https://mcp.example.evil.example/mcp",
        "https://mcp.example:8443/mcp",
        "http://mcp.example/mcp",
        "https://user@mcp.example/mcp",
        "mcp.example",
    ] {
        let failure = oauth.credentials(UnsignedRequest::new("POST", url)).await;
        assert_eq!(failure.unwrap_err().step(), AuthorizationStep::Use, "{url}");
        let refused = UnauthorizedResponse::new(UnsignedRequest::new("POST", url), 401, &[], 1, 1);
        assert_eq!(
            oauth.on_unauthorized(refused).await.unwrap(),
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
    assert_eq!(person.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_denial_is_told_and_not_asked_again_by_those_who_waited_for_it() {
    let (issuer, person) = (Issuer::default(), Person::denying());
    let web = issuer.tokens(Web::usual());
    let oauth = client(&web, &person);
    let calls = (0..20).map(|_| {
        let (oauth, issuer) = (oauth.clone(), issuer.clone());
        tokio::spawn(async move { call(&oauth, |sent| issuer.judge(sent)).await })
    });

    for ended in calls.collect::<Vec<_>>() {
        let failure = ended.await.unwrap().unwrap_err();
        assert_eq!(failure.step(), AuthorizationStep::Callback);
        assert_eq!(failure.error_code(), Some("access_denied"));
    }
    assert_eq!((person.seen().len(), issuer.count()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn without_a_person_nobody_is_asked_and_the_failure_says_what_to_do() {
    let issuer = Issuer::default();
    let web = issuer.tokens(Web::usual());
    let oauth = OAuth::new(SERVER, Arc::new(web.clone()));

    let failure = call(&oauth, |sent| issuer.judge(sent)).await.unwrap_err();

    assert_eq!(failure.step(), AuthorizationStep::Authorization);
    assert!(failure.reason().contains(ISSUER), "{failure}");
    assert!(failure.hint().unwrap().contains("log in once"));
    assert!(!web.urls().iter().any(|url| url.ends_with("/register")));
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_refused_as_soon_as_it_is_given_is_not_asked_for_again() {
    let (issuer, person) = (Issuer::default(), Person::willing());
    let web = issuer.tokens(Web::usual());
    let oauth = client(&web, &person);
    let never = |_: &Sent| Err((401, "Bearer".to_owned()));

    for _ in 0..3 {
        let failure = call(&oauth, never).await.unwrap_err();
        assert_eq!(failure.step(), AuthorizationStep::Use);
        assert!(failure.hint().unwrap().contains("audience"));
    }
    assert_eq!((person.seen().len(), issuer.count()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn scopes_are_those_of_the_challenge_else_all_that_are_offered_else_none() {
    req!("auth.scope.authoritative");
    req!("auth.scope.no-relation");
    let offering = |names: serde_json::Value| {
        Web::usual().get(
            "https://mcp.example/.well-known/oauth-protected-resource/mcp",
            &json!({ "resource": SERVER, "authorization_servers": [ISSUER], "scopes_supported": names }),
        )
    };
    for (web, challenge, asked) in [
        (
            offering(json!(["a", "b"])),
            r#"Bearer scope="c""#,
            Some("c"),
        ),
        (offering(json!(["a", "b"])), "Bearer", Some("a b")),
        (Web::usual(), "Bearer", None),
    ] {
        let (issuer, person) = (Issuer::default(), Person::willing());
        let oauth = client(&issuer.tokens(web), &person);

        let judge = |sent: &Sent| issuer.judge(sent).map_err(|_| (401, challenge.to_owned()));
        call(&oauth, judge).await.unwrap();

        assert_eq!(person.asked(), asked.map(scopes), "{challenge}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_login_can_be_begun_without_a_refusal_and_forgotten_again() {
    let (issuer, person) = (Issuer::default(), Person::willing());
    let web = issuer.tokens(Web::usual());
    let store = MemoryStore::new();
    let oauth = client(&web, &person).store(store.clone());

    let login = oauth.log_in(&[]).await.unwrap();

    assert_eq!(login.tokens.access.expose(), "access-1");
    assert_eq!(
        call(&oauth, |sent| issuer.judge(sent)).await.unwrap(),
        Ended::In
    );
    assert!(oauth.log_out().await.unwrap());
    assert!(!oauth.log_out().await.unwrap());
    let credentials = oauth
        .credentials(UnsignedRequest::new("POST", SERVER))
        .await
        .unwrap();
    assert!(credentials.headers.is_empty());
}

#[tokio::test(start_paused = true)]
async fn nothing_secret_is_printed() {
    let (issuer, person) = (Issuer::default(), Person::willing());
    let web = issuer.tokens(Web::usual());
    let oauth = client(&web, &person);
    let login = oauth.log_in(&[]).await.unwrap();

    let printed = format!("{oauth:?} {login:?}");

    assert!(
        !printed.contains("access-1") && !printed.contains("refresh-1"),
        "{printed}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_names_another_issuer_each_time_is_left() {
    let count = AtomicUsize::new(0);
    let web = Web::usual()
        .rule(move |heard| {
            let path = "/.well-known/oauth-protected-resource/mcp";
            heard.url.ends_with(path).then(|| {
                let issuer = format!("https://{}.example", count.fetch_add(1, Ordering::Relaxed));
                let body = json!({ "resource": SERVER, "authorization_servers": [issuer] });
                Ok(json_response(200, &body.to_string()))
            })
        })
        .rule(|heard| {
            let issuer = heard
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
        .rule(|heard| {
            let body = r#"{"client_id":"c"}"#;
            heard
                .url
                .ends_with("/register")
                .then(|| Ok(json_response(201, body)))
        })
        .rule(|heard| {
            let body = r#"{"access_token":"a","token_type":"Bearer"}"#;
            heard
                .url
                .ends_with("/token")
                .then(|| Ok(json_response(200, body)))
        });
    let person = Person::saying(|url| {
        let state = parameter(url, "state").unwrap();
        Ok(format!("code=code&state={state}"))
    });
    let oauth = client(&web, &person);
    let never = |_: &Sent| Err((401, "Bearer".to_owned()));

    for _ in 0..10 {
        let _ = call(&oauth, never).await;
    }

    let failure = call(&oauth, never).await.unwrap_err();
    assert!(failure.reason().contains("again and again"), "{failure}");
    assert_eq!(person.seen().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_login_comes_to_its_end_even_if_the_request_is_given_up() {
    let (issuer, person) = (Issuer::default(), Person::willing());
    let web = issuer.tokens(Web::usual());
    let slow = Person {
        hesitates: Duration::from_secs(120),
        ..person.clone()
    };
    let oauth = client(&web, &slow);

    let minute = Duration::from_secs(60);
    let given_up = tokio::time::timeout(minute, call(&oauth, |sent| issuer.judge(sent)));
    given_up.await.unwrap_err();
    let ended = call(&oauth, |sent| issuer.judge(sent)).await.unwrap();

    assert_eq!(ended, Ended::In);
    assert_eq!((person.seen().len(), issuer.count()), (1, 1));
}
