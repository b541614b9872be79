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

/// Lets several clients call at the same time, and expects all of them to be let in.
async fn all_call(clients: &[OAuth], issuer: &Issuer) {
    let calls = clients.iter().map(|oauth| {
        let (oauth, issuer) = (oauth.clone(), issuer.clone());
        tokio::spawn(async move { call(&oauth, |sent| issuer.judge(sent)).await })
    });
    for ended in calls.collect::<Vec<_>>() {
        assert_eq!(ended.await.unwrap().unwrap(), Ended::In);
    }
}

#[tokio::test(start_paused = true)]
async fn clients_that_share_a_store_log_in_once_and_refresh_once() {
    let (issuer, person, store) = (Issuer::default(), Person::willing(), MemoryStore::new());
    let web = issuer.tokens(Web::usual());
    let clients: Vec<_> = (0..8)
        .map(|_| client(&web, &person).store(store.clone()))
        .collect();

    all_call(&clients, &issuer).await;
    assert_eq!((person.seen().len(), issuer.count()), (1, 1));

    issuer.end_access();
    tokio::time::advance(Duration::from_secs(61)).await;
    all_call(&clients, &issuer).await;
    assert_eq!((person.seen().len(), issuer.count()), (1, 2));
}

#[test]
fn processes_that_share_a_folder_log_in_once_and_refresh_once() {
    req!("auth.token.storage");
    req!("auth.refresh.confidential");
    let folder = tempfile::tempdir().unwrap();
    let (issuer, person) = (Issuer::default(), Person::willing());
    let web = issuer.tokens(Web::usual());
    // As processes do, each has a runtime, a client and a store of its own; only the folder is the same.
    let each = |expected: (usize, usize)| {
        std::thread::scope(|threads| {
            for _ in 0..6 {
                threads.spawn(|| {
                    let runtime = tokio::runtime::Builder::new_current_thread()
                        .enable_time()
                        .build()
                        .unwrap();
                    let store = FileStore::new(folder.path().join("logins"));
                    let oauth = client(&web, &person).store(store);
                    let ended = runtime.block_on(call(&oauth, |sent| issuer.judge(sent)));
                    assert_eq!(ended.unwrap(), Ended::In);
                });
            }
        });
        assert_eq!((person.seen().len(), issuer.count()), expected);
    };

    each((1, 1));
    issuer.end_access();
    each((1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_login_outlives_the_client_that_made_it() {
    let (issuer, person) = (Issuer::default(), Person::willing());
    let folder = tempfile::tempdir().unwrap();
    let web = issuer.tokens(Web::usual());
    let store = FileStore::new(folder.path().join("logins"));
    client(&web, &person)
        .store(store.clone())
        .log_in(&[])
        .await
        .unwrap();
    let before = web.urls().len();

    let oauth = OAuth::new(SERVER, Arc::new(web.clone())).store(store);
    let ended = call(&oauth, |sent| issuer.judge(sent)).await.unwrap();

    assert_eq!(ended, Ended::In);
    assert_eq!(web.urls().len(), before, "nobody was asked for anything");
}

/// A store that tells what was done with it, in order.
#[derive(Clone)]
struct Watched(MemoryStore, Web);

impl TokenStore for Watched {
    fn login<'a>(
        &'a self,
        server_url: &'a str,
    ) -> BoxFuture<'a, Result<Option<StoredLogin>, AuthorizationError>> {
        self.0.login(server_url)
    }

    fn save<'a>(&'a self, login: &'a StoredLogin) -> BoxFuture<'a, Result<(), AuthorizationError>> {
        Box::pin(async move {
            // A disk takes its time; whoever used the token by now would be seen.
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
async fn a_token_is_kept_before_it_is_used() {
    let (issuer, person) = (Issuer::default(), Person::willing());
    let web = issuer.tokens(Web::usual());
    let store = Watched(MemoryStore::new(), web.clone());
    let oauth = client(&web, &person).store(store);
    let calls = |oauth: OAuth| {
        let (issuer, web) = (issuer.clone(), web.clone());
        tokio::spawn(async move {
            call(&oauth, |sent| {
                if let Some(token) = &sent.authorization {
                    let saved = format!("saved {}", token.strip_prefix("Bearer ").unwrap());
                    assert!(
                        web.urls().contains(&saved),
                        "{token} is used before it is kept"
                    );
                }
                issuer.judge(sent)
            })
            .await
        })
    };

    for _ in 0..2 {
        // One comes in the middle of the writing, when the token is there and not kept yet.
        let first = calls(oauth.clone());
        tokio::time::sleep(Duration::from_secs(2)).await;
        for ended in [first, calls(oauth.clone())] {
            assert_eq!(ended.await.unwrap().unwrap(), Ended::In);
        }
        issuer.end_access();
        tokio::time::advance(Duration::from_secs(61)).await;
    }
    assert_eq!(issuer.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn after_a_logout_elsewhere_the_old_refresh_token_is_not_used() {
    let (issuer, person, store) = (Issuer::default(), Person::willing(), MemoryStore::new());
    let web = issuer.tokens(Web::usual());
    let [one, other] = [(); 2].map(|()| client(&web, &person).store(store.clone()));
    all_call(&[one.clone(), other.clone()], &issuer).await;

    other.log_out().await.unwrap();
    issuer.end_access();
    all_call(&[one], &issuer).await;

    assert_eq!(person.seen().len(), 2);
    assert!(
        !web.heard()
            .iter()
            .any(|it| it.body.contains("refresh_token="))
    );
}
