//! Several clients, one store.

use turnbuckle_spec_coverage::req;

use super::*;
use crate::{
    client::{
        registration::ClientRegistration,
        store::{FileStore, MemoryStore, StoreLock, StoredLogin, TokenStore},
    },
    fetch::{Fetch as _, FetchRequest},
};

/// Sends a request from each client at the same time, and expects all to be accepted.
async fn all_call(clients: &[OAuth], issuer: &Issuer) {
    let calls = clients.iter().map(|oauth| {
        let (oauth, issuer) = (oauth.clone(), issuer.clone());
        tokio::spawn(async move { call(&oauth, |sent| issuer.authenticate(sent)).await })
    });
    for ended in calls.collect::<Vec<_>>() {
        assert_eq!(ended.await.unwrap().unwrap(), CallEnd::Accepted);
    }
}

#[tokio::test(start_paused = true)]
async fn clients_with_a_shared_store_log_in_and_refresh_once() {
    let (issuer, user, store) = (Issuer::default(), FakeUser::willing(), MemoryStore::new());
    let http = issuer.tokens(FakeHttp::usual());
    let clients: Vec<_> = (0..8)
        .map(|_| client(&http, &user).store(store.clone()))
        .collect();

    all_call(&clients, &issuer).await;
    assert_eq!((user.shown().len(), issuer.count()), (1, 1));

    issuer.end_access();
    tokio::time::advance(Duration::from_secs(61)).await;
    all_call(&clients, &issuer).await;
    assert_eq!((user.shown().len(), issuer.count()), (1, 2));
}

#[test]
fn processes_with_a_shared_folder_log_in_and_refresh_once() {
    req!("auth.token.storage");
    req!("auth.refresh.confidential");
    let folder = tempfile::tempdir().unwrap();
    let (issuer, user) = (Issuer::default(), FakeUser::willing());
    let http = issuer.tokens(FakeHttp::usual());
    // Like a process, each thread has its own runtime, client and store; only the folder is shared.
    let each = |expected: (usize, usize)| {
        std::thread::scope(|threads| {
            for _ in 0..6 {
                threads.spawn(|| {
                    let runtime = tokio::runtime::Builder::new_current_thread()
                        .enable_time()
                        .build()
                        .unwrap();
                    let store = FileStore::new(folder.path().join("logins"));
                    let oauth = client(&http, &user).store(store);
                    let ended = runtime.block_on(call(&oauth, |sent| issuer.authenticate(sent)));
                    assert_eq!(ended.unwrap(), CallEnd::Accepted);
                });
            }
        });
        assert_eq!((user.shown().len(), issuer.count()), expected);
    };

    each((1, 1));
    issuer.end_access();
    each((1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_stored_login_is_used_by_the_next_client() {
    let (issuer, user) = (Issuer::default(), FakeUser::willing());
    let folder = tempfile::tempdir().unwrap();
    let http = issuer.tokens(FakeHttp::usual());
    let store = FileStore::new(folder.path().join("logins"));
    client(&http, &user)
        .store(store.clone())
        .log_in(&[])
        .await
        .unwrap();
    let before = http.urls().len();

    let oauth = OAuth::new(SERVER, Arc::new(http.clone())).store(store);
    let ended = call(&oauth, |sent| issuer.authenticate(sent))
        .await
        .unwrap();

    assert_eq!(ended, CallEnd::Accepted);
    assert_eq!(http.urls().len(), before, "no requests were sent");
}

/// A store that records its operations in order.
#[derive(Clone)]
struct RecordingStore(MemoryStore, FakeHttp);

impl TokenStore for RecordingStore {
    fn login<'a>(
        &'a self,
        server_url: &'a str,
    ) -> BoxFuture<'a, Result<Option<StoredLogin>, AuthorizationError>> {
        self.0.login(server_url)
    }

    fn save<'a>(&'a self, login: &'a StoredLogin) -> BoxFuture<'a, Result<(), AuthorizationError>> {
        Box::pin(async move {
            // A slow disk: an early use of the token would be recorded before the save.
            tokio::time::sleep(Duration::from_secs(5)).await;
            let url = format!("saved {}", login.tokens.access.expose());
            let _ = self.1.fetch(FetchRequest::get(url)).await;
            self.0.save(login).await
        })
    }

    fn delete<'a>(
        &'a self,
        server_url: &'a str,
    ) -> BoxFuture<'a, Result<bool, AuthorizationError>> {
        self.0.delete(server_url)
    }

    fn registration<'a>(
        &'a self,
        issuer: &'a str,
    ) -> BoxFuture<'a, Result<Option<ClientRegistration>, AuthorizationError>> {
        self.0.registration(issuer)
    }

    fn save_registration<'a>(
        &'a self,
        issuer: &'a str,
        client: Option<&'a ClientRegistration>,
    ) -> BoxFuture<'a, Result<(), AuthorizationError>> {
        self.0.save_registration(issuer, client)
    }

    fn lock<'a>(
        &'a self,
        server_url: &'a str,
    ) -> BoxFuture<'a, Result<StoreLock, AuthorizationError>> {
        self.0.lock(server_url)
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_is_saved_before_it_is_used() {
    let (issuer, user) = (Issuer::default(), FakeUser::willing());
    let http = issuer.tokens(FakeHttp::usual());
    let store = RecordingStore(MemoryStore::new(), http.clone());
    let oauth = client(&http, &user).store(store);
    let calls = |oauth: OAuth| {
        let (issuer, http) = (issuer.clone(), http.clone());
        tokio::spawn(async move {
            call(&oauth, |sent| {
                if let Some(token) = &sent.authorization {
                    let saved = format!("saved {}", token.strip_prefix("Bearer ").unwrap());
                    assert!(
                        http.urls().contains(&saved),
                        "{token} is used before it is kept"
                    );
                }
                issuer.authenticate(sent)
            })
            .await
        })
    };

    for _ in 0..2 {
        // A request arrives during the save, when the token exists but is not saved yet.
        let first = calls(oauth.clone());
        tokio::time::sleep(Duration::from_secs(2)).await;
        for ended in [first, calls(oauth.clone())] {
            assert_eq!(ended.await.unwrap().unwrap(), CallEnd::Accepted);
        }
        issuer.end_access();
        tokio::time::advance(Duration::from_secs(61)).await;
    }
    assert_eq!(issuer.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn after_a_logout_elsewhere_the_old_refresh_token_is_not_used() {
    let (issuer, user, store) = (Issuer::default(), FakeUser::willing(), MemoryStore::new());
    let http = issuer.tokens(FakeHttp::usual());
    let [one, other] = [(); 2].map(|()| client(&http, &user).store(store.clone()));
    all_call(&[one.clone(), other.clone()], &issuer).await;

    other.log_out().await.unwrap();
    issuer.end_access();
    all_call(&[one], &issuer).await;

    assert_eq!(user.shown().len(), 2);
    assert!(
        !http
            .requests()
            .iter()
            .any(|it| it.body.contains("refresh_token="))
    );
}
