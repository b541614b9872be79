//! The processes that serve one endpoint together.

use std::{fmt, time::Duration};

use bytes::Bytes;

use crate::{BoxFuture, EventId, LogSubscription, SessionId, StoreError, StreamId};

/// The time that a lease lasts. An instance renews it every third of this time.
pub const INSTANCE_LEASE: Duration = Duration::from_secs(15);

/// Keeps a lease for each process that shares the store, and carries messages between them.
///
/// An instance with an expired lease counts as dead, also if its process runs: it must not write to the store until it has
/// joined again under a new id.
pub trait InstanceRegistry: Send + Sync {
    /// Returns whether several processes may use the store. If not, its server does not join.
    fn is_shared(&self) -> bool {
        true
    }

    /// Joins with a new id in a free slot. The lease lasts for [`INSTANCE_LEASE`] unless it is renewed.
    ///
    /// Returns [`StoreError::Full`] if all slots are in use.
    fn join(&self) -> BoxFuture<'_, Result<InstanceId, StoreError>>;

    /// Extends the lease of an instance. Returns false if it has expired; its messages are lost then.
    fn renew<'a>(&'a self, id: &'a InstanceId) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Ends the lease of an instance, which has nothing left to do. [`take_expired`](Self::take_expired) does not return it.
    fn leave<'a>(&'a self, id: &'a InstanceId) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Returns whether an instance has a lease.
    fn is_alive<'a>(&'a self, id: &'a InstanceId) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Returns the instances that have lost their leases since the last call, because they did not renew them. Of all callers,
    /// also in other processes, one gets each id.
    fn take_expired(&self) -> BoxFuture<'_, Result<Vec<InstanceId>, StoreError>>;

    /// Sends a message to the instance in a slot. Returns true once it is stored, and false if no instance has the slot.
    ///
    /// A slot may have been given to another instance since the sender learned of it, so a receiver ignores messages about
    /// sessions, requests and streams that it does not know.
    fn send(
        &self,
        slot: InstanceSlot,
        message: InstanceMessage,
    ) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Subscribes to the messages that are sent to an instance from now on, in order. Each instance does so once, before
    /// others can learn of it.
    fn inbox(&self, id: &InstanceId) -> InstanceInbox;
}

/// The messages to one instance.
pub type InstanceInbox = LogSubscription<InstanceMessage>;

/// A small number that an instance has while it lives, and another instance may have later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceSlot(u16);

impl InstanceSlot {
    /// The number of slots. A slot fits into twelve bits.
    pub const COUNT: u16 = 1 << 12;

    /// Creates the slot with this number, or `None` if it is not below [`COUNT`](Self::COUNT).
    pub const fn new(number: u16) -> Option<Self> {
        if number < Self::COUNT {
            Some(Self(number))
        } else {
            None
        }
    }

    /// Returns the number of the slot.
    pub const fn number(self) -> u16 {
        self.0
    }
}

/// Identifies an instance: its slot, and a random number that no other instance in this slot has had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId {
    /// The slot.
    pub slot: InstanceSlot,
    /// The random number.
    pub nonce: u64,
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:016x}", self.slot.0, self.nonce)
    }
}

/// A message from one instance to another.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InstanceMessage {
    /// A client has sent the response to a client request of the receiver, or progress of it, in a session.
    ClientMessage {
        /// The session.
        session: SessionId,
        /// The message, as JSON.
        message: Bytes,
    },
    /// A client has resumed a stream that the receiver writes. The sender wants the events after `last`.
    Attach {
        /// The session.
        session: SessionId,
        /// The last event that the client has.
        last: EventId,
        /// The sender.
        reader: InstanceId,
    },
    /// Events of a stream that the receiver reads for its client. Without events it tells the number of the next one.
    ///
    /// What the receiver lacks before the first event is in the log.
    Events {
        /// The session.
        session: SessionId,
        /// The stream.
        stream: StreamId,
        /// The sequence number of the first event.
        first: u64,
        /// The data of the events, in order.
        events: Vec<Bytes>,
        /// Set if no event follows these.
        end: bool,
    },
    /// To the writer: the client of the sender no longer reads a stream. From the writer: another reader has taken the stream
    /// over, or the handler closes the connection of the client.
    Detach {
        /// The session.
        session: SessionId,
        /// The stream.
        stream: StreamId,
        /// The instance that reads, or has read, the stream.
        reader: InstanceId,
    },
}
