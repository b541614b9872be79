//! HTTP+SSE, the transport of 2024-11-05: a stream for all that the server says, and a URL to post messages to.
//!
//! A client opens the stream with GET. Its first event names the URL, with an id that nobody can guess; from then on
//! every message of the server is an event, answers included. The stream is the session: when it ends, what runs is
//! dropped, and the URL is no more.
//!
//! Seen from the core such a client is a peer on one [connection](crate::lines): a body is a line that comes in, an
//! event is a line that goes out. So it may speak any revision, modern requests included, and what a version header
//! says does not matter.

mod events;
mod post;
mod streams;

use std::sync::Arc;

use ::http::{Method, Response, request::Parts};
use turnbuckle_store::SessionOwner;

pub(super) use streams::Streams;

use super::{
    body::Body,
    endpoint::{Endpoint, Head, allowed},
    link::Link,
    refusal,
};

/// How HTTP+SSE, the transport of 2024-11-05, is offered.
///
/// It is deprecated since 2025-03-26; offer it if you have clients that know nothing newer. `Host`, `Origin`, and all
/// limits of [`Http`](super::Http) hold for it too. Sessions are in this process: behind a load balancer, the stream and the
/// messages of a client must reach the same one.
#[derive(Clone, Debug)]
pub struct HttpSse {
    paths: Paths,
    more_paths: Vec<Paths>,
    max_streams: usize,
    max_streams_per_caller: usize,
}

/// Where a stream is opened, and where the messages of its client are posted to.
#[derive(Clone, Debug)]
struct Paths {
    stream: String,
    messages: String,
}

impl HttpSse {
    /// Offers it with the usual paths and limits.
    pub fn new() -> Self {
        Self {
            paths: Paths {
                stream: "/sse".to_owned(),
                messages: "/messages".to_owned(),
            },
            more_paths: Vec::new(),
            max_streams: 1_000,
            max_streams_per_caller: 100,
        }
    }

    /// Sets the path of the stream, which clients are configured with; `/sse` unless set.
    #[must_use]
    pub fn stream_path(mut self, path: impl Into<String>) -> Self {
        self.paths.stream = path.into();
        self
    }

    /// Sets the path that messages are posted to, which clients are told; `/messages` unless set.
    #[must_use]
    pub fn messages_path(mut self, path: impl Into<String>) -> Self {
        self.paths.messages = path.into();
        self
    }

    /// Also opens streams at another path, whose clients post to a path of their own.
    ///
    /// ```
    /// use turnbuckle_server::http::HttpSse;
    ///
    /// let both = HttpSse::new().also_at("/mcp/sse", "/mcp/messages");
    /// ```
    #[must_use]
    pub fn also_at(
        mut self,
        stream_path: impl Into<String>,
        messages_path: impl Into<String>,
    ) -> Self {
        self.more_paths.push(Paths {
            stream: stream_path.into(),
            messages: messages_path.into(),
        });
        self
    }

    fn all_paths(&self) -> impl Iterator<Item = &Paths> {
        std::iter::once(&self.paths).chain(&self.more_paths)
    }

    /// Limits the streams at one time, which are also counted as requests; 1,000 unless set. Beyond, clients are asked
    /// to come later.
    #[must_use]
    pub fn max_streams(mut self, streams: usize) -> Self {
        self.max_streams = streams;
        self
    }
}

impl HttpSse {
    /// Limits the streams of one caller at one time; 100 unless set. Beyond, it is answered with status 429.
    ///
    /// A caller is a principal or, without one, an address, as for [sessions](super::Http#one-caller-and-all-others). An address
    /// that may be that of a reverse proxy may have nine tenths of [all streams](Self::max_streams) instead: open streams
    /// are never ended for others, so some are left for those.
    #[must_use]
    pub fn max_streams_per_caller(mut self, streams: usize) -> Self {
        self.max_streams_per_caller = streams;
        self
    }

    /// Returns how many streams a caller may have.
    fn streams_of(&self, owner: &SessionOwner) -> usize {
        match owner.is_shared() {
            true => self.max_streams - self.max_streams / 10,
            false => self.max_streams.min(self.max_streams_per_caller),
        }
    }
}

impl Default for HttpSse {
    fn default() -> Self {
        Self::new()
    }
}

/// What a path is for.
#[derive(Clone, Copy)]
pub(super) enum Place {
    Stream,
    Messages,
}

impl Place {
    fn methods(self) -> &'static str {
        match self {
            Self::Stream => "GET",
            Self::Messages => "POST",
        }
    }
}

/// Answers a request for one of the two places.
pub(super) async fn respond<B: http_body::Body>(
    endpoint: &Arc<Endpoint>,
    streams: Arc<Streams>,
    place: Place,
    parts: Parts,
    body: B,
    link: Link,
) -> Response<Body> {
    let path = parts.uri.path().to_owned();
    let session = parts.uri.query().and_then(streams::session);
    let head = Head::new(parts, link);
    match (place, &head.method) {
        (Place::Stream, &Method::GET) => events::open(endpoint, streams, &head, &path),
        (Place::Messages, &Method::POST) => {
            post::post(endpoint, &streams, &head, session, body).await
        }
        (place, &Method::OPTIONS) => allowed(&head, place.methods()),
        (place, _) => refusal::method(place.methods()),
    }
}
