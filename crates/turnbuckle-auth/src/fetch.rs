//! HTTP, as authorization needs it: small requests, small answers, and somebody else who does it.

use std::{fmt, time::Duration};

use turnbuckle_protocol::guard::BoxFuture;

use crate::Secret;

/// Sends requests, on whatever HTTP stack there is.
///
/// Most of what is fetched here is fetched because a server said so, and a server may be hostile. Whoever implements this
///
/// - asks by `https` only, and by `http` only on this machine;
/// - looks at the address *after* its name was resolved, and refuses what lies in a network that the user did not name;
/// - follows redirects of a `GET` within its origin, few of them, and never one of a `POST`;
/// - bounds the time and the bytes that an answer may take.
///
/// `turnbuckle-client` has one: `http::Fetcher`.
pub trait Fetch: Send + Sync + 'static {
    /// Sends a request and reads the whole answer, whatever its status is.
    fn fetch(&self, request: Request) -> BoxFuture<'_, Result<Response, FetchError>>;
}

/// A request.
#[derive(Clone)]
#[non_exhaustive]
pub struct Request {
    /// `GET` or `POST`.
    pub method: Method,
    /// Where to, byte for byte.
    pub url: String,
    /// What else is said; any of it may be secret.
    pub headers: Vec<(&'static str, Secret)>,
    /// The body of a `POST`.
    pub body: Vec<u8>,
}

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Asks for a document.
    Get,
    /// Sends a form or a document.
    Post,
}

/// An answer, read to its end.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Response {
    /// The status.
    pub status: u16,
    /// The headers, their names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// A URL that is not asked: no `https`, a user in it, or not a URL at all.
    #[error("`{url}` is not fetched: {reason}")]
    Url {
        /// The URL, without its query.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The name leads into a network that a server has no business to send us to.
    #[error("`{host}` is at {address}, and a server that is elsewhere must not send us there")]
    Address {
        /// The host of the URL.
        host: String,
        /// What it resolved to.
        address: std::net::IpAddr,
    },
    /// A redirect that is not followed.
    #[error("redirected to `{to}`, which is not followed")]
    Redirect {
        /// Where it leads.
        to: String,
    },
    /// More than is read.
    #[error("the answer has more than {limit} bytes")]
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// No answer in time.
    #[error("no answer within {limit:?}")]
    TimedOut {
        /// The limit.
        limit: Duration,
    },
    /// Nobody there, or the connection broke.
    #[error("{0}")]
    Unreachable(String),
}

impl Request {
    /// Asks for a document of JSON.
    pub fn get(url: impl Into<String>) -> Self {
        Self {
            method: Method::Get,
            url: url.into(),
            headers: Vec::new(),
            body: Vec::new(),
        }
        .header("accept", "application/json")
    }

    /// Sends a body, and expects JSON.
    pub fn post(url: impl Into<String>, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            method: Method::Post,
            body: body.into(),
            ..Self::get(url)
        }
        .header("content-type", content_type)
    }

    /// Says something more; its name in lower case.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, Secret::new(value)));
        self
    }
}

impl Response {
    /// Makes an answer, for those who implement [`Fetch`].
    pub fn new(status: u16, headers: Vec<(String, String)>, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers,
            body: body.into(),
        }
    }

    /// Says whether it is a success.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Returns the first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(own, _)| own.eq_ignore_ascii_case(name))?;
        Some(&found.1)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Get => "GET",
            Self::Post => "POST",
        })
    }
}

/// Shows neither the query nor any header nor the body.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.url.split('?').next().unwrap_or_default();
        write!(f, "{} {url}", self.method)
    }
}

/// Shows no body: it may hold a token.
impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {} bytes", self.status, self.body.len())
    }
}
