//! Telling clients what changed.

use std::{future::poll_fn, sync::Arc, task::Poll};

use bytes::Bytes;
use serde::Serialize;
use serde_json::json;
use tokio::sync::{Semaphore, SemaphorePermit};
use turnbuckle_protocol::{Principal, RequestId, RpcError, jsonrpc, types::SubscriptionFilter};
use turnbuckle_store::{Change, Lagged};

use crate::{
    Server, context::Call, exchange::Outcome, reply::Reply, scopes::Needs, seldom::Seldom, tasks,
};

/// Resources that one listener may watch.
const MOST_RESOURCES: usize = 1_000;
/// Tasks that one listener may watch.
const MOST_TASKS: usize = 1_000;
/// Bytes that their URIs may have, all together.
const MOST_BYTES: usize = 128 * 1024;

/// Tells one listener of the changes it asked for, until it leaves or the server shuts down.
///
/// What is done once or seldom is boxed: thousands may listen, and all that a change touches is to lie close together.
pub(crate) async fn listen(call: Arc<Call>, mut wanted: SubscriptionFilter) -> Outcome {
    keep_supported(&call.server, &mut wanted)?;
    call.server.attend();
    let _share = call.server.listeners().admit(&wanted)?;
    // Before the acknowledgement: what changes after it must not be missed.
    let mut changes = call.server.store_ref().bus.subscribe();
    if let Some(ids) = wanted.task_ids.take() {
        wanted.task_ids = Some(Box::pin(tasks::watched(&call, ids)).await?);
    }
    let acknowledged = Acknowledged {
        notifications: &wanted,
        meta: Tag { id: &call.id },
    };
    push(
        &call,
        "notifications/subscriptions/acknowledged",
        &acknowledged,
    );
    let mut closed = Seldom::new(call.caller.closed());
    while let Some(change) = poll_fn(|cx| match closed.poll(cx, call.caller.is_closed()) {
        Poll::Ready(()) => Poll::Ready(None),
        Poll::Pending => changes.poll_next(cx).map(Some),
    })
    .await
    {
        match change {
            Ok(change) => tell(&call, &wanted, &change),
            Err(Lagged { .. }) => {
                everything(&wanted).for_each(|change| tell(&call, &wanted, &change));
                for task in Box::pin(tasks::all(&call, wanted.task_ids.iter().flatten())).await {
                    tell(&call, &wanted, &Change::Task { task });
                    call.outbox.flushed().await;
                }
            }
        }
        call.outbox.flushed().await;
    }
    if call.caller.says_goodbye {
        let params = Goodbye {
            request_id: &call.id,
            reason: "the server is shutting down",
        };
        push(&call, "notifications/cancelled", &params);
    }
    Ok(Reply::new(&call).subscription_end(&call.id))
}

/// The scopes that watching resources takes.
pub(crate) fn needs(call: &Call, wanted: &SubscriptionFilter) -> Needs {
    let catalog = call.server.catalog();
    let principal = call.caller.principal.as_deref();
    let mut needs = Needs::NOTHING;
    let uris = wanted.resource_subscriptions.iter().flatten();
    for found in uris.filter_map(|uri| catalog.find_resource(uri, principal)) {
        needs.and(found.needs());
    }
    needs
}

/// Room for what all listeners of a server watch together.
pub(crate) struct Listeners {
    bytes: Semaphore,
}

/// Bytes of URIs for which a listener needs no share: those are bounded by the number of requests.
const ORDINARY: usize = 4 * 1024;
/// Bytes beyond that which all listeners of a server may watch together.
const MOST_TOGETHER: usize = 64 * 1024 * 1024;

impl Default for Listeners {
    fn default() -> Self {
        Self {
            bytes: Semaphore::new(MOST_TOGETHER),
        }
    }
}

impl Listeners {
    /// Takes the share of a listener who watches much; it ends with what is returned.
    fn admit(&self, filter: &SubscriptionFilter) -> Result<Option<SemaphorePermit<'_>>, RpcError> {
        let uris = filter.resource_subscriptions.as_deref().unwrap_or_default();
        let bytes = uris.iter().map(|uri| uri.len() + 32).sum::<usize>();
        if bytes <= ORDINARY {
            return Ok(None);
        }
        let share = self
            .bytes
            .try_acquire_many(u32::try_from(bytes).unwrap_or(u32::MAX));
        share.map(Some).map_err(|_| {
            RpcError::internal("busy: listeners watch too many resources; try again later")
        })
    }
}

/// Leaves of what the listener asked for what this server has.
fn keep_supported(server: &Server, filter: &mut SubscriptionFilter) -> Result<(), RpcError> {
    let catalog = server.catalog();
    let keep = |wanted: Option<bool>, offered: bool| wanted.filter(|wanted| *wanted && offered);
    filter.tools_list_changed = keep(filter.tools_list_changed, catalog.tools.is_offered());
    filter.prompts_list_changed = keep(filter.prompts_list_changed, catalog.prompts.is_offered());
    filter.resources_list_changed = keep(filter.resources_list_changed, catalog.has_resources());
    filter
        .resource_subscriptions
        .take_if(|_| !catalog.has_resources());
    filter.task_ids.take_if(|_| !catalog.offers_tasks);
    if filter
        .task_ids
        .as_ref()
        .is_some_and(|ids| ids.len() > MOST_TASKS)
    {
        return Err(RpcError::invalid_params(format!(
            "one listener may watch at most {MOST_TASKS} tasks"
        )));
    }
    let uris = filter.resource_subscriptions.as_deref().unwrap_or_default();
    if uris.len() > MOST_RESOURCES || uris.iter().map(String::len).sum::<usize>() > MOST_BYTES {
        return Err(RpcError::invalid_params(format!(
            "one listener may watch at most {MOST_RESOURCES} resources, with URIs of {MOST_BYTES} bytes in all"
        )));
    }
    Ok(())
}

fn tell(call: &Call, wanted: &SubscriptionFilter, change: &Change) {
    if let Change::Task { task } = change {
        let id = task.id.to_string();
        if wanted
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
    let Some(notice) = Notice::of(change) else {
        return;
    };
    if notice.is_wanted(call, wanted) {
        call.outbox.push(notice.tagged(&call.id).into());
    }
}

fn push(call: &Call, method: &str, params: &impl Serialize) {
    let mut message = Vec::with_capacity(192);
    if jsonrpc::write_notification(&mut message, method, params).is_ok() {
        call.outbox.push(message.into());
    }
}

/// What a listener hears first.
#[derive(Serialize)]
struct Acknowledged<'a> {
    notifications: &'a SubscriptionFilter,
    #[serde(rename = "_meta")]
    meta: Tag<'a>,
}

/// Says to which subscription something belongs. Its id is written as it came, whatever number it is.
#[derive(Serialize)]
struct Tag<'a> {
    #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
    id: &'a RequestId,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Goodbye<'a> {
    request_id: &'a RequestId,
    reason: &'a str,
}

/// All changes that a filter lets through, for a listener that missed some.
fn everything(wanted: &SubscriptionFilter) -> impl Iterator<Item = Change> {
    let uris = wanted.resource_subscriptions.iter().flatten();
    let updates: Vec<_> = uris
        .map(|uri| Change::ResourceUpdated {
            uri: uri.as_str().into(),
        })
        .collect();
    [
        Change::ToolsChanged,
        Change::PromptsChanged,
        Change::ResourcesChanged,
    ]
    .into_iter()
    .chain(updates)
}

/// A change and the notification of it, which is written once for all peers that have no subscription ids.
pub(crate) struct Announcement {
    pub(crate) change: Change,
    /// Empty where it depends on the peer.
    pub(crate) message: Bytes,
}

impl Announcement {
    pub(crate) fn new(change: Change) -> Self {
        let notice = Notice::of(&change);
        Self {
            message: notice.map_or_else(Bytes::new, |notice| notice.message().into()),
            change,
        }
    }

    /// Says whether it is a change of a list, of which every session is told that may be told anything.
    pub(crate) fn is_for_everyone(&self) -> bool {
        matches!(
            self.change,
            Change::ToolsChanged | Change::PromptsChanged | Change::ResourcesChanged
        )
    }
}

/// A change in the words of the protocol.
struct Notice<'a> {
    method: &'static str,
    uri: Option<&'a str>,
}

impl<'a> Notice<'a> {
    /// The notification for a change.
    fn of(change: &'a Change) -> Option<Self> {
        let (method, uri) = match change {
            Change::ToolsChanged => ("notifications/tools/list_changed", None),
            Change::PromptsChanged => ("notifications/prompts/list_changed", None),
            Change::ResourcesChanged => ("notifications/resources/list_changed", None),
            Change::ResourceUpdated { uri } => ("notifications/resources/updated", Some(&**uri)),
            _ => return None,
        };
        Some(Self { method, uri })
    }

    fn is_wanted(&self, call: &Call, filter: &SubscriptionFilter) -> bool {
        match (self.method, self.uri) {
            (_, Some(uri)) => {
                let principal = call.caller.principal.as_deref();
                let watched = filter.resource_subscriptions.iter().flatten();
                concerns(&call.server, principal, watched, uri)
            }
            ("notifications/tools/list_changed", _) => filter.tools_list_changed.is_some(),
            ("notifications/prompts/list_changed", _) => filter.prompts_list_changed.is_some(),
            _ => filter.resources_list_changed.is_some(),
        }
    }

    /// The notification for a subscription. All but its id is known, so it is put together rather than serialized.
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

    /// The notification for a peer that has no subscription ids.
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

/// Says whether an update of `uri` concerns a caller who watches these, as far as it may see them.
pub(crate) fn concerns<'a>(
    server: &Server,
    principal: Option<&Principal>,
    watched: impl IntoIterator<Item = &'a String>,
    uri: &str,
) -> bool {
    let catalog = server.catalog();
    let mut watched = watched.into_iter().filter(|watched| covers(watched, uri));
    // What one watches itself was judged when one asked for it; what lies below was not.
    let may_hear = |watched: &str| watched == uri || catalog.permits(uri, principal);
    watched.any(|watched| !catalog.hides(watched, principal) && may_hear(watched))
        && !catalog.hides(uri, principal)
}

/// Says whether an update of `uri` concerns who watches `watched`: the resource itself or one below it.
fn covers(watched: &str, uri: &str) -> bool {
    uri.strip_prefix(watched)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || watched.ends_with('/'))
}
