//! Requests that carry credentials, and what happens to those that are refused.

use std::{
    error::Error,
    future::IntoFuture,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use serde_json::json;
use turnbuckle_auth::{
    AuthorizationError, AuthorizationStep, CredentialProvider, Credentials, RetryDecision, Secret,
    UnauthorizedResponse, UnsignedRequest,
};
use turnbuckle_client::{
    CallError, Client, ConnectError, Era, LifecycleMode, TransportError,
    http::{HttpError, HttpTarget},
};
use turnbuckle_protocol::authenticator::BoxFuture;
use turnbuckle_spec_coverage::req;

use crate::{
    fake_http::{FakeHttp, Reply},
    http_peer::{
        LATEST_LEGACY, LEGACY, MODERN, at, by_method, on_call, posted, server, settle, speaking,
    },
    wallet::{Told, Wallet, guarded, token, unauthorized},
};

fn to(fake: &FakeHttp, wallet: &Wallet) -> HttpTarget {
    at(fake).authorization(wallet.clone())
}

async fn connect(fake: &FakeHttp, revision: &str, wallet: &Wallet) -> Client {
    let connected = speaking(revision).connect(to(fake, wallet)).await;
    connected.unwrap()
}

/// A number that a test can raise: the first token that is good.
fn needed(first: u64) -> (Arc<AtomicU64>, impl Fn() -> u64 + Clone) {
    let number = Arc::new(AtomicU64::new(first));
    let read = Arc::clone(&number);
    (number, move || read.load(Ordering::SeqCst))
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_is_sent_again_with_credentials() {
    req!(
        "auth.www-authenticate.parse",
        "auth.token.header",
        "auth.token.not-in-query"
    );
    for revision in LEGACY.into_iter().chain([MODERN]) {
        let fake = guarded(revision, |_| 1, |_| None);
        let wallet = Wallet::default();

        let client = connect(&fake, revision, &wallet).await;
        client.call_tool("a", json!({})).await.unwrap();

        assert_eq!(
            wallet.told(),
            [Told {
                method: "POST".to_owned(),
                status: 401,
                challenges: vec!["Basic".to_owned(), "Bearer files:read".to_owned()],
                generation: 0,
                attempts: 1,
            }]
        );
        let seen = fake.seen();
        assert_eq!(seen[0].header("authorization"), "");
        assert_eq!(seen[1].body, seen[0].body);
        assert_eq!(seen[1].header("authorization"), "Bearer token-1");
        assert!(seen.iter().all(|seen| seen.path == "/mcp"));
    }
}

#[tokio::test(start_paused = true)]
async fn every_request_carries_credentials() {
    req!("auth.token.conform", "auth.token.every-request");

    for revision in LEGACY.into_iter().chain([MODERN]) {
        let fake = guarded(
            revision,
            |_| 1,
            |seen| {
                let stream = || Reply::events(|events| async move { events.closed().await });
                (seen.method == "GET").then(stream)
            },
        );
        let wallet = Wallet::default().with_token();

        let client = connect(&fake, revision, &wallet).await;
        client.call_tool("a", json!({})).await.unwrap();
        client.call_tool("a", json!({})).await.unwrap();
        client.close().await;

        // By section 5 a token is in the header of that name, with its scheme, and nowhere else.
        for seen in fake.seen() {
            assert_eq!(seen.header("authorization"), "Bearer token-1", "{revision}");
            assert_eq!(seen.path, "/mcp", "{revision}");
            assert!(!seen.json().to_string().contains("token-1"), "{revision}");
        }
        assert!(wallet.told().is_empty());
        assert!(fake.seen().iter().all(|seen| token(seen) == 1));
        let methods: &[&str] = match revision {
            MODERN => &["POST"],
            _ => &["POST", "GET", "DELETE"],
        };
        for method in methods {
            assert!(!by_method(&fake, method).is_empty(), "{method}");
        }
        assert_eq!(wallet.asked().len(), fake.seen().len());
        assert!(
            wallet
                .asked()
                .iter()
                .all(|(_, url)| url == "http://fake.test/mcp")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn credentials_of_any_scheme_go_along() {
    req!("auth.custom");
    struct Key;
    impl CredentialProvider for Key {
        fn credentials<'a>(
            &'a self,
            _: UnsignedRequest<'a>,
        ) -> BoxFuture<'a, Result<Credentials, AuthorizationError>> {
            let headers = vec![("x-signature", Secret::new("sesame"))];
            Box::pin(std::future::ready(Ok(Credentials::new(1, headers))))
        }

        fn on_unauthorized<'a>(
            &'a self,
            _: UnauthorizedResponse<'a>,
        ) -> BoxFuture<'a, Result<RetryDecision, AuthorizationError>> {
            Box::pin(std::future::ready(Ok(RetryDecision::GiveUp)))
        }

        fn extensions(&self) -> &'static [&'static str] {
            &["com.example/signatures"]
        }
    }
    let fake = server(MODERN, |_| None);
    let shared: Arc<dyn CredentialProvider> = Arc::new(Key);

    let target = at(&fake).header("X-Team", "a").authorization(shared);
    let client = speaking(MODERN).connect(target).await.unwrap();
    client.call_tool("a", json!({})).await.unwrap();

    for seen in fake.seen() {
        assert_eq!(seen.header("x-signature"), "sesame");
        assert_eq!(seen.header("x-team"), "a");
        let message = seen.json();
        let declared = &message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        assert_eq!(declared["extensions"]["com.example/signatures"], json!({}));
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_says_nothing_about_the_era() {
    for status in [401, 403] {
        for (revision, era) in [(MODERN, Era::Modern), (LATEST_LEGACY, Era::Legacy)] {
            let fake = server(revision, move |seen| match token(seen) {
                0 => Some(unauthorized().with_status(status)),
                _ => None,
            });
            let wallet = Wallet::default();
            let builder = Client::builder("test", "1").lifecycle_mode(LifecycleMode::Auto);

            let client = builder.connect(to(&fake, &wallet)).await.unwrap();

            assert_eq!(client.server().era, era);
            let first = &fake.seen()[..2];
            assert_eq!(first[0].rpc(), "server/discover");
            assert_eq!(first[1].rpc(), "server/discover");
            assert_eq!(first[0].body, first[1].body);
            assert_eq!(wallet.logins(), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_is_refused_for_good_is_not_asked_by_older_means() {
    for status in [401, 403] {
        let fake = server(MODERN, move |_| Some(unauthorized().with_status(status)));
        let wallet = Wallet::default();
        wallet.gives_up();
        let builder = Client::builder("test", "1").lifecycle_mode(LifecycleMode::Auto);

        let error = builder.connect(to(&fake, &wallet)).await.unwrap_err();

        let ConnectError::Unreachable(TransportError::ErrorResponse(refusal)) = error else {
            panic!("{error:?}");
        };
        assert_eq!(refusal.status.as_u16(), status);
        assert!(refusal.challenge.unwrap().contains("files:read"));
        assert_eq!(fake.seen().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn those_who_are_refused_together_log_in_once() {
    let (number, from) = needed(1);
    let fake = guarded(MODERN, move |_| from(), |_| None);
    let wallet = Wallet::taking(std::time::Duration::from_secs(5)).with_token();
    let client = connect(&fake, MODERN, &wallet).await;

    number.store(2, Ordering::SeqCst);
    let calls: Vec<_> = (0..8)
        .map(|_| tokio::spawn(client.call_tool("a", json!({})).into_future()))
        .collect();
    for call in calls {
        call.await.unwrap().unwrap();
    }

    assert_eq!(wallet.logins(), 2);
    assert_eq!(wallet.told().len(), 8);
    assert!(wallet.told().iter().all(|told| told.generation == 1));
    assert_eq!(posted(&fake, "tools/call").len(), 16);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_refused_for_good_fails_as_ever() {
    for revision in [LATEST_LEGACY, MODERN] {
        let fake = guarded(revision, |_| 1, on_call(|_| unauthorized()));
        let wallet = Wallet::default().with_token();
        let client = connect(&fake, revision, &wallet).await;
        wallet.gives_up();

        let error = client.call_tool("a", json!({})).await.unwrap_err();

        assert_eq!(error.status().unwrap(), 401);
        let CallError::Disconnected {
            source: TransportError::ErrorResponse(refusal),
            ..
        } = error
        else {
            panic!("{error:?}");
        };
        assert!(refusal.challenge.unwrap().contains("files:read"));
        assert_eq!(posted(&fake, "tools/call").len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn without_credentials_the_reason_is_told() {
    for revision in [LATEST_LEGACY, MODERN] {
        let (number, from) = needed(1);
        let fake = guarded(revision, move |_| from(), |_| None);
        let wallet = Wallet::default();
        wallet.fails();
        let error = speaking(revision)
            .connect(to(&fake, &wallet))
            .await
            .unwrap_err();
        let ConnectError::Authorization(failure) = &error else {
            panic!("{error:?}");
        };
        assert_eq!(failure.step(), AuthorizationStep::Refresh);
        assert_eq!(failure.hint(), Some("log in again"));
        assert_eq!(
            error.to_string(),
            "authorization failed while refreshing the token: the login was revoked"
        );

        let wallet = Wallet::default().with_token();
        let client = connect(&fake, revision, &wallet).await;
        wallet.fails();
        number.store(2, Ordering::SeqCst);
        let error = client.call_tool("a", json!({})).await.unwrap_err();
        assert_eq!(error.to_string(), "`tools/call` could not be authorized");
        assert!(error.source().unwrap().to_string().contains("revoked"));
        assert!(matches!(error, CallError::Authorization { .. }));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_lets_nobody_in_is_not_asked_without_end() {
    let fake = guarded(MODERN, |_| 1, on_call(|_| unauthorized()));
    let wallet = Wallet::default().with_token();
    let client = connect(&fake, MODERN, &wallet).await;

    let again = client.call_tool("a", json!({})).await.unwrap_err();
    let told = wallet.told();
    wallet.insists();
    let same = client.call_tool("a", json!({})).await.unwrap_err();

    assert_eq!(again.status().unwrap(), 401);
    assert_eq!(same.status().unwrap(), 401);
    let attempts: Vec<_> = told.iter().map(|told| told.attempts).collect();
    assert_eq!(attempts, [1, 2, 3, 4]);
    assert_eq!(posted(&fake, "tools/call").len(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_token_of_the_users_own_wins() {
    for own in ["bearer", "header"] {
        let fake = server(MODERN, on_call(|_| unauthorized()));
        let wallet = Wallet::default().with_token();
        let target = match own {
            "bearer" => to(&fake, &wallet).bearer("sesame"),
            _ => to(&fake, &wallet).header("authorization", "Bearer sesame"),
        };

        let client = speaking(MODERN).connect(target).await.unwrap();
        let error = client.call_tool("a", json!({})).await.unwrap_err();

        assert_eq!(error.status().unwrap(), 401);
        assert!(wallet.asked().is_empty() && wallet.told().is_empty());
        for seen in fake.seen() {
            let values: Vec<_> = seen.headers.get_all("authorization").iter().collect();
            assert_eq!(values, ["Bearer sesame"]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn credentials_never_leave_their_origin() {
    for location in [
        "http://evil.example/mcp",
        "//evil.example/",
        "https://fake.test/mcp",
    ] {
        for status in [302, 307, 308] {
            let fake = server(
                MODERN,
                on_call(move |_| Reply::status(status).header("location", location)),
            );
            let wallet = Wallet::default().with_token();
            let client = connect(&fake, MODERN, &wallet).await;
            let before = fake.connections();

            let error = client.call_tool("a", json!({})).await.unwrap_err();

            let CallError::Disconnected {
                source: TransportError::Http(problem),
                ..
            } = &error
            else {
                panic!("{error:?}");
            };
            assert!(matches!(
                **problem,
                HttpError::OtherOrigin { .. } | HttpError::InvalidRedirect { .. }
            ));
            assert_eq!(fake.connections(), before);
            assert!(
                wallet
                    .asked()
                    .iter()
                    .all(|(_, url)| url.starts_with("http://fake.test/"))
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_redirect_credentials_are_for_the_new_place() {
    let fake = server(MODERN, |seen| {
        (seen.path == "/mcp").then(|| Reply::status(307).header("location", "/v2"))
    });
    let wallet = Wallet::default().with_token();

    let client = connect(&fake, MODERN, &wallet).await;
    client.call_tool("a", json!({})).await.unwrap();

    let asked = wallet.asked();
    let urls: Vec<_> = asked.iter().map(|(_, url)| url.as_str()).collect();
    let (old, new) = ("http://fake.test/mcp", "http://fake.test/v2");
    assert_eq!(urls, [old, new, old, new]);
    assert!(fake.seen().iter().all(|seen| token(seen) == 1));
}

#[tokio::test(start_paused = true)]
async fn redirects_end_with_credentials_too() {
    let fake = server(MODERN, |_| {
        Some(Reply::status(307).header("location", "/mcp"))
    });
    let wallet = Wallet::default();

    let error = speaking(MODERN).connect(to(&fake, &wallet)).await;

    assert!(matches!(
        error,
        Err(ConnectError::Unreachable(TransportError::Http(_)))
    ));
    assert_eq!(fake.seen().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_nonce_is_heard_with_every_answer() {
    let fake = server(MODERN, |seen| {
        let reply = match (seen.rpc().as_str(), token(seen)) {
            ("tools/call", 2) => Reply::result(seen, &crate::http_peer::output("done")),
            ("tools/call", _) => unauthorized().header("DPoP-Nonce", "n-1"),
            _ => return None,
        };
        Some(match token(seen) {
            2 => reply.header("dpop-nonce", "n-2"),
            _ => reply,
        })
    });
    let wallet = Wallet::default().with_token();
    let client = connect(&fake, MODERN, &wallet).await;

    client.call_tool("a", json!({})).await.unwrap();

    assert_eq!(wallet.nonces(), ["n-1", "n-2"]);
}

#[tokio::test(start_paused = true)]
async fn a_scope_that_is_missing_can_be_had() {
    for revision in [LATEST_LEGACY, MODERN] {
        let fake = server(revision, |seen| {
            let challenge = r#"Bearer error="insufficient_scope", scope="a b""#;
            let more = seen.rpc() == "tools/call" && token(seen) < 2;
            more.then(|| Reply::status(403).header("www-authenticate", challenge))
        });
        let wallet = Wallet::default().with_token();
        let client = connect(&fake, revision, &wallet).await;

        client.call_tool("a", json!({})).await.unwrap();

        let told = &wallet.told()[0];
        assert_eq!((told.status, told.generation), (403, 1));
        assert_eq!(told.challenges, ["Bearer a b"]);
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_wants_nothing_in_particular() {
    for challenge in ["\"", "Bearer scope=\"a", &"x".repeat(100_000)] {
        let challenge = challenge.to_owned();
        let fake = server(MODERN, move |seen| {
            let refusal = || Reply::status(401).header("www-authenticate", &challenge);
            (token(seen) == 0).then(refusal)
        });
        let wallet = Wallet::default();

        connect(&fake, MODERN, &wallet).await;

        assert_eq!(wallet.told().len(), 1);
        assert!(wallet.told()[0].challenges.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_that_no_header_can_hold_is_not_shown() {
    struct Broken;
    impl CredentialProvider for Broken {
        fn credentials<'a>(
            &'a self,
            _: UnsignedRequest<'a>,
        ) -> BoxFuture<'a, Result<Credentials, AuthorizationError>> {
            let headers = vec![("authorization", Secret::new("sesame\r\nX-Evil: 1"))];
            Box::pin(std::future::ready(Ok(Credentials::new(1, headers))))
        }

        fn on_unauthorized<'a>(
            &'a self,
            _: UnauthorizedResponse<'a>,
        ) -> BoxFuture<'a, Result<RetryDecision, AuthorizationError>> {
            unreachable!("nothing was sent")
        }
    }
    let fake = server(MODERN, |_| None);

    let target = at(&fake).authorization(Broken);
    let error = speaking(MODERN).connect(target).await.unwrap_err();

    let ConnectError::Authorization(failure) = &error else {
        panic!("{error:?}");
    };
    assert_eq!(failure.step(), AuthorizationStep::Use);
    assert!(!format!("{error} {error:?}").contains("sesame"));
    assert!(fake.seen().is_empty());
}

#[tokio::test(start_paused = true)]
async fn nobody_logs_in_to_say_goodbye() {
    let (number, from) = needed(1);
    let fake = guarded(LATEST_LEGACY, move |_| from(), |_| None);
    let wallet = Wallet::default().with_token();
    let client = connect(&fake, LATEST_LEGACY, &wallet).await;
    settle().await;

    number.store(2, Ordering::SeqCst);
    client.close().await;

    assert_eq!(by_method(&fake, "DELETE").len(), 1);
    assert!(wallet.told().is_empty());
}

#[tokio::test(start_paused = true)]
async fn nobody_logs_in_to_cancel() {
    let fake = guarded(
        LATEST_LEGACY,
        |seen| match seen.rpc().as_str() {
            "notifications/cancelled" => 2,
            _ => 1,
        },
        on_call(|_| Reply::silence()),
    );
    let wallet = Wallet::default().with_token();
    let client = connect(&fake, LATEST_LEGACY, &wallet).await;
    let call = tokio::spawn(client.call_tool("a", json!({})).into_future());
    fake.first(|seen| seen.rpc() == "tools/call").await;

    call.abort();
    fake.first(|seen| seen.rpc() == "notifications/cancelled")
        .await;
    settle().await;

    assert!(wallet.told().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_goodbye_that_only_lacks_a_nonce_is_said_again() {
    let fake = server(LATEST_LEGACY, |seen| {
        let refusal = || unauthorized().header("dpop-nonce", "n");
        (seen.method == "DELETE").then(refusal)
    });
    let wallet = Wallet::default().with_token();
    let client = connect(&fake, LATEST_LEGACY, &wallet).await;

    client.close().await;

    assert_eq!(by_method(&fake, "DELETE").len(), 2);
    assert_eq!(wallet.nonces(), ["n", "n"]);
    assert!(wallet.told().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ends_with_its_token_is_begun_anew() {
    let (number, from) = needed(1);
    let fake = guarded(
        LATEST_LEGACY,
        move |_| from(),
        |seen| {
            // The session belongs to the token that began it.
            let old = seen.header("mcp-session-id") == "session-1" && token(seen) > 1;
            old.then(|| Reply::status(404))
        },
    );
    let wallet = Wallet::default().with_token();
    let client = connect(&fake, LATEST_LEGACY, &wallet).await;

    number.store(2, Ordering::SeqCst);
    client.call_tool("a", json!({})).await.unwrap();

    let calls = posted(&fake, "tools/call");
    let sessions: Vec<_> = calls
        .iter()
        .map(|call| call.header("mcp-session-id"))
        .collect();
    assert_eq!(sessions, ["session-1", "session-1", "session-2"]);
    assert_eq!(wallet.logins(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_new_session_that_is_not_let_in_says_why() {
    let (number, from) = needed(1);
    let fake = guarded(
        LATEST_LEGACY,
        move |seen| match seen.rpc().as_str() {
            "initialize" => from(),
            _ => 1,
        },
        on_call(|_| Reply::status(404)),
    );
    let wallet = Wallet::default().with_token();
    let client = connect(&fake, LATEST_LEGACY, &wallet).await;
    wallet.fails();

    number.store(2, Ordering::SeqCst);
    let error = client.call_tool("a", json!({})).await.unwrap_err();

    assert!(
        matches!(error, CallError::Authorization { .. }),
        "{error:?}"
    );
}
