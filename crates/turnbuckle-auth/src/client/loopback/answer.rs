//! A very small server: it reads the head of a `GET`, answers with a page, and hears one answer in all.

use std::{sync::Arc, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpListener,
    sync::{Semaphore, mpsc},
    task::JoinSet,
    time,
};

use super::{super::form, page::Page};
use crate::{Secret, place::Place};

/// The longest head that is read.
const MOST_HEAD: usize = 16 * 1024;

/// How long one connection may take, since browsers open some that they do not use.
const MOST_TIME: Duration = Duration::from_secs(10);

/// How many connections are open at one time.
const MOST_CONNECTIONS: usize = 16;

/// What the answer to a login looks like.
#[derive(Debug)]
pub(super) struct Expected {
    /// Where it comes to.
    pub(super) redirect_uri: String,
    /// What only this login knows.
    pub(super) state: Secret,
}

/// Waits for the answer, and returns its URL.
pub(super) async fn wait(listener: TcpListener, expected: Arc<Expected>) -> String {
    let (found, mut answers) = mpsc::channel(1);
    // Whatever is still open when the answer is there is closed with it.
    let mut tasks = JoinSet::new();
    tasks.spawn(accept(listener, expected, found));
    match answers.recv().await {
        Some(url) => url,
        // The sender lives as long as the task, which never ends by itself.
        None => std::future::pending().await,
    }
}

async fn accept(listener: TcpListener, expected: Arc<Expected>, found: mpsc::Sender<String>) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else {
            // Too many files are open, perhaps: others may close some.
            time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let (expected, found) = (Arc::clone(&expected), found.clone());
        connections.spawn(async move {
            let heard = time::timeout(MOST_TIME, converse(stream, &expected)).await;
            drop(place);
            if let Ok(Some(url)) = heard {
                // Only the first counts; of another one, nobody hears.
                let _ = found.try_send(url);
            }
        });
    }
}

/// Reads one request and answers it; returns its URL if it is the answer to the login.
pub(super) async fn converse(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    expected: &Expected,
) -> Option<String> {
    let (page, url) = match read_head(&mut stream).await {
        Ok(head) => expected.judge(&head),
        Err(page) => (page?, None),
    };
    // The code is of use even if the browser did not wait for the page.
    let _ = stream.write_all(page.response().as_bytes()).await;
    let _ = stream.shutdown().await;
    url
}

/// Nothing to answer if the connection ended before a request did.
async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> Result<Vec<u8>, Option<Page>> {
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
        if head.len() > MOST_HEAD {
            return Err(Some(Page::TooLarge));
        }
    }
}

impl Expected {
    /// Says what to show for a request, and returns its URL if it is the answer to the login.
    fn judge(&self, head: &[u8]) -> (Page, Option<String>) {
        let line = head.split(|byte| *byte == b'\r').next();
        let words = line.and_then(|line| std::str::from_utf8(line).ok());
        let mut words = words.unwrap_or_default().split(' ');
        let (method, target) = match (words.next(), words.next(), words.next(), words.next()) {
            (Some(method), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None) => (method, target),
            _ => return (Page::Malformed, None),
        };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        if path != self.path() {
            return (Page::NotFound, None);
        }
        if method != "GET" {
            return (Page::Method, None);
        }
        let values = |name: &str| {
            let of_name = form::pairs(query).filter(move |(own, _)| own == name);
            of_name.map(|(_, value)| value).collect::<Vec<_>>()
        };
        match &values("state")[..] {
            [state] if Secret::new(state).is_same(&self.state) => {}
            _ => return (Page::Stranger, None),
        }
        let page = match values("error").is_empty() && !values("code").is_empty() {
            true => Page::Done,
            false => Page::Refused,
        };
        let uri = self.redirect_uri.split('?').next().unwrap_or_default();
        (page, Some(format!("{uri}?{query}")))
    }

    fn path(&self) -> &str {
        let place = Place::parse(&self.redirect_uri);
        match place.map_or("", |place| place.path) {
            "" => "/",
            path => path,
        }
    }
}
