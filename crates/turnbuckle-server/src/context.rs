//! What a handler may do beside returning its result.

use std::{
    any::Any,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use bytes::Bytes;
use serde::Serialize;
use tracing::Instrument as _;
use turnbuckle_protocol::{
    Meta, Principal, RequestId, jsonrpc,
    meta::TraceContext,
    types::{ClientCapabilities, Implementation, LogLevel, LoggingMessageParams, ProgressParams},
};
use turnbuckle_store::{Change, TaskRecord};

use crate::{
    Server,
    exchange::Run,
    input::Rounds,
    lifecycle::{Caller, TaskDesign, live::Tags},
    outbox::Outbox,
    tasks::{self, RunningTask},
};

/// What a handler knows about its request, and what it may do beside returning a result.
///
/// Cheap to clone. It never tells how the client speaks: progress, log messages and questions reach every client in
/// the way it understands, or not at all where it cannot.
#[derive(Clone)]
pub struct Context {
    pub(crate) call: Arc<Call>,
}

/// One request on its way through the server.
pub(crate) struct Call {
    pub(crate) id: RequestId,
    pub(crate) server: Server,
    pub(crate) caller: Caller,
    pub(crate) outbox: Outbox,
    /// Questions and answers, where asking ends the round.
    pub(crate) rounds: Option<Box<Rounds>>,
    /// The last progress that was sent.
    progress: Mutex<f64>,
    /// The keys of the questions that this run has asked.
    asked: Mutex<Vec<String>>,
    /// How often progress was reported, whoever wanted to hear of it.
    steps: AtomicU32,
    /// Whether the result is one in which a tool says what went wrong.
    is_tool_error: AtomicBool,
    /// The task that the call has become.
    task: OnceLock<Arc<RunningTask>>,
    /// Whether the handler may make a task of the call, and the one it made.
    turn: Turn,
}

/// How far a call is on its way to become a task.
#[derive(Default)]
pub(crate) struct Turn {
    allowed: AtomicBool,
    made: OnceLock<Arc<TaskRecord>>,
}

impl Context {
    /// Tells the client how far the work has come, if it wants to know: `progress` of `total`.
    ///
    /// A value that does not exceed the last one is left out. Waits while the client is slow to read.
    pub async fn progress(&self, progress: impl Into<f64>, total: impl Into<f64>) {
        self.report(progress.into(), Some(total.into()), None).await;
    }

    /// Like [`progress`](Self::progress), with a sentence for people. The total may be unknown.
    pub async fn progress_message(
        &self,
        progress: impl Into<f64>,
        total: Option<f64>,
        message: impl Into<String>,
    ) {
        self.report(progress.into(), total, Some(message.into()))
            .await;
    }

    async fn report(&self, progress: f64, total: Option<f64>, message: Option<String>) {
        let call = &self.call;
        call.steps.fetch_add(1, Ordering::Relaxed);
        if call.is_muted() {
            return;
        }
        if let (Some(task), Some(message)) = (call.task(), &message) {
            tasks::say(&call.server, task, message).await;
        }
        let Some(token) = &call.caller.progress_token else {
            return;
        };
        let mut params = ProgressParams::new(token.clone(), progress);
        params.total = total;
        params.message = message;
        call.tag(&mut params.meta);
        call.caller.rules.lower(&mut params);
        call.advance(progress, || self.push("notifications/progress", &params));
        call.flushed().await;
    }

    /// Sends a log message to the client, if it wants messages of this level.
    pub async fn log(&self, level: LogLevel, data: impl Serialize) {
        self.log_as(level, None, data).await;
    }

    /// Like [`log`](Self::log), under the name of a logger.
    pub async fn log_as(&self, level: LogLevel, logger: Option<&str>, data: impl Serialize) {
        let call = &self.call;
        if call.caller.log_level.is_none_or(|wanted| level < wanted) || call.is_muted() {
            return;
        }
        let Ok(data) = serde_json::to_value(data) else {
            return;
        };
        let mut params = LoggingMessageParams::new(level, data);
        params.logger = logger.map(str::to_owned);
        call.tag(&mut params.meta);
        call.caller.rules.lower(&mut params);
        self.push("notifications/message", &params);
        call.flushed().await;
    }

    fn push(&self, method: &str, params: &impl Serialize) {
        let mut message = Vec::with_capacity(192);
        if jsonrpc::write_notification(&mut message, method, params).is_ok() {
            self.call.send(message.into());
        }
    }

    /// What the client says about itself.
    pub fn client(&self) -> Option<&Implementation> {
        self.call.caller.client.info.as_ref()
    }

    /// What the client can do.
    pub fn client_capabilities(&self) -> &ClientCapabilities {
        &self.call.caller.client.capabilities
    }

    /// Who is asking, if the transport could tell.
    pub fn principal(&self) -> Option<&Principal> {
        self.call.caller.principal.as_deref()
    }

    /// Where the request belongs in a distributed trace, if the client said so by the rules of W3C Trace Context.
    ///
    /// What the server asks the client because of this request carries it on.
    pub fn trace(&self) -> Option<&TraceContext> {
        self.call.caller.trace.as_deref()
    }

    /// The id of the request, for logs.
    pub fn request_id(&self) -> &RequestId {
        &self.call.id
    }

    /// Something that a layer below put into the request: HTTP headers (`http::HeaderMap`), the peer's address
    /// (`std::net::SocketAddr`), anything of your own. On stdio there is only what was put there by hand.
    pub fn get<T: Clone + Send + Sync + 'static>(&self) -> Option<&T> {
        let caller = &self.call.caller;
        caller
            .extensions
            .get::<T>()
            .or_else(|| same_type(caller.headers.as_deref()?))
            .or_else(|| same_type(caller.peer.as_ref()?))
    }

    /// Ends the HTTP connection that waits for this call, while the call goes on.
    ///
    /// The client comes back later for what it missed, so that a long call holds no connection. Only clients of
    /// sessions that expect it are sent away; for all others nothing happens.
    pub fn close_stream(&self) {
        self.call.outbox.hang_up();
    }

    /// Tells every client that wants to know that a resource has new content.
    pub fn resource_updated(&self, uri: impl Into<Arc<str>>) {
        self.publish(Change::ResourceUpdated { uri: uri.into() });
    }

    /// Tells every client that wants to know that the list of tools has changed.
    pub fn tools_changed(&self) {
        self.publish(Change::ToolsChanged);
    }

    /// Tells every client that wants to know that the list of prompts has changed.
    pub fn prompts_changed(&self) {
        self.publish(Change::PromptsChanged);
    }

    /// Tells every client that wants to know that the list of resources has changed.
    pub fn resources_changed(&self) {
        self.publish(Change::ResourcesChanged);
    }

    fn publish(&self, change: Change) {
        if !self.call.is_muted() {
            self.call.server.publish(change);
        }
    }

    /// Runs a future to its end even if the call is cancelled, which drops the handler where it stands.
    ///
    /// Returns what it returns, or nothing if it panicked.
    pub async fn detach<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        tokio::spawn(future.in_current_span()).await.ok()
    }

    /// The server that runs this handler.
    pub fn server(&self) -> &Server {
        &self.call.server
    }
}

/// Returns a value as the type asked for, if that is its type.
fn same_type<T: 'static>(value: &dyn Any) -> Option<&T> {
    value.downcast_ref()
}

impl Call {
    pub(crate) fn new(id: RequestId, server: Server, caller: Caller) -> Self {
        Self {
            id,
            server,
            caller,
            outbox: Outbox::default(),
            rounds: None,
            progress: Mutex::new(f64::NEG_INFINITY),
            asked: Mutex::default(),
            steps: AtomicU32::new(0),
            is_tool_error: AtomicBool::new(false),
            task: OnceLock::new(),
            turn: Turn::default(),
        }
    }

    /// The task that the call has become.
    pub(crate) fn task(&self) -> Option<&Arc<RunningTask>> {
        self.task.get()
    }

    /// Makes a task of the call.
    pub(crate) fn set_task(&self, task: Arc<RunningTask>) {
        // A call becomes a task once.
        let _ = self.task.set(task);
    }

    /// Lets the handler say when the call becomes a task.
    pub(crate) fn allow_turn(&self) {
        self.turn.allowed.store(true, Ordering::Relaxed);
    }

    /// Says whether the handler may make a task of the call now.
    pub(crate) fn may_become_task(&self) -> bool {
        self.turn.allowed.load(Ordering::Relaxed) && self.task.get().is_none()
    }

    /// Makes a task of the running call; whoever drives it learns that by [`turned`](Self::turned).
    pub(crate) fn turn_into(&self, record: Arc<TaskRecord>) {
        self.set_task(RunningTask::new(&record));
        let _ = self.turn.made.set(record);
        self.turn.allowed.store(false, Ordering::Relaxed);
    }

    /// The task that the handler just made of the call.
    pub(crate) fn turned(&self) -> Option<(&Arc<TaskRecord>, &Arc<RunningTask>)> {
        Some((self.turn.made.get()?, self.task.get()?))
    }

    /// What a request to the client says about where it comes from.
    pub(crate) fn tags(&self) -> Tags<'_> {
        Tags {
            trace: self.caller.trace.as_deref(),
            task: None,
        }
    }

    /// Sends a message on behalf of the handler: to the caller, or to those who wait for the task.
    fn send(&self, message: Bytes) {
        match self.task() {
            None => self.outbox.push(message),
            Some(task) if self.caller.rules.tasks == TaskDesign::Asked => task.tell(&message),
            // Here only the state of a task is told.
            Some(_) => {}
        }
    }

    async fn flushed(&self) {
        match self.task() {
            None => self.outbox.flushed().await,
            Some(task) => task.told().await,
        }
    }

    /// Names the task that a message of the handler belongs to, where the design wants that.
    pub(crate) fn tag(&self, meta: &mut Meta) {
        if let Some(task) = self.task()
            && self.caller.rules.tasks == TaskDesign::Asked
        {
            meta.set_related_task(task.related());
        }
    }

    /// Says whether the handler only repeats what an earlier round has shown.
    pub(crate) fn is_muted(&self) -> bool {
        self.rounds
            .as_ref()
            .is_some_and(|rounds| rounds.is_replaying())
    }

    /// Sends progress that exceeds the last one; what does not is left out.
    fn advance(&self, progress: f64, send: impl FnOnce()) {
        // Held while sending, so that what was checked first goes out first.
        let mut last = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        // Not a number exceeds nothing.
        if progress.is_finite() && progress > *last {
            *last = progress;
            send();
        }
    }

    /// Notes that a question is asked; says whether it is the first under its key.
    pub(crate) fn asks(&self, key: &str) -> bool {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let first = !asked.iter().any(|known| known == key);
        if first {
            asked.push(key.to_owned());
        }
        first
    }

    /// How often the handler has reported progress.
    pub(crate) fn steps(&self) -> u32 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Says whether the result is one in which a tool says what went wrong.
    pub(crate) fn is_tool_error(&self) -> bool {
        self.is_tool_error.load(Ordering::Relaxed)
    }

    /// Notes whether the result is one in which a tool says what went wrong.
    pub(crate) fn set_tool_error(&self, is_tool_error: bool) {
        self.is_tool_error.store(is_tool_error, Ordering::Relaxed);
    }

    /// The outcome of a round that ended with open questions.
    pub(crate) fn end_of_round(&self) -> Option<Run> {
        self.rounds.as_ref()?.end(self)
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("request_id", &self.call.id)
            .finish_non_exhaustive()
    }
}
