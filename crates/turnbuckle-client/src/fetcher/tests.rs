use std::{collections::HashMap, net::SocketAddr, time::Duration};

use serde_json::json;
use tokio::time::Instant;
use turnbuckle_spec_coverage::req;

use crate::{
    fetcher::*,
    mock_http::{MockHttpServer, MockResponse, RecordedRequest},
    transport::http_client::Dialer,
};

/// A network with one mock server, which records the dialled addresses.
struct TestNetwork {
    mock: MockHttpServer,
    dialled: Arc<Mutex<Vec<SocketAddr>>>,
}

impl TestNetwork {
    fn new(answer: impl Fn(&RecordedRequest) -> MockResponse + Send + Sync + 'static) -> Self {
        let mock = MockHttpServer::in_memory(answer);
        let dialled = Arc::default();
        Self { mock, dialled }
    }

    fn quiet() -> Self {
        Self::new(|_| MockResponse::json(&json!({})))
    }

    /// Returns a fetcher for a server; names resolve by the table, and addresses to themselves.
    fn fetcher(&self, server: &str, names: &[(&str, &str)]) -> HttpFetcher {
        self.over(HttpFetcher::for_server(server).unwrap(), names)
    }

    fn over(&self, mut fetcher: HttpFetcher, names: &[(&str, &str)]) -> HttpFetcher {
        let addresses = |list: &str| list.split(' ').map(|one| one.parse().unwrap()).collect();
        let names: HashMap<String, Vec<std::net::IpAddr>> = names
            .iter()
            .map(|(name, list)| ((*name).to_owned(), addresses(list)))
            .collect();
        fetcher.network.resolve = Arc::new(move |host, port| {
            let found = names.get(&host).cloned();
            let found = found.ok_or_else(|| std::io::ErrorKind::NotFound.into());
            let found =
                found.map(|all| all.iter().map(|one| SocketAddr::new(*one, port)).collect());
            Box::pin(std::future::ready(found))
        });
        let (dial, dialled) = (self.mock.dial(), Arc::clone(&self.dialled));
        fetcher.network.connect = Arc::new(move |addresses| {
            dialled.lock().unwrap().extend(addresses);
            Dialer::from_fn(dial.clone())
        });
        fetcher
    }

    fn dialled(&self) -> Vec<String> {
        let dialled = self.dialled.lock().unwrap();
        dialled.iter().map(ToString::to_string).collect()
    }
}

async fn get(fetcher: &HttpFetcher, url: &str) -> Result<fetch::FetchResponse, FetchError> {
    fetcher.fetch(FetchRequest::get(url)).await
}

fn form(url: &str) -> FetchRequest {
    FetchRequest::post(url, "application/x-www-form-urlencoded", "code=sesame")
}

const LOCAL: &str = "http://127.0.0.1:8080/mcp";

mod network_policy {
    use super::*;

    /// Fetches a URL on behalf of a server; returns whether a connection was dialled.
    async fn is_dialled(server: &str, url: &str, names: &[(&str, &str)]) -> bool {
        dials(|network| network.fetcher(server, names), url).await
    }

    async fn dials(fetcher: impl Fn(&TestNetwork) -> HttpFetcher, url: &str) -> bool {
        let network = TestNetwork::quiet();
        let fetcher = fetcher(&network);
        let Ok(url) = parse_url(url) else {
            return false;
        };
        let rejected = match fetcher.network.dialer().dial(url.uri().clone()).await {
            Ok(_) => false,
            Err(error) => error.is::<ForbiddenAddress>(),
        };
        let dialled = !network.dialled().is_empty();
        assert_ne!(dialled, rejected, "{url:?}");
        dialled
    }

    const PUBLIC: &str = "https://8.8.8.8/mcp";
    const PRIVATE: &str = "https://10.1.2.3/mcp";
    const NEVER: [&str; 21] = [
        "169.254.169.254",
        "169.254.170.2",
        "[fe80::1]",
        "[ff02::1]",
        "224.0.0.1",
        "0.0.0.0",
        "[::]",
        "255.255.255.255",
        "240.0.0.1",
        "192.0.2.1",
        "[2001:db8::1]",
        "100.100.100.200",
        "[fd00:ec2::254]",
        "[::ffff:169.254.169.254]",
        "[64:ff9b::169.254.169.254]",
        "[64:ff9b::127.0.0.1]",
        "[64:ff9b::10.0.0.1]",
        "[2002:7f00:1::]",
        "[2002:a9fe:a9fe::]",
        "[2001:0:101:101:0:0:80ff:fffe]",
        "[::127.0.0.1]",
    ];
    const PRIVATES: [&str; 7] = [
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "[fc00::1]",
        "[fd12::1]",
        "[::ffff:10.0.0.1]",
    ];
    const LOOPBACKS: [&str; 4] = ["127.0.0.1", "127.8.8.8", "[::1]", "[::ffff:127.0.0.1]"];
    const PUBLICS: [&str; 5] = [
        "1.1.1.1",
        "[2606:4700::1111]",
        "[::ffff:1.1.1.1]",
        "[64:ff9b::1.1.1.1]",
        "[2002:101:101::1]",
    ];

    #[tokio::test]
    async fn a_url_of_a_server_must_be_in_a_network_of_the_server() {
        // Documents are fetched the same way in all revisions.
        req!(
            "security.ssrf.consider",
            "security.ssrf.private",
            in: ["2025-06-18", "2025-11-25", "2026-07-28"]
        );
        for (server, public, private, loopback) in [
            (PUBLIC, true, false, false),
            (PRIVATE, true, true, false),
            (LOCAL, true, true, true),
            ("http://localhost:8080/mcp", true, true, true),
            ("http://[::1]:8080/mcp", true, true, true),
            ("https://169.254.1.1/mcp", true, false, false),
        ] {
            for (hosts, allowed) in [
                (&PUBLICS[..], public),
                (&PRIVATES, private),
                (&LOOPBACKS, loopback),
                (&NEVER, false),
            ] {
                for host in hosts {
                    let url = format!("https://{host}/as");
                    assert_eq!(
                        is_dialled(server, &url, &[]).await,
                        allowed,
                        "{server} {url}"
                    );
                }
            }
        }
    }

    #[tokio::test]
    async fn a_host_name_must_resolve_to_a_network_of_the_server() {
        let every = PUBLICS.map(|host| (host, true));
        let never = NEVER.iter().chain(&PRIVATES).chain(&LOOPBACKS);
        let table = every.into_iter().chain(never.map(|host| (*host, false)));
        for (host, allowed) in table {
            let address = host.trim_matches(['[', ']']);
            let names = [("as.example", address)];
            let is_allowed = is_dialled(PUBLIC, "https://as.example/x", &names).await;
            assert_eq!(is_allowed, allowed, "{host}");
        }
    }

    #[tokio::test]
    async fn a_user_configured_url_may_be_in_any_usable_network() {
        for (hosts, allowed) in [
            (&PUBLICS[..], true),
            (&PRIVATES, true),
            (&LOOPBACKS, true),
            (&NEVER, false),
        ] {
            for host in hosts {
                let url = format!("https://{host}/as");
                let is_allowed =
                    dials(|network| network.over(HttpFetcher::trusted(), &[]), &url).await;
                assert_eq!(is_allowed, allowed, "{host}");
            }
        }
    }

    #[tokio::test]
    async fn one_disallowed_address_rejects_the_host() {
        for addresses in [
            "1.1.1.1 127.0.0.1",
            "10.0.0.1 1.1.1.1",
            "1.1.1.1 2606:4700::1111 169.254.169.254",
            "2606:4700::1111 ::ffff:192.168.0.1",
        ] {
            let names = [("as.example", addresses)];
            let url = "https://as.example/x";
            assert!(!is_dialled(PUBLIC, url, &names).await, "{addresses}");
        }
    }

    #[tokio::test]
    async fn the_error_names_the_disallowed_address() {
        let network = TestNetwork::quiet();
        let names = [("localhost", "169.254.169.254")];
        let fetcher = network.fetcher(PUBLIC, &names);

        let error = get(&fetcher, "http://localhost/x").await.unwrap_err();

        assert_eq!(
            error.to_string(),
            "`localhost` resolves to 169.254.169.254, which remote servers are not allowed to refer to"
        );
    }

    #[tokio::test]
    async fn the_networks_of_a_server_are_those_of_all_its_addresses() {
        for (server, target, allowed) in [
            ("10.0.0.1", "10.0.0.2", true),
            ("10.0.0.1 192.168.0.1", "172.16.0.1", true),
            // One address is public.
            ("10.0.0.1 8.8.8.8", "10.0.0.2", false),
            ("8.8.8.8", "10.0.0.2", false),
            // A name that resolves to loopback for a moment does not give access to this machine.
            ("127.0.0.1", "127.0.0.1", false),
            ("127.0.0.1", "10.0.0.1", true),
            ("169.254.169.254", "10.0.0.1", false),
        ] {
            let names = [("mcp.example", server), ("as.example", target)];
            let url = "https://as.example/x";
            let is_allowed = is_dialled("https://mcp.example/mcp", url, &names).await;
            assert_eq!(is_allowed, allowed, "{server} {target}");
        }
    }

    #[tokio::test]
    async fn a_server_that_cannot_be_resolved_counts_as_public() {
        let names = [("as.example", "10.0.0.1")];

        assert!(!is_dialled("https://mcp.example/mcp", "https://as.example/", &names).await);
    }

    #[tokio::test]
    async fn a_server_may_name_its_own_origin_in_any_network() {
        for address in ["127.0.0.1", "10.0.0.1"] {
            let names = [("mcp.example", address)];
            let url = "https://MCP.example/.well-known/oauth-protected-resource";
            assert!(is_dialled("https://mcp.example/mcp", url, &names).await);
        }
        let names = [("mcp.example", "169.254.169.254")];
        assert!(!is_dialled("https://mcp.example/mcp", "https://mcp.example/x", &names).await);
    }

    #[tokio::test]
    async fn the_checked_address_is_the_one_that_is_dialled() {
        let network = TestNetwork::quiet();
        let mut fetcher = network.fetcher(PUBLIC, &[]);
        let lookups = Arc::new(Mutex::new(0));
        let count = Arc::clone(&lookups);
        // The name resolves to another address the second time.
        fetcher.network.resolve = Arc::new(move |_, port| {
            let mut lookups = count.lock().unwrap();
            *lookups += 1;
            let address = if *lookups == 1 {
                [1, 1, 1, 1]
            } else {
                [127, 0, 0, 1]
            };
            Box::pin(std::future::ready(Ok(vec![(address, port).into()])))
        });

        let url: Url = "https://as.example:8443/x".parse().unwrap();
        let dialed = fetcher.network.dialer().dial(url.uri().clone()).await;

        dialed.unwrap();
        assert_eq!(network.dialled(), ["1.1.1.1:8443"]);
        assert_eq!(*lookups.lock().unwrap(), 1);
    }

    #[tokio::test]
    async fn unusual_spellings_of_an_address_are_checked() {
        // The system resolves all of these to 127.0.0.1.
        for host in ["2130706433", "0x7f.1", "127.1", "0177.0.0.1"] {
            let network = TestNetwork::quiet();
            let mut policy = network.fetcher(PUBLIC, &[]).network;
            // The resolver of the system, unlike in other tests; if it does not know the spelling, nothing is dialled.
            policy.resolve = HttpFetcher::for_server(PUBLIC).unwrap().network.resolve;
            let url: Url = format!("https://{host}/").parse().unwrap();

            assert!(policy.dialer().dial(url.uri().clone()).await.is_err());
            assert_eq!(network.dialled(), [""; 0], "{host}");
        }
    }

    #[tokio::test]
    async fn plain_http_is_allowed_only_on_loopback() {
        req!("security.ssrf.https", in: ["2025-06-18", "2025-11-25", "2026-07-28"]);
        let localhost = [("localhost", "127.0.0.1"), ("a.localhost", "::1")];
        for url in [
            "http://127.0.0.1/x",
            "http://[::1]:81/x",
            "http://LOCALHOST/x",
            "http://a.localhost/x",
        ] {
            assert!(is_dialled(LOCAL, url, &localhost).await, "{url}");
        }
        let names = [
            ("as.example", "1.1.1.1"),
            ("mine.example", "127.0.0.1"),
            ("localhost", "1.1.1.1"),
            ("a.localhost", "10.0.0.1"),
        ];
        for url in [
            "http://as.example/x",
            "http://1.1.1.1/x",
            "http://10.0.0.1/x",
            "http://mine.example/x",
            "http://localhost.example/x",
            // The name resolves to another machine.
            "http://localhost/x",
            "http://a.localhost/x",
        ] {
            assert!(!is_dialled(LOCAL, url, &names).await, "{url}");
        }
    }
}

mod urls {
    use super::*;

    #[tokio::test]
    async fn an_invalid_url_is_rejected() {
        let network = TestNetwork::quiet();
        let fetcher = network.fetcher(LOCAL, &[]);
        for url in [
            "",
            "as.example",
            "file:///etc/passwd",
            "ftp://as.example/",
            "gopher://as.example/",
            "javascript:alert(1)",
            "https://",
            "https://as.example/#fragment",
            "https://as.example/a b",
            "https://as.example\\@evil.example/",
            "https://as.example/\r\nHost: evil",
            "https://[::1/",
            "https://[fe80::1%25eth0]/",
            "https://as.example:65536/",
        ] {
            let error = get(&fetcher, url).await.unwrap_err();
            assert!(matches!(error, FetchError::Url { .. }), "{url}");
            assert!(!error.to_string().contains('\n'));
        }
        assert!(network.dialled().is_empty());
    }

    #[tokio::test]
    async fn a_url_with_user_information_is_rejected_and_not_printed() {
        let network = TestNetwork::quiet();
        let fetcher = network.fetcher(LOCAL, &[]);

        let error = get(&fetcher, "https://me:sesame@1.1.1.1/?code=sesame").await;

        let error = error.unwrap_err();
        assert!(matches!(error, FetchError::Url { .. }));
        assert!(!format!("{error} {error:?}").contains("sesame"));
    }

    #[test]
    fn a_server_must_have_a_url() {
        assert!(HttpFetcher::for_server("nowhere").is_err());
    }
}

mod responses {
    use super::*;

    #[tokio::test]
    async fn a_document_is_fetched_completely() {
        let network = TestNetwork::new(|_| {
            MockResponse::json(&json!({ "issuer": 1 }))
                .with_status(404)
                .header("DPoP-Nonce", "n")
        });
        let fetcher = network.fetcher(LOCAL, &[]);

        let answer = get(&fetcher, "http://127.0.0.1:9/as?x=1").await.unwrap();

        assert_eq!(answer.status, 404);
        assert_eq!(answer.body, br#"{"issuer":1}"#);
        assert_eq!(answer.header("dpop-nonce"), Some("n"));
        assert_eq!(network.dialled(), ["127.0.0.1:9"]);
        let request = network.mock.nth(0).await;
        assert_eq!(request.path, "/as?x=1");
        assert_eq!(request.header("host"), "127.0.0.1:9");
        assert_eq!(request.header("accept"), "application/json");
        assert!(request.header("user-agent").starts_with("turnbuckle/"));
    }

    #[tokio::test]
    async fn a_form_post_is_sent_unchanged() {
        let network = TestNetwork::quiet();
        let fetcher = network.fetcher(LOCAL, &[]);
        let request = form("http://127.0.0.1/token").header("authorization", "Basic sesame");

        fetcher.fetch(request).await.unwrap();

        let request = network.mock.nth(0).await;
        assert_eq!(request.method, "POST");
        assert_eq!(request.body, "code=sesame");
        assert_eq!(
            request.header("content-type"),
            "application/x-www-form-urlencoded"
        );
        assert_eq!(request.header("authorization"), "Basic sesame");
    }

    #[tokio::test]
    async fn an_invalid_header_value_is_not_printed() {
        let fetcher = TestNetwork::quiet().fetcher(LOCAL, &[]);
        let request = FetchRequest::get("http://127.0.0.1/").header("x-a", "sesame\r\nHost: evil");

        let error = fetcher.fetch(request).await.unwrap_err();

        assert!(!error.to_string().contains("sesame"));
    }

    #[tokio::test]
    async fn connections_are_reused_for_a_limited_number_of_origins() {
        let network = TestNetwork::quiet();
        let fetcher = network.fetcher(LOCAL, &[]);

        for _ in 0..3 {
            get(&fetcher, "http://127.0.0.1:7/").await.unwrap();
            tokio::task::yield_now().await;
        }
        let once = network.mock.connections();
        for port in 1..=20 {
            let url = format!("http://127.0.0.1:{port}/");
            get(&fetcher, &url).await.unwrap();
        }

        assert_eq!(once, 1);
        assert_eq!(lock(&fetcher.http_clients).len(), MAX_ORIGINS);
    }

    #[tokio::test]
    async fn a_response_over_the_size_limit_is_rejected() {
        for (length, fits) in [(MAX_BODY_BYTES, true), (MAX_BODY_BYTES + 1, false)] {
            let network = TestNetwork::new(move |_| {
                MockResponse::text("application/json", "x".repeat(length))
            });
            let fetcher = network.fetcher(LOCAL, &[]);
            let answer = get(&fetcher, "http://127.0.0.1/").await;
            match answer {
                Ok(answer) => assert!(fits && answer.body.len() == length),
                Err(error) => assert!(
                    !fits
                        && error
                            == FetchError::TooLarge {
                                limit: MAX_BODY_BYTES
                            }
                ),
            }
        }
    }

    #[tokio::test]
    async fn an_endless_response_stops_at_the_size_limit() {
        let network = TestNetwork::new(|_| {
            MockResponse::events(|events| async move {
                for _ in 0..2000 {
                    events.text(&"x".repeat(1024));
                    tokio::task::yield_now().await;
                }
                events.closed().await;
            })
        });
        let fetcher = network.fetcher(LOCAL, &[]);

        let error = get(&fetcher, "http://127.0.0.1/").await.unwrap_err();

        assert_eq!(
            error,
            FetchError::TooLarge {
                limit: MAX_BODY_BYTES
            }
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_response_ends_at_the_time_limit() {
        let network = TestNetwork::new(|_| {
            MockResponse::events(|events| async move {
                loop {
                    events.text("x");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            })
        });
        let fetcher = network.fetcher(LOCAL, &[]);
        let started_at = Instant::now();

        let error = get(&fetcher, "http://127.0.0.1/").await.unwrap_err();

        assert_eq!(
            error,
            FetchError::TimedOut {
                limit: TOTAL_TIMEOUT
            }
        );
        assert_eq!(started_at.elapsed().as_secs(), 30);
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_server_and_a_slow_resolver_time_out() {
        let network = TestNetwork::new(|_| MockResponse::silence());
        let silent = network.fetcher(LOCAL, &[]);
        let mut slow = network.fetcher(LOCAL, &[]);
        slow.network.resolve = Arc::new(|_, _| Box::pin(std::future::pending()));
        let unknown = network.fetcher(LOCAL, &[]);

        let silent = get(&silent, "http://127.0.0.1/").await.unwrap_err();
        let slow = get(&slow, "https://as.example/").await.unwrap_err();
        let unknown = get(&unknown, "https://as.example/").await.unwrap_err();

        assert_eq!(
            silent,
            FetchError::TimedOut {
                limit: TOTAL_TIMEOUT
            }
        );
        // Without TLS no connection is made.
        let expected = matches!(
            slow,
            FetchError::TimedOut {
                limit: CONNECT_TIMEOUT
            } | FetchError::Unreachable(_)
        );
        assert!(expected, "{slow}");
        assert!(matches!(unknown, FetchError::Unreachable(_)), "{unknown}");
    }
}

mod redirects {
    use super::*;

    fn to(status: u16, location: &str) -> MockResponse {
        MockResponse::status(status).header("location", location)
    }

    #[tokio::test]
    async fn a_get_follows_redirects_within_its_origin() {
        for status in [301, 302, 303, 307, 308] {
            let network = TestNetwork::new(move |request| match request.path.as_str() {
                "/a" => to(status, "/b"),
                _ => MockResponse::json(&json!(1)),
            });
            let fetcher = network.fetcher(LOCAL, &[]);

            let answer = get(&fetcher, "http://127.0.0.1/a").await.unwrap();

            assert_eq!(answer.body, b"1");
            assert_eq!(network.mock.nth(1).await.path, "/b");
        }
    }

    #[tokio::test]
    async fn redirects_to_another_origin_are_rejected() {
        req!("security.ssrf.private");
        for location in [
            "http://127.0.0.1:81/b",
            "https://127.0.0.1/b",
            "http://169.254.169.254/latest/meta-data",
            "//169.254.169.254/",
            "http://10.0.0.1/",
            "https://as.example/",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "http://user@127.0.0.1/",
            "",
        ] {
            let network = TestNetwork::new(move |_| to(302, location));
            let fetcher = network.fetcher(LOCAL, &[]);

            let error = get(&fetcher, "http://127.0.0.1/a").await.unwrap_err();

            assert!(matches!(error, FetchError::Redirect { .. }), "{error}");
            assert_eq!(network.dialled(), ["127.0.0.1:80"], "{location}");
            assert_eq!(network.mock.requests().len(), 1);
        }
    }

    #[tokio::test]
    async fn a_redirect_loop_is_limited() {
        let network = TestNetwork::new(|_| to(302, "/a"));
        let fetcher = network.fetcher(LOCAL, &[]);

        let error = get(&fetcher, "http://127.0.0.1/a").await.unwrap_err();

        assert_eq!(
            error,
            FetchError::Redirect {
                to: "/a".to_owned()
            }
        );
        assert_eq!(network.mock.requests().len(), 1 + MAX_REDIRECTS);
    }

    #[tokio::test]
    async fn a_post_follows_no_redirect() {
        for status in [300, 301, 302, 303, 304, 305, 307, 308] {
            let network = TestNetwork::new(move |_| to(status, "/b"));
            let fetcher = network.fetcher(LOCAL, &[]);

            let error = fetcher.fetch(form("http://127.0.0.1/token")).await;

            assert_eq!(
                error.unwrap_err(),
                FetchError::Redirect {
                    to: "/b".to_owned()
                }
            );
            assert_eq!(network.mock.requests().len(), 1);
        }
    }

    #[tokio::test]
    async fn the_redirect_location_is_sanitized() {
        let network = TestNetwork::new(|_| to(302, "https://evil.example/\u{1b}[31m"));
        let fetcher = network.fetcher(LOCAL, &[]);

        let error = get(&fetcher, "http://127.0.0.1/a").await.unwrap_err();

        assert!(error.to_string().chars().all(|one| !one.is_control()));
    }
}

#[cfg(feature = "tls")]
mod with_tls {
    use super::*;

    #[tokio::test]
    async fn a_disallowed_address_is_named_through_tls() {
        let network = TestNetwork::quiet();
        let names = [("as.example", "10.0.0.1")];
        let fetcher = network.fetcher("https://8.8.8.8/mcp", &names);

        let error = get(&fetcher, "https://as.example/x").await.unwrap_err();

        assert_eq!(
            error,
            FetchError::Address {
                host: "as.example".to_owned(),
                address: [10, 0, 0, 1].into(),
            }
        );
        assert!(network.dialled().is_empty());
    }

    #[tokio::test]
    async fn a_server_without_tls_gets_no_request() {
        let network = TestNetwork::quiet();
        let names = [("as.example", "1.1.1.1")];
        let fetcher = network.fetcher("https://8.8.8.8/mcp", &names);

        let error = fetcher.fetch(form("https://as.example/token")).await;

        assert!(matches!(error, Err(FetchError::Unreachable(_))));
        assert_eq!(network.dialled(), ["1.1.1.1:443"]);
        assert!(network.mock.requests().is_empty());
    }
}
