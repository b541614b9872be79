//! One request in progress: its state, the handler that runs for it, and the messages it sends.

pub(crate) mod error;
mod outbox;
mod relayed_queue;
pub(crate) mod response;
mod running;
pub(crate) mod span;
pub(crate) mod timestamp;

use std::sync::{
    Arc, Mutex, OnceLock,
    atomic::{AtomicBool, AtomicU32, Ordering},
};

use bytes::Bytes;
pub(crate) use outbox::{Outbox, OutboxEvent, RelayedKind, RelayedQueue};
pub(crate) use running::{
    BoxFuture, DispatchOutcome, FinalResponse, RequestEvent, ResponseResult, RunningRequest,
};
use turnbuckle_protocol::{Meta, RequestId, jsonrpc::Request};
use turnbuckle_store::TaskRecord;

use crate::{
    Server,
    catalog::scopes::HttpRejection,
    input::RoundTrips,
    lifecycle::{RequestOrigin, TaskModel, runtime::RequestMetaTags},
    server::SharedState,
    sync::lock,
    tasks::RunningTask,
};

/// The state of one request.
pub(crate) struct RequestContext {
    pub(crate) id: RequestId,
    pub(crate) server: Server,
    pub(crate) origin: RequestOrigin,
    pub(crate) outbox: Outbox,
    /// State of the round trips, where client requests end the call.
    pub(crate) round_trips: Option<Box<RoundTrips>>,
    /// The last progress value sent.
    progress: Mutex<f64>,
    /// Keys of the client requests of this run.
    request_keys: Mutex<Vec<String>>,
    /// Number of progress reports, sent or not.
    progress_count: AtomicU32,
    /// True if the result is a tool error.
    is_tool_error: AtomicBool,
    /// The task that the call runs as.
    task: OnceLock<Arc<RunningTask>>,
    /// State of the promotion to a task by the handler.
    promotion: TaskPromotion,
    /// The state of the mounted server that the handler belongs to.
    pub(crate) mounted_state: OnceLock<Arc<SharedState>>,
    /// The HTTP status and headers of the error that a relay returns.
    rejection: Mutex<Option<Box<HttpRejection>>>,
}

/// The promotion of a call to a task.
#[derive(Default)]
pub(crate) struct TaskPromotion {
    allowed: AtomicBool,
    record: OnceLock<Arc<TaskRecord>>,
}

impl RequestContext {
    /// Creates the state of a received request.
    pub(crate) fn for_request(
        server: &Server,
        request: &Request<'_>,
        origin: RequestOrigin,
    ) -> Arc<Self> {
        Arc::new(Self::new(request.id.clone(), server.clone(), origin))
    }

    pub(crate) fn new(id: RequestId, server: Server, origin: RequestOrigin) -> Self {
        Self {
            id,
            server,
            origin,
            outbox: Outbox::default(),
            round_trips: None,
            progress: Mutex::new(f64::NEG_INFINITY),
            request_keys: Mutex::default(),
            progress_count: AtomicU32::new(0),
            is_tool_error: AtomicBool::new(false),
            task: OnceLock::new(),
            promotion: TaskPromotion::default(),
            mounted_state: OnceLock::new(),
            rejection: Mutex::default(),
        }
    }

    /// Sets the HTTP status and headers of an error, for the case that it is the response.
    pub(crate) fn set_rejection(&self, rejection: Box<HttpRejection>) {
        *lock(&self.rejection) = Some(rejection);
    }

    /// Takes the HTTP status and headers of the error that a relay returned.
    pub(crate) fn take_rejection(&self) -> Option<Box<HttpRejection>> {
        lock(&self.rejection).take()
    }

    /// The task that the call runs as.
    pub(crate) fn task(&self) -> Option<&Arc<RunningTask>> {
        self.task.get()
    }

    /// Sets the task of the call.
    pub(crate) fn set_task(&self, task: Arc<RunningTask>) {
        // Set once per call.
        let _ = self.task.set(task);
    }

    /// Allows the handler to promote the call to a task.
    pub(crate) fn allow_task_promotion(&self) {
        self.promotion.allowed.store(true, Ordering::Relaxed);
    }

    /// Returns whether the handler may promote the call now.
    pub(crate) fn may_become_task(&self) -> bool {
        self.promotion.allowed.load(Ordering::Relaxed) && self.task.get().is_none()
    }

    /// Promotes the running call to a task. The driver sees it in [`promoted_task`](Self::promoted_task).
    pub(crate) fn promote_to_task(&self, record: Arc<TaskRecord>) {
        self.set_task(RunningTask::new(&record));
        let _ = self.promotion.record.set(record);
        self.promotion.allowed.store(false, Ordering::Relaxed);
    }

    /// The task that the handler promoted the call to.
    pub(crate) fn promoted_task(&self) -> Option<(&Arc<TaskRecord>, &Arc<RunningTask>)> {
        Some((self.promotion.record.get()?, self.task.get()?))
    }

    /// Returns the `_meta` members of client requests.
    pub(crate) fn request_meta(&self) -> RequestMetaTags<'_> {
        RequestMetaTags {
            trace: self.origin.trace.as_deref(),
            task: None,
            relayed: "",
        }
    }

    /// Sends a message of the handler: to the caller, or to the clients that wait for the task.
    pub(crate) fn send(&self, message: Bytes) {
        match self.task() {
            None => self.outbox.push(message),
            Some(task) if self.origin.rules.tasks == TaskModel::ClientRequested => {
                task.notify_waiters(&message);
            }
            // In this model only the state of a task is sent.
            Some(_) => {}
        }
    }

    /// Sends a notification of a relay, which does not wait for the caller.
    pub(crate) fn send_relayed(&self, kind: RelayedKind, message: Bytes) {
        match self.task() {
            None => self.outbox.push_relayed(kind, message),
            Some(_) => self.send(message),
        }
    }

    pub(crate) async fn wait_for_room(&self) {
        match self.task() {
            None => self.outbox.wait_for_room().await,
            Some(task) => task.wait_delivered().await,
        }
    }

    /// Adds the related task to a message, if the task model requires it.
    pub(crate) fn set_related_task(&self, meta: &mut Meta) {
        if let Some(task) = self.task()
            && self.origin.rules.tasks == TaskModel::ClientRequested
        {
            meta.set_related_task(task.related());
        }
    }

    /// Returns whether the handler is replaying an earlier round trip.
    pub(crate) fn is_replaying(&self) -> bool {
        self.round_trips
            .as_ref()
            .is_some_and(|round_trips| round_trips.is_replaying())
    }

    /// Sends progress if it exceeds the last value.
    pub(crate) fn send_if_progressed(&self, progress: f64, send: impl FnOnce()) {
        // Locked while sending, so that messages keep their order.
        let mut last = lock(&self.progress);
        // NaN never exceeds a value.
        if progress.is_finite() && progress > *last {
            *last = progress;
            send();
        }
    }

    /// Registers the key of a client request. Returns whether it is unused.
    pub(crate) fn register_key(&self, key: &str) -> bool {
        let mut request_keys = lock(&self.request_keys);
        let first = !request_keys.iter().any(|existing| existing == key);
        if first {
            request_keys.push(key.to_owned());
        }
        first
    }

    /// Counts a progress report of the handler.
    pub(crate) fn count_progress(&self) {
        self.progress_count.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of progress reports.
    pub(crate) fn progress_count(&self) -> u32 {
        self.progress_count.load(Ordering::Relaxed)
    }

    /// Returns whether the result is a tool error.
    pub(crate) fn is_tool_error(&self) -> bool {
        self.is_tool_error.load(Ordering::Relaxed)
    }

    /// Records whether the result is a tool error.
    pub(crate) fn set_tool_error(&self, is_tool_error: bool) {
        self.is_tool_error.store(is_tool_error, Ordering::Relaxed);
    }

    /// Returns the end of a round trip with open requests, if any.
    pub(crate) fn round_trip_end(&self) -> Option<DispatchOutcome> {
        self.round_trips.as_ref()?.end(self)
    }
}
