//! The lifecycle of requests: which revision and era a request belongs to.
//!
//! The only module of the server that compares revisions. All others use [`RevisionRules`] and [`RequestOrigin`].

mod classify;
pub(crate) mod connection;
mod rules;
pub(crate) mod runtime;
mod served;
pub(crate) mod session;
pub(crate) mod stateless;

use std::{
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, Weak},
};

use bytes::Bytes;
pub(crate) use classify::{
    BATCH_UNSUPPORTED, MessageClass, SessionPresence, classify, classify_request, may_be_legacy,
};
use connection::ConnectionState;
use http::{Extensions, HeaderMap, HeaderValue};
pub(crate) use rules::{ClientRequestMode, RevisionRules, TaskModel};
use runtime::SessionRuntime;
pub use served::ServedEras;
use turnbuckle_protocol::{
    Principal, RequestId, RpcError,
    jsonrpc::Request,
    meta::{RequestMeta, TraceContext},
    types::LogLevel,
};
use turnbuckle_store::{
    ClientProfile, InstanceMessage, InstanceSlot, SessionId, SessionRecord, StreamId,
};

use crate::sync::lock;

/// Parses the `_meta` of a request.
pub(crate) fn parse_meta<'a>(request: &Request<'a>) -> Result<RequestMeta<'a>, RpcError> {
    RequestMeta::from_params(&request.params)
        .map_err(|error| RpcError::invalid_params(format!("`_meta`: {}", error.message)))
}

/// Reads the trace context of a request, if present.
fn trace(meta: &RequestMeta<'_>) -> Option<Box<TraceContext>> {
    if meta.traceparent.is_none() && meta.baggage.is_none() {
        return None;
    }
    TraceContext::from_meta(meta).map(Box::new)
}

/// The sender of a request and its per-request metadata.
pub(crate) struct RequestOrigin {
    pub(crate) rules: &'static RevisionRules,
    pub(crate) client: Arc<ClientProfile>,
    pub(crate) principal: Option<Arc<Principal>>,
    pub(crate) headers: Option<Arc<HeaderMap>>,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) extensions: Extensions,
    pub(crate) progress_token: Option<RequestId>,
    /// The minimum level of log messages for the client. `None` disables them.
    pub(crate) log_level: Option<LogLevel>,
    /// True if requests may be sent to the client: initialization must be complete.
    pub(crate) accepts_client_requests: bool,
    /// Sends requests to the client, in revisions that have them.
    pub(crate) runtime: Option<Arc<SessionRuntime>>,
    /// True if the end of a subscription is also announced by a notification, as needed on byte streams.
    pub(crate) announces_subscription_end: bool,
    /// State shared by the requests of one connection.
    pub(crate) connection: Option<Arc<ConnectionState>>,
    /// The session of the request, or of its connection.
    pub(crate) session: Option<SessionId>,
    /// The trace context of the request.
    pub(crate) trace: Option<Box<TraceContext>>,
}

impl RequestOrigin {
    /// The transport, as named in telemetry.
    pub(crate) fn transport(&self) -> &'static str {
        transport(self.headers.is_some())
    }

    /// Prepares for a long-lived request: copies the headers, so that they do not keep the read buffer alive.
    pub(crate) fn detach_headers(&mut self) {
        self.headers = self
            .headers
            .take()
            .map(|headers| Arc::new(copy_headers(&headers)));
    }

    /// Returns whether the connection of the request is closed.
    pub(crate) fn is_closed(&self) -> bool {
        let connection = self.connection.as_ref();
        connection.is_some_and(|connection| connection.is_closed())
    }

    /// Resolves when the connection of the request closes.
    pub(crate) async fn closed(&self) {
        match &self.connection {
            Some(connection) => connection.closed().await,
            None => std::future::pending().await,
        }
    }
}

impl TransportInfo {
    /// The transport, as named in telemetry.
    pub(crate) fn transport(&self) -> &'static str {
        transport(self.headers.is_some())
    }
}

/// Returns a copy of the headers with their own buffers.
fn copy_headers(headers: &HeaderMap) -> HeaderMap {
    let mut copies = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        if let Ok(mut copy) = HeaderValue::from_bytes(value.as_bytes()) {
            copy.set_sensitive(value.is_sensitive());
            copies.append(name, copy);
        }
    }
    copies
}

fn transport(is_http: bool) -> &'static str {
    if is_http { "tcp" } else { "pipe" }
}

/// Facts about a request that only the transport knows.
#[derive(Default)]
pub(crate) struct TransportInfo {
    pub(crate) principal: Option<Arc<Principal>>,
    pub(crate) headers: Option<Arc<HeaderMap>>,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) extensions: Extensions,
    pub(crate) announces_subscription_end: bool,
    pub(crate) connection: Option<Arc<ConnectionState>>,
    pub(crate) session: Option<SessionId>,
    /// True if the session created by `initialize` will not be stored.
    pub(crate) is_sessionless: bool,
}

/// A component of this process that uses stored sessions.
pub(crate) trait SessionUser: Send + Sync {
    /// Returns whether this component runs a request or reads a stream of the session.
    fn is_using(&self, session: &SessionId) -> bool;

    /// Drops the local state of a session that ended.
    fn close(&self, session: &SessionId);

    /// Ends the tasks of a session that another instance has ended, and notifies the relay and the layers.
    fn end_session(&self, session: SessionId);

    /// Cancels a call of a session, if it runs here.
    fn cancel_call(&self, session: &SessionId, request: &RequestId);

    /// Handles a message of another instance. It does not wait: what takes time runs in a task of its own. Messages about
    /// unknown sessions, requests and streams are ignored.
    fn receive(self: Arc<Self>, message: InstanceMessage);

    /// Returns whether this component writes a stream of the session.
    fn writes_stream(&self, session: &SessionId, stream: StreamId) -> bool {
        let _ = (session, stream);
        false
    }

    /// Fails the client requests that this process has sent under another slot than this one: their responses no longer
    /// arrive.
    fn fail_requests_of_other_slots(&self, slot: InstanceSlot);

    /// Looks for sessions that have ended, after messages about sessions were lost.
    fn check_sessions(self: Arc<Self>);

    /// Returns the way to the client of a session outside of its requests, if it has one here.
    fn general_channel(self: Arc<Self>, session: &SessionId) -> Option<Box<dyn GeneralChannel>>;
}

/// Sends messages to the client of a session that belong to none of its requests.
pub(crate) trait GeneralChannel: Send + Sync {
    /// The pending client requests of the session.
    fn runtime(&self) -> &SessionRuntime;

    /// Returns the session, or `None` if it has ended.
    fn record(&self) -> ChannelFuture<'_, Option<Arc<SessionRecord>>>;

    /// Sends a message, once the client has read earlier ones.
    fn send(&self, message: Bytes) -> ChannelFuture<'_, ()>;
}

/// The future of a [`GeneralChannel`].
pub(crate) type ChannelFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// All session users of a server.
#[derive(Default)]
pub(crate) struct SessionUsers {
    users: Mutex<Vec<Weak<dyn SessionUser>>>,
}

impl SessionUsers {
    /// Registers a user while it is alive.
    pub(crate) fn add(&self, user: Weak<dyn SessionUser>) {
        let mut users = self.lock();
        users.retain(|user| user.strong_count() > 0);
        users.push(user);
    }

    /// Returns the users that are alive, for calls without the lock.
    pub(crate) fn all(&self) -> Vec<Arc<dyn SessionUser>> {
        self.lock().iter().filter_map(Weak::upgrade).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<dyn SessionUser>>> {
        // Code under this lock cannot leave an invalid value, so poisoning is ignored.
        lock(&self.users)
    }
}
