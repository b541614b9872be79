use ::http::{HeaderValue, header::CONTENT_TYPE};
use serde_json::json;

use crate::{
    mock_http::{MockHttpServer, MockResponse, RecordedRequest},
    transport::http_client::{response::ResponseContent, *},
};

/// Returns an HTTP client for a mock server, and the URL of a path.
fn client_for(mock: &MockHttpServer, path: &str) -> (HttpClient, Url) {
    limited(mock, path, HttpClientLimits::default())
}

fn limited(mock: &MockHttpServer, path: &str, limits: HttpClientLimits) -> (HttpClient, Url) {
    let url: Url = mock.url(path).parse().unwrap();
    let mut headers = BaseHeaders::new();
    headers.add("Authorization", "Bearer sesame").unwrap();
    let http_client = HttpClient::new(&url, Dialer::from_fn(mock.dial()), headers, limits).unwrap();
    (http_client, url)
}

async fn post(http_client: &HttpClient, url: &Url) -> Result<HttpResponse, HttpError> {
    let body = Bytes::from_static(b"{}");
    http_client
        .send(&Method::POST, url, [][..].into(), &body, AuthPolicy::Never)
        .await
}

async fn get(http_client: &HttpClient, url: &Url) -> Result<HttpResponse, HttpError> {
    http_client
        .send(
            &Method::GET,
            url,
            [][..].into(),
            &Bytes::new(),
            AuthPolicy::Never,
        )
        .await
}

/// Posts to a mock server with this response.
async fn post_to(reply: MockResponse) -> Result<ResponseContent, HttpError> {
    let mock = MockHttpServer::scripted([reply]);
    let (http_client, url) = client_for(&mock, "/mcp");
    post(&http_client, &url).await?.body().await
}

#[tokio::test]
async fn a_request_is_sent_unchanged() {
    let mock = MockHttpServer::scripted([MockResponse::json(&json!({ "a": 1 }))]);
    let (http_client, url) = client_for(&mock, "/mcp?x=1");
    let own = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];

    let body = Bytes::from_static(b"{\"b\":2}");
    let response = http_client.send(
        &Method::POST,
        &url,
        own[..].into(),
        &body,
        AuthPolicy::Never,
    );
    let body = response.await.unwrap().bytes().await.unwrap();

    assert_eq!(body, r#"{"a":1}"#);
    let request = mock.nth(0).await;
    assert_eq!(
        (request.method.as_str(), request.path.as_str()),
        ("POST", "/mcp?x=1")
    );
    assert_eq!(request.header("host"), "fake.test");
    assert_eq!(request.header("authorization"), "Bearer sesame");
    assert_eq!(request.header("content-type"), "application/json");
    assert_eq!(request.header("accept-encoding"), "identity");
    assert!(request.header("user-agent").starts_with("turnbuckle/"));
    assert_eq!(request.body, r#"{"b":2}"#);
}

#[tokio::test]
async fn a_connection_is_reused() {
    let mock = MockHttpServer::in_memory(|request| match request.path.as_str() {
        "/stream" => MockResponse::events(|events| async move { events.message(&json!(1)) }),
        _ => MockResponse::json(&json!({})),
    });
    let (http_client, json) = client_for(&mock, "/json");
    let stream = mock.url("/stream").parse().unwrap();

    for _ in 0..3 {
        post(&http_client, &json)
            .await
            .unwrap()
            .bytes()
            .await
            .unwrap();
        let mut events = post(&http_client, &stream).await.unwrap().events();
        events.next().await.unwrap().unwrap();
        events.finish().await;
        tokio::task::yield_now().await;
    }

    assert_eq!(mock.requests().len(), 6);
    assert!(mock.connections() <= 2, "{}", mock.connections());
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_kept_for_a_while() {
    let mock = MockHttpServer::in_memory(|_| MockResponse::json(&json!({})));
    let (http_client, url) = client_for(&mock, "/mcp");

    for (pause, connections) in [(0, 1), (3, 1), (3, 1), (5, 2)] {
        tokio::time::sleep(Duration::from_secs(pause)).await;
        post(&http_client, &url)
            .await
            .unwrap()
            .bytes()
            .await
            .unwrap();

        assert_eq!(mock.connections(), connections, "after {pause} s");
    }
}

#[tokio::test]
async fn a_closed_idle_connection_is_replaced() {
    let closing = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}";
    let mock = MockHttpServer::in_memory(move |_| MockResponse::raw(closing));
    let (http_client, url) = client_for(&mock, "/mcp");

    for connections in 1..4 {
        let body = post(&http_client, &url)
            .await
            .unwrap()
            .bytes()
            .await
            .unwrap();

        assert_eq!((&body[..], mock.connections()), (&b"{}"[..], connections));
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn concurrent_requests_have_their_own_connections() {
    let mock = MockHttpServer::in_memory(|_| MockResponse::json(&json!({})));
    let (http_client, url) = client_for(&mock, "/mcp");

    for _ in 0..3 {
        let (first, second) = tokio::join!(post(&http_client, &url), post(&http_client, &url));
        first.unwrap().bytes().await.unwrap();
        second.unwrap().bytes().await.unwrap();
        tokio::task::yield_now().await;
    }

    assert_eq!(mock.connections(), 2);
}

#[tokio::test]
async fn dropping_a_response_closes_its_connection() {
    let (closed, mut is_closed) = tokio::sync::mpsc::unbounded_channel();
    let mock = MockHttpServer::in_memory(move |_| {
        let closed = closed.clone();
        MockResponse::events(|events| async move {
            events.message(&json!(1));
            events.closed().await;
            closed.send(()).unwrap();
        })
    });
    let (http_client, url) = client_for(&mock, "/mcp");
    let mut events = post(&http_client, &url).await.unwrap().events();
    events.next().await.unwrap().unwrap();

    drop(events);

    is_closed.recv().await.unwrap();
}

#[tokio::test]
async fn dropping_a_request_closes_its_connection() {
    let mock = MockHttpServer::in_memory(|_| MockResponse::silence());
    let (http_client, url) = client_for(&mock, "/mcp");

    tokio::select! {
        _ = post(&http_client, &url) => panic!("the mock does not respond"),
        _ = mock.nth(0) => {}
    }
    let other = tokio::spawn(async move { post(&http_client, &url).await.is_ok() });

    // The second request is not queued behind the first, because that connection is closed.
    mock.nth(1).await;
    assert_eq!(mock.connections(), 2);
    other.abort();
}

#[tokio::test]
async fn a_body_over_the_size_limit_is_rejected() {
    let limits = HttpClientLimits {
        body: 100,
        ..HttpClientLimits::default()
    };
    let chunked = |length: usize| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
        let chunks = "a\r\n0123456789\r\n".repeat(length / 10);
        MockResponse::raw(format!("{head}{chunks}0\r\n\r\n"))
    };
    for (reply, fits) in [
        (
            MockResponse::text("application/json", "x".repeat(100)),
            true,
        ),
        (
            MockResponse::text("application/json", "x".repeat(101)),
            false,
        ),
        (chunked(100), true),
        (chunked(110), false),
    ] {
        let mock = MockHttpServer::scripted([reply]);
        let (http_client, url) = limited(&mock, "/mcp", limits);

        let read = post(&http_client, &url).await.unwrap().bytes().await;

        match read {
            Ok(bytes) => assert!(fits && bytes.len() == 100),
            Err(HttpError::TooLarge { limit }) => assert!(!fits && limit == 100),
            Err(other) => panic!("{other}"),
        }
    }
}

#[tokio::test]
async fn an_endless_chunked_body_stops_at_the_size_limit() {
    let mock = MockHttpServer::in_memory(|_| {
        let reply = MockResponse::events(|events| async move {
            for _ in 0..1000 {
                events.text(&"x".repeat(1000));
                tokio::task::yield_now().await;
            }
            events.closed().await;
        });
        reply
            .without_type()
            .header("content-type", "application/json")
    });
    let limits = HttpClientLimits {
        body: 10_000,
        ..HttpClientLimits::default()
    };
    let (http_client, url) = limited(&mock, "/mcp", limits);

    let read = post(&http_client, &url).await.unwrap().bytes().await;

    assert!(matches!(read, Err(HttpError::TooLarge { limit: 10_000 })));
}

#[tokio::test]
async fn events_are_read_one_by_one_with_their_ids() {
    let mock = MockHttpServer::scripted([MockResponse::events(|events| async move {
        events.text(": hello\n\nid: 1\nretry: 50\ndata: a\n\nda");
        tokio::task::yield_now().await;
        events.text("ta: b\n\ndata: unfinished");
    })]);
    let (http_client, url) = client_for(&mock, "/mcp");
    let mut events = get(&http_client, &url).await.unwrap().events();
    assert_eq!(events.last_event_id(), None);

    assert_eq!(events.next().await.unwrap().unwrap().data, "a");
    assert_eq!(events.next().await.unwrap().unwrap().data, "b");
    assert_eq!(events.next().await.unwrap(), None);

    assert_eq!(events.last_event_id(), Some("1"));
    assert_eq!(events.retry(), Some(Duration::from_millis(50)));
}

#[tokio::test]
async fn an_event_over_the_size_limit_is_reported_and_skipped() {
    let mock = MockHttpServer::scripted([MockResponse::events(|events| async move {
        events.text(&format!("data: {}\n\ndata: small\n\n", "x".repeat(200)));
    })]);
    let limits = HttpClientLimits {
        body: 100,
        ..HttpClientLimits::default()
    };
    let (http_client, url) = limited(&mock, "/mcp", limits);
    let mut events = get(&http_client, &url).await.unwrap().events();

    let first = events.next().await;
    let second = events.next().await;

    assert!(matches!(first, Err(HttpError::TooLarge { limit: 100 })));
    assert_eq!(second.unwrap().unwrap().data, "small");
}

#[tokio::test]
async fn a_truncated_stream_is_a_broken_connection() {
    let mock = MockHttpServer::scripted([MockResponse::events(|events| async move {
        events.message(&json!(1));
        events.cut();
    })]);
    let (http_client, url) = client_for(&mock, "/mcp");
    let mut events = get(&http_client, &url).await.unwrap().events();

    events.next().await.unwrap().unwrap();

    assert!(matches!(
        events.next().await,
        Err(HttpError::ConnectionBroken(_))
    ));
}

#[tokio::test]
async fn an_unexpected_content_type_is_reported_with_a_sanitized_excerpt() {
    let page = format!(
        "<html>\r\n\x1b[31m<h1>\u{202e}Sign  in</h1>{}",
        "é".repeat(500)
    );

    let failure = post_to(MockResponse::text("text/html; charset=utf-8", page))
        .await
        .unwrap_err();

    let HttpError::UnexpectedContentType {
        content_type,
        excerpt,
    } = &failure
    else {
        panic!("{failure}");
    };
    assert_eq!(content_type.as_deref(), Some("text/html; charset=utf-8"));
    assert!(
        excerpt.starts_with("<html> [31m<h1>Sign in</h1>éé"),
        "{excerpt}"
    );
    assert!(excerpt.chars().count() <= 200);
    assert!(
        failure
            .to_string()
            .chars()
            .all(|character| !character.is_control())
    );
}

#[tokio::test]
async fn content_type_parameters_are_ignored() {
    let json = post_to(MockResponse::text("Application/JSON; charset=utf-8", "{}")).await;
    let none = post_to(MockResponse::raw(
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    ))
    .await;

    assert!(matches!(json, Ok(ResponseContent::Json(_))));
    assert!(matches!(
        none,
        Err(HttpError::UnexpectedContentType {
            content_type: None,
            ..
        })
    ));
}

#[tokio::test]
async fn a_compressed_body_is_rejected() {
    let reply = MockResponse::text("application/json", "{}").header("content-encoding", "gzip");

    let failure = post_to(reply).await.unwrap_err();

    assert!(matches!(failure, HttpError::UnexpectedEncoding { encoding } if encoding == "gzip"));
}

#[tokio::test]
async fn what_is_not_http_is_a_broken_connection() {
    for bytes in [
        "SSH-2.0-OpenSSH_9.6\r\n",
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        "",
    ] {
        let failure = post_to(MockResponse::raw(bytes)).await.unwrap_err();
        assert!(
            matches!(failure, HttpError::ConnectionBroken(_)),
            "{bytes}: {failure}"
        );
    }
}

#[tokio::test]
async fn an_error_response_has_status_challenges_and_excerpt() {
    let reply = MockResponse::text("application/json", r#"{"error":1}"#)
        .with_status(401)
        .header("retry-after", "7")
        .header("www-authenticate", "Bearer realm=\"x\"");
    let mock = MockHttpServer::scripted([reply]);
    let (http_client, url) = client_for(&mock, "/mcp");

    let refusal = post(&http_client, &url)
        .await
        .unwrap()
        .error_response()
        .await;

    assert_eq!(refusal.status, 401);
    assert_eq!(refusal.retry_after, Some(Duration::from_secs(7)));
    assert_eq!(refusal.challenges, ["Bearer realm=\"x\""]);
    assert_eq!(refusal.json.as_deref(), Some(&br#"{"error":1}"#[..]));
    assert_eq!(refusal.excerpt, r#"{"error":1}"#);
}

#[tokio::test]
async fn an_error_response_with_a_huge_challenge_is_still_an_error_response() {
    let reply = MockResponse::status(401).header("www-authenticate", &"x".repeat(100_000));
    let mock = MockHttpServer::scripted([reply]);
    let (http_client, url) = client_for(&mock, "/mcp");

    let refusal = post(&http_client, &url)
        .await
        .unwrap()
        .error_response()
        .await;

    assert_eq!(refusal.status, 401);
    assert!(refusal.challenges.is_empty());
}

mod redirects {
    use super::*;

    fn to(status: u16, location: &str) -> MockResponse {
        MockResponse::status(status).header("location", location)
    }

    #[tokio::test]
    async fn a_post_follows_307_and_308() {
        for status in [307, 308] {
            let mock =
                MockHttpServer::scripted([to(status, "/mcp/"), MockResponse::json(&json!({}))]);
            let (http_client, url) = client_for(&mock, "/mcp");

            let response = post(&http_client, &url).await.unwrap();

            assert_eq!(response.status(), 200);
            let request = mock.nth(1).await;
            assert_eq!(
                (request.method.as_str(), request.path.as_str()),
                ("POST", "/mcp/")
            );
            assert_eq!(request.header("authorization"), "Bearer sesame");
            assert_eq!(request.body, "{}");
        }
    }

    #[tokio::test]
    async fn a_redirect_reuses_the_connection() {
        let mock = MockHttpServer::in_memory(|request| match request.path.as_str() {
            "/mcp" => to(307, "/mcp/"),
            _ => MockResponse::json(&json!({})),
        });
        let (http_client, url) = client_for(&mock, "/mcp");

        for _ in 0..3 {
            let response = post(&http_client, &url).await.unwrap();
            response.bytes().await.unwrap();
            tokio::task::yield_now().await;
        }

        assert_eq!(mock.requests().len(), 6);
        assert!(mock.connections() <= 2, "{}", mock.connections());
    }

    #[tokio::test]
    async fn a_post_never_becomes_a_get() {
        for status in [300, 301, 302, 303, 304] {
            let mock = MockHttpServer::scripted([to(status, "/mcp/")]);
            let (http_client, url) = client_for(&mock, "/mcp");

            let failure = post(&http_client, &url).await.unwrap_err();

            assert!(
                matches!(failure, HttpError::InvalidRedirect { .. }),
                "{failure}"
            );
            assert_eq!(mock.requests().len(), 1);
        }
    }

    #[tokio::test]
    async fn a_get_follows_every_redirect() {
        for status in [301, 302, 303, 307, 308] {
            let mock = MockHttpServer::scripted([to(status, "?x"), MockResponse::json(&json!({}))]);
            let (http_client, url) = client_for(&mock, "/mcp");

            get(&http_client, &url).await.unwrap();

            assert_eq!(mock.nth(1).await.path, "/mcp?x");
        }
    }

    #[tokio::test]
    async fn another_origin_is_named_and_gets_no_request() {
        for (location, origin) in [
            ("http://evil.example/mcp", "http://evil.example"),
            ("//evil.example:8080/", "http://evil.example:8080"),
            ("https://fake.test/mcp", "https://fake.test"),
            ("http://fake.test:81/mcp", "http://fake.test:81"),
        ] {
            let mock = MockHttpServer::scripted([to(308, location)]);
            let (http_client, url) = client_for(&mock, "/mcp");

            let failure = post(&http_client, &url).await.unwrap_err();

            let HttpError::OtherOrigin { origin: named } = &failure else {
                panic!("{location}: {failure}");
            };
            assert_eq!(named, origin);
            assert_eq!((mock.requests().len(), mock.connections()), (1, 1));
        }
    }

    #[tokio::test]
    async fn a_redirect_loop_ends() {
        let mock = MockHttpServer::in_memory(|_: &RecordedRequest| to(307, "/mcp"));
        let (http_client, url) = client_for(&mock, "/mcp");

        let failure = post(&http_client, &url).await.unwrap_err();

        assert!(matches!(failure, HttpError::TooManyRedirects { limit: 5 }));
        assert_eq!(mock.requests().len(), 6);
    }

    #[tokio::test]
    async fn an_invalid_redirect_is_rejected() {
        for location in ["", "javascript:alert(1)", "http://user@fake.test/", "//"] {
            let mock = MockHttpServer::scripted([to(307, location)]);
            let (http_client, url) = client_for(&mock, "/mcp");

            let failure = post(&http_client, &url).await.unwrap_err();

            assert!(
                matches!(failure, HttpError::InvalidRedirect { status: 307, .. }),
                "{location}"
            );
        }
    }
}

mod dialling {
    use std::{future::pending, io};

    use tokio::io::DuplexStream;

    use super::*;

    fn http_client(url: &str, dialer: Dialer) -> (HttpClient, Url) {
        let url: Url = url.parse().unwrap();
        let http_client = HttpClient::new(
            &url,
            dialer,
            BaseHeaders::new(),
            HttpClientLimits::default(),
        )
        .unwrap();
        (http_client, url)
    }

    #[tokio::test(start_paused = true)]
    async fn dialling_has_a_time_limit() {
        let dialer = Dialer::from_fn(pending::<io::Result<DuplexStream>>);
        let (http_client, url) = http_client("http://fake.test/", dialer);

        let failure = post(&http_client, &url).await.unwrap_err();

        assert!(failure.is_unsent());
        assert_eq!(
            failure.to_string(),
            "could not connect to `http://fake.test` within 10s"
        );
    }

    #[tokio::test]
    async fn a_dial_error_has_its_reason() {
        let refused = || async { Err::<DuplexStream, _>(io::ErrorKind::ConnectionRefused.into()) };
        let (http_client, url) = http_client("http://fake.test:81/", Dialer::from_fn(refused));

        let failure = post(&http_client, &url).await.unwrap_err();

        assert!(failure.is_unsent());
        assert_eq!(
            failure.to_string(),
            "could not connect to `http://fake.test:81`: connection refused"
        );
    }

    #[tokio::test]
    async fn tcp_connections_work() {
        let mock = MockHttpServer::on_loopback(|_| MockResponse::json(&json!({}))).await;
        let (http_client, url) = http_client(&mock.url("/mcp"), Dialer::tcp());

        let body = post(&http_client, &url)
            .await
            .unwrap()
            .bytes()
            .await
            .unwrap();

        assert_eq!(body, "{}");
    }

    #[tokio::test]
    async fn no_request_is_sent_to_another_origin() {
        let mock = MockHttpServer::scripted([]);
        let (http_client, _) = client_for(&mock, "/mcp");
        let other: Url = "http://evil.example/mcp".parse().unwrap();

        let failure = post(&http_client, &other).await.unwrap_err();

        assert!(matches!(failure, HttpError::OtherOrigin { .. }));
        assert_eq!(mock.connections(), 0);
    }
}

#[cfg(not(feature = "tls"))]
mod without_tls {
    use super::*;

    #[test]
    fn without_tls_an_https_url_names_the_missing_feature() {
        let url: Url = "https://example.com/".parse().unwrap();

        let failure = HttpClient::new(
            &url,
            Dialer::tcp(),
            BaseHeaders::new(),
            HttpClientLimits::default(),
        )
        .unwrap_err();

        assert!(failure.to_string().contains("`tls`"));
    }
}

#[cfg(feature = "tls")]
mod with_tls {
    use super::*;

    #[tokio::test]
    async fn a_server_without_tls_is_an_error() {
        let mock = MockHttpServer::in_memory(|_| MockResponse::json(&json!({})));
        let url: Url = "https://fake.test/".parse().unwrap();
        let dialer = Dialer::from_fn(mock.dial());
        let http_client = HttpClient::new(
            &url,
            dialer,
            BaseHeaders::new(),
            HttpClientLimits::default(),
        )
        .unwrap();

        let failure = post(&http_client, &url).await.unwrap_err();

        assert!(matches!(failure, HttpError::Connect { .. }), "{failure}");
        assert!(mock.requests().is_empty());
    }
}
