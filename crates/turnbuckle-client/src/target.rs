//! Where a server is.

use crate::http::Http;
use crate::lines::Lines;

/// Where a server is, and how to reach it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Target {
    /// At the other end of a pair of byte streams.
    Lines(Lines),
    /// At a URL.
    Http(Http),
}

impl From<Lines> for Target {
    fn from(lines: Lines) -> Self {
        Self::Lines(lines)
    }
}

impl From<Http> for Target {
    fn from(http: Http) -> Self {
        Self::Http(http)
    }
}
