//! The endpoint: routes requests, and holds the state that they share.

use std::{
    convert::Infallible,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use ::http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version,
    header::{ALLOW, CONNECTION, CONTENT_TYPE},
    request::Parts,
};
use bytes::Bytes;
use tokio::time::Instant;
use turnbuckle_protocol::Principal;
use turnbuckle_store::{InstanceId, SessionOwner, StoreError};

use crate::{
    Server,
    http::{
        HttpOptions, SessionMode, UrlQuery,
        auth::{self, HostOriginCheck, cors},
        body::ResponseBody,
        caller_shares::{CallerShares, CallerUsage},
        changes::ChangeFanout,
        connection::{ConnectionHandle, RequestAdmission},
        http_sse::{self, HttpSseRegistry, HttpSseRoute},
        log_limiter::LogLimiter,
        mcp_headers::VersionHeader,
        path_servers::PathServers,
        post::{self, PartialBodyBudget},
        responses,
        session::{self, ActiveSessions, ExpirySweeper, SessionRefresher, limits},
        stream::{StreamIdSource, forwarding::ForwardedStreams, get_stream},
        unread_body::{TrackedBody, UnreadBody, respond_after_drain},
    },
    lifecycle::{TransportInfo, may_be_legacy},
    request::timestamp::credential_lifetime,
    sync::ShutdownSignal,
};

/// A server on HTTP, with the state that all its requests share.
pub(super) struct Endpoint {
    pub(super) server: Server,
    pub(super) options: HttpOptions,
    /// The reference point for the idle times of connections.
    pub(super) started: Instant,
    pub(super) active_sessions: ActiveSessions,
    pub(super) stream_ids: StreamIdSource,
    pub(super) forwarded_streams: ForwardedStreams,
    pub(super) change_fanout: ChangeFanout,
    pub(super) sweeper: ExpirySweeper,
    pub(super) session_refresher: SessionRefresher,
    /// The requests to look for ended sessions since the running check began, and that of the check itself.
    pub(super) session_checks: AtomicUsize,
    /// Identifies this endpoint as the sender of GET streams, by a random number.
    pub(super) sender: u64,
    /// The clients of HTTP+SSE, if it is enabled.
    http_sse: Option<Arc<HttpSseRegistry>>,
    host_origin: HostOriginCheck,
    bound_addr: Option<SocketAddr>,
    in_flight: AtomicUsize,
    /// The number of requests in flight up to which no caller can exceed its share.
    max_unshared: usize,
    pub(super) caller_shares: Arc<CallerShares>,
    pub(super) partial_bodies: PartialBodyBudget,
    pub(super) log_limiters: LogLimiters,
    /// Separate from the server's own signal, since other transports may serve the same server.
    shutdown: ShutdownSignal,
}

impl Endpoint {
    pub(super) fn new(
        server: Server,
        options: HttpOptions,
        bound_addr: Option<SocketAddr>,
    ) -> Self {
        let caller_shares = Arc::new(CallerShares::new(options.max_caller_percent));
        Self::with_shares(server, options, bound_addr, caller_shares)
    }

    /// Creates an endpoint that is reached through another one, with the connections and callers of that one.
    pub(super) fn below(above: &Self, server: Server, options: HttpOptions) -> Self {
        Self::with_shares(
            server,
            options,
            above.bound_addr,
            above.caller_shares.clone(),
        )
    }

    fn with_shares(
        server: Server,
        options: HttpOptions,
        bound_addr: Option<SocketAddr>,
        caller_shares: Arc<CallerShares>,
    ) -> Self {
        Self {
            bound_addr,
            max_unshared: caller_shares.part_of(options.max_in_flight),
            caller_shares,
            host_origin: HostOriginCheck::new(&options, bound_addr),
            started: Instant::now(),
            active_sessions: ActiveSessions::default(),
            stream_ids: StreamIdSource::default(),
            forwarded_streams: ForwardedStreams::default(),
            change_fanout: ChangeFanout::default(),
            sweeper: ExpirySweeper::default(),
            session_refresher: SessionRefresher::default(),
            session_checks: AtomicUsize::new(0),
            sender: random_number(),
            http_sse: options
                .http_sse
                .clone()
                .map(|http_sse| Arc::new(HttpSseRegistry::new(http_sse, &options))),
            in_flight: AtomicUsize::new(0),
            partial_bodies: PartialBodyBudget::new(options.partial_body_budget),
            log_limiters: LogLimiters::default(),
            shutdown: ShutdownSignal::default(),
            server,
            options,
        }
    }

    /// Returns the id of this instance, which is the default one if the store is not shared.
    pub(super) fn instance_id(&self) -> InstanceId {
        let instance = self.server.instance();
        instance
            .and_then(|instance| instance.id())
            .unwrap_or_default()
    }

    /// Returns whether this instance may write to the store for sessions.
    pub(super) fn may_write(&self) -> bool {
        let instance = self.server.instance();
        instance.is_none_or(|instance| instance.is_held())
    }

    /// Starts the shutdown of connections and streams.
    pub(super) fn close(&self) {
        self.shutdown.trigger();
        for below in self.endpoints_below() {
            below.close();
        }
    }

    /// Closes all sessions.
    pub(super) fn close_sessions(&self) {
        self.active_sessions.close_all();
        for below in self.endpoints_below() {
            below.close_sessions();
        }
    }

    /// Returns the endpoints of servers on paths below this one.
    pub(super) fn endpoints_below(&self) -> Vec<Arc<Self>> {
        let servers = self.options.path_servers.as_ref();
        servers.map(PathServers::endpoints).unwrap_or_default()
    }

    /// Returns whether the shutdown has started.
    pub(super) fn is_closed(&self) -> bool {
        self.shutdown.is_triggered()
    }

    /// Resolves when the shutdown starts.
    pub(super) async fn closed(&self) {
        self.shutdown.triggered().await;
    }

    /// Responds to a request. It cannot fail, as `hyper` and `tower` services express it.
    ///
    /// On a closing connection the request does not run.
    ///
    /// Everything but a POST to the endpoint is boxed to keep this future small: it is moved before it runs, and nearly all
    /// requests are POSTs.
    pub(super) fn respond<B: http_body::Body>(
        self: Arc<Self>,
        request: Request<B>,
        connection: ConnectionHandle,
        admission: RequestAdmission,
    ) -> impl Future<Output = Result<Response<ResponseBody>, Infallible>> + use<B> {
        let (parts, body) = request.into_parts();
        let version = parts.version;
        let endpoint = match &self.options.path_servers {
            None => self,
            Some(servers) => self.endpoint_of(servers, &parts),
        };
        let route = match admission {
            RequestAdmission::Accepted => endpoint.route(parts, connection),
            RequestAdmission::ConnectionClosing => closing_route(&parts, &connection),
        };
        async move {
            let mut body = pin!(TrackedBody::new(body));
            let (response, unread_body) = match route {
                Route::Post(ref head) => {
                    let response = post::post(&endpoint, head, body.as_mut()).await;
                    if body.is_finished() {
                        return Ok(response);
                    }
                    let unread_body = UnreadBody::new(version, &head.headers, &head.connection);
                    (response, unread_body)
                }
                Route::Routed(routed) => {
                    let unread_body =
                        UnreadBody::new(version, &routed.parts.headers, &routed.connection);
                    let responding = endpoint.respond_routed(*routed, body.as_mut());
                    (Box::pin(responding).await, unread_body)
                }
                Route::ErrorResponse(response) => *response,
            };
            if body.is_finished() {
                return Ok(response);
            }
            Ok(Box::pin(respond_after_drain(response, unread_body, body)).await)
        }
    }

    /// Returns the endpoint of a request: this one, or that of a server on a path below it.
    fn endpoint_of(self: &Arc<Self>, servers: &PathServers, parts: &Parts) -> Arc<Self> {
        let authenticator = self.options.authenticator.as_ref();
        let is_own = self.is_mcp_path(parts)
            || authenticator.is_some_and(|own| own.has_document(parts.uri.path()));
        let below = (!is_own).then(|| servers.find(self, parts));
        below.flatten().unwrap_or_else(|| self.clone())
    }

    /// Selects the route of a request by its head.
    fn route(&self, parts: Parts, connection: ConnectionHandle) -> Route {
        let origin = match self.host_origin.check(&parts) {
            Ok(origin) => origin,
            // Health probes may use any address in `Host`; the response is the same for all.
            Err(_) if self.is_health_path(&parts) => None,
            Err(response) => {
                let unread_body = UnreadBody::new(parts.version, &parts.headers, &connection);
                return Route::ErrorResponse(Box::new((response, unread_body)));
            }
        };
        let is_post = parts.method == Method::POST && self.is_endpoint_path(&parts);
        if is_post && origin.is_none() && self.options.authenticator.is_none() {
            return Route::Post(RequestHead::new(parts, connection));
        }
        Route::Routed(Box::new(RoutedRequest {
            parts,
            connection,
            origin,
        }))
    }

    async fn respond_routed<B: http_body::Body>(
        self: Arc<Self>,
        routed: RoutedRequest,
        body: B,
    ) -> Response<ResponseBody> {
        let RoutedRequest {
            parts,
            connection,
            origin,
        } = routed;
        let pages = self.options.web_pages.as_ref();
        if let Some(pages) = pages.filter(|own| own.has_path(&parts) && !self.is_mcp_path(&parts)) {
            return Box::pin(pages.respond(&self, parts, &connection)).await;
        }
        let mut response = match &self.options.authenticator {
            None => self.dispatch(parts, body, connection).await,
            // Boxed so that servers without an authenticator keep a small future.
            Some(authenticator) => {
                Box::pin(auth::respond(&self, authenticator, parts, body, connection)).await
            }
        };
        if let Some(origin) = origin {
            cors::allow_origin(&mut response, origin);
        }
        response
    }

    pub(super) async fn dispatch<B: http_body::Body>(
        self: &Arc<Self>,
        parts: Parts,
        body: B,
        connection: ConnectionHandle,
    ) -> Response<ResponseBody> {
        if !self.is_endpoint_path(&parts) {
            return match self.http_sse_route(&parts) {
                Some((streams, place)) => {
                    let lifetime = credential_lifetime(principal(&parts.extensions).as_deref());
                    let response = Box::pin(http_sse::respond(
                        self, streams, place, parts, body, connection,
                    ))
                    .await;
                    with_stream_lifetime(response, lifetime)
                }
                None => self.respond_outside(&parts).await,
            };
        }
        if parts.method == Method::POST {
            return post::post(self, &RequestHead::new(parts, connection), body).await;
        }
        let head = RequestHead::new(parts, connection);
        if head.method == Method::OPTIONS {
            return options_response(&head, self.allowed_methods());
        }
        let has_sessions =
            self.options.session_mode == SessionMode::On && may_be_legacy(head.version());
        match head.method {
            Method::GET if has_sessions => {
                let lifetime = credential_lifetime(head.principal().as_deref());
                let response = Box::pin(get_stream::get(self, head)).await;
                with_stream_lifetime(response, lifetime)
            }
            Method::DELETE if has_sessions => Box::pin(session::delete(self, head)).await,
            _ if has_sessions => responses::method_not_allowed("GET, POST, DELETE"),
            _ => responses::method_not_allowed("POST"),
        }
    }

    /// Returns the HTTP+SSE route of a request, if HTTP+SSE is enabled and the path belongs to it.
    fn http_sse_route(&self, parts: &Parts) -> Option<(Arc<HttpSseRegistry>, HttpSseRoute)> {
        let streams = self.http_sse.as_ref()?;
        let place = streams.route(parts.uri.path())?;
        Some((streams.clone(), place))
    }

    async fn respond_outside(&self, parts: &Parts) -> Response<ResponseBody> {
        if !self.is_health_path(parts) {
            return responses::status_only(StatusCode::NOT_FOUND);
        }
        if parts.method != Method::GET && parts.method != Method::HEAD {
            return responses::method_not_allowed("GET, HEAD");
        }
        let is_ok = !self.is_readiness_path(parts) || self.is_ready().await;
        let (status, text) = if is_ok {
            (StatusCode::OK, "ok")
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, "not ready")
        };
        let mut response = Response::new(ResponseBody::full(Bytes::from_static(text.as_bytes())));
        *response.status_mut() = status;
        let text = HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, text);
        response
    }

    /// Returns whether the path of a request belongs to one of the two transports.
    pub(super) fn is_mcp_path(&self, parts: &Parts) -> bool {
        self.is_endpoint_path(parts) || self.http_sse_route(parts).is_some()
    }

    /// Returns whether the path of a request is that of the Streamable HTTP endpoint.
    fn is_endpoint_path(&self, parts: &Parts) -> bool {
        let path = parts.uri.path();
        if self.options.is_mounted {
            // The router in front has selected the path; only metadata documents and HTTP+SSE have their own.
            return !path.starts_with("/.well-known/") && self.http_sse_route(parts).is_none();
        }
        let expected = &*self.options.path;
        path == expected || self.options.trailing_slash && path.strip_suffix('/') == Some(expected)
    }

    /// Returns whether the path of a request is that of the health check or the readiness check.
    pub(super) fn is_health_path(&self, parts: &Parts) -> bool {
        let path = parts.uri.path();
        let is_check = self.options.health_paths.iter().any(|own| path == own)
            || self.is_readiness_path(parts);
        !self.options.is_mounted && is_check && path != self.options.path
    }

    fn is_readiness_path(&self, parts: &Parts) -> bool {
        parts.uri.path() == self.options.readiness_path
    }

    /// Returns whether the server should get requests. On a shared store it joins for the first check, because a load
    /// balancer may send no other request before.
    async fn is_ready(&self) -> bool {
        let checks = self.options.readiness.as_ref();
        if checks.is_some_and(|check| !(check.is_ready)()) {
            return false;
        }
        match self.server.instance() {
            Some(instance) => Box::pin(instance.join()).await.is_ok(),
            None => true,
        }
    }

    fn allowed_methods(&self) -> &'static str {
        match self.options.session_mode {
            SessionMode::On => "GET, POST, DELETE",
            SessionMode::Off => "POST",
        }
    }

    /// Counts a request as in flight, or returns an error response at the limit, or at the limit of its caller.
    pub(super) fn acquire_permit(
        self: &Arc<Self>,
        owner: impl FnOnce() -> SessionOwner,
    ) -> Result<InFlightPermit, Response<ResponseBody>> {
        let permit = InFlightPermit {
            endpoint: self.clone(),
            caller: None,
        };
        let running = self.in_flight.fetch_add(1, Ordering::Relaxed);
        if running < self.max_unshared {
            return Ok(permit);
        }
        self.check_share(running, &owner()).map(|()| permit)
    }

    /// Checks the limit for all callers and that of one caller, before it gets one more request.
    #[cold]
    fn check_share(
        &self,
        running: usize,
        owner: &SessionOwner,
    ) -> Result<(), Response<ResponseBody>> {
        let free = self.options.max_in_flight.saturating_sub(running);
        if free == 0 {
            return Err(responses::service_unavailable(
                None,
                "too many concurrent requests; retry in a few seconds",
            ));
        }
        if !self.caller_shares.allow_request(owner, free) {
            return Err(responses::too_many_requests(None, TOO_MANY_CALLS));
        }
        Ok(())
    }
}

fn random_number() -> u64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).expect("random bytes are available");
    u64::from_le_bytes(bytes)
}

/// The error text for a caller beyond its share.
pub(super) const TOO_MANY_CALLS: &str =
    "too many concurrent requests of one caller; retry when some have finished";

/// Rate limiters for log messages that clients can cause repeatedly.
#[derive(Default)]
pub(super) struct LogLimiters {
    pub(super) session_rejected: LogLimiter,
    pub(super) stream_rejected: LogLimiter,
    store_failed: LogLimiter,
    pub(super) accept_failed: LogLimiter,
}

impl LogLimiters {
    /// Logs a failure of the store.
    pub(super) fn store_failed(&self, error: &StoreError) {
        if let Some(suppressed) = self.store_failed.try_pass() {
            tracing::error!(%error, suppressed, "session store failed");
        }
    }
}

/// The handling of a request, decided by its head.
enum Route {
    /// A POST to the endpoint that needs neither authentication nor CORS.
    Post(RequestHead),
    Routed(Box<RoutedRequest>),
    ErrorResponse(Box<(Response<ResponseBody>, UnreadBody)>),
}

/// Rejects a request that arrived while its connection was being closed. The client usually sees only the end of the
/// connection, but the request never runs, so it can be sent again.
fn closing_route(parts: &Parts, connection: &ConnectionHandle) -> Route {
    let mut response =
        responses::service_unavailable(None, "the connection is closing; send the request again");
    // Otherwise the connection would read the next request.
    if parts.version < Version::HTTP_2 {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
    let unread_body = UnreadBody::new(parts.version, &parts.headers, connection);
    Route::ErrorResponse(Box::new((response, unread_body)))
}

/// A request that needs more than [`Route::Post`].
struct RoutedRequest {
    parts: Parts,
    connection: ConnectionHandle,
    /// The origin of the web page that sent the request.
    origin: Option<HeaderValue>,
}

fn principal(extensions: &::http::Extensions) -> Option<Arc<Principal>> {
    let owned = || extensions.get::<Principal>().cloned().map(Arc::new);
    extensions.get::<Arc<Principal>>().cloned().or_else(owned)
}

/// Ends a stream when the credentials that opened it expire. A client resumes it with new ones.
fn with_stream_lifetime(
    response: Response<ResponseBody>,
    lifetime: Option<Duration>,
) -> Response<ResponseBody> {
    match lifetime {
        Some(lifetime) => response.map(|body| body.ended_after(lifetime)),
        None => response,
    }
}

/// Responds to OPTIONS with the allowed methods, and to a CORS preflight with the allowed headers.
pub(super) fn options_response(
    head: &RequestHead,
    methods: &'static str,
) -> Response<ResponseBody> {
    let mut response = responses::status_only(StatusCode::NO_CONTENT);
    let methods = HeaderValue::from_static(methods);
    response.headers_mut().insert(ALLOW, methods.clone());
    cors::preflight(&mut response, &head.headers, methods);
    response
}

/// Counts a request as in flight until it is dropped.
pub(super) struct InFlightPermit {
    pub(super) endpoint: Arc<Endpoint>,
    /// Set once the request waits.
    caller: Option<Arc<CallerUsage>>,
}

impl InFlightPermit {
    /// Counts the request as a waiting request of its caller.
    pub(super) fn count_for(&mut self, head: &RequestHead) -> &CallerUsage {
        let shares = &self.endpoint.caller_shares;
        self.caller.get_or_insert_with(|| {
            let caller = match head.connection.caller().filter(|_| head.is_direct()) {
                Some(caller) => caller
                    .get_or_init(|| shares.caller(limits::quota_owner(head)))
                    .clone(),
                None => shares.caller(limits::quota_owner(head)),
            };
            shares.add_request(&caller);
            caller
        })
    }

    /// Counts the request as a waiting request of this owner.
    pub(super) fn count_for_owner(&mut self, owner: SessionOwner) {
        let shares = &self.endpoint.caller_shares;
        self.caller.get_or_insert_with(|| {
            let caller = shares.caller(owner);
            shares.add_request(&caller);
            caller
        });
    }
}

impl Drop for InFlightPermit {
    fn drop(&mut self) {
        if let Some(caller) = &self.caller {
            self.endpoint.caller_shares.remove_request(caller);
        }
        self.endpoint.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A request without its body.
pub(super) struct RequestHead {
    pub(super) method: Method,
    pub(super) headers: Arc<HeaderMap>,
    pub(super) version: VersionHeader,
    extensions: ::http::Extensions,
    pub(super) connection: ConnectionHandle,
}

impl RequestHead {
    pub(super) fn new(mut parts: Parts, connection: ConnectionHandle) -> Self {
        if let Some(query) = parts.uri.query() {
            parts.extensions.insert(UrlQuery(query.into()));
        }
        Self {
            method: parts.method,
            version: VersionHeader::from_headers(&parts.headers),
            headers: Arc::new(parts.headers),
            extensions: parts.extensions,
            connection,
        }
    }

    /// Returns the value of `MCP-Protocol-Version`.
    pub(super) fn version(&self) -> Option<&str> {
        self.version.as_str()
    }

    /// Returns the authenticated caller, which a layer put into the extensions.
    pub(super) fn principal(&self) -> Option<Arc<Principal>> {
        principal(&self.extensions)
    }

    /// Returns whether nothing but the connection identifies the caller.
    fn is_direct(&self) -> bool {
        self.principal().is_none() && self.extensions.get::<SocketAddr>().is_none()
    }

    /// Returns the client's address: from the extensions if a layer set it, otherwise that of the connection.
    pub(super) fn peer(&self) -> Option<SocketAddr> {
        let forwarded = self.extensions.get::<SocketAddr>().copied();
        forwarded.or_else(|| self.connection.peer())
    }

    /// Returns whether the request comes from the owner of a session or stream.
    pub(super) fn is_from_owner(&self, owner: Option<&Principal>) -> bool {
        match (owner, self.principal()) {
            (None, None) => true,
            (Some(owner), Some(caller)) => owner.is_same_caller(&caller),
            _ => false,
        }
    }

    /// Returns what the transport passes on to the protocol layer.
    pub(super) fn transport_info(&self) -> TransportInfo {
        TransportInfo {
            principal: self.principal(),
            headers: Some(self.headers.clone()),
            peer: self.connection.peer(),
            connection: self.connection.connection_state(),
            extensions: self.extensions.clone(),
            ..TransportInfo::default()
        }
    }
}

/// A server as a tower service, for any HTTP stack. Cheap to clone.
#[derive(Clone)]
pub struct HttpService {
    endpoint: Arc<Endpoint>,
}

impl HttpService {
    pub(super) fn new(endpoint: Arc<Endpoint>) -> Self {
        Self { endpoint }
    }
}

impl<B> tower_service::Service<Request<B>> for HttpService
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Send,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<ResponseBody>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        Box::pin(self.endpoint.clone().respond(
            request,
            ConnectionHandle::default(),
            RequestAdmission::Accepted,
        ))
    }
}

impl std::fmt::Debug for HttpService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpService")
            .field("server", &self.endpoint.server)
            .finish_non_exhaustive()
    }
}
