//! Token refresh.

use std::{pin::Pin, task::Poll};

use turnbuckle_spec_coverage::req;

use super::*;
use crate::{
    AuthorizationStep,
    client::store::{FileStore, MemoryStore, StoredLogin, TokenStore},
    fetch::{Fetch, FetchError, FetchRequest, FetchResponse},
};

/// Logs in, and shortens the lifetime of the token.
async fn about_to_end(store: &MemoryStore, oauth: &OAuth, seconds_left: u64) -> StoredLogin {
    let mut login = oauth.log_in(&[]).await.unwrap();
    let now = crate::unix_time::now();
    login.obtained = now - 3600;
    login.tokens.expires = Some(now + seconds_left);
    store.save(&login).await.unwrap();
    login
}

#[tokio::test(start_paused = true)]
async fn an_expired_token_is_refreshed_without_a_login() {
    let (issuer, user) = (Issuer::default(), FakeUser::willing());
    let http = issuer.tokens(FakeHttp::usual());
    let oauth = client(&http, &user);
    call(&oauth, |sent| issuer.authenticate(sent))
        .await
        .unwrap();
    issuer.end_access();
    tokio::time::advance(Duration::from_secs(61)).await;

    let ended = call(&oauth, |sent| issuer.authenticate(sent))
        .await
        .unwrap();

    assert_eq!(ended, CallEnd::Accepted);
    assert_eq!((user.shown().len(), issuer.count()), (1, 2));
    let request = http.last_post("https://as.example/token");
    assert_eq!(request.field("refresh_token").as_deref(), Some("refresh-1"));
    assert_eq!(request.field("resource").as_deref(), Some(SERVER));
    let login = oauth.stored_login().await.unwrap().unwrap();
    assert_eq!(login.tokens.refresh.unwrap().expose(), "refresh-2");
}

#[tokio::test(start_paused = true)]
async fn a_token_about_to_expire_is_refreshed_before_use() {
    let (issuer, user, store) = (Issuer::default(), FakeUser::willing(), MemoryStore::new());
    let http = issuer.tokens(FakeHttp::usual());
    about_to_end(&store, &client(&http, &user).store(store.clone()), 30).await;
    let oauth = client(&http, &user).store(store);

    let ended = call(&oauth, |sent| {
        assert_eq!(sent.authorization.as_deref(), Some("Bearer access-2"));
        issuer.authenticate(sent)
    });

    assert_eq!(ended.await.unwrap(), CallEnd::Accepted);
    assert_eq!((user.shown().len(), issuer.count()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn concurrent_401_responses_cause_one_refresh() {
    let (issuer, user) = (Issuer::default(), FakeUser::willing());
    let http = issuer.tokens(FakeHttp::usual());
    let oauth = client(&http, &user);
    call(&oauth, |sent| issuer.authenticate(sent))
        .await
        .unwrap();
    issuer.end_access();
    tokio::time::advance(Duration::from_secs(61)).await;

    let calls = (0..100).map(|_| {
        let (oauth, issuer) = (oauth.clone(), issuer.clone());
        tokio::spawn(async move { call(&oauth, |sent| issuer.authenticate(sent)).await })
    });
    for ended in calls.collect::<Vec<_>>() {
        assert_eq!(ended.await.unwrap().unwrap(), CallEnd::Accepted);
    }

    assert_eq!((user.shown().len(), issuer.count()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_rejected_refresh_token_leads_to_a_login() {
    req!("auth.refresh.no-assumption");
    let (issuer, user, store) = (Issuer::default(), FakeUser::willing(), MemoryStore::new());
    let http = issuer.tokens(FakeHttp::usual());
    let oauth = client(&http, &user).store(store.clone());
    call(&oauth, |sent| issuer.authenticate(sent))
        .await
        .unwrap();
    issuer.end_access();
    issuer.end_refresh();
    tokio::time::advance(Duration::from_secs(61)).await;

    let ended = call(&oauth, |sent| issuer.authenticate(sent))
        .await
        .unwrap();

    assert_eq!(ended, CallEnd::Accepted);
    assert_eq!(user.shown().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn without_a_user_agent_a_rejected_refresh_token_is_tried_once() {
    let (issuer, user, store) = (Issuer::default(), FakeUser::willing(), MemoryStore::new());
    let http = issuer.tokens(FakeHttp::usual());
    client(&http, &user)
        .store(store.clone())
        .log_in(&[])
        .await
        .unwrap();
    issuer.end_access();
    issuer.end_refresh();
    let oauth = OAuth::new(SERVER, Arc::new(http.clone())).store(store);

    for _ in 0..3 {
        let error = call(&oauth, |sent| issuer.authenticate(sent))
            .await
            .unwrap_err();
        assert_eq!(error.step(), AuthorizationStep::Authorization);
        assert!(error.reason().contains("log in again"), "{error}");
    }
    let tried = http
        .requests()
        .into_iter()
        .filter(|it| it.body.contains("refresh_token="));
    assert_eq!(tried.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failed_early_refresh_is_not_repeated_while_the_token_is_valid() {
    let (issuer, user, store) = (Issuer::default(), FakeUser::willing(), MemoryStore::new());
    let http = issuer.tokens(FakeHttp::usual());
    about_to_end(&store, &client(&http, &user).store(store.clone()), 30).await;
    issuer.end_refresh();
    let oauth = OAuth::new(SERVER, Arc::new(http.clone())).store(store);

    for _ in 0..5 {
        let ended = call(&oauth, |sent| issuer.authenticate(sent))
            .await
            .unwrap();
        assert_eq!(ended, CallEnd::Accepted);
        tokio::time::advance(Duration::from_secs(31)).await;
    }

    let request = http.requests().into_iter();
    let tried = request.filter(|it| it.body.contains("refresh_token="));
    assert_eq!(tried.count(), 1);
    assert!(!oauth.slot.current().has_refresh_token());
}

#[tokio::test(start_paused = true)]
async fn an_authorization_server_error_does_not_cause_a_login() {
    let (issuer, user, store) = (Issuer::default(), FakeUser::willing(), MemoryStore::new());
    let http = issuer.tokens(FakeHttp::usual());
    let oauth = client(&http, &user).store(store.clone());
    about_to_end(&store, &oauth, 30).await;
    let broken = http.clone().status("https://as.example/token", 503);
    let oauth = client(&broken, &user).store(store.clone());

    // The token is still valid and is used.
    for _ in 0..3 {
        assert_eq!(
            call(&oauth, |sent| issuer.authenticate(sent))
                .await
                .unwrap(),
            CallEnd::Accepted
        );
    }
    issuer.end_access();
    let error = call(&oauth, |sent| issuer.authenticate(sent))
        .await
        .unwrap_err();

    assert_eq!(error.step(), AuthorizationStep::Refresh);
    assert_eq!(user.shown().len(), 1);
    let stored = store.login(SERVER).await.unwrap().unwrap();
    assert_eq!(stored.tokens.refresh.unwrap().expose(), "refresh-1");
    let tried = http
        .requests()
        .into_iter()
        .filter(|it| it.body.contains("refresh_token="));
    assert_eq!(tried.count(), 2, "once early and once after expiry");
}

/// HTTP with a delay before and after each response.
struct SlowHttp(FakeHttp);

impl Fetch for SlowHttp {
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            let response = self.0.fetch(request).await;
            tokio::task::yield_now().await;
            response
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_refresh_completes_after_the_request_is_dropped() {
    let (issuer, user) = (Issuer::default(), FakeUser::willing());
    let http = issuer.tokens(FakeHttp::usual());
    let oauth = OAuth::new(SERVER, Arc::new(SlowHttp(http))).user_agent(user.clone());
    call(&oauth, |sent| issuer.authenticate(sent))
        .await
        .unwrap();
    issuer.end_access();
    tokio::time::advance(Duration::from_secs(61)).await;

    // The call is dropped one poll later each time, until a refresh token was used.
    for moments in 1.. {
        let given_up = call(&oauth, |sent| issuer.authenticate(sent));
        poll_times(Box::pin(given_up), moments).await;
        if issuer.count() > 1 {
            break;
        }
    }
    let ended = call(&oauth, |sent| issuer.authenticate(sent))
        .await
        .unwrap();

    assert_eq!(ended, CallEnd::Accepted);
    assert_eq!((user.shown().len(), issuer.count()), (1, 2));
}

/// Polls a future a number of times, lets other tasks run in between, and drops it.
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
async fn after_a_logout_elsewhere_there_is_no_early_refresh() {
    let (issuer, user, store) = (Issuer::default(), FakeUser::willing(), MemoryStore::new());
    let http = issuer.tokens(FakeHttp::usual());
    about_to_end(&store, &client(&http, &user).store(store.clone()), 0).await;
    let oauth = client(&http, &user).store(store.clone());
    oauth.load().await.unwrap();
    store.delete(SERVER).await.unwrap();

    let credentials = oauth
        .credentials(UnsignedRequest::new("POST", SERVER))
        .await;

    assert!(credentials.unwrap().headers.is_empty());
    assert_eq!(issuer.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_token_that_could_not_be_saved_is_reported_and_used() {
    let folder = tempfile::tempdir().unwrap();
    let (issuer, user) = (Issuer::default(), FakeUser::willing());
    let http = issuer.tokens(FakeHttp::usual());
    let store = FileStore::new(folder.path().join("logins"));
    let mut login = client(&http, &user)
        .store(store.clone())
        .log_in(&[])
        .await
        .unwrap();
    login.obtained -= 100;
    store.save(&login).await.unwrap();
    let oauth = client(&http, &user).store(store.clone());
    oauth.load().await.unwrap();
    issuer.end_access();
    // A folder at the path of the temporary file: writing fails.
    let in_the_way = store.path().with_file_name("logins.json.new");
    std::fs::create_dir(&in_the_way).unwrap();

    let error = call(&oauth, |sent| issuer.authenticate(sent))
        .await
        .unwrap_err();
    assert_eq!(error.step(), AuthorizationStep::Store);
    assert_eq!(
        call(&oauth, |sent| issuer.authenticate(sent))
            .await
            .unwrap(),
        CallEnd::Accepted
    );

    // The token in the store is older, and its refresh token is used up.
    std::fs::remove_dir(&in_the_way).unwrap();
    tokio::time::advance(Duration::from_secs(61)).await;
    issuer.end_access();
    assert_eq!(
        call(&oauth, |sent| issuer.authenticate(sent))
            .await
            .unwrap(),
        CallEnd::Accepted
    );
    assert_eq!((user.shown().len(), issuer.count()), (1, 3));
    let stored = store.login(SERVER).await.unwrap().unwrap();
    assert_eq!(stored.tokens.access.expose(), "access-3");
}
