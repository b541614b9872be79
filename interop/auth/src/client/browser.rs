//! A browser without a person: it follows redirects, and keeps cookies while it does.

use std::{collections::BTreeMap, io};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// The login takes a handful of redirects; whatever takes more goes round in circles.
const HOPS: usize = 12;

/// Goes to a page of this machine, and wherever that leads.
pub(crate) async fn visit(url: &str) -> io::Result<()> {
    let mut cookies = BTreeMap::new();
    let mut url = url.to_owned();
    for _ in 0..HOPS {
        let page = get(&url, &cookies).await?;
        for cookie in page.headers("set-cookie") {
            let pair = cookie.split(';').next().unwrap_or_default();
            let (name, value) = pair
                .split_once('=')
                .ok_or_else(|| odd("a cookie without a name"))?;
            cookies.insert(name.to_owned(), value.to_owned());
        }
        let Some(next) = page.headers("location").next() else {
            return Ok(());
        };
        url = match next.starts_with('/') {
            true => format!("{}{next}", origin(&url)),
            false => next.to_owned(),
        };
    }
    Err(odd("the login goes round in circles"))
}

/// The head of an answer; nobody reads the rest.
struct Page(String);

impl Page {
    fn headers<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let lines = self.0.lines().filter_map(|line| line.split_once(':'));
        lines
            .filter(move |(own, _)| own.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
    }
}

async fn get(url: &str, cookies: &BTreeMap<String, String>) -> io::Result<Page> {
    let host = origin(url)
        .strip_prefix("http://")
        .ok_or_else(|| odd("not http"))?;
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
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let answer = String::from_utf8_lossy(&answer);
    let head = answer.split("\r\n\r\n").next().unwrap_or_default();
    Ok(Page(head.to_owned()))
}

/// The scheme and the host of a URL.
fn origin(url: &str) -> &str {
    let begin = url.find("://").map_or(0, |at| at + 3);
    let end = url[begin..]
        .find(['/', '?'])
        .map_or(url.len(), |at| begin + at);
    &url[..end]
}

fn odd(what: &str) -> io::Error {
    io::Error::other(what)
}
