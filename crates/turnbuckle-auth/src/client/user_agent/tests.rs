use proptest::prelude::*;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, duplex},
    net::TcpStream,
};
use turnbuckle_spec_coverage::req;
use turnbuckle_text::percent::Form;

use super::*;

fn expected() -> ExpectedCallback {
    ExpectedCallback {
        redirect_uri: "http://127.0.0.1:7001/callback".to_owned(),
        state: Secret::new("right"),
    }
}

/// Sends bytes to the callback server; returns its response and the callback URL.
async fn serve(request: &[u8]) -> (String, Option<String>) {
    let (mut browser, stream) = duplex(64 * 1024);
    let talk = async {
        let _ = browser.write_all(request).await;
        browser.shutdown().await.unwrap();
        let mut response = String::new();
        browser.read_to_string(&mut response).await.unwrap();
        response
    };
    let expected = expected();
    let (response, found) =
        tokio::join!(talk, callback_server::serve_connection(stream, &expected));
    (response, found)
}

fn get(target: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:7001\r\nCookie: a=b\r\n\r\n").into_bytes()
}

#[tokio::test(start_paused = true)]
async fn a_matching_callback_completes_the_login() {
    let (response, found) =
        serve(&get("/callback?code=c%2Fd&state=right&iss=https%3A%2F%2Fa")).await;

    let expected = "http://127.0.0.1:7001/callback?code=c%2Fd&state=right&iss=https%3A%2F%2Fa";
    assert_eq!(found.as_deref(), Some(expected));
    let (head, page) = response.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    for line in [
        "Cache-Control: no-store",
        "Content-Security-Policy: default-src 'none'",
        "Referrer-Policy: no-referrer",
        "X-Content-Type-Options: nosniff",
        "Connection: close",
        &format!("Content-Length: {}", page.len()),
    ] {
        assert!(head.contains(line), "{line} is missing in {head}");
    }
    assert!(page.contains("You can close this window"), "{page}");
}

#[tokio::test(start_paused = true)]
async fn a_denial_is_returned_and_not_shown_in_the_page() {
    req!("auth.iss.error-response");
    let target = "/callback?error=%3Cscript%3E&error_description=%3Cb%3Eevil&state=right";

    let (response, found) = serve(&get(target)).await;

    assert!(found.unwrap().contains("error=%3Cscript%3E"));
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"));
    assert!(response.contains("Access was not granted"));
    assert!(
        !response.contains("script") && !response.contains("evil"),
        "{response}"
    );
}

#[tokio::test(start_paused = true)]
async fn other_requests_to_the_callback_server_are_rejected() {
    req!("auth.redirect.state");
    let long = format!("/callback?state=right&code={}", "x".repeat(20_000));
    let post = b"POST /callback?code=c&state=right HTTP/1.1\r\n\r\n".to_vec();
    for (request, status) in [
        (get("/callback?code=c&state=wrong"), "400"),
        (get("/callback?code=c&state=righ"), "400"),
        (get("/callback?code=c"), "400"),
        (get("/callback"), "400"),
        (get("/callback?code=c&state=right&state=right"), "400"),
        (get("/callback?code=c&state=wrong&state=right"), "400"),
        (get("/favicon.ico"), "404"),
        (get("/?code=c&state=right"), "404"),
        (get("/callback/?code=c&state=right"), "404"),
        (get("//evil.example/callback?code=c&state=right"), "404"),
        (
            get("http://127.0.0.1:7001/callback?code=c&state=right"),
            "404",
        ),
        (get(&long), "431"),
        (post, "405"),
        (b"GET /callback?code=c&state=right\r\n\r\n".to_vec(), "400"),
        (
            b"GET /callback?code=c&state=right HTTP/2.0\r\n\r\n".to_vec(),
            "400",
        ),
        (
            b"GET /callback?x=\xff&state=right HTTP/1.1\r\n\r\n".to_vec(),
            "400",
        ),
        (b"\r\n\r\n".to_vec(), "400"),
        (b"\x16\x03\x01\r\n\r\n".to_vec(), "400"),
    ] {
        let (response, found) = serve(&request).await;

        let shown = String::from_utf8_lossy(&request[..request.len().min(80)]).into_owned();
        assert_eq!(found, None, "{shown}");
        assert_eq!(response.get(9..12), Some(status), "{shown}");
    }
    for request in [
        &b""[..],
        b"GET /callback?code=c&state=right HTTP/1.1\r\nHost:",
    ] {
        assert_eq!(serve(request).await, (String::new(), None));
    }
}

proptest! {
    #[test]
    fn random_requests_do_not_complete_a_login(request in prop::collection::vec(any::<u8>(), 0..200)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();

        let (_, found) = runtime.block_on(serve(&request));

        prop_assert_eq!(found, None);
    }
}

/// Returns a login URL with this redirect URI.
fn login_url(redirect_uri: &str) -> String {
    let query = Form::default()
        .with("client_id", "client")
        .with("redirect_uri", redirect_uri)
        .with("state", "right");
    format!("https://as.example/authorize?{}", query.into_string())
}

async fn browse(redirect_uri: &str, query: &str) -> String {
    let url = HttpUrl::parse(redirect_uri).unwrap();
    let address = url.origin.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let target = format!("{}?{query}", url.path);
    stream.write_all(&get(&target)).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response
}

// These tests use real ports, so time is not paused.

#[tokio::test]
async fn other_connections_do_not_disturb_the_callback() {
    req!("auth.redirect.localhost-or-https");
    let opened = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&opened);
    let loopback = LoopbackUserAgent::new(move |url| {
        seen.lock().unwrap().push(url.to_owned());
        Ok(())
    });
    let uri = loopback.redirect_uri(None).await.unwrap();
    assert!(is_default_redirect_uri(&uri), "{uri}");
    let url = login_url(&uri);

    let browser = async {
        // Like a browser: an unused connection, and a request for an icon.
        let url = HttpUrl::parse(&uri).unwrap().origin;
        let _unused = TcpStream::connect(url.strip_prefix("http://").unwrap())
            .await
            .unwrap();
        assert!(browse(&uri, "code=evil&state=wrong").await.contains("400"));
        browse(&uri, "code=good&state=right").await
    };
    let (response, page) = tokio::join!(loopback.open_url(&url), browser);

    assert_eq!(response.unwrap(), format!("{uri}?code=good&state=right"));
    assert!(page.contains("You can close this window"));
    assert_eq!(opened.lock().unwrap().join(" "), url);
    let again = loopback.open_url(&url).await.unwrap_err();
    assert_eq!(
        again.step(),
        AuthorizationStep::Authorization,
        "the port is closed"
    );
}

#[tokio::test]
async fn the_registered_port_is_reused_if_it_is_free() {
    let new = || LoopbackUserAgent::new(|_| Ok(()));
    let first = new();
    let uri = first.redirect_uri(None).await.unwrap();
    // The port is still used by our own login that was dropped.
    assert_eq!(first.redirect_uri(Some(&uri)).await.unwrap(), uri);

    let other = new().redirect_uri(Some(&uri)).await.unwrap();
    assert_ne!(other, uri, "the port is in use");
    drop(first);
    assert_eq!(new().redirect_uri(Some(&uri)).await.unwrap(), uri);
    for foreign in [
        "http://127.0.0.1:1/elsewhere",
        "https://example.com/callback",
        "x",
    ] {
        assert!(
            is_default_redirect_uri(&new().redirect_uri(Some(foreign)).await.unwrap()),
            "{foreign}"
        );
    }
}

#[tokio::test]
async fn a_configured_redirect_uri_is_used_exactly_or_is_an_error() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = taken.local_addr().unwrap().port();
    let uri = format!("http://localhost:{port}/oauth/back");
    let loopback = LoopbackUserAgent::new(|_| Ok(())).with_redirect_uri(&uri);

    let error = loopback.redirect_uri(None).await.unwrap_err();
    assert_eq!(error.step(), AuthorizationStep::Authorization);
    drop(taken);
    assert_eq!(loopback.redirect_uri(None).await.unwrap(), uri);

    for uri in [
        "https://127.0.0.1:1/",
        "http://evil.example:80/",
        "http://127.0.0.1/",
        "x",
    ] {
        let loopback = LoopbackUserAgent::new(|_| Ok(())).with_redirect_uri(uri);
        let error = loopback.redirect_uri(None).await;
        assert_eq!(
            error.unwrap_err().step(),
            AuthorizationStep::Authorization,
            "{uri}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_login_without_callback_times_out() {
    let loopback = LoopbackUserAgent::new(|_| Ok(()));
    let uri = loopback.redirect_uri(None).await.unwrap();

    let error = loopback.open_url(&login_url(&uri)).await.unwrap_err();

    assert_eq!(error.step(), AuthorizationStep::Callback);
    assert!(error.reason().contains("300s"), "{error}");
}

#[tokio::test]
async fn a_browser_that_cannot_be_opened_is_an_error() {
    let loopback = LoopbackUserAgent::new(|_| Err(io::Error::other("no display")));
    let uri = loopback.redirect_uri(None).await.unwrap();

    let error = loopback.open_url(&login_url(&uri)).await.unwrap_err();

    assert!(error.reason().contains("no display"), "{error}");
    assert!(error.hint().is_some());
}
