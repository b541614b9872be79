//! What clients want to be told on a connection. It outlives the connection, so that the next one restores it.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use turnbuckle_client::{CallError, Client};
use turnbuckle_protocol::types::SubscriptionFilter;
use turnbuckle_server::middleware::SessionKey;

use crate::{
    hops::Hops,
    lifecycle::is_stateless_server,
    lock,
    upstream::{UpstreamServer, connection::Connection, log_levels::LogLevels},
};

/// A subscriber of resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Subscriber {
    /// The session of a legacy client. `None` stands for clients without sessions.
    Session(Option<SessionKey>),
    /// A listen request of a modern client.
    Listener(u64),
}

impl Subscriber {
    /// Returns a new subscriber for a listen request.
    pub(crate) fn new_listener() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self::Listener(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The subscriptions, listeners and log level of the callers that share a connection.
#[derive(Default)]
pub(crate) struct Interest {
    /// The subscribers of each resource.
    resources: Mutex<HashMap<String, HashSet<Subscriber>>>,
    /// The connection that was opened last; locked while subscriptions are changed, so that the server gets the changes
    /// in order.
    current: tokio::sync::Mutex<Option<Weak<Connection>>>,
    /// The number of clients that wait for changes.
    listeners: AtomicUsize,
    log_levels: Arc<LogLevels>,
}

impl Interest {
    /// Returns whether a client waits for changes or is subscribed.
    pub(super) fn is_any(&self) -> bool {
        self.listeners.load(Ordering::Relaxed) > 0 || !lock(&self.resources).is_empty()
    }

    /// Counts a client that waits for changes, until the guard is dropped.
    pub(crate) fn add_listener(self: &Arc<Self>) -> ListenerGuard {
        self.listeners.fetch_add(1, Ordering::Relaxed);
        ListenerGuard(Arc::clone(self))
    }

    pub(super) fn log_levels(&self) -> &Arc<LogLevels> {
        &self.log_levels
    }

    /// Restores the log level and the subscriptions on a connection, and uses it from now on.
    pub(crate) async fn restore(&self, connection: &Arc<Connection>) {
        let mut current = self.current.lock().await;
        *current = Some(Arc::downgrade(connection));
        if connection.has_listen_requests() {
            connection.start_listening(self.filter(connection)).await;
            return;
        }
        self.restore_session(&connection.client, &connection.server)
            .await;
    }

    /// Restores the log level and the subscriptions in a new session at a legacy server. Errors are only logged.
    pub(super) async fn restore_session(&self, client: &Client, server: &UpstreamServer) {
        let (server, level) = (server.name(), self.log_levels.restored());
        if let Some(level) = level
            && client.server().capabilities.logging.is_some()
            && let Err(error) = client.set_log_level(level).await
        {
            tracing::debug!(server, %error, "the log level was not set");
        }
        let uris: Vec<String> = lock(&self.resources).keys().cloned().collect();
        for uri in uris {
            if let Err(error) = client.subscribe(&*uri).await {
                tracing::debug!(server, %error, "a resource was not subscribed to");
                lock(&self.resources).remove(&uri);
            }
        }
    }

    /// Adds a subscriber of resources, and returns those that the server granted. `hops` are those of its request.
    pub(crate) async fn subscribe(
        &self,
        connection: &Arc<Connection>,
        uris: &[String],
        subscriber: Subscriber,
        hops: &Hops,
    ) -> Result<Vec<String>, CallError> {
        let mut current = self.current.lock().await;
        *current = Some(Arc::downgrade(connection));
        let new: Vec<String> = {
            let resources = lock(&self.resources);
            let is_new = |uri: &&String| !resources.contains_key(*uri);
            uris.iter().filter(is_new).cloned().collect()
        };
        let refused = if new.is_empty() {
            Vec::new()
        } else if connection.has_listen_requests() {
            let mut filter = self.filter(connection);
            let all = filter.resource_subscriptions.get_or_insert_default();
            all.extend(new.iter().cloned());
            let granted = connection.listen_to(filter).await?;
            let granted = granted.resource_subscriptions.unwrap_or_default();
            new.into_iter()
                .filter(|uri| !granted.contains(uri))
                .collect()
        } else {
            let mut refused = Vec::new();
            for uri in new {
                let subscribe = connection.client.subscribe(&*uri).meta(hops.to_meta());
                if let Err(error) = subscribe.await {
                    if uris.len() == 1 {
                        return Err(error);
                    }
                    refused.push(uri);
                }
            }
            refused
        };
        let mut resources = lock(&self.resources);
        let granted: Vec<String> = uris
            .iter()
            .filter(|uri| !refused.contains(uri))
            .cloned()
            .collect();
        for uri in &granted {
            let subscribers = resources.entry(uri.clone()).or_default();
            subscribers.insert(subscriber);
        }
        Ok(granted)
    }

    /// Removes a subscriber of resources. The last one unsubscribes at the server.
    pub(crate) async fn unsubscribe(
        &self,
        uris: &[String],
        subscriber: Subscriber,
    ) -> Result<(), CallError> {
        let current = self.current.lock().await;
        let ended = self.remove_subscriber(subscriber, |uri| uris.iter().any(|ended| ended == uri));
        self.unsubscribe_from(current.as_ref(), ended).await
    }

    /// Removes all subscriptions of a session that has ended.
    pub(super) fn forget_session(self: &Arc<Self>, session: SessionKey) {
        let subscriber = Subscriber::Session(Some(session));
        let is_subscribed = |subscribers: &HashSet<_>| subscribers.contains(&subscriber);
        let runtime = tokio::runtime::Handle::try_current();
        let (true, Ok(runtime)) = (lock(&self.resources).values().any(is_subscribed), runtime)
        else {
            return;
        };
        let interest = Arc::clone(self);
        runtime.spawn(async move {
            let current = interest.current.lock().await;
            let ended = interest.remove_subscriber(subscriber, |_| true);
            if let Err(error) = interest.unsubscribe_from(current.as_ref(), ended).await {
                tracing::debug!(%error, "resources were not unsubscribed from");
            }
        });
    }

    /// Removes a subscriber of the resources that match. Returns those without other subscribers.
    fn remove_subscriber(
        &self,
        subscriber: Subscriber,
        matches: impl Fn(&str) -> bool,
    ) -> Vec<String> {
        let mut resources = lock(&self.resources);
        let ended = resources.extract_if(|uri, subscribers| {
            matches(uri) && subscribers.remove(&subscriber) && subscribers.is_empty()
        });
        ended.map(|(uri, _)| uri).collect()
    }

    /// Unsubscribes from resources on a connection, if it is open.
    async fn unsubscribe_from(
        &self,
        connection: Option<&Weak<Connection>>,
        uris: Vec<String>,
    ) -> Result<(), CallError> {
        let connection = connection.and_then(Weak::upgrade);
        let Some(connection) = connection.filter(|connection| connection.is_open()) else {
            return Ok(());
        };
        if uris.is_empty() {
            return Ok(());
        }
        if connection.has_listen_requests() {
            let filter = self.filter(&connection);
            return connection.listen_to(filter).await.map(drop);
        }
        for uri in uris {
            connection.client.unsubscribe(uri).await?;
        }
        Ok(())
    }

    /// Returns what all clients together listen to on a modern server.
    fn filter(&self, connection: &Connection) -> SubscriptionFilter {
        let info = connection.client.server();
        let capabilities = &info.capabilities;
        let tools = capabilities.tools.as_ref();
        let prompts = capabilities.prompts.as_ref();
        let resources = capabilities.resources.as_ref();
        let declared = |list_changed: Option<bool>| list_changed.filter(|declared| *declared);
        let mut filter = SubscriptionFilter::default();
        filter.tools_list_changed = declared(tools.and_then(|list| list.list_changed));
        filter.prompts_list_changed = declared(prompts.and_then(|list| list.list_changed));
        filter.resources_list_changed = declared(resources.and_then(|list| list.list_changed));
        let mut uris: Vec<String> = lock(&self.resources).keys().cloned().collect();
        uris.sort();
        filter.resource_subscriptions = (!uris.is_empty()).then_some(uris);
        filter
    }
}

/// Counts a client that waits for changes, until it is dropped.
pub(crate) struct ListenerGuard(Arc<Interest>);

impl Drop for ListenerGuard {
    fn drop(&mut self) {
        self.0.listeners.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Connection {
    /// Returns whether changes are requested from the server.
    pub(crate) fn has_listen_requests(&self) -> bool {
        is_stateless_server(&self.client.server())
    }
}
