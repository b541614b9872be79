//! Messages about single sessions, to all processes that serve them.

use turnbuckle_protocol::RequestId;

use crate::{BoxFuture, LogSubscription, SessionId, StoreError};

/// A log of messages about single sessions, in this process and in others that share the store.
///
/// It is separate from the [`ChangeBus`](crate::ChangeBus), so that these messages do not displace changes there. A
/// process needs no message from before it subscribed.
pub trait ControlLog: Send + Sync {
    /// Appends a message, for all subscribers. Resolves once the message is stored; does not wait for slow subscribers.
    ///
    /// Of one process, messages reach subscribers in the order in which their futures resolved, and before the changes that
    /// it publishes later.
    fn publish(&self, message: ControlMessage) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Subscribes to every message published after this call returns. Messages from shortly before may be included.
    fn subscribe(&self) -> ControlSubscription;
}

/// A subscription to a [`ControlLog`].
pub type ControlSubscription = LogSubscription<ControlMessage>;

/// A message about a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ControlMessage {
    /// The session has subscribed to a resource or unsubscribed, and its new record is stored.
    SubscriptionsChanged {
        /// The session.
        session: SessionId,
    },
    /// The record of the session has changed, and the new one is stored.
    SessionChanged {
        /// The session.
        session: SessionId,
    },
    /// The session has ended, and its record is removed.
    SessionEnded {
        /// The session.
        session: SessionId,
    },
    /// The client has cancelled a call of the session.
    CallCancelled {
        /// The session.
        session: SessionId,
        /// The id that the client has given to the request.
        request: RequestId,
    },
}
