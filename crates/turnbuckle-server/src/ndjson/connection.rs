//! One peer with a persistent connection: handles its messages.
//!
//! Messages arrive as lines of a byte stream, or as POST bodies with HTTP+SSE, where outgoing lines become events.
//!
//! Both eras work on one connection: each request is classified by itself, and session state is separate from stateless
//! requests.

use std::sync::{
    Arc, Mutex, Weak,
    atomic::{AtomicBool, Ordering},
};

use bytes::Bytes;
use http::Extensions;
use tokio::{sync::Semaphore, task::AbortHandle};
use turnbuckle_protocol::{
    Principal, RequestId, RpcError,
    codec::ndjson::DecodedLine,
    jsonrpc::{self, Incoming, MalformedMessage, Message, Notification, Request, Response},
    meta::RequestMeta,
};
use turnbuckle_store::{
    BusSubscription, ServerChange, SessionLimits, SessionRecord, SessionUpdate, SubscriberLagged,
};

use super::{
    NdjsonOptions, batch::BatchResponse, run_request::ResponseTarget, write_queue::WriteQueue,
};
use crate::{
    Server,
    catalog::subscriptions::EncodedChange,
    lifecycle::{
        ChannelFuture, GeneralChannel, MessageClass, SessionPresence, TransportInfo,
        classify_request,
        connection::{ConnectionPeer, ConnectionState},
        runtime::SessionRuntime,
        session::{self, NotificationEffect, SessionRoute},
        stateless,
    },
    middleware::{SessionEndGuard, SessionKey},
    request::{FinalResponse, RunningRequest},
    sync::lock,
};

/// Maximum number of open batches.
const MAX_OPEN_BATCHES: usize = 64;

/// One peer: its session, its running calls and its output.
pub(crate) struct NdjsonConnection {
    pub(super) server: Server,
    pub(super) queue: Arc<WriteQueue>,
    /// Running calls of both eras, and pending client requests.
    pub(super) runtime: Arc<SessionRuntime>,
    /// One permit per concurrent call.
    pub(super) calls: Arc<Semaphore>,
    pub(super) max_in_flight: u32,
    /// Maximum number of its own calls, where the permits are shared.
    max_own_calls: usize,
    /// State shared by requests.
    pub(super) connection: Arc<ConnectionState>,
    session: Mutex<Option<Arc<SessionRecord>>>,
    /// Notifies layers of the session's end.
    session_end_guard: Mutex<Option<SessionEndGuard>>,
    session_limits: SessionLimits,
    batches: Arc<Semaphore>,
    /// The task that sends change notifications.
    notifier: Mutex<Option<AbortHandle>>,
    principal: Option<Arc<Principal>>,
    extensions: Extensions,
    line_limit: usize,
    max_initialize_bytes: usize,
    pub(super) warned_about_lsp: AtomicBool,
}

/// Returns the transport facts of a message; called only for requests.
type TransportInfoFn<'a> = &'a dyn Fn() -> TransportInfo;

impl NdjsonConnection {
    pub(crate) fn new(server: Server, options: NdjsonOptions) -> Arc<Self> {
        let calls = Arc::new(Semaphore::new(options.max_in_flight as usize));
        Self::with(server, options, calls, WriteQueue::default())
    }

    /// Creates a connection that shares its call permits with others.
    pub(crate) fn with(
        server: Server,
        options: NdjsonOptions,
        calls: Arc<Semaphore>,
        queue: WriteQueue,
    ) -> Arc<Self> {
        let connection = Arc::new(Self {
            server,
            queue: Arc::new(queue),
            runtime: Arc::default(),
            calls,
            max_in_flight: options.max_in_flight,
            max_own_calls: options.max_own_calls,
            connection: Arc::default(),
            session: Mutex::default(),
            session_end_guard: Mutex::default(),
            session_limits: SessionLimits::default(),
            batches: Arc::new(Semaphore::new(MAX_OPEN_BATCHES)),
            notifier: Mutex::default(),
            principal: options.principal.map(Arc::new),
            extensions: options.extensions,
            line_limit: options.line_limit,
            max_initialize_bytes: options.max_initialize_bytes,
            warned_about_lsp: AtomicBool::new(false),
        });
        let peer: Arc<dyn ConnectionPeer> = connection.clone();
        connection.connection.set_peer(Arc::downgrade(&peer));
        connection
    }

    /// The queue of outgoing lines.
    pub(crate) fn write_queue(&self) -> &Arc<WriteQueue> {
        &self.queue
    }

    /// Returns whether no further call can run.
    pub(super) fn is_busy(&self) -> bool {
        self.calls.available_permits() == 0 || self.runtime.in_flight() >= self.max_own_calls
    }

    /// Running calls and pending client requests.
    pub(crate) fn runtime(&self) -> &SessionRuntime {
        &self.runtime
    }

    /// State shared by its requests.
    pub(crate) fn connection(&self) -> &Arc<ConnectionState> {
        &self.connection
    }

    /// The maximum line length.
    pub(crate) fn line_limit(&self) -> usize {
        self.line_limit
    }

    /// Handles incoming messages. Immediate responses are appended to the queue; the writer is not woken.
    pub(crate) fn handle(
        self: &Arc<Self>,
        incoming: Incoming<'_>,
        transport_info: TransportInfoFn<'_>,
    ) {
        match incoming {
            Incoming::One(message) => {
                self.handle_message(message, ResponseTarget::Line, transport_info);
            }
            Incoming::Batch(messages) => self.receive_batch(messages, transport_info),
        }
    }

    /// Returns whether the session supports batches.
    pub(crate) fn supports_batches(&self) -> bool {
        self.session()
            .is_some_and(|it| session::rules(&it).supports_batches)
    }

    fn receive_batch(
        self: &Arc<Self>,
        messages: Vec<Result<Message<'_>, MalformedMessage>>,
        transport_info: TransportInfoFn<'_>,
    ) {
        if !self.supports_batches() {
            return self.send_error_without_id(&RpcError::invalid_request(
                "batches are not part of this revision: send one message per line",
            ));
        }
        if let Err(error) = session::check_batch(&messages) {
            return self.send_error_without_id(&error);
        }
        let permit = self.batches.clone().try_acquire_owned().ok();
        let is_busy = permit.is_none();
        let batch = BatchResponse::new(self.queue.clone(), messages.len(), permit);
        for (at, message) in messages.into_iter().enumerate() {
            let target = ResponseTarget::Batch(batch.slot(at));
            match message {
                Ok(Message::Request(request)) if is_busy => {
                    self.send_error(&request.id, &busy("arrays"), target);
                }
                Ok(message) => self.handle_message(message, target, transport_info),
                Err(malformed) => self.send_parse_error(malformed, target),
            }
        }
    }

    fn handle_message(
        self: &Arc<Self>,
        message: Message<'_>,
        target: ResponseTarget,
        transport_info: TransportInfoFn<'_>,
    ) {
        match message {
            Message::Request(request) => self.handle_request(&request, target, transport_info),
            Message::Notification(notification) => self.on_notification(&notification),
            Message::Response(response) => self.resolve(response),
            Message::ErrorWithoutId(error) => {
                tracing::debug!(%error, "the peer sent an error without an id");
            }
        }
    }

    fn handle_request(
        self: &Arc<Self>,
        request: &Request<'_>,
        target: ResponseTarget,
        transport_info: TransportInfoFn<'_>,
    ) {
        match self.start_request(request, transport_info) {
            Ok(running_request) => self.run(running_request, target),
            Err(error) => self.send_error(&request.id, &error, target),
        }
    }

    /// Classifies a request and starts it.
    fn start_request(
        self: &Arc<Self>,
        request: &Request<'_>,
        transport_info: TransportInfoFn<'_>,
    ) -> Result<RunningRequest, RpcError> {
        self.runtime.check_unused(&request.id)?;
        let mut record = None;
        let session = || {
            record = self.session();
            match record {
                Some(_) => SessionPresence::Present,
                None => SessionPresence::Absent,
            }
        };
        match classify_request(request, None, session) {
            MessageClass::Stateless(request, meta) => {
                let transport_info = transport_info();
                let origin = stateless::validate(&self.server, request, meta, None, transport_info)
                    .map_err(|rejection| rejection.error)?;
                Ok(RunningRequest::start(&self.server, request, origin, None))
            }
            MessageClass::Initialize(request) => self.initialize(request, transport_info()),
            MessageClass::Session(meta) => match &record {
                Some(record) => self.start_in_session(record, request, &meta, transport_info()),
                None => Err(stateless::version_required()),
            },
            // A client may ping before `initialize`.
            MessageClass::SessionRequired if request.method == "ping" => {
                let origin = session::origin_before_initialize(transport_info());
                let route = SessionRoute::Empty(None);
                Ok(RunningRequest::start_in_session(
                    &self.server,
                    request,
                    origin,
                    route,
                ))
            }
            MessageClass::Invalid(rejection) => Err(rejection.error),
            _ => Err(stateless::version_required()),
        }
    }

    /// Starts a session. It replaces an earlier one. Running calls continue.
    fn initialize(
        &self,
        request: &Request<'_>,
        transport_info: TransportInfo,
    ) -> Result<RunningRequest, RpcError> {
        if request.params.raw().len() > self.max_initialize_bytes {
            return Err(RpcError::invalid_params(format!(
                "the parameters of `initialize` are limited to {} bytes",
                self.max_initialize_bytes
            )));
        }
        let transport = transport_info.transport();
        let (record, running_request) = session::initialize(&self.server, request, transport_info)?;
        let version = record.revision.as_str();
        let key = SessionKey::from_connection(&*self.connection);
        // The earlier session ends first: both have the same key.
        drop(lock(&self.session_end_guard).take());
        *lock(&self.session_end_guard) = self.server.session_guard(key, version, transport);
        self.runtime.reset_first_response();
        *lock(&self.session) = Some(Arc::new(record));
        Ok(running_request)
    }

    fn start_in_session(
        self: &Arc<Self>,
        record: &SessionRecord,
        request: &Request<'_>,
        meta: &RequestMeta<'_>,
        transport_info: TransportInfo,
    ) -> Result<RunningRequest, RpcError> {
        let (server, runtime) = (&self.server, self.runtime.clone());
        let origin = session::request_origin(record, meta, runtime, transport_info);
        let route = session::route(server, record, request, &origin);
        let mut running_request = RunningRequest::start_in_session(server, request, origin, route);
        if let Some(update) = running_request.take_session_update() {
            self.update_session(*update)?;
        }
        Ok(running_request)
    }

    fn on_notification(self: &Arc<Self>, notification: &Notification<'_>) {
        let (server, id) = (&self.server, self.connection.id());
        if let Some(NotificationEffect::Update(update)) =
            session::notify(server, id, notification, Some(&self.runtime))
        {
            // Updates from notifications cannot exceed a limit.
            let _ = self.update_session(update);
        }
    }

    fn resolve(&self, response: Response<'_>) {
        self.runtime.complete(response);
    }

    /// Applies a session update. Does nothing without a session.
    fn update_session(self: &Arc<Self>, update: SessionUpdate) -> Result<(), RpcError> {
        let is_initialized = matches!(update, SessionUpdate::Initialized);
        if let Some(record) = &mut *lock(&self.session) {
            Arc::make_mut(record)
                .apply(update, &self.session_limits)
                .map_err(|error| RpcError::invalid_request(error.to_string()))?;
        } else {
            return Ok(());
        }
        let mut notifier = lock(&self.notifier);
        if is_initialized && notifier.is_none() {
            *notifier = Some(spawn_notifier(self));
        }
        Ok(())
    }

    /// Returns the session record, if initialized.
    pub(super) fn session(&self) -> Option<Arc<SessionRecord>> {
        lock(&self.session).clone()
    }

    /// Stops change notifications.
    pub(super) fn stop_notifier(&self) {
        if let Some(notifier) = lock(&self.notifier).take() {
            notifier.abort();
        }
    }

    /// Responds to a malformed message, or fails the pending request that it was meant to complete.
    pub(super) fn send_parse_error(&self, malformed: MalformedMessage, target: ResponseTarget) {
        if !self.runtime.is_awaiting(&malformed) {
            match &malformed.id {
                Some(id) => self.send_error(id, &malformed.error, target),
                None => self.send(target, self.error_without_id(&malformed.error)),
            }
        } else if let Some(id) = &malformed.id {
            self.runtime.fail(id, malformed.error);
        }
    }

    /// Sends an error without a known request id.
    pub(super) fn send_error_without_id(&self, error: &RpcError) {
        self.send(ResponseTarget::Line, self.error_without_id(error));
    }

    pub(super) fn send_error(&self, id: &RequestId, error: &RpcError, target: ResponseTarget) {
        self.send(
            target,
            FinalResponse::error(Some(id), error, 200).body.into_bytes(),
        );
    }

    /// Encodes an error without a known request id.
    pub(crate) fn error_without_id(&self, error: &RpcError) -> bytes::Bytes {
        if self
            .session()
            .is_some_and(|it| session::rules(&it).errors_carry_null_id)
        {
            let mut body = Vec::new();
            jsonrpc::write_error_with_null_id(&mut body, error);
            body.into()
        } else {
            FinalResponse::error(None, error, 200).body.into_bytes()
        }
    }

    pub(super) fn transport_info(&self) -> TransportInfo {
        TransportInfo {
            principal: self.principal.clone(),
            extensions: self.extensions.clone(),
            announces_subscription_end: true,
            connection: Some(self.connection.clone()),
            session: Some(self.connection.id()),
            ..TransportInfo::default()
        }
    }
}

impl ConnectionPeer for NdjsonConnection {
    fn general_channel(self: Arc<Self>) -> Option<Box<dyn GeneralChannel>> {
        let can_receive = self.session().is_some() && !self.connection.is_closed();
        can_receive.then(|| Box::new(LineChannel(self)) as _)
    }
}

/// The general channel of a connection: its lines.
struct LineChannel(Arc<NdjsonConnection>);

impl GeneralChannel for LineChannel {
    fn runtime(&self) -> &SessionRuntime {
        &self.0.runtime
    }

    fn record(&self) -> ChannelFuture<'_, Option<Arc<SessionRecord>>> {
        Box::pin(std::future::ready(self.0.session()))
    }

    fn send(&self, message: Bytes) -> ChannelFuture<'_, ()> {
        Box::pin(async move {
            self.0.queue.wait_for_room().await;
            self.0.queue.push(&message);
        })
    }
}

/// The error for a peer with too many concurrent requests.
pub(super) fn busy(what: &str) -> RpcError {
    RpcError::internal(format!("busy: too many concurrent {what}; try again later"))
}

impl NdjsonConnection {
    /// Handles one line. Immediate responses are appended to the queue; the writer is not woken.
    pub(crate) fn receive(self: &Arc<Self>, line: DecodedLine<'_>) {
        let bytes = match line {
            DecodedLine::Message(bytes) => bytes,
            DecodedLine::TooLong => {
                return self.send_error_without_id(&too_long(self.line_limit()));
            }
            DecodedLine::LspHeader => return self.reject_lsp_headers(),
        };
        match jsonrpc::parse(bytes) {
            // Nearly all messages. A request is large, so it is not moved.
            Ok(Incoming::One(Message::Request(ref request))) => {
                self.handle_request(request, ResponseTarget::Line, &|| self.transport_info());
            }
            Ok(incoming) => self.handle(incoming, &|| self.transport_info()),
            Err(malformed) => self.send_parse_error(malformed, ResponseTarget::Line),
        }
    }

    fn reject_lsp_headers(&self) {
        if !self.warned_about_lsp.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "the client frames its messages with `Content-Length`, as language servers do; \
                 this protocol has one message per line"
            );
        }
        self.send_error_without_id(&RpcError::parse_error(
            "`Content-Length` framing is not part of this protocol: send one message per line",
        ));
    }
}

fn too_long(limit: usize) -> RpcError {
    RpcError::invalid_request(format!(
        "the line is longer than the maximum of {limit} bytes"
    ))
}

/// Spawns the task that sends change notifications to the session.
pub(super) fn spawn_notifier(connection: &Arc<NdjsonConnection>) -> AbortHandle {
    let changes = connection.server.store_ref().bus.subscribe();
    tokio::spawn(forward_changes(Arc::downgrade(connection), changes)).abort_handle()
}

async fn forward_changes(connection: Weak<NdjsonConnection>, mut changes: BusSubscription) {
    loop {
        let change = changes.next().await;
        let Some(connection) = connection.upgrade() else {
            return;
        };
        let Some(record) = connection.session() else {
            continue;
        };
        let changes: Vec<ServerChange> = match change {
            Ok((_, change)) => vec![change],
            Err(SubscriberLagged { .. }) => session::all_changes(&record),
        };
        if session::defers_notifications(&record, &connection.runtime) {
            continue;
        }
        let id = connection.connection.id();
        for change in changes.into_iter().map(EncodedChange::new) {
            let (server, runtime) = (&connection.server, &connection.runtime);
            if let Some(message) = session::notification_for(server, &record, id, runtime, &change)
            {
                // A slow reader makes the subscription lag, and is notified of all changes later.
                connection.queue.wait_for_room().await;
                connection.queue.push(&message);
            }
        }
    }
}
