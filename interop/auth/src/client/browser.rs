//! An HTTP client that acts as a browser: it follows redirects with cookies.

use std::{collections::BTreeMap, io};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Maximum number of redirects of a login.
const MAX_REDIRECTS: usize = 12;

/// Requests a page of this machine and follows its redirects.
pub(crate) async fn follow_redirects(url: &str) -> io::Result<()> {
    let mut cookies = BTreeMap::new();
    let mut url = url.to_owned();
    for _ in 0..MAX_REDIRECTS {
        let page = get(&url, &cookies).await?;
        for cookie in page.headers("set-cookie") {
            let pair = cookie.split(';').next().unwrap_or_default();
            let (name, value) = pair
                .split_once('=')
                .ok_or_else(|| invalid("a cookie without a name"))?;
            cookies.insert(name.to_owned(), value.to_owned());
        }
        let Some(next) = page.headers("location").next() else {
            return Ok(());
        };
        url = if next.starts_with('/') {
            format!("{}{next}", origin(&url))
        } else {
            next.to_owned()
        };
    }
    Err(invalid("the login has too many redirects"))
}

/// The head of a response.
struct ResponseHead(String);

impl ResponseHead {
    fn headers<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let lines = self.0.lines().filter_map(|line| line.split_once(':'));
        lines
            .filter(move |(own, _)| own.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
    }
}

async fn get(url: &str, cookies: &BTreeMap<String, String>) -> io::Result<ResponseHead> {
    let host = origin(url)
        .strip_prefix("http://")
        .ok_or_else(|| invalid("not http"))?;
    let path = match &url[origin(url).len()..] {
        "" => "/",
        path => path,
    };
    let cookies: Vec<_> = cookies
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let cookies = cookies.join("; ");
    let mut stream = TcpStream::connect(host).await?;
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookies}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut response = Vec::new();
    stream.read_to_end(&mut response).await?;
    let response = String::from_utf8_lossy(&response);
    let head = response.split("\r\n\r\n").next().unwrap_or_default();
    Ok(ResponseHead(head.to_owned()))
}

/// Returns the scheme and the host of a URL.
fn origin(url: &str) -> &str {
    let begin = url.find("://").map_or(0, |at| at + 3);
    let end = url[begin..]
        .find(['/', '?'])
        .map_or(url.len(), |at| begin + at);
    &url[..end]
}

fn invalid(what: &str) -> io::Error {
    io::Error::other(what)
}
