//! HTTP+SSE, the transport of 2024-11-05: one stream for all messages of the server, and a URL to post messages to.
//!
//! A client opens the stream with GET. The first event contains the URL, with an unguessable session id. From then on every
//! message of the server is an event, responses included. The stream is the session: when it ends, running requests
//! are dropped and the URL becomes invalid.
//!
//! The protocol layer treats such a client like a peer on an [ndjson connection](crate::ndjson): a body is an incoming line,
//! an event an outgoing line. So the client may use any revision, including stateless requests, and the version header
//! is ignored.

mod post;
mod registry;
mod stream;

use std::sync::Arc;

use ::http::{Method, Response, request::Parts};
pub(super) use registry::HttpSseRegistry;
use turnbuckle_store::SessionOwner;

use crate::http::{
    body::ResponseBody,
    connection::ConnectionHandle,
    endpoint::{Endpoint, RequestHead, options_response},
    responses,
};

/// The options of HTTP+SSE, the transport of 2024-11-05.
///
/// It is deprecated since 2025-03-26; enable it only for clients that support nothing newer. The `Host` and `Origin` checks
/// and all limits of [`Http`](super::Http) apply to it too. Its sessions exist only in this process: a load balancer must
/// send the stream and the messages of a client to the same process.
#[derive(Clone, Debug)]
pub struct HttpSse {
    paths: HttpSsePaths,
    more_paths: Vec<HttpSsePaths>,
    max_streams: usize,
    max_streams_per_caller: usize,
}

/// The path for opening a stream, and the path for posting its messages.
#[derive(Clone, Debug)]
struct HttpSsePaths {
    stream: String,
    messages: String,
}

impl HttpSse {
    /// Creates the default options.
    pub fn new() -> Self {
        Self {
            paths: HttpSsePaths {
                stream: "/sse".to_owned(),
                messages: "/messages".to_owned(),
            },
            more_paths: Vec::new(),
            max_streams: 1_000,
            max_streams_per_caller: 100,
        }
    }

    /// Sets the path of the stream, which clients are configured with. The default is `/sse`.
    #[must_use]
    pub fn stream_path(mut self, path: impl Into<String>) -> Self {
        self.paths.stream = path.into();
        self
    }

    /// Sets the path for posting messages, which clients get in the first event. The default is `/messages`.
    #[must_use]
    pub fn messages_path(mut self, path: impl Into<String>) -> Self {
        self.paths.messages = path.into();
        self
    }

    /// Also opens streams at another path, with a separate path for posting messages.
    ///
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
        self.more_paths.push(HttpSsePaths {
            stream: stream_path.into(),
            messages: messages_path.into(),
        });
        self
    }

    fn all_paths(&self) -> impl Iterator<Item = &HttpSsePaths> {
        std::iter::once(&self.paths).chain(&self.more_paths)
    }

    /// Limits the number of concurrent streams, which also count as requests. The default is 1,000. Beyond the limit, requests
    /// get status 503.
    #[must_use]
    pub fn max_streams(mut self, count: usize) -> Self {
        self.max_streams = count;
        self
    }
}

impl HttpSse {
    /// Limits the number of concurrent streams of one caller. The default is 100. Beyond the limit, requests get status 429.
    ///
    /// A caller is a principal or, without authentication, an address, as for
    /// [sessions](super::Http#one-caller-and-all-others). An address that may belong to a reverse proxy may have nine tenths
    /// of [all streams](Self::max_streams) instead: open streams are never closed in favor of others, so the rest is reserved.
    #[must_use]
    pub fn max_streams_per_caller(mut self, count: usize) -> Self {
        self.max_streams_per_caller = count;
        self
    }

    /// Returns the stream limit of a caller.
    fn max_streams_for(&self, owner: &SessionOwner) -> usize {
        if owner.is_shared() {
            self.max_streams - self.max_streams / 10
        } else {
            self.max_streams.min(self.max_streams_per_caller)
        }
    }
}

impl Default for HttpSse {
    fn default() -> Self {
        Self::new()
    }
}

/// The purpose of an HTTP+SSE path.
#[derive(Clone, Copy)]
pub(super) enum HttpSseRoute {
    Stream,
    Messages,
}

impl HttpSseRoute {
    fn methods(self) -> &'static str {
        match self {
            Self::Stream => "GET",
            Self::Messages => "POST",
        }
    }
}

/// Responds to a request on one of the HTTP+SSE paths.
pub(super) async fn respond<B: http_body::Body>(
    endpoint: &Arc<Endpoint>,
    registry: Arc<HttpSseRegistry>,
    route: HttpSseRoute,
    parts: Parts,
    body: B,
    connection: ConnectionHandle,
) -> Response<ResponseBody> {
    let path = parts.uri.path().to_owned();
    let session = parts.uri.query().and_then(registry::session_id);
    let head = RequestHead::new(parts, connection);
    match (route, &head.method) {
        (HttpSseRoute::Stream, &Method::GET) => stream::open(endpoint, registry, &head, &path),
        (HttpSseRoute::Messages, &Method::POST) => {
            post::post(endpoint, &registry, &head, session, body).await
        }
        (route, &Method::OPTIONS) => options_response(&head, route.methods()),
        (route, _) => responses::method_not_allowed(route.methods()),
    }
}
