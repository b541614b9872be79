//! Telling clients what changed.

use std::sync::Arc;

use serde_json::json;
use turnbuckle_protocol::{
    RequestId, RpcError, jsonrpc,
    types::{ListenParams, SubscriptionFilter},
};
use turnbuckle_store::{Change, Lagged};

use crate::{Server, context::Call, exchange::Outcome, reply::Reply};

/// Resources that one listener may watch.
const MOST_RESOURCES: usize = 1_000;

/// Tells one listener of the changes it asked for, until it leaves or the server shuts down.
pub(crate) async fn listen(call: Arc<Call>, params: ListenParams) -> Outcome {
    let wanted = supported(&call.server, params.notifications)?;
    // Before the acknowledgement: what changes after it must not be missed.
    let mut changes = call.server.store_ref().bus.subscribe();
    send(
        &call,
        "notifications/subscriptions/acknowledged",
        json!({ "notifications": wanted }),
    );
    loop {
        tokio::select! {
            biased;
            () = call.server.closed() => break,
            () = call.caller.closed() => break,
            change = changes.next() => match change {
                Ok(change) => tell(&call, &wanted, &change),
                Err(Lagged { .. }) => everything(&wanted).for_each(|change| tell(&call, &wanted, &change)),
            },
        }
        call.outbox.flushed().await;
    }
    if call.caller.says_goodbye {
        let mut goodbye = Vec::new();
        let params = json!({ "requestId": call.id, "reason": "the server is shutting down" });
        if jsonrpc::write_notification(&mut goodbye, "notifications/cancelled", &params).is_ok() {
            call.outbox.push(goodbye.into());
        }
    }
    Ok(Reply::new(&call).subscription_end(&call.id))
}

/// What the listener asked for, as far as this server has it.
fn supported(
    server: &Server,
    mut filter: SubscriptionFilter,
) -> Result<SubscriptionFilter, RpcError> {
    let catalog = server.catalog();
    let keep = |wanted: Option<bool>, offered: bool| wanted.filter(|wanted| *wanted && offered);
    filter.tools_list_changed = keep(filter.tools_list_changed, !catalog.tools.is_empty());
    filter.prompts_list_changed = keep(filter.prompts_list_changed, !catalog.prompts.is_empty());
    filter.resources_list_changed = keep(filter.resources_list_changed, catalog.has_resources());
    filter.resource_subscriptions = filter
        .resource_subscriptions
        .filter(|_| catalog.has_resources());
    filter.task_ids = None;
    match &filter.resource_subscriptions {
        Some(uris) if uris.len() > MOST_RESOURCES => Err(RpcError::invalid_params(format!(
            "one listener may watch at most {MOST_RESOURCES} resources"
        ))),
        _ => Ok(filter),
    }
}

fn tell(call: &Call, wanted: &SubscriptionFilter, change: &Change) {
    let Some(notice) = Notice::of(change) else {
        return;
    };
    if notice.is_wanted(wanted) {
        send(call, notice.method, notice.params());
    }
}

fn send(call: &Call, method: &str, mut params: serde_json::Value) {
    params["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": call.id });
    let mut message = Vec::with_capacity(192);
    if jsonrpc::write_notification(&mut message, method, &params).is_ok() {
        call.outbox.push(message.into());
    }
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

/// A change in the words of the protocol.
pub(crate) struct Notice<'a> {
    pub(crate) method: &'static str,
    pub(crate) uri: Option<&'a str>,
}

impl<'a> Notice<'a> {
    /// The notification for a change.
    pub(crate) fn of(change: &'a Change) -> Option<Self> {
        let (method, uri) = match change {
            Change::ToolsChanged => ("notifications/tools/list_changed", None),
            Change::PromptsChanged => ("notifications/prompts/list_changed", None),
            Change::ResourcesChanged => ("notifications/resources/list_changed", None),
            Change::ResourceUpdated { uri } => ("notifications/resources/updated", Some(&**uri)),
            _ => return None,
        };
        Some(Self { method, uri })
    }

    fn is_wanted(&self, filter: &SubscriptionFilter) -> bool {
        match (self.method, self.uri) {
            (_, Some(uri)) => filter
                .resource_subscriptions
                .iter()
                .flatten()
                .any(|watched| covers(watched, uri)),
            ("notifications/tools/list_changed", _) => filter.tools_list_changed.is_some(),
            ("notifications/prompts/list_changed", _) => filter.prompts_list_changed.is_some(),
            _ => filter.resources_list_changed.is_some(),
        }
    }

    fn params(&self) -> serde_json::Value {
        self.uri
            .map_or_else(|| json!({}), |uri| json!({ "uri": uri }))
    }

    /// The notification for a peer that has no subscription ids.
    pub(crate) fn message(&self) -> Vec<u8> {
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

/// Says whether an update of `uri` concerns who watches `watched`: the resource itself or one below it.
pub(crate) fn covers(watched: &str, uri: &str) -> bool {
    uri.strip_prefix(watched)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || watched.ends_with('/'))
}

/// The end of a subscription, with its id.
impl Reply {
    fn subscription_end(self, id: &RequestId) -> Vec<u8> {
        let mut meta = turnbuckle_protocol::Meta::default();
        meta.set_subscription_id(id);
        let mut result = turnbuckle_protocol::types::ListenResult::default().meta(meta);
        self.with_meta(&mut result, |result| &mut result.meta, None)
    }
}
