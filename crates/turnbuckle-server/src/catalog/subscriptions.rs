//! Change notifications for subscribers.

use std::{future::poll_fn, sync::Arc, task::Poll};

use bytes::Bytes;
use serde::Serialize;
use serde_json::json;
use tokio::sync::{Semaphore, SemaphorePermit};
use turnbuckle_protocol::{Principal, RequestId, RpcError, jsonrpc, types::SubscriptionFilter};
use turnbuckle_store::{ChangeTarget, ServerChange, SessionId, SubscriberLagged};

use crate::{
    Server,
    catalog::scopes::RequiredScopes,
    request::{RequestContext, ResponseResult, response::ResponseWriter},
    server::relay::{RelayedRequest, is_target},
    sync::GatedFuture,
    tasks::{self, WatchedTasks},
};

/// Maximum number of resources per subscription.
const MAX_RESOURCES: usize = 1_000;
/// Maximum number of tasks per subscription.
const MAX_TASKS: usize = 1_000;
/// Maximum total bytes of their URIs.
const MAX_URI_BYTES: usize = 128 * 1024;

/// Sends change notifications to one subscriber, until it disconnects or the server shuts down.
///
/// Rare work is boxed to keep this future small: a server may have thousands.
pub(crate) async fn listen(
    call: Arc<RequestContext>,
    mut filter: SubscriptionFilter,
) -> ResponseResult {
    retain_supported(&call.server, &mut filter)?;
    call.server.start_providers();
    let _share = call.server.subscription_budget().reserve(&filter)?;
    // Subscribed before the acknowledgement, so that later changes are not missed.
    let mut changes = call.server.store_ref().bus.subscribe();
    let mut relayed_tasks = None;
    let mut watched = None;
    if let Some(ids) = filter.task_ids.take() {
        let records = Box::pin(tasks::visible_tasks(&call, ids.clone())).await?;
        let mut visible: Vec<_> = records.iter().map(|task| task.id.to_string()).collect();
        watched = WatchedTasks::new(call.server.store_ref(), &records).map(Box::new);
        if let Some(relay) = call.server.relay_ref() {
            let watched = relay.watch_tasks(RelayedRequest::listen(&call), ids).await;
            if let Some(mut watched) = watched {
                visible.append(&mut watched.ids);
                relayed_tasks = Some(watched.notifications);
            }
        }
        filter.task_ids = Some(visible);
    }
    let _relayed = match call.server.relay_ref() {
        Some(relay) => Box::pin(relay.subscribe(RelayedRequest::listen(&call), &mut filter)).await,
        None => None,
    };
    let acknowledged = AcknowledgedParams {
        notifications: &filter,
        meta: SubscriptionMeta { id: &call.id },
    };
    push(
        &call,
        "notifications/subscriptions/acknowledged",
        &acknowledged,
    );
    let mut closed = GatedFuture::new(call.origin.closed());
    while let Some(event) = poll_fn(|cx| match closed.poll(cx, call.origin.is_closed()) {
        Poll::Ready(()) => Poll::Ready(None),
        Poll::Pending => {
            relayed_tasks.take_if(|relayed| relayed.as_mut().poll(cx).is_ready());
            if let Some(watched) = &mut watched
                && watched.poll_due(cx).is_ready()
            {
                return Poll::Ready(Some(ListenEvent::TasksDue));
            }
            changes.poll_next(cx).map(|change| {
                Some(match change {
                    Ok((_, change)) => ListenEvent::Change(change),
                    Err(SubscriberLagged { .. }) => ListenEvent::Lagged,
                })
            })
        }
    })
    .await
    {
        match event {
            ListenEvent::Change(change) => {
                if let (Some(watched), ServerChange::Task { task }) = (&mut watched, &change) {
                    watched.notified(task);
                }
                notify(&call, &filter, &change);
            }
            ListenEvent::Lagged => {
                all_changes(&filter).for_each(|change| notify(&call, &filter, &change));
                Box::pin(notify_of_tasks(&call, &filter, None)).await;
            }
            ListenEvent::TasksDue => {
                Box::pin(notify_of_tasks(&call, &filter, watched.as_deref_mut())).await;
            }
        }
        call.outbox.wait_for_room().await;
    }
    if call.origin.announces_subscription_end {
        let params = SubscriptionEnded {
            request_id: &call.id,
            reason: "the server is shutting down",
        };
        push(&call, "notifications/cancelled", &params);
    }
    Ok(ResponseWriter::new(&call).subscription_end(&call.id))
}

/// What a subscriber waits for.
enum ListenEvent {
    Change(ServerChange),
    /// Changes were lost.
    Lagged,
    /// The watched tasks are due to be read again.
    TasksDue,
}

/// Reads the tasks of a subscription, and notifies the subscriber of those that it does not know.
async fn notify_of_tasks(
    call: &Arc<RequestContext>,
    filter: &SubscriptionFilter,
    mut watched: Option<&mut WatchedTasks>,
) {
    let ids = match &watched {
        Some(watched) => watched.ids(),
        None => filter.task_ids.clone().unwrap_or_default(),
    };
    for task in tasks::load_tasks(call, &ids).await {
        if watched
            .as_mut()
            .is_none_or(|watched| watched.is_news(&task))
        {
            notify(call, filter, &ServerChange::Task { task });
            call.outbox.wait_for_room().await;
        }
    }
}

/// Returns the scopes required for the subscribed resources.
pub(crate) fn required_scopes(
    call: &RequestContext,
    filter: &SubscriptionFilter,
) -> RequiredScopes {
    let catalog = call.server.catalog();
    let principal = call.origin.principal.as_deref();
    let mut required_scopes = RequiredScopes::NONE;
    let uris = filter.resource_subscriptions.iter().flatten();
    for resolved in uris.filter_map(|uri| catalog.find_resource(uri, principal)) {
        required_scopes.extend(resolved.required_scopes());
    }
    required_scopes
}

/// The memory budget of all subscriptions of a server.
pub(crate) struct SubscriptionBudget {
    bytes: Semaphore,
}

/// Bytes of URIs that are not counted: they are bounded by the number of requests.
const FREE_URI_BYTES: usize = 4 * 1024;
/// Maximum total of counted bytes.
const MAX_TOTAL_URI_BYTES: usize = 64 * 1024 * 1024;

impl Default for SubscriptionBudget {
    fn default() -> Self {
        Self {
            bytes: Semaphore::new(MAX_TOTAL_URI_BYTES),
        }
    }
}

impl SubscriptionBudget {
    /// Reserves the memory of a large subscription, until the permit is dropped.
    fn reserve(
        &self,
        filter: &SubscriptionFilter,
    ) -> Result<Option<SemaphorePermit<'_>>, RpcError> {
        let uris = filter.resource_subscriptions.as_deref().unwrap_or_default();
        let bytes = uris.iter().map(|uri| uri.len() + 32).sum::<usize>();
        if bytes <= FREE_URI_BYTES {
            return Ok(None);
        }
        let share = self
            .bytes
            .try_acquire_many(u32::try_from(bytes).unwrap_or(u32::MAX));
        share
            .map(Some)
            .map_err(|_| RpcError::internal("busy: too many subscribed resources; try again later"))
    }
}

/// Reduces the filter to what this server supports.
fn retain_supported(server: &Server, filter: &mut SubscriptionFilter) -> Result<(), RpcError> {
    let retain =
        |requested: Option<bool>, advertised: bool| requested.filter(|on| *on && advertised);
    filter.tools_list_changed = retain(filter.tools_list_changed, server.has_tools());
    filter.prompts_list_changed = retain(filter.prompts_list_changed, server.has_prompts());
    filter.resources_list_changed = retain(filter.resources_list_changed, server.has_resources());
    filter
        .resource_subscriptions
        .take_if(|_| !server.has_resources());
    filter.task_ids.take_if(|_| !server.has_task_extension());
    if filter
        .task_ids
        .as_ref()
        .is_some_and(|ids| ids.len() > MAX_TASKS)
    {
        return Err(RpcError::invalid_params(format!(
            "a subscription may contain at most {MAX_TASKS} tasks"
        )));
    }
    let uris = filter.resource_subscriptions.as_deref().unwrap_or_default();
    if uris.len() > MAX_RESOURCES || uris.iter().map(String::len).sum::<usize>() > MAX_URI_BYTES {
        return Err(RpcError::invalid_params(format!(
            "a subscription may contain at most {MAX_RESOURCES} resources, with {MAX_URI_BYTES} bytes of URIs in total"
        )));
    }
    Ok(())
}

fn notify(call: &Arc<RequestContext>, filter: &SubscriptionFilter, change: &ServerChange) {
    let change = match change {
        ServerChange::Targeted(targeted) => {
            if !RelayedRequest::listen(call).is_target(&targeted.target) {
                return;
            }
            &targeted.change
        }
        change => change,
    };
    if let ServerChange::Task { task } = change {
        let id = task.id.to_string();
        if filter
            .task_ids
            .iter()
            .flatten()
            .any(|watched| *watched == id)
        {
            let params = tasks::notification(task, &call.id);
            push(call, "notifications/tasks", &params);
        }
        return;
    }
    let Some(notification) = ChangeNotification::new(change) else {
        return;
    };
    if notification.matches(call, filter) {
        call.outbox.push(notification.tagged(&call.id).into());
    }
}

fn push(call: &RequestContext, method: &str, params: &impl Serialize) {
    let mut message = Vec::with_capacity(192);
    if jsonrpc::write_notification(&mut message, method, params).is_ok() {
        call.outbox.push(message.into());
    }
}

/// Parameters of the acknowledgement.
#[derive(Serialize)]
struct AcknowledgedParams<'a> {
    notifications: &'a SubscriptionFilter,
    #[serde(rename = "_meta")]
    meta: SubscriptionMeta<'a>,
}

/// The subscription id, written exactly as received.
#[derive(Serialize)]
struct SubscriptionMeta<'a> {
    #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
    id: &'a RequestId,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SubscriptionEnded<'a> {
    request_id: &'a RequestId,
    reason: &'a str,
}

/// Returns all changes that match a filter, for a subscriber that missed some.
fn all_changes(filter: &SubscriptionFilter) -> impl Iterator<Item = ServerChange> {
    let uris = filter.resource_subscriptions.iter().flatten();
    let updates: Vec<_> = uris
        .map(|uri| ServerChange::ResourceUpdated {
            uri: uri.as_str().into(),
        })
        .collect();
    [
        ServerChange::ToolsChanged,
        ServerChange::PromptsChanged,
        ServerChange::ResourcesChanged,
    ]
    .into_iter()
    .chain(updates)
}

/// A change and its notification, encoded once for all sessions.
pub(crate) struct EncodedChange {
    pub(crate) change: ServerChange,
    /// The clients that are notified; all without a target.
    target: Option<ChangeTarget>,
    /// Empty if the notification depends on the peer.
    pub(crate) message: Bytes,
}

impl EncodedChange {
    pub(crate) fn new(change: ServerChange) -> Self {
        let (change, target) = match change {
            ServerChange::Targeted(targeted) => {
                (targeted.change.clone(), Some(targeted.target.clone()))
            }
            change => (change, None),
        };
        let notification = ChangeNotification::new(&change);
        Self {
            target,
            message: notification
                .map_or_else(Bytes::new, |notification| notification.message().into()),
            change,
        }
    }

    /// Returns whether this is a list change that every session receives.
    pub(crate) fn is_list_change(&self) -> bool {
        self.target.is_none()
            && matches!(
                self.change,
                ServerChange::ToolsChanged
                    | ServerChange::PromptsChanged
                    | ServerChange::ResourcesChanged
            )
    }

    /// Returns the clients that are notified, or `None` for all.
    pub(crate) fn target(&self) -> Option<&ChangeTarget> {
        self.target.as_ref()
    }

    /// Returns whether a session may be among those that are notified, as far as its id shows.
    pub(crate) fn may_be_for(&self, session: SessionId) -> bool {
        match &self.target {
            // Its principal is stored with the session.
            None | Some(ChangeTarget::Principal(_)) => true,
            Some(target) => is_target(target, None, Some(session)),
        }
    }

    /// Returns whether a session is among those that are notified, if it is subscribed.
    pub(crate) fn is_for(&self, session: SessionId, principal: Option<&Principal>) -> bool {
        let target = self.target.as_ref();
        target.is_none_or(|target| is_target(target, principal, Some(session)))
    }
}

/// The method and URI of a change notification.
struct ChangeNotification<'a> {
    method: &'static str,
    uri: Option<&'a str>,
}

impl<'a> ChangeNotification<'a> {
    /// Returns the notification of a change.
    fn new(change: &'a ServerChange) -> Option<Self> {
        let (method, uri) = match change {
            ServerChange::ToolsChanged => ("notifications/tools/list_changed", None),
            ServerChange::PromptsChanged => ("notifications/prompts/list_changed", None),
            ServerChange::ResourcesChanged => ("notifications/resources/list_changed", None),
            ServerChange::ResourceUpdated { uri } => {
                ("notifications/resources/updated", Some(&**uri))
            }
            _ => return None,
        };
        Some(Self { method, uri })
    }

    fn matches(&self, call: &RequestContext, filter: &SubscriptionFilter) -> bool {
        match (self.method, self.uri) {
            (_, Some(uri)) => {
                let principal = call.origin.principal.as_deref();
                let watched = filter.resource_subscriptions.iter().flatten();
                is_subscribed(&call.server, principal, watched, uri)
            }
            ("notifications/tools/list_changed", _) => filter.tools_list_changed.is_some(),
            ("notifications/prompts/list_changed", _) => filter.prompts_list_changed.is_some(),
            _ => filter.resources_list_changed.is_some(),
        }
    }

    /// Encodes the notification for a subscription. Only its id varies, so it is written directly.
    fn tagged(&self, id: &RequestId) -> Vec<u8> {
        let mut message = Vec::with_capacity(192);
        message.extend_from_slice(br#"{"jsonrpc":"2.0","method":""#);
        message.extend_from_slice(self.method.as_bytes());
        message.extend_from_slice(br#"","params":{"#);
        if let Some(uri) = self.uri {
            message.extend_from_slice(br#""uri":"#);
            serde_json::to_writer(&mut message, uri).expect("a text can be written");
            message.push(b',');
        }
        message.extend_from_slice(br#""_meta":{"io.modelcontextprotocol/subscriptionId":"#);
        id.write(&mut message);
        message.extend_from_slice(b"}}}");
        message
    }

    /// Encodes the notification for a session.
    fn message(&self) -> Vec<u8> {
        let mut message = Vec::with_capacity(128);
        let written = match self.uri {
            Some(uri) => {
                jsonrpc::write_notification(&mut message, self.method, &json!({ "uri": uri }))
            }
            None => jsonrpc::write_notification(&mut message, self.method, &json!({})),
        };
        written.expect("JSON values can be written");
        message
    }
}

/// Returns whether an update of `uri` matches one of the subscribed URIs, and the caller may see both.
pub(crate) fn is_subscribed<'a>(
    server: &Server,
    principal: Option<&Principal>,
    watched: impl IntoIterator<Item = &'a String>,
    uri: &str,
) -> bool {
    let catalog = server.catalog();
    let mut watched = watched.into_iter().filter(|watched| covers(watched, uri));
    // Scopes of a subscribed URI were checked on subscription; those of resources below it were not.
    let may_receive = |watched: &str| watched == uri || catalog.permits(uri, principal);
    watched.any(|watched| !catalog.is_hidden_from(watched, principal) && may_receive(watched))
        && !catalog.is_hidden_from(uri, principal)
}

/// Returns whether `uri` is the subscribed resource or one below it.
fn covers(watched: &str, uri: &str) -> bool {
    uri.strip_prefix(watched)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || watched.ends_with('/'))
}
