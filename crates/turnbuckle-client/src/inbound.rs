//! Routes every received message that is not the response to a pending request.
//!
//! Progress goes to its call, log messages and changes go to observers and subscribers, and server requests go to the
//! callbacks. Independent of the transport: responses are sent through the client.

pub(crate) mod message;
pub(crate) mod observers;
pub(crate) mod pending_requests;
pub(crate) mod progress;
pub(crate) mod recorder;
mod server_requests;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, Weak},
};

use bytes::Bytes;
use serde::de::DeserializeOwned;
use tokio::sync::{Semaphore, broadcast, watch};
use turnbuckle_protocol::{
    RequestId, RpcError, json,
    method::{self, Method},
    types::{
        CancelledParams, ElicitationCompleteParams, LoggingMessageParams, ProgressParams,
        ResourceUpdatedParams,
        tasks::{GetTaskResult, legacy},
    },
};

use crate::{
    cache::ResponseCache,
    callbacks,
    client::ClientInner,
    error::{ConnectError, TransportError},
    inbound::{
        message::{InboundMessage, RawResult},
        observers::{Anomaly, MessageDirection, TracedMessage},
        pending_requests::{CancelledRequests, PendingSends},
        progress::ProgressRegistry,
        recorder::Recorder,
    },
    relay::{Relay, RelayCallId, RelayHandler},
    subscription::SubscriptionRegistry,
    sync::lock,
    target::{Change, ClientLimits},
    tasks,
    transport::Transport,
};

pub(crate) type OnLog = Arc<dyn Fn(LoggingMessageParams) + Send + Sync>;
pub(crate) type OnAnomaly = Arc<dyn Fn(Anomaly) + Send + Sync>;
pub(crate) type OnMessage = Arc<dyn Fn(TracedMessage<'_>) + Send + Sync>;

/// Maximum number of signals queued for a slow subscriber; older ones are dropped.
const MAX_QUEUED_SIGNALS: usize = 256;

/// The state that all transports share.
pub(crate) struct InboundRouter {
    pub(crate) limits: ClientLimits,
    pub(crate) progress_registry: Arc<ProgressRegistry>,
    pub(crate) cancelled_requests: CancelledRequests,
    /// The `tasks/cancel` requests in flight for the tasks of dropped calls.
    pub(crate) task_cancellations: PendingSends,
    pub(crate) signals: broadcast::Sender<SubscriberSignal>,
    /// The open listen requests, by id.
    pub(crate) subscriptions: SubscriptionRegistry,
    /// The cached responses.
    cache: Mutex<ResponseCache>,
    observers: Observers,
    /// The handler of raw messages, in a client that relays.
    relay: Option<Relay>,
    server_requests: server_requests::ServerRequests,
    /// Limits the number of concurrent server requests, and of concurrent error responses.
    response_permits: Arc<Semaphore>,
    error_permits: Arc<Semaphore>,
    client: Mutex<Weak<ClientInner>>,
    /// Whether the last clone of the client was dropped.
    client_dropped: watch::Sender<bool>,
}

/// A signal to subscribers.
#[derive(Clone, Debug)]
pub(crate) enum SubscriberSignal {
    /// A change on the server.
    Change(Change),
    /// The connection was interrupted, or the session was renewed: changes may have been missed.
    Gap,
    /// The connection has ended.
    End(TransportError),
}

/// The callbacks of the program.
#[derive(Clone, Default)]
pub(crate) struct Observers {
    pub(crate) log: Option<OnLog>,
    pub(crate) anomaly: Option<OnAnomaly>,
    pub(crate) message_trace: Option<OnMessage>,
    pub(crate) relay: Option<Arc<dyn RelayHandler>>,
    pub(crate) recorder: Option<Recorder>,
}

impl InboundRouter {
    pub(crate) fn new(limits: ClientLimits, observers: Observers) -> Arc<Self> {
        Arc::new(Self {
            progress_registry: Arc::default(),
            cancelled_requests: CancelledRequests::default(),
            task_cancellations: PendingSends::default(),
            signals: broadcast::Sender::new(MAX_QUEUED_SIGNALS),
            subscriptions: SubscriptionRegistry::default(),
            cache: Mutex::new(ResponseCache::new(
                limits.max_cached_responses,
                limits.max_cache_bytes,
            )),
            relay: observers.relay.clone().map(Relay::new),
            observers,
            server_requests: server_requests::ServerRequests::default(),
            response_permits: Arc::new(Semaphore::new(limits.max_server_requests)),
            error_permits: Arc::new(Semaphore::new(limits.max_server_requests)),
            client: Mutex::default(),
            client_dropped: watch::Sender::new(false),
            limits,
        })
    }

    /// Sets the client. It is set again when the server is restarted. Until then, server requests are not handled.
    pub(crate) fn set_client(&self, client: Weak<ClientInner>) {
        *lock(&self.client) = client;
    }

    /// Receives bytes without a pending response, possibly several messages.
    pub(crate) fn receive_bytes(self: &Arc<Self>, bytes: &Bytes) {
        message::read(bytes, |received| self.receive(received));
    }

    /// Receives a message that is not the response to a pending request.
    pub(crate) fn receive(self: &Arc<Self>, received: InboundMessage) {
        self.receive_from(received, None);
    }

    /// Receives a message from the HTTP response stream of a call, if that call is relayed.
    pub(crate) fn receive_from(
        self: &Arc<Self>,
        received: InboundMessage,
        call: Option<RelayCallId>,
    ) {
        match received {
            InboundMessage::Response { id, outcome } => self.on_unexpected_response(id, &outcome),
            InboundMessage::InvalidResponse { error, .. } => {
                self.report_anomaly(Anomaly::InvalidResponse(error));
            }
            InboundMessage::ErrorWithoutId(error) => {
                self.report_anomaly(Anomaly::ErrorWithoutId(error));
            }
            InboundMessage::Malformed { id, error } => {
                self.report_anomaly(Anomaly::NotJson(error.to_string()));
                self.send_error(id, error);
            }
            InboundMessage::Notification { method, params } => {
                if let Some(relay) = &self.relay {
                    relay.on_notification(&method, params.as_str(), call);
                }
                self.on_notification(&method, params.as_str());
            }
            InboundMessage::Request { id, method, params } => {
                self.on_request(id, method, params, call);
            }
        }
    }

    /// Receives a response without a pending request: an anomaly, unless the request was cancelled.
    pub(crate) fn on_unexpected_response(
        &self,
        id: RequestId,
        outcome: &Result<RawResult, RpcError>,
    ) {
        if !self.cancelled_requests.take(&id) {
            return self.report_anomaly(Anomaly::UnexpectedResponse(id));
        }
        // The call may have created a task before the server received its cancellation.
        if let (Ok(result), Some(client)) = (outcome, self.client()) {
            tasks::cancel_abandoned(&client.into(), result.json.as_str());
        }
    }

    /// Signals to subscribers that changes may have been missed.
    pub(crate) fn notify_gap(&self) {
        self.cache().clear();
        if let Some(relay) = &self.relay {
            relay.on_gap();
        }
        let _ = self.signals.send(SubscriberSignal::Gap);
    }

    /// Renews the session if there are subscribers, or a relay: without a session they would receive nothing.
    pub(crate) fn on_session_ended(self: &Arc<Self>) {
        let (router, client) = (Arc::clone(self), self.client());
        let is_needed = self.signals.receiver_count() > 0 || self.relay.is_some();
        let Some(client) = client.filter(|_| is_needed) else {
            return;
        };
        tokio::spawn(async move {
            let current = client.rules();
            if let Err(error) = client.renew(&current).await {
                tracing::debug!(%error, "the session was not renewed");
                router.end(match error {
                    ConnectError::Authorization(failure) => TransportError::Authorization(failure),
                    _ => TransportError::SessionEnded,
                });
            }
        });
    }

    /// Returns the response cache.
    pub(crate) fn cache(&self) -> MutexGuard<'_, ResponseCache> {
        lock(&self.cache)
    }

    /// Starts to report the end of the connection to a relay.
    pub(crate) fn on_connected(&self, transport: &Transport) {
        let Some(relay) = &self.relay else {
            return;
        };
        relay.on_connected();
        // It may have ended since the handshake.
        if let Some(reason) = transport.ended() {
            relay.on_end(&reason);
        }
    }

    /// Signals to subscribers that the connection has ended.
    pub(crate) fn end(&self, reason: TransportError) {
        if let Some(relay) = &self.relay {
            self.abort_server_requests();
            relay.on_end(&reason);
        }
        let _ = self.signals.send(SubscriberSignal::End(reason));
    }

    /// Stops every task that runs on behalf of the client.
    pub(crate) fn client_dropped(&self) {
        self.client_dropped.send_replace(true);
    }

    /// Logs an anomaly and reports it to the observer.
    pub(crate) fn report_anomaly(&self, anomaly: Anomaly) {
        tracing::warn!(%anomaly, "anomaly");
        if let Some(recorder) = self.recorder() {
            recorder.record_anomaly(&anomaly);
        }
        if let Some(callback) = &self.observers.anomaly {
            callbacks::notify_observer(|| callback(anomaly));
        }
    }

    /// Returns the recorder, if traffic is recorded.
    pub(crate) fn recorder(&self) -> Option<&Recorder> {
        self.observers.recorder.as_ref()
    }

    /// Reports a message to the observer.
    pub(crate) fn trace(&self, direction: MessageDirection, message: &[u8]) {
        if let Some(callback) = &self.observers.message_trace {
            let message = &String::from_utf8_lossy(message);
            callbacks::notify_observer(|| callback(TracedMessage { direction, message }));
        }
    }

    /// Returns the client, unless it was dropped.
    pub(crate) fn client(&self) -> Option<Arc<ClientInner>> {
        lock(&self.client).upgrade()
    }
}

impl fmt::Debug for InboundRouter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InboundRouter").finish_non_exhaustive()
    }
}

impl InboundRouter {
    /// Receives a notification; unknown ones are ignored.
    pub(super) fn on_notification(self: &Arc<Self>, name: &str, params: &str) {
        const PROGRESS: &str = method::PROGRESS.name;
        const MESSAGE: &str = method::MESSAGE.name;
        const CANCELLED: &str = method::CANCELLED.name;
        const TOOLS: &str = method::TOOLS_LIST_CHANGED.name;
        const PROMPTS: &str = method::PROMPTS_LIST_CHANGED.name;
        const RESOURCES: &str = method::RESOURCES_LIST_CHANGED.name;
        const UPDATED: &str = method::RESOURCES_UPDATED.name;
        const ELICITATION_COMPLETE: &str = method::ELICITATION_COMPLETE.name;
        const TASK: &str = method::TASKS_CHANGED.name;
        const TASK_STATUS: &str = method::TASKS_STATUS.name;
        const ACKNOWLEDGED: &str = method::SUBSCRIPTIONS_ACKNOWLEDGED.name;
        self.subscriptions.on_notification(name, params);
        match name {
            PROGRESS => self.with(name, params, |params| self.progress(params)),
            MESSAGE => self.with(name, params, |params| self.log(params)),
            CANCELLED => self.with(name, params, |params: CancelledParams| {
                if let Some(id) = params.request_id {
                    self.subscriptions.end(&id);
                    self.server_requests.abort(&id);
                }
            }),
            TOOLS => self.changed(Change::Tools),
            PROMPTS => self.changed(Change::Prompts),
            RESOURCES => self.changed(Change::Resources),
            UPDATED => self.with(name, params, |params: ResourceUpdatedParams| {
                self.changed(Change::Resource { uri: params.uri });
            }),
            ELICITATION_COMPLETE => self.with(name, params, |params: ElicitationCompleteParams| {
                let elicitation_id = params.elicitation_id;
                self.changed(Change::ElicitationComplete { elicitation_id });
            }),
            TASK => self.with(name, params, |task| {
                self.changed(Change::Task(Box::new(task)));
            }),
            TASK_STATUS => self.with(name, params, |status: legacy::GetTaskResult| {
                let task = GetTaskResult::new(status.task.into());
                self.changed(Change::Task(Box::new(task)));
            }),
            ACKNOWLEDGED => {}
            _ => tracing::debug!(
                method = name,
                current = Method::from_name(name).is_some(),
                "passed over"
            ),
        }
    }

    /// Signals a change to subscribers.
    pub(crate) fn changed(&self, change: Change) {
        self.cache().invalidate(&change);
        if let Change::Tools = change {
            self.invalidate_output_schemas();
        }
        // Without subscribers, sending fails, which is not an error.
        let _ = self.signals.send(SubscriberSignal::Change(change));
    }

    /// Invalidates cached output schemas, because the tools may have changed.
    pub(crate) fn invalidate_output_schemas(&self) {
        if let Some(client) = self.client() {
            client.tools.invalidate_output_schemas();
        }
    }

    fn progress(&self, params: ProgressParams) {
        let token = params.progress_token.clone();
        let is_known = self.progress_registry.report(params)
            || self.cancelled_requests.contains(&token)
            // The handler of a relay decides, because a task may report progress after its call.
            || self.relay.is_some();
        if !is_known {
            self.report_anomaly(Anomaly::UnknownProgressToken(token));
        }
    }

    fn log(&self, params: LoggingMessageParams) {
        if let Some(callback) = &self.observers.log {
            callbacks::notify_observer(|| callback(params));
        }
    }

    fn with<T: DeserializeOwned>(&self, name: &str, params: &str, take: impl FnOnce(T)) {
        match json::from_str(params) {
            Ok(params) => take(params),
            Err(error) => self.report_anomaly(Anomaly::InvalidNotification {
                method: name.to_owned(),
                error: error.to_string(),
            }),
        }
    }
}
