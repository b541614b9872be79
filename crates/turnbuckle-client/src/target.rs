//! Where a server is.

use crate::http::Http;
use crate::lines::Lines;
use crate::stdio::Child;
use crate::unix::Unix;

/// Where a server is, and how to reach it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Target {
    /// At the other end of a pair of byte streams.
    Lines(Lines),
    /// At a URL.
    Http(Http),
    /// A child process of ours, yet to be started.
    Child(Child),
    /// Behind a unix socket.
    Unix(Unix),
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

impl From<Child> for Target {
    fn from(child: Child) -> Self {
        Self::Child(child)
    }
}

impl From<Unix> for Target {
    fn from(unix: Unix) -> Self {
        Self::Unix(unix)
    }
}
