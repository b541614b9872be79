//! The HTTP interface of this crate: small requests and responses, sent by an implementation outside of it.

use std::{fmt, time::Duration};

use turnbuckle_protocol::authenticator::BoxFuture;

use crate::Secret;

/// Sends HTTP requests.
///
/// Most URLs that are fetched here come from a server, and a server may be hostile. An implementation must
///
/// - use `https`, and `http` only for loopback addresses;
/// - check the address *after* name resolution, and reject addresses in networks that the user did not name;
/// - follow a few redirects of a `GET` within its origin, and no redirect of a `POST`;
/// - limit the time and the size of a response.
///
/// `turnbuckle-client` has an implementation: `http::Fetcher`.
pub trait Fetch: Send + Sync + 'static {
    /// Sends a request and reads the complete response, whatever its status.
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>>;
}

/// An HTTP request.
#[derive(Clone)]
#[non_exhaustive]
pub struct FetchRequest {
    /// `GET` or `POST`.
    pub method: FetchMethod,
    /// The URL, used byte for byte.
    pub url: String,
    /// Additional headers; any value may be secret.
    pub headers: Vec<(&'static str, Secret)>,
    /// The body of a `POST`.
    pub body: Vec<u8>,
}

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchMethod {
    /// Fetches a document.
    Get,
    /// Sends a form or a document.
    Post,
}

/// A complete HTTP response.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct FetchResponse {
    /// The status.
    pub status: u16,
    /// The headers; names are lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// Reason why a request failed without a response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The URL is not allowed: not `https`, with user information, or not a URL.
    #[error("cannot fetch `{url}`: {reason}")]
    Url {
        /// The URL, without its query.
        url: String,
        /// The reason.
        reason: String,
    },
    /// The host resolves to an address in a network that servers must not refer to.
    #[error("`{host}` resolves to {address}, which remote servers are not allowed to refer to")]
    Address {
        /// The host of the URL.
        host: String,
        /// The resolved address.
        address: std::net::IpAddr,
    },
    /// A redirect that is not followed.
    #[error("redirect to `{to}` is not followed")]
    Redirect {
        /// The target of the redirect.
        to: String,
    },
    /// The response is too large.
    #[error("the response has more than {limit} bytes")]
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// No response in time.
    #[error("no response within {limit:?}")]
    TimedOut {
        /// The timeout.
        limit: Duration,
    },
    /// The server could not be reached, or the connection broke.
    #[error("{0}")]
    Unreachable(String),
}

impl FetchRequest {
    /// Creates a `GET` request that accepts JSON.
    pub fn get(url: impl Into<String>) -> Self {
        Self {
            method: FetchMethod::Get,
            url: url.into(),
            headers: Vec::new(),
            body: Vec::new(),
        }
        .header("accept", "application/json")
    }

    /// Creates a `POST` request that accepts JSON.
    pub fn post(url: impl Into<String>, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            method: FetchMethod::Post,
            body: body.into(),
            ..Self::get(url)
        }
        .header("content-type", content_type)
    }

    /// Adds a header; the name must be lower case.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, Secret::new(value)));
        self
    }
}

impl FetchResponse {
    /// Creates a response, for implementations of [`Fetch`].
    pub fn new(status: u16, headers: Vec<(String, String)>, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers,
            body: body.into(),
        }
    }

    /// Returns whether the status is 2xx.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Returns the first header with this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(own, _)| own.eq_ignore_ascii_case(name))?;
        Some(&found.1)
    }
}

impl fmt::Display for FetchMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Get => "GET",
            Self::Post => "POST",
        })
    }
}

/// Shows neither the query nor headers nor the body.
impl fmt::Debug for FetchRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.url.split('?').next().unwrap_or_default();
        write!(f, "{} {url}", self.method)
    }
}

/// Does not show the body, which may contain a token.
impl fmt::Debug for FetchResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {} bytes", self.status, self.body.len())
    }
}
