//! What clients want to be told on a connection. It outlives the connection, so that the next one restores it.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use turnbuckle_client::Subscription;
use turnbuckle_protocol::types::LogLevel;

use crate::lock;

/// The subscriptions, listeners and log level of the callers that share a connection.
#[derive(Default)]
pub(crate) struct Interest {
    subscriptions: Mutex<HashMap<String, ResourceSubscription>>,
    /// The number of clients that wait for changes.
    listeners: AtomicUsize,
    log_level: Mutex<Option<LogLevel>>,
}

/// The subscribers of a resource.
#[derive(Default)]
struct ResourceSubscription {
    subscribers: HashSet<String>,
    /// The subscription at a modern server.
    stream: Option<Subscription>,
}

/// Counts a client that waits for changes, until it is dropped.
pub(crate) struct ListenerGuard(Arc<Interest>);

impl Drop for ListenerGuard {
    fn drop(&mut self) {
        self.0.listeners.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Interest {
    /// Returns whether a client waits for changes or is subscribed.
    pub(super) fn is_any(&self) -> bool {
        self.listeners.load(Ordering::Relaxed) > 0 || !lock(&self.subscriptions).is_empty()
    }

    pub(super) fn add_listener(self: &Arc<Self>) -> ListenerGuard {
        self.listeners.fetch_add(1, Ordering::Relaxed);
        ListenerGuard(Arc::clone(self))
    }

    /// Adds a subscriber of a resource. Returns whether it is the first one.
    pub(super) fn add_subscriber(&self, uri: &str, subscriber: &str) -> bool {
        let mut subscriptions = lock(&self.subscriptions);
        let is_first = !subscriptions.contains_key(uri);
        let subscription = subscriptions.entry(uri.to_owned()).or_default();
        subscription.subscribers.insert(subscriber.to_owned());
        is_first
    }

    /// Keeps the subscription at a modern server for as long as there are subscribers.
    pub(super) fn set_stream(&self, uri: &str, stream: Option<Subscription>) {
        if let Some(subscription) = lock(&self.subscriptions).get_mut(uri) {
            subscription.stream = stream;
        }
    }

    /// Removes all subscribers of a resource.
    pub(super) fn remove(&self, uri: &str) {
        lock(&self.subscriptions).remove(uri);
    }

    /// Removes a subscriber. Returns whether a legacy server has to be told that none is left; dropping the stream ends the
    /// subscription at a modern server.
    pub(super) fn remove_subscriber(&self, uri: &str, subscriber: &str) -> bool {
        let mut subscriptions = lock(&self.subscriptions);
        let Some(subscription) = subscriptions.get_mut(uri) else {
            return false;
        };
        subscription.subscribers.remove(subscriber);
        if !subscription.subscribers.is_empty() {
            return false;
        }
        let ended = subscriptions.remove(uri);
        ended.is_some_and(|ended| ended.stream.is_none())
    }

    /// Returns the subscribed resources.
    pub(super) fn subscribed(&self) -> Vec<String> {
        lock(&self.subscriptions).keys().cloned().collect()
    }

    pub(super) fn log_level(&self) -> Option<LogLevel> {
        *lock(&self.log_level)
    }

    pub(super) fn set_log_level(&self, level: LogLevel) {
        *lock(&self.log_level) = Some(level);
    }
}
