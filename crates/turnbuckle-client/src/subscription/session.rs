//! Subscriptions on legacy servers: change notifications without a request, and subscriptions to single resources.

use tokio::sync::broadcast::{Receiver, error::RecvError};
use turnbuckle_protocol::types::{ServerCapabilities, SubscriptionFilter};

use crate::{
    call::CallOptions,
    client::Client,
    error::{CallError, TransportError},
    inbound::SubscriberSignal,
    subscription::{EventSender, SubscriptionEvent},
    target::Change,
};

/// Runs a subscription until the connection ends.
pub(super) async fn listen(
    client: Client,
    filter: SubscriptionFilter,
    options: CallOptions,
    mut events: EventSender,
) {
    let mut signals = client.inner.router.signals.subscribe();
    let advertised = advertised(&client.server().capabilities, filter);
    let mut subscribed = ResourceSubscriptions {
        client: &client,
        uris: Vec::new(),
    };
    let mut uris = advertised
        .resource_subscriptions
        .clone()
        .unwrap_or_default();
    // A repeated URI counts once.
    uris.sort_unstable();
    uris.dedup();
    if let Err(error) = subscribed.begin(uris, &options).await {
        return events.fail(error).await;
    }
    events.acknowledge(advertised.clone()).await;
    loop {
        match next(&mut signals).await {
            SubscriberSignal::Change(change) if matches_filter(&advertised, &change) => {
                events.send(SubscriptionEvent::Change(change)).await;
            }
            SubscriberSignal::Change(_) => {}
            SubscriberSignal::Gap => {
                events.send(SubscriptionEvent::Interrupted).await;
                // A new session does not have the subscriptions of the old one.
                if let Err(error) = subscribed.renew(&options).await {
                    return events.fail(error).await;
                }
                events.acknowledge(advertised.clone()).await;
            }
            SubscriberSignal::End(TransportError::ClientClosed) => {
                return events.send(SubscriptionEvent::Ended).await;
            }
            SubscriberSignal::End(source) => {
                let method = "subscriptions/listen";
                let error = CallError::disconnected(method, source);
                return events.fail(error).await;
            }
        }
    }
}

async fn next(signals: &mut Receiver<SubscriberSignal>) -> SubscriberSignal {
    match signals.recv().await {
        Ok(signal) => signal,
        Err(RecvError::Lagged(_)) => SubscriberSignal::Gap,
        Err(RecvError::Closed) => SubscriberSignal::End(TransportError::Closed),
    }
}

/// Reduces the filter to the changes that the server advertised.
fn advertised(
    capabilities: &ServerCapabilities,
    mut filter: SubscriptionFilter,
) -> SubscriptionFilter {
    let tools = capabilities.tools.as_ref();
    let prompts = capabilities.prompts.as_ref();
    let resources = capabilities.resources.as_ref();
    let if_declared = |requested: Option<bool>, declared: Option<bool>| {
        requested.filter(|_| declared == Some(true))
    };
    filter.tools_list_changed = if_declared(
        filter.tools_list_changed,
        tools.and_then(|tools| tools.list_changed),
    );
    filter.prompts_list_changed = if_declared(
        filter.prompts_list_changed,
        prompts.and_then(|prompts| prompts.list_changed),
    );
    filter.resources_list_changed = if_declared(
        filter.resources_list_changed,
        resources.and_then(|resources| resources.list_changed),
    );
    let subscribe = resources.and_then(|resources| resources.subscribe);
    filter.resource_subscriptions = filter
        .resource_subscriptions
        .filter(|_| subscribe == Some(true));
    filter
}

fn matches_filter(filter: &SubscriptionFilter, change: &Change) -> bool {
    match change {
        Change::Tools => filter.tools_list_changed == Some(true),
        Change::Prompts => filter.prompts_list_changed == Some(true),
        Change::Resources => filter.resources_list_changed == Some(true),
        // An update may name a part of the subscribed resource.
        Change::Resource { uri } => {
            let mut uris = filter.resource_subscriptions.iter().flatten();
            uris.any(|subscribed| uri.starts_with(subscribed.as_str()))
        }
        Change::Task(task) => {
            let mut ids = filter.task_ids.iter().flatten();
            ids.any(|id| *id == task.task.task_id)
        }
        Change::ElicitationComplete { .. } => false,
    }
}

/// The resources of one subscription; the last subscription of a resource unsubscribes from it.
struct ResourceSubscriptions<'c> {
    client: &'c Client,
    uris: Vec<String>,
}

impl ResourceSubscriptions<'_> {
    async fn begin(&mut self, uris: Vec<String>, options: &CallOptions) -> Result<(), CallError> {
        let mut resources = self
            .client
            .inner
            .router
            .subscriptions
            .resources
            .lock()
            .await;
        // Counted before anything can fail or be dropped, because `drop` decrements the counts.
        for uri in &uris {
            *resources.entry(uri.clone()).or_default() += 1;
        }
        self.uris = uris;
        for uri in self.uris.iter().filter(|uri| resources[*uri] == 1) {
            self.subscribe(uri, options).await?;
        }
        Ok(())
    }

    async fn renew(&self, options: &CallOptions) -> Result<(), CallError> {
        let _in_order = self
            .client
            .inner
            .router
            .subscriptions
            .resources
            .lock()
            .await;
        for uri in &self.uris {
            self.subscribe(uri, options).await?;
        }
        Ok(())
    }

    async fn subscribe(&self, uri: &str, options: &CallOptions) -> Result<(), CallError> {
        let call = self.client.subscribe(uri).timeouts(options.timeouts);
        call.await
    }
}

impl Drop for ResourceSubscriptions<'_> {
    fn drop(&mut self) {
        let uris = std::mem::take(&mut self.uris);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        if !uris.is_empty() {
            runtime.spawn(end(self.client.clone(), uris));
        }
    }
}

/// Unsubscribes from resources without other subscriptions.
async fn end(client: Client, uris: Vec<String>) {
    let mut resources = client.inner.router.subscriptions.resources.lock().await;
    for uri in uris {
        let Some(count) = resources.get_mut(&uri) else {
            continue;
        };
        *count -= 1;
        if *count == 0 {
            resources.remove(&uri);
            // If the request fails, the connection is gone, and so are its notifications.
            let _ = client.unsubscribe(uri).await;
        }
    }
}
