//! Raw requests and messages, for programs that relay between a server and other clients.
//!
//! A relayed call sends raw parameters and returns the raw result: nothing is parsed, cached, validated or retried, and
//! input requests and tasks are left to the caller. A [`RelayHandler`] receives the requests and notifications of the
//! server. The client still negotiates the revision, writes the envelope and the `_meta` members of the revision,
//! matches responses, applies timeouts, cancels dropped requests, and renews an ended session.

use std::{
    borrow::Cow,
    fmt,
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use serde::Deserialize;
use turnbuckle_protocol::{
    RequestId, Revision, RpcError,
    codec::headers::ParamHeader,
    json,
    method::{self, Method},
    timeouts::Timeouts,
    types::{ClientCapabilities, Implementation, JsonObject, LogLevel, ResultType},
};

use crate::{
    builder::ClientBuilder,
    callbacks::{notify_observer, run_callback},
    client::{Client, ReceivedResult, is_response_lost, needs_new_session},
    error::{CallError, TransportError},
    inbound::message::RawJson,
    lifecycle::RevisionRules,
    tools::encode_param_headers,
    transport::{
        OutgoingRequest,
        encode::{self, RawRequest},
    },
};

/// The id of a relayed call: the JSON-RPC id and the progress token of its request on this connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RelayCallId(i64);

impl RelayCallId {
    /// Returns the number that is sent as the id of the request.
    ///
    /// A server of 2026-07-28 also uses it as the id of the subscription that a listen request opens.
    pub fn as_i64(self) -> i64 {
        self.0
    }
}

impl fmt::Display for RelayCallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Receives what a server sends outside of responses, as raw JSON.
///
/// All methods are called in order of arrival, by the task that reads from the server, so they must not block. The work
/// of a request belongs in the returned future.
pub trait RelayHandler: Send + Sync + 'static {
    /// Handles a server request, and returns the result as JSON text.
    ///
    /// The client answers `ping` itself. The future is dropped if the server cancels the request, if the session is
    /// renewed, or if the connection ends. It runs in its own task.
    fn on_request(
        &self,
        request: ServerRequest,
    ) -> Pin<Box<dyn Future<Output = Result<String, RpcError>> + Send>>;

    /// Receives every notification, before the response that follows it on the same stream is returned.
    fn on_notification(&self, notification: ServerNotification<'_>);

    /// The session was renewed, the server was restarted, or a stream was interrupted: notifications may have been
    /// missed.
    fn on_gap(&self) {}

    /// The connection has ended, with [`TransportError::ClientClosed`] if the client closed it.
    ///
    /// Not called when the last clone of the client is dropped. If a later call connects again, which is possible over
    /// HTTP and with a child process in the stateless lifecycle, [`on_gap`](Self::on_gap) follows.
    fn on_end(&self, reason: &TransportError) {
        let _ = reason;
    }
}

/// A request of a server.
#[derive(Clone, Debug)]
pub struct ServerRequest {
    /// The method.
    pub method: String,
    /// The parameters, a JSON object; `{}` if there are none.
    pub params: String,
    /// The call with the HTTP response stream that the request arrived on. `None` on other transports and on the GET
    /// stream.
    pub call: Option<RelayCallId>,
}

/// A notification of a server.
#[derive(Clone, Copy, Debug)]
pub struct ServerNotification<'a> {
    /// The method.
    pub method: &'a str,
    /// The parameters, a JSON object; `{}` if there are none.
    pub params: &'a str,
    /// For `notifications/progress`, the call with the progress token, which may have ended. For other notifications,
    /// the call with the HTTP response stream that the notification arrived on; `None` on other transports and on the
    /// GET stream.
    pub call: Option<RelayCallId>,
}

/// A request with raw parameters.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RelayRequest {
    /// The method; any name except `initialize`. Errors do not name a method outside of the specification.
    pub method: Cow<'static, str>,
    /// The parameters: a JSON object without `_meta`. Line breaks are replaced by spaces.
    pub params: String,
    /// The members of `_meta` as JSON text without braces, such as `"a":1,"b":2`; may be empty.
    ///
    /// Without the members that the client sets itself: the progress token and, for servers of 2026-07-28, the protocol
    /// version, the client info, the client capabilities and the log level.
    pub meta: String,
    /// The value of the `Mcp-Name` header, unencoded.
    pub name: Option<String>,
    /// The `Mcp-Param-*` headers.
    pub param_headers: Vec<(HeaderName, HeaderValue)>,
    /// Further HTTP headers, for servers of every revision.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The client to introduce in place of that of the connection; only for servers of 2026-07-28.
    pub client: Option<RelayedClient>,
    /// The level of requested log messages; only for servers of 2026-07-28.
    pub log_level: Option<LogLevel>,
    /// Whether progress is requested. The token is the id of the call.
    pub progress: bool,
    /// The timeouts. Progress restarts the idle timeout, which does not run while a server request is open.
    pub timeouts: Timeouts,
}

impl RelayRequest {
    /// Creates a request from a method and its parameters, a JSON object without `_meta`.
    pub fn new(method: impl Into<Cow<'static, str>>, params: impl Into<String>) -> Self {
        Self {
            method: method.into(),
            params: params.into(),
            meta: String::new(),
            name: None,
            param_headers: Vec::new(),
            headers: Vec::new(),
            client: None,
            log_level: None,
            progress: false,
            timeouts: Timeouts::default(),
        }
    }
}

/// The client info and the capabilities of a relayed request. Clones share them, and what is written to requests is
/// prepared once.
#[derive(Clone, Debug)]
pub struct RelayedClient(Arc<RelayedClientInner>);

#[derive(Debug)]
struct RelayedClientInner {
    info: Implementation,
    capabilities: ClientCapabilities,
    /// The `_meta` members for the revision of the first request.
    meta: OnceLock<(Revision, String)>,
}

impl RelayedClient {
    /// Creates a client from its info and its capabilities.
    pub fn new(info: Implementation, capabilities: ClientCapabilities) -> Self {
        Self(Arc::new(RelayedClientInner {
            info,
            capabilities,
            meta: OnceLock::new(),
        }))
    }

    /// Returns the `_meta` members of a request, as JSON text without braces; empty if the session stores them.
    fn common_meta(&self, rules: &RevisionRules) -> Cow<'_, str> {
        let RelayedClientInner {
            info,
            capabilities,
            meta,
        } = &*self.0;
        if rules.common_meta.is_empty() {
            return Cow::Borrowed("");
        }
        let prepare = || rules.common_meta_of(info, capabilities);
        let (revision, prepared) = meta.get_or_init(|| (rules.revision, prepare()));
        if *revision == rules.revision {
            return Cow::Borrowed(prepared);
        }
        Cow::Owned(prepare())
    }
}

/// The raw result of a relayed call.
#[derive(Debug)]
pub struct RelayResult {
    json: RawJson,
    kind: ResultType,
    revision: Revision,
}

impl RelayResult {
    /// Returns the result object, as received.
    pub fn json(&self) -> &str {
        self.json.as_str()
    }

    /// Returns the bytes of the result object, which are UTF-8.
    pub fn into_bytes(self) -> Bytes {
        self.json.into_bytes()
    }

    /// Returns the type of the result; always complete in revisions without result types.
    pub fn kind(&self) -> &ResultType {
        &self.kind
    }

    /// Returns the revision in which the result was sent.
    pub fn revision(&self) -> Revision {
        self.revision
    }
}

impl ClientBuilder {
    /// Passes server requests and notifications to `handler` as raw JSON, and declares exactly these capabilities.
    ///
    /// Callbacks for elicitation and sampling, and roots, are ignored.
    pub fn relay(
        mut self,
        handler: Arc<dyn RelayHandler>,
        capabilities: ClientCapabilities,
    ) -> Self {
        self.observers.relay = Some(handler);
        self.capabilities = capabilities;
        self
    }
}

/// Returns the `Mcp-Param-*` headers that repeat arguments of a call, a JSON object.
///
/// # Errors
///
/// -32602 if an argument cannot be written as a header.
pub fn param_headers(
    headers: &[ParamHeader],
    arguments: &str,
) -> Result<Vec<(HeaderName, HeaderValue)>, RpcError> {
    let arguments: JsonObject = json::from_str(arguments).map_err(RpcError::from)?;
    encode_param_headers(headers, Some(&arguments)).map_err(|error| {
        RpcError::invalid_params(format!("argument `{}`: {}", error.argument, error.source))
    })
}

/// Relayed calls.
impl Client {
    /// Returns whether arguments are repeated in headers: over HTTP since 2026-07-28.
    pub fn sends_param_headers(&self) -> bool {
        self.tool_policy().param_headers_sent
    }

    /// Reserves the id of a relayed call. Each id is for one call.
    pub fn relay_id(&self) -> RelayCallId {
        RelayCallId(self.inner.ids.next_integer())
    }

    /// Sends a request with raw parameters, and returns its raw result.
    ///
    /// Dropping the future cancels the request. Whether the server supports the method is not checked.
    ///
    /// # Errors
    ///
    /// An ended session is renewed, and the request is sent again, once and with the same id. A request is not sent
    /// again if its response is lost: it fails with [`CallError::EffectUnknown`] or [`CallError::Disconnected`]. An error
    /// of the server is returned as [`CallError::Rejected`]. [`CallError::is_unsent`] tells whether the server has
    /// certainly not processed the request.
    pub async fn relay(
        &self,
        id: RelayCallId,
        request: &RelayRequest,
    ) -> Result<RelayResult, CallError> {
        let method = table_entry(&request.method);
        let auth_wait = self.inner.transport.auth_wait();
        let mut outgoing = OutgoingRequest::new(method, self.inner.rules(), auth_wait);
        outgoing.name = request.name.as_deref();
        outgoing.relay_call = Some(id);
        self.encode_relayed(&mut outgoing, id, request)?;
        self.check_connected(&outgoing)?;
        let received = match self.send_once(&mut outgoing, &request.timeouts).await {
            Err(CallError::Disconnected { source, .. }) => {
                Box::pin(self.resend_relayed(source, &mut outgoing, id, request)).await
            }
            outcome => outcome,
        };
        RelayResult::new(method.name, received?)
    }

    /// Returns the reason why the connection has ended, if it has.
    ///
    /// Connections over HTTP end only when the client is closed.
    pub fn ended(&self) -> Option<TransportError> {
        self.inner.transport.ended()
    }

    /// Sends a notification with raw parameters, a JSON object.
    pub async fn relay_notification(
        &self,
        method: &str,
        params: &str,
    ) -> Result<(), TransportError> {
        self.inner
            .send(encode::raw_notification(method, params))
            .await
    }

    /// Fills in a request for the negotiated revision.
    fn encode_relayed(
        &self,
        outgoing: &mut OutgoingRequest<'_>,
        id: RelayCallId,
        request: &RelayRequest,
    ) -> Result<(), CallError> {
        let unsendable = |reason: &str| CallError::Unsendable {
            method: table_entry(&request.method).name,
            reason: reason.to_owned(),
        };
        if request.method == method::INITIALIZE.name {
            return Err(unsendable("the client itself opens sessions"));
        }
        let rules = self.inner.rules();
        outgoing.id = RequestId::from(id.0);
        outgoing.progress_guard = request
            .progress
            .then(|| self.inner.router.progress_registry.register(id.0, None));
        let common_meta = match &request.client {
            Some(client) => client.common_meta(&rules),
            None => Cow::Borrowed(&*rules.common_meta),
        };
        let raw = RawRequest {
            method: &request.method,
            params: &request.params,
            common_meta: &common_meta,
            meta: &request.meta,
            log_level: request.log_level,
            param_headers: &request.param_headers,
            headers: &request.headers,
        };
        outgoing.rules = Arc::clone(&rules);
        encode::fill_raw(outgoing, &raw).map_err(unsendable)
    }

    /// Returns an error if the connection has ended, so that a caller knows that nothing was sent.
    fn check_connected(&self, outgoing: &OutgoingRequest<'_>) -> Result<(), CallError> {
        match self.inner.transport.ended_for(&outgoing.rules) {
            None => Ok(()),
            Some(source) => Err(CallError::NotConnected {
                method: outgoing.method.name,
                source,
            }),
        }
    }

    /// Renews an ended session and sends the request again; returns every other error.
    async fn resend_relayed(
        &self,
        lost: TransportError,
        outgoing: &mut OutgoingRequest<'_>,
        id: RelayCallId,
        request: &RelayRequest,
    ) -> Result<ReceivedResult, CallError> {
        let method = outgoing.method.name;
        if needs_new_session(&lost, &outgoing.rules) {
            self.renew_session_of(outgoing, lost).await?;
            self.encode_relayed(outgoing, id, request)?;
            self.send_once(outgoing, &request.timeouts).await
        } else if is_response_lost(self, &lost, &outgoing.rules) {
            Err(CallError::EffectUnknown {
                method,
                source: lost,
            })
        } else {
            Err(CallError::Disconnected {
                method,
                source: lost,
            })
        }
    }
}

impl RelayResult {
    fn new(method: &'static str, received: ReceivedResult) -> Result<Self, CallError> {
        if !received.result.as_str().starts_with('{') {
            return Err(CallError::InvalidResponse {
                method,
                reason: "the result is not an object".to_owned(),
            });
        }
        Ok(Self {
            revision: received.rules.revision,
            json: received.result,
            kind: received.kind,
        })
    }
}

/// Stands for all methods that the table does not have: errors need a static name.
static EXTENSION_METHOD: Method = Method::for_extension("extension method");

/// Returns the table entry of a method.
fn table_entry(name: &str) -> &'static Method {
    Method::from_name(name).unwrap_or(&EXTENSION_METHOD)
}

/// The handler of a connection, and its state.
pub(crate) struct Relay {
    handler: Arc<dyn RelayHandler>,
    /// Whether the end of the connection is to be reported: not before the client is connected, and not twice.
    open: AtomicBool,
}

impl Relay {
    pub(crate) fn new(handler: Arc<dyn RelayHandler>) -> Self {
        Self {
            handler,
            open: AtomicBool::new(false),
        }
    }

    /// Passes a request to the handler; a panic becomes an internal error.
    pub(crate) fn on_request(
        &self,
        method: &str,
        params: &str,
        call: Option<RelayCallId>,
    ) -> impl Future<Output = Result<Vec<u8>, RpcError>> + Send + use<> {
        let handler = Arc::clone(&self.handler);
        let request = ServerRequest {
            method: method.to_owned(),
            params: params.to_owned(),
            call,
        };
        let handling = run_callback(move || handler.on_request(request));
        async move {
            let mut result = handling.await??.into_bytes();
            encode::join_lines(&mut result);
            Ok(result)
        }
    }

    /// Passes a notification to the handler. `stream` is the call with the stream that it arrived on.
    pub(crate) fn on_notification(&self, method: &str, params: &str, stream: Option<RelayCallId>) {
        let call = if method == method::PROGRESS.name {
            call_of_token(params)
        } else {
            stream
        };
        notify_observer(|| {
            self.handler.on_notification(ServerNotification {
                method,
                params,
                call,
            });
        });
    }

    /// The client is connected. Attempts that failed before, with another transport or lifecycle, are not reported.
    pub(crate) fn on_connected(&self) {
        self.open.store(true, Ordering::Release);
    }

    pub(crate) fn on_gap(&self) {
        self.open.store(true, Ordering::Release);
        notify_observer(|| self.handler.on_gap());
    }

    /// Reports the end of the connection, once.
    pub(crate) fn on_end(&self, reason: &TransportError) {
        if self.open.swap(false, Ordering::AcqRel) {
            notify_observer(|| self.handler.on_end(reason));
        }
    }
}

/// Returns the call with the token of a progress notification.
fn call_of_token(params: &str) -> Option<RelayCallId> {
    #[derive(Deserialize)]
    struct Token {
        #[serde(rename = "progressToken")]
        token: RequestId,
    }
    let params: Token = json::from_str(params).ok()?;
    params.token.as_i64().map(RelayCallId)
}
