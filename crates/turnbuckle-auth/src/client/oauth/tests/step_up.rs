//! Step-up authorization: a 403 that requires more scopes.

use turnbuckle_spec_coverage::req;

use super::*;
use crate::client::{
    store::MemoryStore,
    tests::fake_http::{metadata, with},
};

/// Accepts a token if the scope was requested at the last login; otherwise requires the scope.
fn require_scope(user: &FakeUser, needed: &str) -> impl Fn(&SentCredentials) -> AuthDecision {
    let (user, needed) = (user.clone(), needed.to_owned());
    move |sent| {
        if sent.authorization.is_none() {
            return Err((401, r#"Bearer scope="basic""#.to_owned()));
        }
        let has = user
            .requested_scopes()
            .is_some_and(|request| request.covers(&scopes(&needed)));
        if has {
            Ok(())
        } else {
            Err((
                403,
                format!(r#"Bearer error="insufficient_scope", scope="{needed}""#),
            ))
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_up_requests_missing_and_earlier_scopes() {
    req!("auth.scope.stepup");
    req!("auth.scope.stepup-union");
    let (issuer, user) = (Issuer::default(), FakeUser::willing());
    let oauth = client(&issuer.tokens(FakeHttp::usual()), &user);
    call(&oauth, require_scope(&user, "basic")).await.unwrap();

    let ended = call(&oauth, require_scope(&user, "write")).await.unwrap();

    assert_eq!(ended, CallEnd::Accepted);
    assert_eq!(user.requested_scopes(), Some(scopes("basic write")));
    assert_eq!(user.shown().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_scope_that_was_not_granted_is_not_requested_again() {
    req!("auth.scope.stepup-limit");
    let (issuer, user) = (Issuer::default(), FakeUser::willing());
    let oauth = client(&issuer.tokens(FakeHttp::usual()), &user);
    let never = |sent: &SentCredentials| match sent.authorization {
        None => Err((401, r#"Bearer scope="admin""#.to_owned())),
        Some(_) => Err((
            403,
            r#"Bearer error="insufficient_scope", scope="admin""#.to_owned(),
        )),
    };

    for _ in 0..4 {
        assert_eq!(call(&oauth, never).await.unwrap(), CallEnd::Rejected(403));
    }

    assert_eq!(user.shown().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn endless_step_up_challenges_are_given_up() {
    req!("auth.scope.stepup-limit");
    let (issuer, user) = (Issuer::default(), FakeUser::willing());
    let oauth = client(&issuer.tokens(FakeHttp::usual()), &user);
    let count = AtomicUsize::new(0);
    let greedy = |sent: &SentCredentials| match sent.authorization {
        None => Err((401, "Bearer".to_owned())),
        Some(_) => {
            let more = count.fetch_add(1, Ordering::Relaxed);
            Err((
                403,
                format!(r#"Bearer error="insufficient_scope", scope="more{more}""#),
            ))
        }
    };

    assert_eq!(call(&oauth, greedy).await.unwrap(), CallEnd::Rejected(403));
    assert_eq!(user.shown().len(), 3, "a login and two step-ups");
    for _ in 0..10 {
        assert_eq!(call(&oauth, greedy).await.unwrap(), CallEnd::Rejected(403));
    }
    assert_eq!(user.shown().len(), 6, "a login and five step-ups");
    tokio::time::advance(Duration::from_secs(601)).await;
    call(&oauth, greedy).await.unwrap();
    assert!(
        user.shown().len() > 6,
        "step-ups are allowed again after the back-off"
    );
}

#[tokio::test(start_paused = true)]
async fn a_denied_step_up_is_not_repeated_and_keeps_the_old_token() {
    req!("auth.scope.stepup-limit");
    let issuer = Issuer::default();
    let user = FakeUser::responding(|url| {
        let state = parameter(url, "state").unwrap();
        let is_more = parameter(url, "scope").unwrap().contains("write");
        let response = if is_more {
            "error=access_denied"
        } else {
            "code=code"
        };
        Ok(format!("{response}&state={state}&iss={ISSUER}"))
    });
    let oauth = client(&issuer.tokens(FakeHttp::usual()), &user);
    call(&oauth, require_scope(&user, "basic")).await.unwrap();
    let wants = |_: &SentCredentials| {
        Err((
            403,
            r#"Bearer error="insufficient_scope", scope="write""#.to_owned(),
        ))
    };

    let error = call(&oauth, wants).await.unwrap_err();

    assert_eq!(error.error_code(), Some("access_denied"));
    assert_eq!(call(&oauth, wants).await.unwrap(), CallEnd::Rejected(403));
    assert_eq!(user.shown().len(), 2);
    let ended = call(&oauth, |sent| issuer.authenticate(sent))
        .await
        .unwrap();
    assert_eq!(ended, CallEnd::Accepted);
}

#[tokio::test(start_paused = true)]
async fn a_403_without_scope_is_returned_to_the_caller() {
    let (issuer, user) = (Issuer::default(), FakeUser::willing());
    let oauth = client(&issuer.tokens(FakeHttp::usual()), &user);
    oauth.log_in(&[]).await.unwrap();

    for challenge in [
        "Bearer",
        r#"Bearer error="insufficient_scope""#,
        r#"Basic scope="x""#,
    ] {
        let ended = call(&oauth, |_| Err((403, challenge.to_owned()))).await;
        assert_eq!(ended.unwrap(), CallEnd::Rejected(403), "{challenge}");
    }
    assert_eq!(user.shown().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn offline_access_is_requested_if_the_authorization_server_supports_it() {
    req!("auth.refresh.offline");
    let metadata = with(
        metadata(),
        &json!({ "scopes_supported": ["read", "offline_access"] }),
    );
    let url = "https://as.example/.well-known/oauth-authorization-server";
    for (http, request) in [
        (FakeHttp::usual().get(url, &metadata), "read offline_access"),
        (FakeHttp::usual(), "read"),
    ] {
        let (issuer, user) = (Issuer::default(), FakeUser::willing());
        let oauth = client(&issuer.tokens(http), &user);

        call(&oauth, |sent| issuer.authenticate(sent))
            .await
            .unwrap();

        assert_eq!(user.requested_scopes(), Some(scopes(request)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_scope_is_requested_again_after_the_back_off() {
    let (user, store) = (FakeUser::willing(), MemoryStore::new());
    let http = FakeHttp::usual().post(
        "https://as.example/token",
        200,
        &json!({ "access_token": "a", "token_type": "Bearer", "scope": "basic" }),
    );
    let ours = || client(&http, &user).store(store.clone());
    let never = |sent: &SentCredentials| match sent.authorization {
        None => Err((401, r#"Bearer scope="basic write""#.to_owned())),
        Some(_) => Err((
            403,
            r#"Bearer error="insufficient_scope", scope="write""#.to_owned(),
        )),
    };
    let oauth = ours();

    assert_eq!(call(&oauth, never).await.unwrap(), CallEnd::Rejected(403));
    assert_eq!(user.shown().len(), 1, "the scope has just been requested");
    let later = ours();
    for _ in 0..3 {
        assert_eq!(call(&later, never).await.unwrap(), CallEnd::Rejected(403));
    }
    assert_eq!(user.shown().len(), 2);
    assert_eq!(user.requested_scopes(), Some(scopes("basic write")));
}

#[tokio::test(start_paused = true)]
async fn scopes_granted_to_another_process_are_used() {
    let (issuer, user, store) = (Issuer::default(), FakeUser::willing(), MemoryStore::new());
    let http = issuer.tokens(FakeHttp::usual());
    let [one, other] = [(); 2].map(|()| client(&http, &user).store(store.clone()));
    for oauth in [&one, &other] {
        call(oauth, require_scope(&user, "basic")).await.unwrap();
    }

    call(&one, require_scope(&user, "write")).await.unwrap();
    let needs_newest = |sent: &SentCredentials| match sent.authorization.as_deref() {
        Some("Bearer access-2") => Ok(()),
        _ => Err((
            403,
            r#"Bearer error="insufficient_scope", scope="write""#.to_owned(),
        )),
    };
    assert_eq!(call(&other, needs_newest).await.unwrap(), CallEnd::Accepted);

    assert_eq!((user.shown().len(), issuer.count()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_step_up_that_timed_out_may_be_retried() {
    let issuer = Issuer::default();
    let is_away = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let away = Arc::clone(&is_away);
    let user = FakeUser::responding(move |url| {
        if away.load(Ordering::Relaxed) {
            Err(AuthorizationError::new(
                crate::AuthorizationStep::Callback,
                "the login timed out",
            ))
        } else {
            Ok(format!(
                "code=code&state={}&iss={ISSUER}",
                parameter(url, "state").unwrap()
            ))
        }
    });
    let oauth = client(&issuer.tokens(FakeHttp::usual()), &user);
    call(&oauth, require_scope(&user, "basic")).await.unwrap();
    let needs_newest = |sent: &SentCredentials| match sent.authorization.as_deref() {
        Some("Bearer access-2") => Ok(()),
        _ => Err((
            403,
            r#"Bearer error="insufficient_scope", scope="write""#.to_owned(),
        )),
    };

    is_away.store(true, Ordering::Relaxed);
    call(&oauth, needs_newest).await.unwrap_err();
    is_away.store(false, Ordering::Relaxed);

    assert_eq!(call(&oauth, needs_newest).await.unwrap(), CallEnd::Accepted);
}
