//! The endpoint: which request is answered by whom.

use std::{
    net::SocketAddr,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use ::http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode,
    header::{ALLOW, CONTENT_TYPE},
    request::Parts,
};
use bytes::Bytes;
use tokio::time::Instant;
use turnbuckle_protocol::Principal;
use turnbuckle_store::StoreError;

use super::{
    Always, Options, Sessions,
    body::Body,
    cors,
    discard::{self, Tracked, Unread},
    gate::Gate,
    general, guarded,
    http_sse::{self, Place, Streams},
    incoming::HalfSent,
    link::Link,
    mirror::Version,
    post,
    presence::Presences,
    pump::Pump,
    refusal, session,
    sweep::Sweeper,
};
use crate::{
    Server,
    ending::Ending,
    lifecycle::{Arrival, may_have_session},
    log_limiter::LogLimiter,
};

/// A server behind one URL, and what all its requests share.
pub(super) struct Endpoint {
    pub(super) server: Server,
    pub(super) options: Options,
    /// Since when times of connections are counted.
    pub(super) started: Instant,
    pub(super) presences: Presences,
    pub(super) pump: Pump,
    pub(super) sweeper: Sweeper,
    /// The clients of the older transport, where it is offered.
    http_sse: Option<Arc<Streams>>,
    gate: Gate,
    in_flight: AtomicUsize,
    pub(super) half_sent: HalfSent,
    pub(super) logs: Logs,
    /// Not the server's: others may serve it too.
    closing: Ending,
}

impl Endpoint {
    pub(super) fn new(server: Server, options: Options, bound: Option<SocketAddr>) -> Self {
        Self {
            gate: Gate::new(&options, bound),
            started: Instant::now(),
            presences: Presences::default(),
            pump: Pump::default(),
            sweeper: Sweeper::default(),
            http_sse: options
                .http_sse
                .clone()
                .map(|http_sse| Arc::new(Streams::new(http_sse, options.max_in_flight))),
            in_flight: AtomicUsize::new(0),
            half_sent: HalfSent::new(options.body_budget),
            logs: Logs::default(),
            closing: Ending::default(),
            server,
            options,
        }
    }

    /// Lets connections and streams come to their end.
    pub(super) fn close(&self) {
        self.closing.end();
    }

    /// Says whether connections and streams are to end.
    pub(super) fn is_closed(&self) -> bool {
        self.closing.is_over()
    }

    /// Resolves when connections and streams are to end.
    pub(super) async fn closed(&self) {
        self.closing.over().await;
    }

    /// Answers a request; it never fails, in the words of a service.
    ///
    /// The future is moved before it runs, and nearly all requests are posts: so it has no room for more than they need.
    pub(super) fn respond<B: http_body::Body>(
        self: Arc<Self>,
        request: Request<B>,
        link: Link,
    ) -> impl Future<Output = Always<Response<Body>>> + use<B> {
        let (parts, body) = request.into_parts();
        let version = parts.version;
        let course = self.course(parts, link);
        async move {
            let mut body = pin!(Tracked::new(body));
            let (response, unread) = match course {
                Course::Post(ref head) => {
                    let response = post::post(&self, head, body.as_mut()).await;
                    if body.is_over() {
                        return Ok(response);
                    }
                    let unread = Unread::new(version, &head.headers, &head.link);
                    (response, unread)
                }
                Course::Other(other) => {
                    let unread = Unread::new(version, &other.parts.headers, &other.link);
                    let responding = self.respond_to_other(*other, body.as_mut());
                    (Box::pin(responding).await, unread)
                }
                Course::Refused(refused) => *refused,
            };
            if body.is_over() {
                return Ok(response);
            }
            Ok(Box::pin(discard::answered(response, unread, body)).await)
        }
    }

    /// What the head of a request says about how to answer it.
    fn course(&self, parts: Parts, link: Link) -> Course {
        let origin = match self.gate.check(&parts) {
            Ok(origin) => origin,
            // Probes name an address that the server need not know; what they get is the same for all.
            Err(_) if self.is_health(&parts) => None,
            Err(refusal) => {
                let unread = Unread::new(parts.version, &parts.headers, &link);
                return Course::Refused(Box::new((refusal, unread)));
            }
        };
        let is_post = parts.method == Method::POST && self.is_endpoint(&parts);
        if is_post && origin.is_none() && self.options.guard.is_none() {
            return Course::Post(Head::new(parts, link));
        }
        Course::Other(Box::new(Other {
            parts,
            link,
            origin,
        }))
    }

    async fn respond_to_other<B: http_body::Body>(
        self: Arc<Self>,
        other: Other,
        body: B,
    ) -> Response<Body> {
        let Other {
            parts,
            link,
            origin,
        } = other;
        let mut response = match &self.options.guard {
            None => self.route(parts, body, link).await,
            // Boxed, so that a server without one does not pay for it with the size of what answers.
            Some(keeper) => Box::pin(guarded::respond(&self, keeper, parts, body, link)).await,
        };
        if let Some(origin) = origin {
            cors::allow(&mut response, origin);
        }
        response
    }

    pub(super) async fn route<B: http_body::Body>(
        self: &Arc<Self>,
        parts: Parts,
        body: B,
        link: Link,
    ) -> Response<Body> {
        if !self.is_endpoint(&parts) {
            return match self.http_sse_place(&parts) {
                Some((streams, place)) => {
                    Box::pin(http_sse::respond(self, streams, place, parts, body, link)).await
                }
                None => self.elsewhere(&parts),
            };
        }
        if parts.method == Method::POST {
            return post::post(self, &Head::new(parts, link), body).await;
        }
        let head = Head::new(parts, link);
        if head.method == Method::OPTIONS {
            return allowed(&head, self.methods());
        }
        let sessions = self.options.sessions == Sessions::On && may_have_session(head.version());
        match head.method {
            Method::GET if sessions => Box::pin(general::get(self, head)).await,
            Method::DELETE if sessions => Box::pin(session::delete(self, head)).await,
            _ if sessions => refusal::method("GET, POST, DELETE"),
            _ => refusal::method("POST"),
        }
    }

    /// Which part of the older transport a request is for, if that is offered and it is for any.
    fn http_sse_place(&self, parts: &Parts) -> Option<(Arc<Streams>, Place)> {
        let streams = self.http_sse.as_ref()?;
        let place = streams.place(parts.uri.path())?;
        Some((streams.clone(), place))
    }

    fn elsewhere(&self, parts: &Parts) -> Response<Body> {
        if !self.is_health(parts) {
            return refusal::empty(StatusCode::NOT_FOUND);
        }
        if parts.method != Method::GET && parts.method != Method::HEAD {
            return refusal::method("GET, HEAD");
        }
        let mut response = Response::new(Body::full(Bytes::from_static(b"ok")));
        let text = HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, text);
        response
    }

    /// Says whether a request is for the server itself, on whichever transport.
    pub(super) fn is_ours(&self, parts: &Parts) -> bool {
        self.is_endpoint(parts) || self.http_sse_place(parts).is_some()
    }

    /// Says whether a request is for the endpoint.
    fn is_endpoint(&self, parts: &Parts) -> bool {
        let path = parts.uri.path();
        let expected = &*self.options.path;
        path == expected || self.options.trailing_slash && path.strip_suffix('/') == Some(expected)
    }

    pub(super) fn is_health(&self, parts: &Parts) -> bool {
        let path = parts.uri.path();
        path == self.options.health_path && path != self.options.path
    }

    fn methods(&self) -> &'static str {
        match self.options.sessions {
            Sessions::On => "GET, POST, DELETE",
            Sessions::Off => "POST",
        }
    }

    /// Counts a request as running, if there is room for another.
    pub(super) fn admit(self: &Arc<Self>) -> Result<Permit, Response<Body>> {
        let permit = Permit {
            endpoint: self.clone(),
        };
        let running = self.in_flight.fetch_add(1, Ordering::Relaxed);
        if running < self.options.max_in_flight {
            return Ok(permit);
        }
        Err(refusal::busy(
            None,
            "too many requests are running; try again in a few seconds",
        ))
    }
}

/// The messages that callers can cause again and again.
#[derive(Default)]
pub(super) struct Logs {
    pub(super) no_session: LogLimiter,
    pub(super) no_stream: LogLimiter,
    store_failed: LogLimiter,
    pub(super) not_accepted: LogLimiter,
}

impl Logs {
    /// Notes that the store could not be reached.
    pub(super) fn store_failed(&self, error: &StoreError) {
        if let Some(suppressed) = self.store_failed.pass() {
            tracing::error!(%error, suppressed, "the store failed");
        }
    }
}

/// Who answers a request.
enum Course {
    /// A post to the endpoint that nobody else has a say in.
    Post(Head),
    Other(Box<Other>),
    Refused(Box<(Response<Body>, Unread)>),
}

/// A request that is no plain post.
struct Other {
    parts: Parts,
    link: Link,
    /// Of the page that sent it, if it was one.
    origin: Option<HeaderValue>,
}

/// Says which methods are possible, and to a browser what a page may send with them.
pub(super) fn allowed(head: &Head, methods: &'static str) -> Response<Body> {
    let mut response = refusal::empty(StatusCode::NO_CONTENT);
    let methods = HeaderValue::from_static(methods);
    response.headers_mut().insert(ALLOW, methods.clone());
    cors::preflight(&mut response, &head.headers, methods);
    response
}

/// A request that counts as running while this is held.
pub(super) struct Permit {
    endpoint: Arc<Endpoint>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.endpoint.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// All of a request but its body.
pub(super) struct Head {
    pub(super) method: Method,
    pub(super) headers: Arc<HeaderMap>,
    pub(super) version: Version,
    extensions: ::http::Extensions,
    pub(super) link: Link,
}

impl Head {
    pub(super) fn new(parts: Parts, link: Link) -> Self {
        Self {
            method: parts.method,
            version: Version::of(&parts.headers),
            headers: Arc::new(parts.headers),
            extensions: parts.extensions,
            link,
        }
    }

    /// What the version header says.
    pub(super) fn version(&self) -> Option<&str> {
        self.version.named()
    }

    /// Who sent the request, if a layer below found out.
    pub(super) fn principal(&self) -> Option<Arc<Principal>> {
        let extensions = &self.extensions;
        let owned = || extensions.get::<Principal>().cloned().map(Arc::new);
        extensions.get::<Arc<Principal>>().cloned().or_else(owned)
    }

    /// The address that the request comes from: the one that a layer below found out, else that of the connection.
    pub(super) fn peer(&self) -> Option<SocketAddr> {
        let found = self.extensions.get::<SocketAddr>().copied();
        found.or_else(|| self.link.peer())
    }

    /// Says whether the request comes from whom something belongs to.
    pub(super) fn is_from(&self, owner: Option<&Principal>) -> bool {
        match (owner, self.principal()) {
            (None, None) => true,
            (Some(owner), Some(caller)) => owner.is_same_caller(&caller),
            _ => false,
        }
    }

    /// What the core gets to know.
    pub(super) fn arrival(&self) -> Arrival {
        Arrival {
            principal: self.principal(),
            headers: Some(self.headers.clone()),
            peer: self.link.peer(),
            connected: self.link.connected(),
            extensions: self.extensions.clone(),
            ..Arrival::default()
        }
    }
}

/// A server as a tower service, for any HTTP stack. Cheap to clone.
#[derive(Clone)]
pub struct Service {
    endpoint: Arc<Endpoint>,
}

impl Service {
    pub(super) fn new(endpoint: Arc<Endpoint>) -> Self {
        Self { endpoint }
    }
}

impl<B> tower_service::Service<Request<B>> for Service
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Send,
{
    type Response = Response<Body>;
    type Error = std::convert::Infallible;
    type Future = Pin<Box<dyn Future<Output = Always<Response<Body>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Always<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        Box::pin(self.endpoint.clone().respond(request, Link::default()))
    }
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service")
            .field("server", &self.endpoint.server)
            .finish_non_exhaustive()
    }
}
