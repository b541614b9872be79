//! A minimal HTTP server that waits for the authorization response at the redirect URI.
//!
//! It reads the head of a `GET`, responds with a page, and returns the first request that belongs to the login. The
//! pages contain nothing of the request, which is not authenticated.

use std::{sync::Arc, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpListener,
    sync::{Semaphore, mpsc},
    task::JoinSet,
    time,
};
use turnbuckle_text::{percent::form_pairs, url::HttpUrl};

use crate::Secret;

/// Maximum size of a request head, in bytes.
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// Timeout of one connection; browsers open some that they do not use.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of concurrent connections.
const MAX_CONCURRENT_CONNECTIONS: usize = 16;

/// The redirect that belongs to a login.
#[derive(Debug)]
pub(super) struct ExpectedCallback {
    /// The redirect URI.
    pub(super) redirect_uri: String,
    /// The `state` of the login.
    pub(super) state: Secret,
}

/// Waits for the redirect and returns its URL.
pub(super) async fn wait_for_callback(
    listener: TcpListener,
    expected: Arc<ExpectedCallback>,
) -> String {
    let (callback, mut callbacks) = mpsc::channel(1);
    // Dropping the set closes all connections that are still open.
    let mut tasks = JoinSet::new();
    tasks.spawn(accept(listener, expected, callback));
    match callbacks.recv().await {
        Some(url) => url,
        // The sender lives as long as the task, which does not end by itself.
        None => std::future::pending().await,
    }
}

async fn accept(
    listener: TcpListener,
    expected: Arc<ExpectedCallback>,
    callback: mpsc::Sender<String>,
) {
    let permits = Arc::new(Semaphore::new(MAX_CONCURRENT_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else {
            return;
        };
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else {
            // There may be too many open files.
            time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let (expected, callback) = (Arc::clone(&expected), callback.clone());
        connections.spawn(async move {
            let served =
                time::timeout(CONNECTION_TIMEOUT, serve_connection(stream, &expected)).await;
            drop(permit);
            if let Ok(Some(url)) = served {
                // Only the first redirect counts.
                let _ = callback.try_send(url);
            }
        });
    }
}

/// Reads one request and responds to it. Returns its URL if it is the redirect of the login.
pub(super) async fn serve_connection(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    expected: &ExpectedCallback,
) -> Option<String> {
    let (page, url) = match read_head(&mut stream).await {
        Ok(head) => expected.classify(&head),
        Err(page) => (page?, None),
    };
    // The code can be used even if the browser did not wait for the page.
    let _ = stream.write_all(page.response().as_bytes()).await;
    let _ = stream.shutdown().await;
    url
}

/// Reads a request head. Fails without a page if the connection ended before.
async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> Result<Vec<u8>, Option<CallbackPage>> {
    let mut head = Vec::new();
    let mut chunk = [0; 2048];
    loop {
        let read = stream.read(&mut chunk).await.map_err(|_| None)?;
        if read == 0 {
            return Err(None);
        }
        head.extend_from_slice(&chunk[..read]);
        if head.windows(4).any(|end| end == b"\r\n\r\n") {
            return Ok(head);
        }
        if head.len() > MAX_HEAD_BYTES {
            return Err(Some(CallbackPage::TooLarge));
        }
    }
}

impl ExpectedCallback {
    /// Returns the page for a request, and its URL if it is the redirect of the login.
    fn classify(&self, head: &[u8]) -> (CallbackPage, Option<String>) {
        let line = head.split(|byte| *byte == b'\r').next();
        let words = line.and_then(|line| std::str::from_utf8(line).ok());
        let mut words = words.unwrap_or_default().split(' ');
        let (method, target) = match (words.next(), words.next(), words.next(), words.next()) {
            (Some(method), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None) => (method, target),
            _ => return (CallbackPage::Malformed, None),
        };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        if path != self.path() {
            return (CallbackPage::NotFound, None);
        }
        if method != "GET" {
            return (CallbackPage::MethodNotAllowed, None);
        }
        let values = |name: &str| {
            let of_name = form_pairs(query).filter(move |(own, _)| own == name);
            of_name.map(|(_, value)| value).collect::<Vec<_>>()
        };
        match &values("state")[..] {
            [state] if Secret::new(state).constant_time_eq(&self.state) => {}
            _ => return (CallbackPage::StateMismatch, None),
        }
        let page = if values("error").is_empty() && !values("code").is_empty() {
            CallbackPage::Success
        } else {
            CallbackPage::LoginFailed
        };
        let uri = self.redirect_uri.split('?').next().unwrap_or_default();
        (page, Some(format!("{uri}?{query}")))
    }

    fn path(&self) -> &str {
        let url = HttpUrl::parse(&self.redirect_uri);
        match url.map_or("", |url| url.path) {
            "" => "/",
            path => path,
        }
    }
}

/// The page that is sent in response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallbackPage {
    /// The login succeeded.
    Success,
    /// The login failed.
    LoginFailed,
    /// The `state` belongs to another login.
    StateMismatch,
    /// Another path than that of the redirect URI.
    NotFound,
    /// Another method than `GET`.
    MethodNotAllowed,
    /// Not a valid HTTP request.
    Malformed,
    /// The request head is too large.
    TooLarge,
}

impl CallbackPage {
    /// Returns the complete HTTP response.
    pub(super) fn response(self) -> String {
        let (status, title, text) = self.parts();
        let body = format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
             <title>{title}</title>\n<style>{STYLE}</style>\n<main>\n<h1>{title}</h1>\n<p>{text}</p>\n</main>\n</html>\n"
        );
        format!(
            "HTTP/1.1 {status}\r\n\
             Content-Type: text/html; charset=utf-8\r\n\
             Content-Length: {length}\r\n\
             Cache-Control: no-store\r\n\
             Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n\
             Referrer-Policy: no-referrer\r\n\
             X-Content-Type-Options: nosniff\r\n\
             Connection: close\r\n\r\n{body}",
            length = body.len(),
        )
    }

    fn parts(self) -> (&'static str, &'static str, &'static str) {
        match self {
            CallbackPage::Success => (
                "200 OK",
                "Login received",
                "You can close this window and go back to the program.",
            ),
            CallbackPage::LoginFailed => (
                "200 OK",
                "Login not completed",
                "Access was not granted. You can close this window; the program shows the reason.",
            ),
            CallbackPage::StateMismatch => (
                "400 Bad Request",
                "Wrong login",
                "This response belongs to another login. The program is still waiting for its own.",
            ),
            CallbackPage::NotFound => (
                "404 Not Found",
                "Nothing here",
                "This address only receives the result of a login.",
            ),
            CallbackPage::MethodNotAllowed => (
                "405 Method Not Allowed\r\nAllow: GET",
                "Nothing here",
                "This address only receives the result of a login.",
            ),
            CallbackPage::Malformed => (
                "400 Bad Request",
                "Invalid request",
                "This is not a valid browser request.",
            ),
            CallbackPage::TooLarge => (
                "431 Request Header Fields Too Large",
                "Request too large",
                "This request is too large for the result of a login.",
            ),
        }
    }
}

const STYLE: &str = "\
:root{color-scheme:light dark;font:1rem/1.5 system-ui,sans-serif}\
body{margin:0;min-height:100vh;display:grid;place-items:center}\
main{max-width:32rem;padding:2rem}\
h1{font-size:1.5rem;font-weight:600;margin:0 0 .5rem}\
p{margin:0;opacity:.8}";
