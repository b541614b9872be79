//! Listening in revisions with a handshake: changes come by themselves, and single resources are subscribed to.

use tokio::sync::broadcast::{Receiver, error::RecvError};
use turnbuckle_protocol::types::{ServerCapabilities, SubscriptionFilter};

use super::{Ears, Heard};
use crate::call::Options;
use crate::change::Change;
use crate::client::Client;
use crate::error::{CallError, TransportError};
use crate::hub::Signal;

/// Listens until the connection ends.
pub(super) async fn listen(
    client: Client,
    filter: SubscriptionFilter,
    options: Options,
    mut ears: Ears,
) {
    let mut signals = client.inner.hub.signals.subscribe();
    let offered = offered(&client.server().capabilities, filter);
    let mut subscribed = Subscribed {
        client: &client,
        uris: Vec::new(),
    };
    let mut uris = offered.resource_subscriptions.clone().unwrap_or_default();
    // One that is named twice is still one.
    uris.sort_unstable();
    uris.dedup();
    if let Err(error) = subscribed.begin(uris, &options).await {
        return ears.fail(error).await;
    }
    ears.listening(offered.clone()).await;
    loop {
        match next(&mut signals).await {
            Signal::Change(change) if wanted(&offered, &change) => {
                ears.hear(Heard::Change(change)).await;
            }
            Signal::Change(_) => {}
            Signal::Gap => {
                ears.hear(Heard::Interrupted).await;
                // A new session knows nothing of what the old one was told.
                if let Err(error) = subscribed.renew(&options).await {
                    return ears.fail(error).await;
                }
                ears.listening(offered.clone()).await;
            }
            Signal::End(TransportError::ClosedByUs) => return ears.hear(Heard::Ended).await,
            Signal::End(source) => {
                let method = "subscriptions/listen";
                let error = CallError::disconnected(method, source);
                return ears.fail(error).await;
            }
        }
    }
}

async fn next(signals: &mut Receiver<Signal>) -> Signal {
    match signals.recv().await {
        Ok(signal) => signal,
        Err(RecvError::Lagged(_)) => Signal::Gap,
        Err(RecvError::Closed) => Signal::End(TransportError::Closed),
    }
}

/// Leaves what the server declared that it can tell.
fn offered(
    capabilities: &ServerCapabilities,
    mut filter: SubscriptionFilter,
) -> SubscriptionFilter {
    let tools = capabilities.tools.as_ref();
    let prompts = capabilities.prompts.as_ref();
    let resources = capabilities.resources.as_ref();
    let kept = |wish: Option<bool>, declared: Option<bool>| wish.filter(|_| declared == Some(true));
    filter.tools_list_changed = kept(
        filter.tools_list_changed,
        tools.and_then(|tools| tools.list_changed),
    );
    filter.prompts_list_changed = kept(
        filter.prompts_list_changed,
        prompts.and_then(|prompts| prompts.list_changed),
    );
    filter.resources_list_changed = kept(
        filter.resources_list_changed,
        resources.and_then(|resources| resources.list_changed),
    );
    let subscribe = resources.and_then(|resources| resources.subscribe);
    filter.resource_subscriptions = filter
        .resource_subscriptions
        .filter(|_| subscribe == Some(true));
    filter
}

fn wanted(filter: &SubscriptionFilter, change: &Change) -> bool {
    match change {
        Change::Tools => filter.tools_list_changed == Some(true),
        Change::Prompts => filter.prompts_list_changed == Some(true),
        Change::Resources => filter.resources_list_changed == Some(true),
        // An update may name a part of what was subscribed to.
        Change::Resource { uri } => {
            let mut uris = filter.resource_subscriptions.iter().flatten();
            uris.any(|subscribed| uri.starts_with(subscribed.as_str()))
        }
        Change::Task(task) => {
            let mut ids = filter.task_ids.iter().flatten();
            ids.any(|id| *id == task.task.task_id)
        }
        Change::Visit { .. } => false,
    }
}

/// The resources that one listener subscribed to; the last listener of one ends its subscription.
struct Subscribed<'c> {
    client: &'c Client,
    uris: Vec<String>,
}

impl Subscribed<'_> {
    async fn begin(&mut self, uris: Vec<String>, options: &Options) -> Result<(), CallError> {
        let mut resources = self.client.inner.hub.subscriptions.resources.lock().await;
        // Counted before anything can fail or be dropped: the end counts back what is noted here.
        for uri in &uris {
            *resources.entry(uri.clone()).or_default() += 1;
        }
        self.uris = uris;
        for uri in self.uris.iter().filter(|uri| resources[*uri] == 1) {
            self.subscribe(uri, options).await?;
        }
        Ok(())
    }

    async fn renew(&self, options: &Options) -> Result<(), CallError> {
        let _in_order = self.client.inner.hub.subscriptions.resources.lock().await;
        for uri in &self.uris {
            self.subscribe(uri, options).await?;
        }
        Ok(())
    }

    async fn subscribe(&self, uri: &str, options: &Options) -> Result<(), CallError> {
        let call = self.client.subscribe(uri).patience(options.patience);
        call.await
    }
}

impl Drop for Subscribed<'_> {
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

/// Ends the subscriptions that nobody else has.
async fn end(client: Client, uris: Vec<String>) {
    let mut resources = client.inner.hub.subscriptions.resources.lock().await;
    for uri in uris {
        let Some(count) = resources.get_mut(&uri) else {
            continue;
        };
        *count -= 1;
        if *count == 0 {
            resources.remove(&uri);
            // If that does not reach the server, nothing of it will reach us either.
            let _ = client.unsubscribe(uri).await;
        }
    }
}
