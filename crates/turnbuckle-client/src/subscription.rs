//! Subscriptions to changes, as one stream in both eras.
//!
//! Since 2026-07-28 a listen request is held open; before, change notifications are sent without a request, and single
//! resources are subscribed to.

mod session;
mod stateless;

use std::{
    collections::HashMap,
    fmt,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use futures_core::Stream;
use tokio::{sync::mpsc, task::JoinHandle};
use turnbuckle_protocol::{
    RequestId, json,
    jsonrpc::Params,
    meta::keys,
    method,
    types::{ResourceUpdatedParams, SubscriptionFilter, SubscriptionsAcknowledgedParams},
};

use crate::{
    call::CallOptions,
    client::Client,
    error::{CallError, TransportError},
    sync::lock,
    target::Change,
};

/// Maximum number of events queued for a slow reader; then the server has to wait, or changes are missed.
const MAX_QUEUED_EVENTS: usize = 256;

/// An event of a subscription.
#[derive(Debug)]
#[non_exhaustive]
pub enum SubscriptionEvent {
    /// The subscription is active for these kinds of changes. Fetch the current state: earlier changes are not
    /// reported.
    Acknowledged(SubscriptionFilter),
    /// A change on the server.
    Change(Change),
    /// Changes may have been missed; if the connection was lost, another [`Acknowledged`](Self::Acknowledged) follows.
    Interrupted,
    /// The server has ended the subscription.
    Ended,
}

/// A stream of changes; dropping it ends the subscription.
///
/// ```no_run
/// # async fn run(client: turnbuckle_client::Client) -> Result<(), turnbuckle_client::CallError> {
/// use turnbuckle_client::{Change, SubscriptionEvent};
/// use turnbuckle_protocol::types::SubscriptionFilter;
///
/// let mut changes = client.listen(SubscriptionFilter::new().tools_list_changed(true)).await?;
/// while let Some(event) = changes.next().await {
///     if let SubscriptionEvent::Change(Change::Tools) = event? {
///         println!("{:?}", client.tools().all().await?);
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping it ends the subscription"]
pub struct Subscription {
    receiver: mpsc::Receiver<Result<SubscriptionEvent, CallError>>,
    task: JoinHandle<()>,
}

/// Opens a subscription; returns once the server has acknowledged it.
pub(crate) async fn open(
    client: Client,
    filter: SubscriptionFilter,
    options: CallOptions,
) -> Result<Subscription, CallError> {
    let (sender, receiver) = mpsc::channel(MAX_QUEUED_EVENTS);
    let (ready, is_ready) = tokio::sync::oneshot::channel();
    let events = EventSender {
        sender,
        ready: Some(ready),
    };
    let uses_listen_request = client.inner.rules().listen_requests;
    let task = tokio::spawn(async move {
        if uses_listen_request {
            stateless::listen(client, filter, options, events).await;
        } else {
            session::listen(client, filter, options, events).await;
        }
    });
    let subscription = Subscription { receiver, task };
    match is_ready.await {
        Ok(Ok(())) => Ok(subscription),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(CallError::Disconnected {
            method: "subscriptions/listen",
            source: TransportError::Closed,
        }),
    }
}

impl Subscription {
    /// Returns the next event, or `None` after the end.
    pub async fn next(&mut self) -> Option<Result<SubscriptionEvent, CallError>> {
        self.receiver.recv().await
    }
}

impl Stream for Subscription {
    type Item = Result<SubscriptionEvent, CallError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.receiver.poll_recv(cx)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").finish_non_exhaustive()
    }
}

/// Sends events to a subscription; at first, also whether it became active.
struct EventSender {
    sender: mpsc::Sender<Result<SubscriptionEvent, CallError>>,
    ready: Option<tokio::sync::oneshot::Sender<Result<(), CallError>>>,
}

impl EventSender {
    /// Reports that the subscription is active.
    async fn acknowledge(&mut self, filter: SubscriptionFilter) {
        if let Some(ready) = self.ready.take() {
            let _ = ready.send(Ok(()));
        }
        self.send(SubscriptionEvent::Acknowledged(filter)).await;
    }

    async fn send(&self, event: SubscriptionEvent) {
        // If the receiver was dropped, this task is aborted too.
        let _ = self.sender.send(Ok(event)).await;
    }

    /// Reports that the subscription has failed.
    async fn fail(&mut self, error: CallError) {
        match self.ready.take() {
            Some(ready) => drop(ready.send(Err(error))),
            None => drop(self.sender.send(Err(error)).await),
        }
    }
}

/// A message for a listen request.
#[derive(Debug)]
pub(super) enum SubscriptionMessage {
    Acknowledged(SubscriptionFilter),
    Change(Change),
    End,
}

/// The queued messages of a listen request, and whether a message was dropped.
#[derive(Debug)]
pub(super) struct SubscriptionReceiver {
    pub(super) messages: mpsc::Receiver<SubscriptionMessage>,
    pub(super) missed: Arc<AtomicBool>,
}

#[derive(Debug)]
struct SubscriptionSender {
    queue: mpsc::Sender<SubscriptionMessage>,
    missed: Arc<AtomicBool>,
}

impl SubscriptionSender {
    fn send(&self, message: SubscriptionMessage) {
        if self.queue.try_send(message).is_err() {
            self.missed.store(true, Ordering::Release);
        }
    }
}

/// The open listen requests, and the resource subscriptions that several subscriptions share.
#[derive(Debug, Default)]
pub(crate) struct SubscriptionRegistry {
    requests: Mutex<HashMap<RequestId, SubscriptionSender>>,
    /// The number of subscriptions of each resource on a legacy server. Locked while requests are sent, so that the
    /// server receives them in order.
    pub(super) resources: tokio::sync::Mutex<HashMap<String, usize>>,
}

impl SubscriptionRegistry {
    /// Registers a listen request, until [`close`](Self::close).
    pub(super) fn open(&self, id: RequestId) -> SubscriptionReceiver {
        let (queue, messages) = mpsc::channel(MAX_QUEUED_EVENTS);
        let missed = Arc::new(AtomicBool::new(false));
        let sender = SubscriptionSender {
            queue,
            missed: Arc::clone(&missed),
        };
        self.requests().insert(id, sender);
        SubscriptionReceiver { messages, missed }
    }

    pub(super) fn close(&self, id: &RequestId) {
        self.requests().remove(id);
    }

    /// Returns the ids of the open listen requests.
    pub(crate) fn ids(&self) -> Vec<RequestId> {
        self.requests().keys().cloned().collect()
    }

    /// Passes a notification to its listen request; ignores it if it lacks a subscription id.
    pub(crate) fn on_notification(&self, method: &str, params: &str) {
        let requests = self.requests();
        if requests.is_empty() {
            return;
        }
        let Some(sender) = subscription(params).and_then(|id| requests.get(&id)) else {
            return;
        };
        let Some(message) = read(method, params) else {
            return;
        };
        sender.send(message);
    }

    /// Ends a listen request, because the server cancelled it.
    pub(crate) fn end(&self, id: &RequestId) {
        // If the queue is full, the receiver sees the end when the sender is dropped.
        if let Some(sender) = self.requests().remove(id) {
            sender.send(SubscriptionMessage::End);
        }
    }

    fn requests(&self) -> std::sync::MutexGuard<'_, HashMap<RequestId, SubscriptionSender>> {
        lock(&self.requests)
    }
}

/// Returns the id of the listen request that a notification belongs to.
fn subscription(params: &str) -> Option<RequestId> {
    let params = Params::from_json(params).ok()?;
    let meta = Params::from_json(params.get("_meta")?).ok()?;
    RequestId::from_json(meta.get(keys::SUBSCRIPTION_ID)?).ok()
}

fn read(name: &str, params: &str) -> Option<SubscriptionMessage> {
    const ACKNOWLEDGED: &str = method::SUBSCRIPTIONS_ACKNOWLEDGED.name;
    const TOOLS: &str = method::TOOLS_LIST_CHANGED.name;
    const PROMPTS: &str = method::PROMPTS_LIST_CHANGED.name;
    const RESOURCES: &str = method::RESOURCES_LIST_CHANGED.name;
    const UPDATED: &str = method::RESOURCES_UPDATED.name;
    const TASK: &str = method::TASKS_CHANGED.name;
    Some(match name {
        ACKNOWLEDGED => {
            let params: SubscriptionsAcknowledgedParams = json::from_str(params).ok()?;
            SubscriptionMessage::Acknowledged(params.notifications)
        }
        TOOLS => SubscriptionMessage::Change(Change::Tools),
        PROMPTS => SubscriptionMessage::Change(Change::Prompts),
        RESOURCES => SubscriptionMessage::Change(Change::Resources),
        UPDATED => {
            let params: ResourceUpdatedParams = json::from_str(params).ok()?;
            SubscriptionMessage::Change(Change::Resource { uri: params.uri })
        }
        TASK => SubscriptionMessage::Change(Change::Task(json::from_str(params).ok()?)),
        _ => return None,
    })
}
