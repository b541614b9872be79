//! The interface for a relay: a server that passes requests on instead of handling them itself.
//!
//! [`Server::relay`](crate::Server::relay) installs a [`Relay`]. The server keeps the lifecycle, sessions, subscriptions and the transport; the relay
//! gets every other request as raw JSON, after authentication and inside the layers of the server, and returns the result
//! as raw JSON in the revision of the client. The gateway crate is built on it.

mod general_stream;
mod headers;
mod targets;
mod tasks;

use std::{any::Any, borrow::Cow, hash::Hasher, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use serde_json::{Value, value::RawValue};
use turnbuckle_protocol::{
    Principal, RequestId, Revision, RpcError,
    jsonrpc::{self, OwnedParams, Params, RawObject, Request},
    method::{Method, PROGRESS},
    types::{JsonObject, LogLevel, ServerCapabilities, SubscriptionFilter},
};
use turnbuckle_store::SessionId;
pub use turnbuckle_store::{ChangeTarget, ServerChange};

pub(crate) use self::targets::{is_target, principal_target};
pub use self::{general_stream::GeneralStream, tasks::WatchedTasks};
use crate::{
    ClientRequestError, Context,
    catalog::scopes::{self, HttpRejection, HttpRejectionKind, RequestDenied, RequiredScopes},
    lifecycle::{ClientRequestMode, connection::ConnectionState, runtime::RequestMetaTags},
    middleware::{SessionKey, hash_caller},
    request::{RelayedKind, RequestContext, timestamp},
};

/// The future of a relay.
pub type RelayFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Handles requests as raw JSON, by passing them on.
pub trait Relay: Send + Sync + 'static {
    /// Returns the capabilities that the server advertises, in the newest types.
    fn capabilities(&self) -> ServerCapabilities;

    /// Returns the instructions for models. By default those of the server.
    fn instructions(&self) -> Option<String> {
        None
    }

    /// Returns members for the `_meta` of `initialize` and `server/discover`. None by default.
    fn meta(&self) -> JsonObject {
        JsonObject::new()
    }

    /// Returns an error for `initialize` and `server/discover` if the relay cannot serve clients now.
    fn check_available(&self) -> Result<(), RpcError> {
        Ok(())
    }

    /// Handles a request and returns its result: a JSON object in the revision of the client.
    ///
    /// Dropping the future cancels the request.
    fn handle(&self, request: RelayedRequest) -> RelayFuture<'_, Result<RelayedResult, RpcError>>;

    /// Subscribes to the changes that a `subscriptions/listen` request asks for, until the returned value is dropped.
    ///
    /// What remains in the filter is acknowledged, so the relay removes what it does not grant. It reports changes with [`Server::tools_changed`](crate::Server::tools_changed) and its siblings, and
    /// those of only some clients with [`Server::publish_to`](crate::Server::publish_to).
    fn subscribe<'a>(
        &'a self,
        request: RelayedRequest,
        filter: &'a mut SubscriptionFilter,
    ) -> RelayFuture<'a, Option<Box<dyn Send + Sync>>>;

    /// Returns which tasks among `ids` the caller of a `subscriptions/listen` request may watch. The server itself watches
    /// its [own tasks](RelayedRequest::run_as_task).
    fn watch_tasks(
        &self,
        request: RelayedRequest,
        ids: Vec<String>,
    ) -> RelayFuture<'_, Option<WatchedTasks>> {
        let _ = (request, ids);
        Box::pin(std::future::ready(None))
    }

    /// A session has ended, so nothing has to be kept for it. Connections without stored sessions end with
    /// [`RelayedRequest::connection_closed`] instead.
    fn session_ended(&self, session: SessionKey) {
        let _ = session;
    }

    /// Receives the notifications of clients with sessions that the server does not handle itself, such as
    /// `notifications/roots/list_changed`. Must not block. By default they are dropped.
    fn on_notification(&self, notification: RelayedNotification<'_>) {
        let _ = notification;
    }
}

/// A notification of a client with a session.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RelayedNotification<'a> {
    /// The session, as in [`RelayedRequest::session`].
    pub session: SessionKey,
    /// The method.
    pub method: &'a str,
    /// The parameters: a JSON object, as received.
    pub params: &'a str,
}

/// Returns whether a text can be the name of a scope: a `scope-token` of RFC 6749, section 3.3.
pub fn is_scope(text: &str) -> bool {
    scopes::is_scope(text)
}

/// The result of a [`Relay`]: a JSON object.
#[derive(Clone, Debug)]
pub struct RelayedResult {
    /// The start of the object, which several results may share.
    pub(crate) head: Bytes,
    pub(crate) tail: String,
}

impl RelayedResult {
    /// Creates a result from its text in two parts. A large first part is sent without being copied.
    pub fn in_parts(head: Bytes, tail: String) -> Self {
        Self { head, tail }
    }

    /// Returns the second part of the text: all of it, unless the result was created in two parts.
    pub fn tail(&self) -> &str {
        &self.tail
    }
}

impl From<String> for RelayedResult {
    fn from(object: String) -> Self {
        Self {
            head: Bytes::new(),
            tail: object,
        }
    }
}

/// Returns whether requests with this method are passed on: all but those of the lifecycle and of subscriptions.
pub(crate) fn is_relayed(method: &str) -> bool {
    !matches!(
        method,
        "initialize" | "ping" | "shutdown" | "server/discover" | "subscriptions/listen"
    )
}

/// A request for a [`Relay`], and the way back to its client.
#[derive(Clone)]
pub struct RelayedRequest {
    call: Arc<RequestContext>,
    message: Arc<RelayedMessage>,
    attached: Option<Arc<dyn Any + Send + Sync>>,
}

/// What clones of a request share.
struct RelayedMessage {
    method: Cow<'static, str>,
    params: OwnedParams,
}

impl RelayedMessage {
    fn new(method: &str, params: &Params<'_>) -> Arc<Self> {
        let known = Method::from_name(method).map(|method| Cow::Borrowed(method.name));
        Arc::new(Self {
            method: known.unwrap_or_else(|| Cow::Owned(method.to_owned())),
            params: params.into(),
        })
    }
}

impl RelayedRequest {
    pub(crate) fn new(call: Arc<RequestContext>, request: &Request<'_>) -> Self {
        Self {
            call,
            message: RelayedMessage::new(&request.method, &request.params),
            attached: None,
        }
    }

    /// The request of a listener; the server has read its parameters.
    pub(crate) fn listen(call: &Arc<RequestContext>) -> Self {
        Self {
            call: Arc::clone(call),
            message: RelayedMessage::new("subscriptions/listen", &Params::absent()),
            attached: None,
        }
    }

    /// The method.
    pub fn method(&self) -> &str {
        &self.message.method
    }

    /// The parameters: a JSON object, as received.
    pub fn params(&self) -> &str {
        self.message.params.raw()
    }

    /// The parameters with their members, which are not scanned again.
    pub fn parsed_params(&self) -> Params<'_> {
        self.message.params.as_params()
    }

    /// Returns the same request with other parameters.
    ///
    /// # Errors
    ///
    /// If the text is not a JSON object.
    pub fn with_params(&self, params: &str) -> Result<Self, RpcError> {
        let params = Params::from_json(params)?;
        Ok(Self {
            message: RelayedMessage::new(self.method(), &params),
            ..self.clone()
        })
    }

    /// The id of the request, as received.
    pub fn id(&self) -> &RequestId {
        &self.call.id
    }

    /// The client, its capabilities and the values that the transport attached.
    pub fn context(&self) -> Context {
        Context {
            call: Arc::clone(&self.call),
        }
    }

    /// The authenticated caller.
    pub fn principal(&self) -> Option<&Principal> {
        self.call.origin.principal.as_deref()
    }

    /// The revision of the client, in which the result has to be written.
    pub fn revision(&self) -> Revision {
        self.call.origin.rules.revision()
    }

    /// Returns whether client requests are sent as requests. Otherwise they are part of an `input_required` result.
    pub fn sends_client_requests(&self) -> bool {
        self.call.origin.rules.client_request_mode == ClientRequestMode::Direct
    }

    /// Returns whether the client is ready for client requests.
    pub fn accepts_client_requests(&self) -> bool {
        self.call.origin.accepts_client_requests
    }

    /// Returns whether the client has the response, so that nothing else can be sent for the request.
    pub fn has_ended(&self) -> bool {
        self.call.outbox.is_closed()
    }

    /// The progress token of the request.
    pub fn progress_token(&self) -> Option<&RequestId> {
        self.call.origin.progress_token.as_ref()
    }

    /// The minimum level of log messages for the client. `None` disables them.
    pub fn log_level(&self) -> Option<LogLevel> {
        self.call.origin.log_level
    }

    /// The session of the request, or the connection that carries all requests of one client.
    pub fn session(&self) -> Option<SessionKey> {
        Some(SessionKey::from_id(&self.session_id()?))
    }

    fn session_id(&self) -> Option<SessionId> {
        let session = self.call.origin.session;
        session.or_else(|| Some(self.connection()?.id()))
    }

    /// Returns whether one connection carries all requests of this client: on byte streams and over HTTP+SSE.
    pub fn has_connection(&self) -> bool {
        self.connection().is_some()
    }

    fn connection(&self) -> Option<&ConnectionState> {
        let origin = &self.call.origin;
        let connection = origin.connection.as_deref()?;
        // Other HTTP requests of a client may arrive on any connection.
        let carries_all = origin.headers.is_none() || origin.session == Some(connection.id());
        carries_all.then_some(connection)
    }

    /// Resolves when the connection that carries all requests of this client closes; never without one.
    pub async fn connection_closed(&self) {
        match self.connection() {
            Some(connection) => connection.closed().await,
            None => std::future::pending().await,
        }
    }

    /// Sends a notification to the client, before the response. `params` is a JSON object.
    ///
    /// Does not wait for a slow client. Of more than 64 notifications that it has not read, older progress is replaced by
    /// newer, and the oldest others are dropped.
    pub fn notify(&self, method: &str, params: &str) {
        let Ok(params) = serde_json::from_str::<&RawValue>(params) else {
            return;
        };
        let mut message = Vec::with_capacity(params.get().len() + 64);
        if jsonrpc::write_notification(&mut message, method, &params).is_ok() {
            let kind = if method == PROGRESS.name {
                RelayedKind::Progress
            } else {
                RelayedKind::Other
            };
            self.call.send_relayed(kind, message.into());
        }
    }

    /// Waits while the client is slow to read notifications.
    pub async fn wait_for_room(&self) {
        self.call.wait_for_room().await;
    }

    /// Sends a request to the client on the stream of this request, and returns the result as JSON text.
    ///
    /// `params` is a JSON object; a progress token in its `_meta` is replaced. Only where
    /// [`sends_client_requests`](Self::sends_client_requests) returns `true`, or in a [task](Self::run_as_task).
    pub async fn request_client(
        &self,
        method: &'static str,
        params: &str,
    ) -> Result<String, RpcError> {
        if self.is_task() {
            return self.request_task_input(method, params).await;
        }
        let call = &self.call;
        let Some(runtime) = call
            .origin
            .runtime
            .as_ref()
            .filter(|_| self.accepts_client_requests())
        else {
            return Err(RpcError::internal("the client accepts no requests now"));
        };
        let (params, meta) = split_meta(params)?;
        let meta_tags = RequestMetaTags {
            trace: None,
            task: None,
            relayed: &meta,
        };
        let timeouts = call.server.client_request_timeouts();
        let sent =
            runtime.send_request(&call.outbox, method, params.as_bytes(), meta_tags, timeouts);
        sent.await.map_err(|error| match error {
            ClientRequestError::Rejected { error, .. } => *error,
            error => RpcError::internal(error.to_string()),
        })
    }

    /// Attaches a value of the relay to this request and to later clones of it. There is one value; another replaces it.
    pub fn attach<T: Send + Sync + 'static>(&mut self, value: Arc<T>) {
        self.attached = Some(value);
    }

    /// Returns the attached value.
    pub fn attached<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.attached.as_deref()?.downcast_ref()
    }

    /// Hashes the caller: its principal; without authorization its IP address (for IPv6 its /64 network); without an
    /// address its connection.
    pub fn hash_caller(&self, hasher: &mut impl Hasher) {
        hash_caller(&self.context(), hasher);
    }

    /// Checks that the caller has scopes, and returns the error for this request if it lacks some.
    ///
    /// Over HTTP the error becomes a challenge with status 403. Without authorization in front, callers over HTTP lack
    /// every scope; a caller on a byte stream is the local user and has them all.
    ///
    /// # Panics
    ///
    /// If a scope is not one: check those from a file or a peer with [`is_scope`].
    pub fn require_scopes(
        &self,
        scopes: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<(), RpcError> {
        let mut required = RequiredScopes::default();
        required
            .add(scopes)
            .unwrap_or_else(|error| panic!("{error}"));
        match required.check(&self.call.origin) {
            Ok(()) => Ok(()),
            Err(RequestDenied::Error(error)) => Err(error),
            Err(RequestDenied::InsufficientScope(rejection)) => {
                let error = rejection.error.clone();
                self.call.set_rejection(rejection);
                Err(error)
            }
        }
    }

    /// Adds `retryAfterMs` to an error. If it is the response to a stateless request over HTTP, its status is 503 with
    /// `Retry-After`.
    pub fn retry_later(&self, error: RpcError, after: Duration) -> RpcError {
        // Rounded up, so that a retry after this time is not too early.
        let millis = u64::try_from(after.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
        let mut data = match error.data {
            Some(Value::Object(data)) => data,
            _ => serde_json::Map::new(),
        };
        data.insert("retryAfterMs".to_owned(), millis.into());
        let error = RpcError::new(error.code, error.message).with_data(data);
        if self.call.origin.rules.has_error_statuses() && self.call.origin.headers.is_some() {
            self.call.set_rejection(Box::new(HttpRejection {
                error: error.clone(),
                kind: HttpRejectionKind::RetryAfter(millis.div_ceil(1_000)),
            }));
        }
        error
    }

    /// Notifies this client of the completion of a URL elicitation that the relay has sent, once
    /// [`Server::elicitation_complete`](crate::Server::elicitation_complete) reports it. Does nothing in revisions without
    /// this notification.
    pub fn expect_elicitation_complete(&self, id: &str) {
        let origin = &self.call.origin;
        if let (true, Some(runtime)) = (origin.rules.notifies_url_elicitation_end, &origin.runtime)
        {
            runtime.url_elicitations.begin(id);
        }
    }

    /// Encrypts a value for this caller. Only [`open`](Self::open) with the same purpose and principal decrypts it, before
    /// `lifetime` has passed.
    pub fn seal(&self, value: &[u8], purpose: &str, lifetime: Duration) -> String {
        let expires = (timestamp::unix_time().as_secs() + lifetime.as_secs()).to_be_bytes();
        let sealed = [&expires, value].concat();
        let keys = self.call.server.sealing_keys();
        keys.seal(&sealed, &self.sealing_purpose(purpose))
    }

    /// Decrypts a value of [`seal`](Self::seal). Returns `None` if it was altered, belongs to another caller or purpose, or
    /// has expired.
    pub fn open(&self, sealed: &str, purpose: &str) -> Option<Vec<u8>> {
        let keys = self.call.server.sealing_keys();
        let mut value = keys.open(sealed, &self.sealing_purpose(purpose)).ok()?;
        let expires = u64::from_be_bytes(value.get(..8)?.try_into().ok()?);
        if expires < timestamp::unix_time().as_secs() {
            return None;
        }
        value.drain(..8);
        Some(value)
    }

    fn sealing_purpose(&self, purpose: &str) -> Vec<u8> {
        let caller = self
            .principal()
            .map(|principal| (&principal.issuer, &principal.subject, &principal.client));
        let scope = self.call.server.state_scope();
        format!("relay\0{scope}\0{purpose}\0{caller:?}").into_bytes()
    }
}

impl std::fmt::Debug for RelayedRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RelayedRequest")
            .field("method", &self.method())
            .finish_non_exhaustive()
    }
}

/// Splits parameters into the object without `_meta`, and the members of `_meta` except the progress token, each after a
/// comma.
fn split_meta(params: &str) -> Result<(String, String), RpcError> {
    let object = RawObject::parse(params)?;
    let (mut rest, mut meta) = (String::from("{"), String::new());
    for (name, value) in object.members().filter(|(name, _)| name != "_meta") {
        if rest.len() > 1 {
            rest.push(',');
        }
        write_member(&mut rest, &name, value);
    }
    rest.push('}');
    if let Some(members) = object.get("_meta") {
        let members = RawObject::parse(members)?;
        for (name, value) in members
            .members()
            .filter(|(name, _)| name != "progressToken")
        {
            meta.push(',');
            write_member(&mut meta, &name, value);
        }
    }
    Ok((rest, meta))
}

fn write_member(out: &mut String, name: &str, value: &str) {
    out.push_str(&serde_json::Value::from(name).to_string());
    out.push(':');
    out.push_str(value);
}
