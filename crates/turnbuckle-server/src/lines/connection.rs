//! One peer that keeps a connection: from a message to what is to be done about it.
//!
//! Messages come as lines of a byte stream, or as bodies where HTTP+SSE makes events of outgoing lines.
//!
//! Both eras live side by side here: every request is judged by itself, and what a handshake said is remembered apart
//! from what stands on its own.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicBool};

use http::Extensions;
use tokio::{sync::Semaphore, task::AbortHandle};
use turnbuckle_protocol::{
    Principal, RequestId, RpcError,
    jsonrpc::{self, Incoming, Malformed, Message, Notification, Request, Response},
    meta::RequestMeta,
};
use turnbuckle_store::{SessionChange, SessionLimits, SessionRecord};

use super::{Options, batch::Batch, call::Outlet, changes, sink::Sink};
use crate::{
    Server, dispatch,
    exchange::{Answer, Exchange},
    lifecycle::{
        self, Arrival,
        connected::Connected,
        live::Live,
        session::{self, Begun},
        stateless,
    },
    middleware::{SessionKey, Told},
};

/// Arrays whose answers may wait for each other at one time.
const MOST_OPEN_BATCHES: usize = 64;

/// One peer: what its handshake said, what runs for it, and where its answers go.
pub(crate) struct Connection {
    pub(super) server: Server,
    pub(super) sink: Arc<Sink>,
    /// Running calls of both eras, and questions that wait for the client.
    pub(super) live: Arc<Live>,
    /// One permit for each call that may be running.
    pub(super) calls: Arc<Semaphore>,
    pub(super) max_in_flight: u32,
    /// What requests on it share.
    pub(super) connected: Arc<Connected>,
    session: Mutex<Option<Arc<SessionRecord>>>,
    /// Tells layers of the session's end.
    told: Mutex<Option<Told>>,
    session_limits: SessionLimits,
    batches: Arc<Semaphore>,
    /// The task that tells the session of changes.
    announcer: Mutex<Option<AbortHandle>>,
    principal: Option<Arc<Principal>>,
    extensions: Extensions,
    line_limit: usize,
    handshake_limit: usize,
    pub(super) has_seen_headers: AtomicBool,
}

/// What is known of the sender beside a message; only asked for if the message is a request.
type Arriving<'a> = &'a dyn Fn() -> Arrival;

impl Connection {
    pub(crate) fn new(server: Server, options: Options) -> Arc<Self> {
        let calls = Arc::new(Semaphore::new(options.max_in_flight as usize));
        Self::with(server, options, calls, Sink::default())
    }

    /// A connection whose calls may be counted together with those of others.
    pub(crate) fn with(
        server: Server,
        options: Options,
        calls: Arc<Semaphore>,
        sink: Sink,
    ) -> Arc<Self> {
        Arc::new(Self {
            server,
            sink: Arc::new(sink),
            live: Arc::default(),
            calls,
            max_in_flight: options.max_in_flight,
            connected: Arc::default(),
            session: Mutex::default(),
            told: Mutex::default(),
            session_limits: SessionLimits::default(),
            batches: Arc::new(Semaphore::new(MOST_OPEN_BATCHES)),
            announcer: Mutex::default(),
            principal: options.principal.map(Arc::new),
            extensions: options.extensions,
            line_limit: options.line_limit,
            handshake_limit: options.handshake_limit,
            has_seen_headers: AtomicBool::new(false),
        })
    }

    /// The outgoing lines.
    pub(crate) fn sink(&self) -> &Arc<Sink> {
        &self.sink
    }

    /// What runs, and what was asked.
    pub(crate) fn live(&self) -> &Live {
        &self.live
    }

    /// What its requests share.
    pub(crate) fn connected(&self) -> &Arc<Connected> {
        &self.connected
    }

    /// The longest line that is read.
    pub(crate) fn line_limit(&self) -> usize {
        self.line_limit
    }

    /// Takes what came at once. What can be answered without waiting is added to the sink; the writer is not woken.
    pub(crate) fn handle(self: &Arc<Self>, incoming: Incoming<'_>, arrival: Arriving<'_>) {
        match incoming {
            Incoming::One(message) => self.take(message, Outlet::Line, arrival),
            Incoming::Batch(messages) => self.receive_batch(messages, arrival),
        }
    }

    /// Says whether the session takes several messages in one array.
    pub(crate) fn takes_batches(&self) -> bool {
        self.session().is_some_and(|it| session::rules(&it).batches)
    }

    fn receive_batch(
        self: &Arc<Self>,
        messages: Vec<Result<Message<'_>, Malformed>>,
        arrival: Arriving<'_>,
    ) {
        if !self.takes_batches() {
            return self.refuse(&RpcError::invalid_request(
                "several messages in one array are not part of this revision: send one message per line",
            ));
        }
        if let Err(error) = session::check_batch(&messages) {
            return self.refuse(&error);
        }
        let permit = self.batches.clone().try_acquire_owned().ok();
        let is_busy = permit.is_none();
        let batch = Batch::new(self.sink.clone(), messages.len(), permit);
        for (at, message) in messages.into_iter().enumerate() {
            let outlet = Outlet::Batch(batch.slot(at));
            match message {
                Ok(Message::Request(request)) if is_busy => {
                    self.fail(&request.id, &busy("arrays"), outlet);
                }
                Ok(message) => self.take(message, outlet, arrival),
                Err(malformed) => self.complain(malformed, outlet),
            }
        }
    }

    fn take(self: &Arc<Self>, message: Message<'_>, outlet: Outlet, arrival: Arriving<'_>) {
        match message {
            Message::Request(request) => self.answer(&request, outlet, arrival),
            Message::Notification(notification) => self.notice(&notification),
            Message::Response(response) => self.resolve(response),
            Message::Complaint(error) => tracing::debug!(%error, "the peer could not read us"),
        }
    }

    fn answer(self: &Arc<Self>, request: &Request<'_>, outlet: Outlet, arrival: Arriving<'_>) {
        match self.begin(request, arrival) {
            Ok(exchange) => self.run(exchange, outlet),
            Err(error) => self.fail(&request.id, &error, outlet),
        }
    }

    /// Decides by which rules a request lives, and begins to answer it.
    fn begin(
        self: &Arc<Self>,
        request: &Request<'_>,
        arrival: Arriving<'_>,
    ) -> Result<Exchange, RpcError> {
        self.live.check(&request.id)?;
        let meta = lifecycle::meta(request)?;
        if meta.protocol_version.is_some() {
            return self.begin_stateless(request, meta, arrival());
        }
        if request.method == "initialize" {
            return self.initialize(request, arrival());
        }
        match self.session() {
            Some(record) => self.begin_in_session(&record, request, &meta, arrival()),
            // Also before the handshake a client may ask whether anyone is there.
            None if request.method == "ping" => {
                Ok(session::pong(&self.server, request.id.clone(), arrival()))
            }
            None => self.begin_stateless(request, meta, arrival()),
        }
    }

    fn begin_stateless(
        &self,
        request: &Request<'_>,
        meta: RequestMeta<'_>,
        arrival: Arrival,
    ) -> Result<Exchange, RpcError> {
        let caller = stateless::admit(&self.server, request, meta, None, arrival)
            .map_err(|refusal| refusal.error)?;
        Ok(dispatch::begin(&self.server, request, caller, None))
    }

    /// Opens a session. It takes the place of an earlier one, whose running calls go on.
    fn initialize(&self, request: &Request<'_>, arrival: Arrival) -> Result<Exchange, RpcError> {
        if request.params.raw().len() > self.handshake_limit {
            return Err(RpcError::invalid_params(format!(
                "a client may say at most {} bytes about itself",
                self.handshake_limit
            )));
        }
        let transport = arrival.transport();
        let (record, exchange) = session::initialize(&self.server, request, arrival)?;
        let version = record.revision.as_str();
        let key = SessionKey::at(&*self.connected);
        // The earlier one ends before this one begins: they have the same key.
        drop(lock(&self.told).take());
        *lock(&self.told) = self.server.session_lives(key, version, transport);
        self.live.starts_over();
        *lock(&self.session) = Some(Arc::new(record));
        Ok(exchange)
    }

    fn begin_in_session(
        self: &Arc<Self>,
        record: &SessionRecord,
        request: &Request<'_>,
        meta: &RequestMeta<'_>,
        arrival: Arrival,
    ) -> Result<Exchange, RpcError> {
        let live = self.live.clone();
        match session::begin(&self.server, record, live, request, meta, arrival) {
            Begun::Exchange(exchange) => Ok(exchange),
            Begun::Change(change, exchange) => self.change(change).map(|()| exchange),
        }
    }

    fn notice(self: &Arc<Self>, notification: &Notification<'_>) {
        if let Some(change) = session::notify(notification, Some(&self.live)) {
            // Nothing that a notification changes can be too much.
            let _ = self.change(change);
        }
    }

    fn resolve(&self, response: Response<'_>) {
        self.live.resolve(response);
    }

    /// Remembers a change of the session; without one there is nothing to change.
    fn change(self: &Arc<Self>, change: SessionChange) -> Result<(), RpcError> {
        let begins = matches!(change, SessionChange::Initialized);
        if let Some(record) = &mut *lock(&self.session) {
            Arc::make_mut(record)
                .apply(change, &self.session_limits)
                .map_err(|error| RpcError::invalid_request(error.to_string()))?;
        } else {
            return Ok(());
        }
        let mut announcer = lock(&self.announcer);
        if begins && announcer.is_none() {
            *announcer = Some(changes::announce(self));
        }
        Ok(())
    }

    /// What is remembered of the handshake, if there was one.
    pub(super) fn session(&self) -> Option<Arc<SessionRecord>> {
        lock(&self.session).clone()
    }

    /// Ends the telling of changes.
    pub(super) fn stop_announcing(&self) {
        if let Some(announcer) = lock(&self.announcer).take() {
            announcer.abort();
        }
    }

    /// Answers bytes that are no message, or tells whoever waits for the answer that they were meant to be.
    pub(super) fn complain(&self, malformed: Malformed, outlet: Outlet) {
        if !self.live.awaits(&malformed) {
            match &malformed.id {
                Some(id) => self.fail(id, &malformed.error, outlet),
                None => self.send(outlet, self.error_without_id(&malformed.error)),
            }
        } else if let Some(id) = &malformed.id {
            self.live.spoil(id, malformed.error);
        }
    }

    /// Answers something whose id is not known.
    pub(super) fn refuse(&self, error: &RpcError) {
        self.send(Outlet::Line, self.error_without_id(error));
    }

    pub(super) fn fail(&self, id: &RequestId, error: &RpcError, outlet: Outlet) {
        self.send(
            outlet,
            Answer::error(Some(id), error, 200).body.into_bytes(),
        );
    }

    /// The error response to something whose id is not known.
    pub(crate) fn error_without_id(&self, error: &RpcError) -> bytes::Bytes {
        if self
            .session()
            .is_some_and(|it| session::rules(&it).null_ids)
        {
            let mut body = Vec::new();
            jsonrpc::write_error_with_null_id(&mut body, error);
            body.into()
        } else {
            Answer::error(None, error, 200).body.into_bytes()
        }
    }

    pub(super) fn arrival(&self) -> Arrival {
        Arrival {
            principal: self.principal.clone(),
            extensions: self.extensions.clone(),
            says_goodbye: true,
            connected: Some(self.connected.clone()),
            session: Some(self.connected.id()),
            ..Arrival::default()
        }
    }
}

/// The error for a peer that has too much running at once.
pub(super) fn busy(what: &str) -> RpcError {
    RpcError::internal(format!(
        "busy: too many {what} are unanswered; try again when some are"
    ))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic while the lock is held leaves a valid value behind.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
