//! Keeping a token fresh.

use std::{pin::Pin, task::Poll};

use turnbuckle_spec_coverage::req;

use super::*;
use crate::{
    AuthorizationStep,
    client::store::{FileStore, MemoryStore, StoredLogin, TokenStore},
    fetch::{Fetch, FetchError, FetchRequest, FetchResponse},
};

/// Logs in, and lets the token end soon.
async fn about_to_end(store: &MemoryStore, oauth: &OAuth, seconds_left: u64) -> StoredLogin {
    let mut login = oauth.log_in(&[]).await.unwrap();
    let now = crate::client::oauth::current_login::now();
    login.obtained = now - 3600;
    login.tokens.expires = Some(now + seconds_left);
    store.save(&login).await.unwrap();
    login
}

#[tokio::test(start_paused = true)]
async fn a_token_that_has_ended_is_refreshed_and_nobody_is_asked() {
    let (issuer, person) = (Issuer::default(), Person::willing());
    let web = issuer.tokens(Web::usual());
    let oauth = client(&web, &person);
    call(&oauth, |sent| issuer.judge(sent)).await.unwrap();
    issuer.end_access();
    tokio::time::advance(Duration::from_secs(61)).await;

    let ended = call(&oauth, |sent| issuer.judge(sent)).await.unwrap();

    assert_eq!(ended, Ended::In);
    assert_eq!((person.seen().len(), issuer.count()), (1, 2));
    let asked = web.posted("https://as.example/token");
    assert_eq!(asked.field("refresh_token").as_deref(), Some("refresh-1"));
    assert_eq!(asked.field("resource").as_deref(), Some(SERVER));
    let login = oauth.stored_login().await.unwrap().unwrap();
    assert_eq!(login.tokens.refresh.unwrap().expose(), "refresh-2");
}

#[tokio::test(start_paused = true)]
async fn a_token_that_ends_soon_is_refreshed_before_it_is_refused() {
    let (issuer, person, store) = (Issuer::default(), Person::willing(), MemoryStore::new());
    let web = issuer.tokens(Web::usual());
    about_to_end(&store, &client(&web, &person).store(store.clone()), 30).await;
    let oauth = client(&web, &person).store(store);

    let ended = call(&oauth, |sent| {
        assert_eq!(sent.authorization.as_deref(), Some("Bearer access-2"));
        issuer.judge(sent)
    });

    assert_eq!(ended.await.unwrap(), Ended::In);
    assert_eq!((person.seen().len(), issuer.count()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn many_refusals_are_one_refresh() {
    let (issuer, person) = (Issuer::default(), Person::willing());
    let web = issuer.tokens(Web::usual());
    let oauth = client(&web, &person);
    call(&oauth, |sent| issuer.judge(sent)).await.unwrap();
    issuer.end_access();
    tokio::time::advance(Duration::from_secs(61)).await;

    let calls = (0..100).map(|_| {
        let (oauth, issuer) = (oauth.clone(), issuer.clone());
        tokio::spawn(async move { call(&oauth, |sent| issuer.judge(sent)).await })
    });
    for ended in calls.collect::<Vec<_>>() {
        assert_eq!(ended.await.unwrap().unwrap(), Ended::In);
    }

    assert_eq!((person.seen().len(), issuer.count()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_refresh_token_that_is_not_good_any_more_leads_to_a_login() {
    req!("auth.refresh.no-assumption");
    let (issuer, person, store) = (Issuer::default(), Person::willing(), MemoryStore::new());
    let web = issuer.tokens(Web::usual());
    let oauth = client(&web, &person).store(store.clone());
    call(&oauth, |sent| issuer.judge(sent)).await.unwrap();
    issuer.end_access();
    issuer.end_refresh();
    tokio::time::advance(Duration::from_secs(61)).await;

    let ended = call(&oauth, |sent| issuer.judge(sent)).await.unwrap();

    assert_eq!(ended, Ended::In);
    assert_eq!(person.seen().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn without_a_person_a_dead_refresh_token_is_tried_once() {
    let (issuer, person, store) = (Issuer::default(), Person::willing(), MemoryStore::new());
    let web = issuer.tokens(Web::usual());
    client(&web, &person)
        .store(store.clone())
        .log_in(&[])
        .await
        .unwrap();
    issuer.end_access();
    issuer.end_refresh();
    let oauth = OAuth::new(SERVER, Arc::new(web.clone())).store(store);

    for _ in 0..3 {
        let failure = call(&oauth, |sent| issuer.judge(sent)).await.unwrap_err();
        assert_eq!(failure.step(), AuthorizationStep::Authorization);
        assert!(failure.reason().contains("log in again"), "{failure}");
    }
    let tried = web
        .heard()
        .into_iter()
        .filter(|it| it.body.contains("refresh_token="));
    assert_eq!(tried.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_dead_refresh_token_is_tried_once_ahead_of_time_and_the_token_used_to_its_end() {
    let (issuer, person, store) = (Issuer::default(), Person::willing(), MemoryStore::new());
    let web = issuer.tokens(Web::usual());
    about_to_end(&store, &client(&web, &person).store(store.clone()), 30).await;
    issuer.end_refresh();
    let oauth = OAuth::new(SERVER, Arc::new(web.clone())).store(store);

    for _ in 0..5 {
        let ended = call(&oauth, |sent| issuer.judge(sent)).await.unwrap();
        assert_eq!(ended, Ended::In);
        tokio::time::advance(Duration::from_secs(31)).await;
    }

    let heard = web.heard().into_iter();
    let tried = heard.filter(|it| it.body.contains("refresh_token="));
    assert_eq!(tried.count(), 1);
    assert!(!oauth.slot.current().has_refresh_token());
}

#[tokio::test(start_paused = true)]
async fn trouble_at_the_authorization_server_costs_no_login() {
    let (issuer, person, store) = (Issuer::default(), Person::willing(), MemoryStore::new());
    let web = issuer.tokens(Web::usual());
    let oauth = client(&web, &person).store(store.clone());
    about_to_end(&store, &oauth, 30).await;
    let broken = web.clone().status("https://as.example/token", 503);
    let oauth = client(&broken, &person).store(store.clone());

    // The token is still good, and is used.
    for _ in 0..3 {
        assert_eq!(
            call(&oauth, |sent| issuer.judge(sent)).await.unwrap(),
            Ended::In
        );
    }
    issuer.end_access();
    let failure = call(&oauth, |sent| issuer.judge(sent)).await.unwrap_err();

    assert_eq!(failure.step(), AuthorizationStep::Refresh);
    assert_eq!(person.seen().len(), 1);
    let kept = store.login(SERVER).await.unwrap().unwrap();
    assert_eq!(kept.tokens.refresh.unwrap().expose(), "refresh-1");
    let tried = web
        .heard()
        .into_iter()
        .filter(|it| it.body.contains("refresh_token="));
    assert_eq!(
        tried.count(),
        2,
        "once ahead of time, once when it had to be"
    );
}

/// A web that takes its time before and after it answers.
struct Slow(Web);

impl Fetch for Slow {
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            let answer = self.0.fetch(request).await;
            tokio::task::yield_now().await;
            answer
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_refresh_comes_to_its_end_even_if_nobody_waits_for_it_any_more() {
    let (issuer, person) = (Issuer::default(), Person::willing());
    let web = issuer.tokens(Web::usual());
    let oauth = OAuth::new(SERVER, Arc::new(Slow(web))).user_agent(person.clone());
    call(&oauth, |sent| issuer.judge(sent)).await.unwrap();
    issuer.end_access();
    tokio::time::advance(Duration::from_secs(61)).await;

    // The call is given up a moment later each time, until a refresh token was used.
    for moments in 1.. {
        let given_up = call(&oauth, |sent| issuer.judge(sent));
        poll_times(Box::pin(given_up), moments).await;
        if issuer.count() > 1 {
            break;
        }
    }
    let ended = call(&oauth, |sent| issuer.judge(sent)).await.unwrap();

    assert_eq!(ended, Ended::In);
    assert_eq!((person.seen().len(), issuer.count()), (1, 2));
}

/// Polls a future a number of times, with time for others in between, and drops it.
async fn poll_times<F: Future + Unpin>(mut future: F, times: usize) {
    for _ in 0..times {
        let polled = std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut future).poll(cx)));
        if polled.await.is_ready() {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_logout_elsewhere_nothing_is_refreshed_ahead_of_time() {
    let (issuer, person, store) = (Issuer::default(), Person::willing(), MemoryStore::new());
    let web = issuer.tokens(Web::usual());
    about_to_end(&store, &client(&web, &person).store(store.clone()), 0).await;
    let oauth = client(&web, &person).store(store.clone());
    oauth.load().await.unwrap();
    store.delete(SERVER).await.unwrap();

    let credentials = oauth
        .credentials(UnsignedRequest::new("POST", SERVER))
        .await;

    assert!(credentials.unwrap().headers.is_empty());
    assert_eq!(issuer.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_token_that_could_not_be_kept_is_told_of_and_used_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (issuer, person) = (Issuer::default(), Person::willing());
    let web = issuer.tokens(Web::usual());
    let store = FileStore::new(folder.path().join("logins"));
    let mut login = client(&web, &person)
        .store(store.clone())
        .log_in(&[])
        .await
        .unwrap();
    login.obtained -= 100;
    store.save(&login).await.unwrap();
    let oauth = client(&web, &person).store(store.clone());
    oauth.load().await.unwrap();
    issuer.end_access();
    // A folder in the raw_url of the draft: nothing can be written any more.
    let in_the_way = store.path().with_file_name("logins.json.new");
    std::fs::create_dir(&in_the_way).unwrap();

    let failure = call(&oauth, |sent| issuer.judge(sent)).await.unwrap_err();
    assert_eq!(failure.step(), AuthorizationStep::Store);
    assert_eq!(
        call(&oauth, |sent| issuer.judge(sent)).await.unwrap(),
        Ended::In
    );

    // The one in the store is older by now, and its refresh token is used up.
    std::fs::remove_dir(&in_the_way).unwrap();
    tokio::time::advance(Duration::from_secs(61)).await;
    issuer.end_access();
    assert_eq!(
        call(&oauth, |sent| issuer.judge(sent)).await.unwrap(),
        Ended::In
    );
    assert_eq!((person.seen().len(), issuer.count()), (1, 3));
    let kept = store.login(SERVER).await.unwrap().unwrap();
    assert_eq!(kept.tokens.access.expose(), "access-3");
}
