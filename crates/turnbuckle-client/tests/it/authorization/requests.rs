//! Requests with credentials, and unauthorized responses.

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
    authorization::credentials::{
        RecordedRejection, TestCredentials, protected_server, token, unauthorized,
    },
    servers::{
        mock_http::{MockHttpServer, MockResponse},
        mock_mcp_http::{
            LATEST_LEGACY, LEGACY, MODERN, builder_for, by_method, on_call, posted_messages,
            run_ready_tasks, server, target_of,
        },
    },
};

fn to(mock: &MockHttpServer, test_credentials: &TestCredentials) -> HttpTarget {
    target_of(mock).authorization(test_credentials.clone())
}

async fn connect(
    mock: &MockHttpServer,
    revision: &str,
    test_credentials: &TestCredentials,
) -> Client {
    let connected = builder_for(revision)
        .connect(to(mock, test_credentials))
        .await;
    connected.unwrap()
}

/// Returns a number that a test can increase: the first valid token.
fn required_token(first: u64) -> (Arc<AtomicU64>, impl Fn() -> u64 + Clone) {
    let number = Arc::new(AtomicU64::new(first));
    let read = Arc::clone(&number);
    (number, move || read.load(Ordering::SeqCst))
}

#[tokio::test(start_paused = true)]
async fn an_unauthorized_request_is_sent_again_with_credentials() {
    req!(
        "auth.www-authenticate.parse",
        "auth.token.header",
        "auth.token.not-in-query"
    );
    for revision in LEGACY.into_iter().chain([MODERN]) {
        let mock = protected_server(revision, |_| 1, |_| None);
        let test_credentials = TestCredentials::default();

        let client = connect(&mock, revision, &test_credentials).await;
        client.call_tool("a", json!({})).await.unwrap();

        assert_eq!(
            test_credentials.rejections(),
            [RecordedRejection {
                method: "POST".to_owned(),
                status: 401,
                challenges: vec!["Basic".to_owned(), "Bearer files:read".to_owned()],
                generation: 0,
                attempts: 1,
            }]
        );
        let requests = mock.requests();
        assert_eq!(requests[0].header("authorization"), "");
        assert_eq!(requests[1].body, requests[0].body);
        assert_eq!(requests[1].header("authorization"), "Bearer token-1");
        assert!(requests.iter().all(|request| request.path == "/mcp"));
    }
}

#[tokio::test(start_paused = true)]
async fn every_request_carries_credentials() {
    req!("auth.token.conform", "auth.token.every-request");

    for revision in LEGACY.into_iter().chain([MODERN]) {
        let mock = protected_server(
            revision,
            |_| 1,
            |request| {
                let stream = || MockResponse::events(|events| async move { events.closed().await });
                (request.method == "GET").then(stream)
            },
        );
        let test_credentials = TestCredentials::default().with_token();

        let client = connect(&mock, revision, &test_credentials).await;
        client.call_tool("a", json!({})).await.unwrap();
        client.call_tool("a", json!({})).await.unwrap();
        client.close().await;

        // By section 5 a token is in the header of that name, with its scheme, and nowhere else.
        for request in mock.requests() {
            assert_eq!(
                request.header("authorization"),
                "Bearer token-1",
                "{revision}"
            );
            assert_eq!(request.path, "/mcp", "{revision}");
            assert!(
                !request.json().to_string().contains("token-1"),
                "{revision}"
            );
        }
        assert!(test_credentials.rejections().is_empty());
        assert!(mock.requests().iter().all(|request| token(request) == 1));
        let methods: &[&str] = match revision {
            MODERN => &["POST"],
            _ => &["POST", "GET", "DELETE"],
        };
        for method in methods {
            assert!(!by_method(&mock, method).is_empty(), "{method}");
        }
        assert_eq!(test_credentials.requests().len(), mock.requests().len());
        assert!(
            test_credentials
                .requests()
                .iter()
                .all(|(_, url)| url == "http://fake.test/mcp")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn credentials_of_any_scheme_are_sent() {
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
    let mock = server(MODERN, |_| None);
    let shared: Arc<dyn CredentialProvider> = Arc::new(Key);

    let target = target_of(&mock).header("X-Team", "a").authorization(shared);
    let client = builder_for(MODERN).connect(target).await.unwrap();
    client.call_tool("a", json!({})).await.unwrap();

    for request in mock.requests() {
        assert_eq!(request.header("x-signature"), "sesame");
        assert_eq!(request.header("x-team"), "a");
        let message = request.json();
        let declared = &message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        assert_eq!(declared["extensions"]["com.example/signatures"], json!({}));
    }
}

#[tokio::test(start_paused = true)]
async fn an_unauthorized_response_does_not_select_the_era() {
    for status in [401, 403] {
        for (revision, era) in [(MODERN, Era::Modern), (LATEST_LEGACY, Era::Legacy)] {
            let mock = server(revision, move |request| match token(request) {
                0 => Some(unauthorized().with_status(status)),
                _ => None,
            });
            let test_credentials = TestCredentials::default();
            let builder = Client::builder("test", "1").lifecycle_mode(LifecycleMode::Auto);

            let client = builder.connect(to(&mock, &test_credentials)).await.unwrap();

            assert_eq!(client.server().era, era);
            let first = &mock.requests()[..2];
            assert_eq!(first[0].rpc(), "server/discover");
            assert_eq!(first[1].rpc(), "server/discover");
            assert_eq!(first[0].body, first[1].body);
            assert_eq!(test_credentials.logins(), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_final_rejection_does_not_fall_back_to_http_sse() {
    for status in [401, 403] {
        let mock = server(MODERN, move |_| Some(unauthorized().with_status(status)));
        let test_credentials = TestCredentials::default();
        test_credentials.give_up();
        let builder = Client::builder("test", "1").lifecycle_mode(LifecycleMode::Auto);

        let error = builder
            .connect(to(&mock, &test_credentials))
            .await
            .unwrap_err();

        let ConnectError::Unreachable(TransportError::ErrorResponse(rejection)) = error else {
            panic!("{error:?}");
        };
        assert_eq!(rejection.status.as_u16(), status);
        assert!(rejection.challenge.unwrap().contains("files:read"));
        assert_eq!(mock.requests().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn concurrent_unauthorized_requests_log_in_once() {
    let (number, from) = required_token(1);
    let mock = protected_server(MODERN, move |_| from(), |_| None);
    let test_credentials =
        TestCredentials::with_login_time(std::time::Duration::from_secs(5)).with_token();
    let client = connect(&mock, MODERN, &test_credentials).await;

    number.store(2, Ordering::SeqCst);
    let calls: Vec<_> = (0..8)
        .map(|_| tokio::spawn(client.call_tool("a", json!({})).into_future()))
        .collect();
    for call in calls {
        call.await.unwrap().unwrap();
    }

    assert_eq!(test_credentials.logins(), 2);
    assert_eq!(test_credentials.rejections().len(), 8);
    assert!(
        test_credentials
            .rejections()
            .iter()
            .all(|reported| reported.generation == 1)
    );
    assert_eq!(posted_messages(&mock, "tools/call").len(), 16);
}

#[tokio::test(start_paused = true)]
async fn a_finally_rejected_call_fails_with_its_http_error() {
    for revision in [LATEST_LEGACY, MODERN] {
        let mock = protected_server(revision, |_| 1, on_call(|_| unauthorized()));
        let test_credentials = TestCredentials::default().with_token();
        let client = connect(&mock, revision, &test_credentials).await;
        test_credentials.give_up();

        let error = client.call_tool("a", json!({})).await.unwrap_err();

        assert_eq!(error.status().unwrap(), 401);
        let CallError::Disconnected {
            source: TransportError::ErrorResponse(rejection),
            ..
        } = error
        else {
            panic!("{error:?}");
        };
        assert!(rejection.challenge.unwrap().contains("files:read"));
        assert_eq!(posted_messages(&mock, "tools/call").len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_credential_is_reported_with_its_reason() {
    for revision in [LATEST_LEGACY, MODERN] {
        let (number, from) = required_token(1);
        let mock = protected_server(revision, move |_| from(), |_| None);
        let test_credentials = TestCredentials::default();
        test_credentials.fail();
        let error = builder_for(revision)
            .connect(to(&mock, &test_credentials))
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

        let test_credentials = TestCredentials::default().with_token();
        let client = connect(&mock, revision, &test_credentials).await;
        test_credentials.fail();
        number.store(2, Ordering::SeqCst);
        let error = client.call_tool("a", json!({})).await.unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("`tools/call` could not be authorized: "),
            "{error}"
        );
        assert!(error.source().unwrap().to_string().contains("revoked"));
        assert!(matches!(error, CallError::Authorization { .. }));
    }
}

#[tokio::test(start_paused = true)]
async fn authorization_attempts_are_limited() {
    let mock = protected_server(MODERN, |_| 1, on_call(|_| unauthorized()));
    let test_credentials = TestCredentials::default().with_token();
    let client = connect(&mock, MODERN, &test_credentials).await;

    let again = client.call_tool("a", json!({})).await.unwrap_err();
    let rejections = test_credentials.rejections();
    test_credentials.always_retry();
    let same = client.call_tool("a", json!({})).await.unwrap_err();

    assert_eq!(again.status().unwrap(), 401);
    assert_eq!(same.status().unwrap(), 401);
    let attempts: Vec<_> = rejections
        .iter()
        .map(|rejections| rejections.attempts)
        .collect();
    assert_eq!(attempts, [1, 2, 3, 4]);
    assert_eq!(posted_messages(&mock, "tools/call").len(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_configured_authorization_header_takes_precedence() {
    for own in ["bearer", "header"] {
        let mock = server(MODERN, on_call(|_| unauthorized()));
        let test_credentials = TestCredentials::default().with_token();
        let target = match own {
            "bearer" => to(&mock, &test_credentials).bearer("sesame"),
            _ => to(&mock, &test_credentials).header("authorization", "Bearer sesame"),
        };

        let client = builder_for(MODERN).connect(target).await.unwrap();
        let error = client.call_tool("a", json!({})).await.unwrap_err();

        assert_eq!(error.status().unwrap(), 401);
        assert!(test_credentials.requests().is_empty() && test_credentials.rejections().is_empty());
        for request in mock.requests() {
            let values: Vec<_> = request.headers.get_all("authorization").iter().collect();
            assert_eq!(values, ["Bearer sesame"]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn credentials_are_never_sent_to_another_origin() {
    for location in [
        "http://evil.example/mcp",
        "//evil.example/",
        "https://fake.test/mcp",
    ] {
        for status in [302, 307, 308] {
            let mock = server(
                MODERN,
                on_call(move |_| MockResponse::status(status).header("location", location)),
            );
            let test_credentials = TestCredentials::default().with_token();
            let client = connect(&mock, MODERN, &test_credentials).await;
            let before = mock.connections();

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
            assert_eq!(mock.connections(), before);
            assert!(
                test_credentials
                    .requests()
                    .iter()
                    .all(|(_, url)| url.starts_with("http://fake.test/"))
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_redirect_credentials_are_bound_to_the_new_url() {
    let mock = server(MODERN, |request| {
        (request.path == "/mcp").then(|| MockResponse::status(307).header("location", "/v2"))
    });
    let test_credentials = TestCredentials::default().with_token();

    let client = connect(&mock, MODERN, &test_credentials).await;
    client.call_tool("a", json!({})).await.unwrap();

    let requested = test_credentials.requests();
    let urls: Vec<_> = requested.iter().map(|(_, url)| url.as_str()).collect();
    let (old, new) = ("http://fake.test/mcp", "http://fake.test/v2");
    assert_eq!(urls, [old, new, old, new]);
    assert!(mock.requests().iter().all(|request| token(request) == 1));
}

#[tokio::test(start_paused = true)]
async fn redirects_with_credentials_are_limited() {
    let mock = server(MODERN, |_| {
        Some(MockResponse::status(307).header("location", "/mcp"))
    });
    let test_credentials = TestCredentials::default();

    let error = builder_for(MODERN)
        .connect(to(&mock, &test_credentials))
        .await;

    assert!(matches!(
        error,
        Err(ConnectError::Unreachable(TransportError::Http(_)))
    ));
    assert_eq!(mock.requests().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn the_nonce_of_every_response_is_recorded() {
    let mock = server(MODERN, |request| {
        let reply = match (request.rpc().as_str(), token(request)) {
            ("tools/call", 2) => {
                MockResponse::result(request, &crate::servers::mock_mcp_http::text_result("done"))
            }
            ("tools/call", _) => unauthorized().header("DPoP-Nonce", "n-1"),
            _ => return None,
        };
        Some(match token(request) {
            2 => reply.header("dpop-nonce", "n-2"),
            _ => reply,
        })
    });
    let test_credentials = TestCredentials::default().with_token();
    let client = connect(&mock, MODERN, &test_credentials).await;

    client.call_tool("a", json!({})).await.unwrap();

    assert_eq!(test_credentials.nonces(), ["n-1", "n-2"]);
}

#[tokio::test(start_paused = true)]
async fn insufficient_scope_leads_to_a_new_token() {
    for revision in [LATEST_LEGACY, MODERN] {
        let mock = server(revision, |request| {
            let challenge = r#"Bearer error="insufficient_scope", scope="a b""#;
            let more = request.rpc() == "tools/call" && token(request) < 2;
            more.then(|| MockResponse::status(403).header("www-authenticate", challenge))
        });
        let test_credentials = TestCredentials::default().with_token();
        let client = connect(&mock, revision, &test_credentials).await;

        client.call_tool("a", json!({})).await.unwrap();

        let rejection = &test_credentials.rejections()[0];
        assert_eq!((rejection.status, rejection.generation), (403, 1));
        assert_eq!(rejection.challenges, ["Bearer a b"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_malformed_challenge_requests_no_scope() {
    for challenge in ["\"", "Bearer scope=\"a", &"x".repeat(100_000)] {
        let challenge = challenge.to_owned();
        let mock = server(MODERN, move |request| {
            let unauthorized_response =
                || MockResponse::status(401).header("www-authenticate", &challenge);
            (token(request) == 0).then(unauthorized_response)
        });
        let test_credentials = TestCredentials::default();

        connect(&mock, MODERN, &test_credentials).await;

        assert_eq!(test_credentials.rejections().len(), 1);
        assert!(test_credentials.rejections()[0].challenges.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_invalid_in_a_header_is_not_printed() {
    struct InvalidToken;
    impl CredentialProvider for InvalidToken {
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
    let mock = server(MODERN, |_| None);

    let target = target_of(&mock).authorization(InvalidToken);
    let error = builder_for(MODERN).connect(target).await.unwrap_err();

    let ConnectError::Authorization(failure) = &error else {
        panic!("{error:?}");
    };
    assert_eq!(failure.step(), AuthorizationStep::Use);
    assert!(!format!("{error} {error:?}").contains("sesame"));
    assert!(mock.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn ending_a_session_does_not_log_in() {
    let (number, from) = required_token(1);
    let mock = protected_server(LATEST_LEGACY, move |_| from(), |_| None);
    let test_credentials = TestCredentials::default().with_token();
    let client = connect(&mock, LATEST_LEGACY, &test_credentials).await;
    run_ready_tasks().await;

    number.store(2, Ordering::SeqCst);
    client.close().await;

    assert_eq!(by_method(&mock, "DELETE").len(), 1);
    assert!(test_credentials.rejections().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_does_not_log_in() {
    let mock = protected_server(
        LATEST_LEGACY,
        |request| match request.rpc().as_str() {
            "notifications/cancelled" => 2,
            _ => 1,
        },
        on_call(|_| MockResponse::silence()),
    );
    let test_credentials = TestCredentials::default().with_token();
    let client = connect(&mock, LATEST_LEGACY, &test_credentials).await;
    let call = tokio::spawn(client.call_tool("a", json!({})).into_future());
    mock.first(|request| request.rpc() == "tools/call").await;

    call.abort();
    mock.first(|request| request.rpc() == "notifications/cancelled")
        .await;
    run_ready_tasks().await;

    assert!(test_credentials.rejections().is_empty());
}

#[tokio::test(start_paused = true)]
async fn ending_a_session_is_retried_with_a_nonce() {
    let mock = server(LATEST_LEGACY, |request| {
        let unauthorized_response = || unauthorized().header("dpop-nonce", "n");
        (request.method == "DELETE").then(unauthorized_response)
    });
    let test_credentials = TestCredentials::default().with_token();
    let client = connect(&mock, LATEST_LEGACY, &test_credentials).await;

    client.close().await;

    assert_eq!(by_method(&mock, "DELETE").len(), 2);
    assert_eq!(test_credentials.nonces(), ["n", "n"]);
    assert!(test_credentials.rejections().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ends_with_its_token_is_renewed() {
    let (number, from) = required_token(1);
    let mock = protected_server(
        LATEST_LEGACY,
        move |_| from(),
        |request| {
            // The session belongs to the token that created it.
            let old = request.header("mcp-session-id") == "session-1" && token(request) > 1;
            old.then(|| MockResponse::status(404))
        },
    );
    let test_credentials = TestCredentials::default().with_token();
    let client = connect(&mock, LATEST_LEGACY, &test_credentials).await;

    number.store(2, Ordering::SeqCst);
    client.call_tool("a", json!({})).await.unwrap();

    let calls = posted_messages(&mock, "tools/call");
    let sessions: Vec<_> = calls
        .iter()
        .map(|call| call.header("mcp-session-id"))
        .collect();
    assert_eq!(sessions, ["session-1", "session-1", "session-2"]);
    assert_eq!(test_credentials.logins(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_unauthorized_session_renewal_reports_its_reason() {
    let (number, from) = required_token(1);
    let mock = protected_server(
        LATEST_LEGACY,
        move |request| match request.rpc().as_str() {
            "initialize" => from(),
            _ => 1,
        },
        on_call(|_| MockResponse::status(404)),
    );
    let test_credentials = TestCredentials::default().with_token();
    let client = connect(&mock, LATEST_LEGACY, &test_credentials).await;
    test_credentials.fail();

    number.store(2, Ordering::SeqCst);
    let error = client.call_tool("a", json!({})).await.unwrap_err();

    assert!(
        matches!(error, CallError::Authorization { .. }),
        "{error:?}"
    );
}
