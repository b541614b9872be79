//! Publishes server changes to all subscribers.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
};

use tokio::sync::broadcast::{Receiver, error::RecvError};

use crate::{BoxFuture, TaskRecord};

/// Publishes changes to every subscriber, in this process and in others that share the store.
pub trait ChangeBus: Send + Sync {
    /// Sends a change to all current subscribers. Never waits for a slow subscriber.
    fn publish(&self, change: ServerChange);

    /// Subscribes to every change published from now on.
    fn subscribe(&self) -> BusSubscription;
}

/// A change that clients can subscribe to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerChange {
    /// The list of tools changed.
    ToolsChanged,
    /// The list of prompts changed.
    PromptsChanged,
    /// The list of resources changed.
    ResourcesChanged,
    /// The contents of a resource changed.
    ResourceUpdated {
        /// The URI of the resource.
        uri: Arc<str>,
    },
    /// A task changed.
    Task {
        /// The current record of the task.
        task: Arc<TaskRecord>,
    },
    /// A URL elicitation completed.
    ElicitationCompleted {
        /// The id of the elicitation.
        id: Arc<str>,
    },
    /// A change that only some clients are notified of.
    Targeted(Arc<TargetedChange>),
}

/// A change, and the clients that are notified of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetedChange {
    /// The clients.
    pub target: ChangeTarget,
    /// The change.
    pub change: ServerChange,
}

/// The clients that are notified of a change, if they are subscribed to it.
///
/// A principal is a text that differs for each issuer, subject and client; `None` stands for clients without one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChangeTarget {
    /// All clients.
    Everyone,
    /// The client of a session, or of a connection that carries all of its requests, by a hash of its id.
    Session(u64),
    /// All clients of a principal.
    Principal(Option<Arc<str>>),
    /// The clients of a principal that have neither a session nor such a connection.
    Sessionless(Option<Arc<str>>),
}

/// A subscriber was too slow and missed changes. The next call returns the oldest change that is still available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("missed {missed} changes")]
pub struct SubscriberLagged {
    /// The number of missed changes.
    pub missed: u64,
}

/// A subscription to a [`ChangeBus`].
///
/// After the bus is dropped, a subscription stays pending; it does not end.
pub struct BusSubscription {
    state: SubscriptionState,
}

enum SubscriptionState {
    /// No receive is in progress.
    Idle(Receiver<ServerChange>),
    /// The receiver is inside a future that has registered the waker and returns it with the result.
    Waiting(BoxFuture<'static, (Result<ServerChange, RecvError>, Receiver<ServerChange>)>),
    /// The bus was dropped.
    Closed,
}

impl BusSubscription {
    /// Creates a subscription from `receiver`, which the store feeds with its changes.
    pub fn new(receiver: Receiver<ServerChange>) -> Self {
        Self {
            state: SubscriptionState::Idle(receiver),
        }
    }

    /// Waits for the next change. Cancel-safe: dropping the future loses no change.
    pub async fn next(&mut self) -> Result<ServerChange, SubscriberLagged> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Polls for the next change and registers the waker of `cx` if none is available.
    pub fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<ServerChange, SubscriberLagged>> {
        loop {
            match std::mem::replace(&mut self.state, SubscriptionState::Closed) {
                SubscriptionState::Closed => return Poll::Pending,
                SubscriptionState::Idle(receiver) => {
                    self.state = SubscriptionState::Waiting(wait(receiver));
                }
                SubscriptionState::Waiting(mut waiting) => {
                    let Poll::Ready((result, receiver)) = waiting.as_mut().poll(cx) else {
                        self.state = SubscriptionState::Waiting(waiting);
                        return Poll::Pending;
                    };
                    self.state = SubscriptionState::Idle(receiver);
                    match result {
                        Ok(change) => return Poll::Ready(Ok(change)),
                        Err(RecvError::Lagged(missed)) => {
                            return Poll::Ready(Err(SubscriberLagged { missed }));
                        }
                        Err(RecvError::Closed) => self.state = SubscriptionState::Closed,
                    }
                }
            }
        }
    }
}

fn wait(
    mut receiver: Receiver<ServerChange>,
) -> BoxFuture<'static, (Result<ServerChange, RecvError>, Receiver<ServerChange>)> {
    Box::pin(async move { (receiver.recv().await, receiver) })
}

impl std::fmt::Debug for BusSubscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BusSubscription").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
