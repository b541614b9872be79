//! More than was asked for before.

use turnbuckle_spec_coverage::req;

use super::*;
use crate::client::{
    store::MemoryStore,
    tests::fake_http::{metadata, with},
};

/// Lets in who asked for a scope at the last login, and wants it otherwise.
fn wanting(person: &Person, needed: &str) -> impl Fn(&Sent) -> Judgement {
    let (person, needed) = (person.clone(), needed.to_owned());
    move |sent| {
        if sent.authorization.is_none() {
            return Err((401, r#"Bearer scope="basic""#.to_owned()));
        }
        let has = person
            .asked()
            .is_some_and(|asked| asked.covers(&scopes(&needed)));
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
async fn what_is_missing_is_asked_for_together_with_what_was_asked_before() {
    req!("auth.scope.stepup");
    req!("auth.scope.stepup-union");
    let (issuer, person) = (Issuer::default(), Person::willing());
    let oauth = client(&issuer.tokens(Web::usual()), &person);
    call(&oauth, wanting(&person, "basic")).await.unwrap();

    let ended = call(&oauth, wanting(&person, "write")).await.unwrap();

    assert_eq!(ended, Ended::In);
    assert_eq!(person.asked(), Some(scopes("basic write")));
    assert_eq!(person.seen().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_was_asked_for_and_is_still_missing_is_not_asked_for_again() {
    req!("auth.scope.stepup-limit");
    let (issuer, person) = (Issuer::default(), Person::willing());
    let oauth = client(&issuer.tokens(Web::usual()), &person);
    let never = |sent: &Sent| match sent.authorization {
        None => Err((401, r#"Bearer scope="admin""#.to_owned())),
        Some(_) => Err((
            403,
            r#"Bearer error="insufficient_scope", scope="admin""#.to_owned(),
        )),
    };

    for _ in 0..4 {
        assert_eq!(call(&oauth, never).await.unwrap(), Ended::Refused(403));
    }

    assert_eq!(person.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_always_wants_more_is_left() {
    req!("auth.scope.stepup-limit");
    let (issuer, person) = (Issuer::default(), Person::willing());
    let oauth = client(&issuer.tokens(Web::usual()), &person);
    let count = AtomicUsize::new(0);
    let greedy = |sent: &Sent| match sent.authorization {
        None => Err((401, "Bearer".to_owned())),
        Some(_) => {
            let more = count.fetch_add(1, Ordering::Relaxed);
            Err((
                403,
                format!(r#"Bearer error="insufficient_scope", scope="more{more}""#),
            ))
        }
    };

    assert_eq!(call(&oauth, greedy).await.unwrap(), Ended::Refused(403));
    assert_eq!(person.seen().len(), 3, "a login, and twice more");
    for _ in 0..10 {
        assert_eq!(call(&oauth, greedy).await.unwrap(), Ended::Refused(403));
    }
    assert_eq!(person.seen().len(), 6, "five times more in all");
    tokio::time::advance(Duration::from_secs(601)).await;
    call(&oauth, greedy).await.unwrap();
    assert!(person.seen().len() > 6, "after a while it may ask again");
}

#[tokio::test(start_paused = true)]
async fn what_was_denied_is_not_asked_for_again_and_the_old_token_stays() {
    req!("auth.scope.stepup-limit");
    let issuer = Issuer::default();
    let person = Person::saying(|url| {
        let state = parameter(url, "state").unwrap();
        let is_more = parameter(url, "scope").unwrap().contains("write");
        let answer = if is_more {
            "error=access_denied"
        } else {
            "code=code"
        };
        Ok(format!("{answer}&state={state}&iss={ISSUER}"))
    });
    let oauth = client(&issuer.tokens(Web::usual()), &person);
    call(&oauth, wanting(&person, "basic")).await.unwrap();
    let wants = |_: &Sent| {
        Err((
            403,
            r#"Bearer error="insufficient_scope", scope="write""#.to_owned(),
        ))
    };

    let failure = call(&oauth, wants).await.unwrap_err();

    assert_eq!(failure.error_code(), Some("access_denied"));
    assert_eq!(call(&oauth, wants).await.unwrap(), Ended::Refused(403));
    assert_eq!(person.seen().len(), 2);
    let ended = call(&oauth, |sent| issuer.judge(sent)).await.unwrap();
    assert_eq!(ended, Ended::In);
}

#[tokio::test(start_paused = true)]
async fn a_403_that_names_no_scope_is_handed_on() {
    let (issuer, person) = (Issuer::default(), Person::willing());
    let oauth = client(&issuer.tokens(Web::usual()), &person);
    oauth.log_in(&[]).await.unwrap();

    for challenge in [
        "Bearer",
        r#"Bearer error="insufficient_scope""#,
        r#"Basic scope="x""#,
    ] {
        let ended = call(&oauth, |_| Err((403, challenge.to_owned()))).await;
        assert_eq!(ended.unwrap(), Ended::Refused(403), "{challenge}");
    }
    assert_eq!(person.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn offline_access_is_asked_for_where_the_authorization_server_knows_it() {
    req!("auth.refresh.offline");
    let metadata = with(
        metadata(),
        &json!({ "scopes_supported": ["read", "offline_access"] }),
    );
    let url = "https://as.example/.well-known/oauth-authorization-server";
    for (web, asked) in [
        (Web::usual().get(url, &metadata), "read offline_access"),
        (Web::usual(), "read"),
    ] {
        let (issuer, person) = (Issuer::default(), Person::willing());
        let oauth = client(&issuer.tokens(web), &person);

        call(&oauth, |sent| issuer.judge(sent)).await.unwrap();

        assert_eq!(person.asked(), Some(scopes(asked)));
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_not_granted_a_while_ago_is_asked_for_once_more() {
    let (person, store) = (Person::willing(), MemoryStore::new());
    let web = Web::usual().post(
        "https://as.example/token",
        200,
        &json!({ "access_token": "a", "token_type": "Bearer", "scope": "basic" }),
    );
    let ours = || client(&web, &person).store(store.clone());
    let never = |sent: &Sent| match sent.authorization {
        None => Err((401, r#"Bearer scope="basic write""#.to_owned())),
        Some(_) => Err((
            403,
            r#"Bearer error="insufficient_scope", scope="write""#.to_owned(),
        )),
    };
    let oauth = ours();

    assert_eq!(call(&oauth, never).await.unwrap(), Ended::Refused(403));
    assert_eq!(person.seen().len(), 1, "it has just been asked for");
    let later = ours();
    for _ in 0..3 {
        assert_eq!(call(&later, never).await.unwrap(), Ended::Refused(403));
    }
    assert_eq!(person.seen().len(), 2);
    assert_eq!(person.asked(), Some(scopes("basic write")));
}

#[tokio::test(start_paused = true)]
async fn more_that_somebody_else_was_granted_is_used() {
    let (issuer, person, store) = (Issuer::default(), Person::willing(), MemoryStore::new());
    let web = issuer.tokens(Web::usual());
    let [one, other] = [(); 2].map(|()| client(&web, &person).store(store.clone()));
    for oauth in [&one, &other] {
        call(oauth, wanting(&person, "basic")).await.unwrap();
    }

    call(&one, wanting(&person, "write")).await.unwrap();
    let needs_newest = |sent: &Sent| match sent.authorization.as_deref() {
        Some("Bearer access-2") => Ok(()),
        _ => Err((
            403,
            r#"Bearer error="insufficient_scope", scope="write""#.to_owned(),
        )),
    };
    assert_eq!(call(&other, needs_newest).await.unwrap(), Ended::In);

    assert_eq!((person.seen().len(), issuer.count()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_step_up_that_nobody_answered_may_be_tried_again() {
    let issuer = Issuer::default();
    let is_away = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let away = Arc::clone(&is_away);
    let person = Person::saying(move |url| {
        if away.load(Ordering::Relaxed) {
            Err(AuthorizationError::new(
                crate::AuthorizationStep::Callback,
                "nobody came",
            ))
        } else {
            Ok(format!(
                "code=code&state={}&iss={ISSUER}",
                parameter(url, "state").unwrap()
            ))
        }
    });
    let oauth = client(&issuer.tokens(Web::usual()), &person);
    call(&oauth, wanting(&person, "basic")).await.unwrap();
    let needs_newest = |sent: &Sent| match sent.authorization.as_deref() {
        Some("Bearer access-2") => Ok(()),
        _ => Err((
            403,
            r#"Bearer error="insufficient_scope", scope="write""#.to_owned(),
        )),
    };

    is_away.store(true, Ordering::Relaxed);
    call(&oauth, needs_newest).await.unwrap_err();
    is_away.store(false, Ordering::Relaxed);

    assert_eq!(call(&oauth, needs_newest).await.unwrap(), Ended::In);
}
