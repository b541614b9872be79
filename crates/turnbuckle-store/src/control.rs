//! Messages about single sessions, to all processes that serve them.

use crate::{LogSubscription, SessionId};

/// A log of messages about single sessions, in this process and in others that share the store.
///
/// It is separate from the [`ChangeBus`](crate::ChangeBus), so that these messages do not displace changes there. A
/// process needs no message from before it subscribed.
pub trait ControlLog: Send + Sync {
    /// Appends a message, for all subscribers. Never waits: neither for a slow subscriber nor for a database.
    ///
    /// Of one process, messages reach subscribers in order, and before the changes that it publishes later.
    fn publish(&self, message: ControlMessage);

    /// Subscribes to every message published after this call returns. Messages from shortly before may be included.
    fn subscribe(&self) -> ControlSubscription;
}

/// A subscription to a [`ControlLog`].
pub type ControlSubscription = LogSubscription<ControlMessage>;

/// A message about a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ControlMessage {
    /// The session has subscribed to a resource or unsubscribed, and its new record is stored.
    SubscriptionsChanged {
        /// The session.
        session: SessionId,
    },
}
