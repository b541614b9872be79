//! Storage for the state of a server.
//!
//! Eight small traits, each with an implementation in [`memory`]. A shared database can implement the same traits when
//! several processes serve one endpoint. This crate uses the types of the protocol; it does not depend on transports,
//! handlers or tools.
//!
//! - [`SessionStore`]: sessions, as negotiated by `initialize`.
//! - [`EventStore`]: events sent on streams, for clients that resume a stream.
//! - [`ChangeBus`]: a log of changes, read by all subscribers.
//! - [`ControlLog`]: messages about single sessions, to all processes.
//! - [`RequestStateStore`]: request state that is too large to send to the client.
//! - [`ClaimStore`]: effects that must happen once.
//! - [`TaskStore`]: calls that complete later.
//! - [`InstanceRegistry`]: the processes that share the store.
//!
//! Every store is bounded: [`StoreLimits`] limits the memory that a peer can occupy.

mod bus;
mod claims;
#[cfg(feature = "conformance")]
pub mod conformance;
mod control;
mod error;
mod events;
mod id;
mod instance;
mod limits;
pub mod memory;
mod request_state;
mod session;
mod stream_turns;
mod subscription;
mod task;

use std::{future::Future, pin::Pin, sync::Arc};

pub use bus::{
    BusSubscription, ChangeBus, ChangeTarget, ListDigest, Position, PositionedChange, ServerChange,
    TargetedChange,
};
pub use claims::{ClaimStatus, ClaimStore, ClaimToken};
pub use control::{ControlLog, ControlMessage, ControlSubscription};
pub use error::StoreError;
pub use events::{
    EventBatch, EventId, EventIdText, EventReplay, EventStore, InvalidEventId, StoredEvent,
    StreamHead, StreamId,
};
pub use id::{InvalidStoreId, RandomIdHasher};
pub use instance::{
    INSTANCE_LEASE, InstanceId, InstanceInbox, InstanceMessage, InstanceRegistry, InstanceSlot,
};
pub use limits::{
    BusLimits, ClaimLimits, EventLimits, RequestStateLimits, SessionLimits, StoreLimits, TaskLimits,
};
pub use request_state::{RequestStateId, RequestStateStore};
pub use session::{
    ClientProfile, RequiredSpace, SessionId, SessionInUse, SessionOwner, SessionRecord,
    SessionStore, SessionUpdate, Subscriptions,
};
pub use stream_turns::{StreamTurn, StreamTurns};
pub use subscription::{LogSubscription, SubscriberLagged};
pub use task::{
    NewTask, TaskId, TaskInputResponse, TaskOutcome, TaskRecord, TaskStore, TaskUpdate,
};

/// The future that store methods return. It does nothing until it is polled.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// All state of a server. The parts may use different backends.
#[derive(Clone)]
pub struct Store {
    /// Sessions, as negotiated by `initialize`.
    pub sessions: Arc<dyn SessionStore>,
    /// Events sent on resumable streams.
    pub events: Arc<dyn EventStore>,
    /// Change notifications.
    pub bus: Arc<dyn ChangeBus>,
    /// Messages about single sessions.
    pub control: Arc<dyn ControlLog>,
    /// Request state that is too large to send to the client.
    pub request_states: Arc<dyn RequestStateStore>,
    /// Effects that must happen once.
    pub claims: Arc<dyn ClaimStore>,
    /// Calls that complete later.
    pub tasks: Arc<dyn TaskStore>,
    /// The processes that share the store.
    pub instances: Arc<dyn InstanceRegistry>,
}

impl Store {
    /// Creates a store in the memory of this process, with the default limits.
    pub fn memory() -> Self {
        Self::memory_with(StoreLimits::default())
    }

    /// Creates a store in the memory of this process, with the given limits.
    pub fn memory_with(limits: StoreLimits) -> Self {
        let StoreLimits {
            sessions,
            events,
            bus,
            request_states,
            claims,
            tasks,
        } = limits;
        Self {
            sessions: Arc::new(memory::MemorySessionStore::new(sessions)),
            events: Arc::new(memory::MemoryEventStore::new(&events)),
            bus: Arc::new(memory::MemoryBus::new(&bus)),
            control: Arc::new(memory::MemoryControlLog::new(&bus)),
            request_states: Arc::new(memory::MemoryRequestStateStore::new(request_states)),
            claims: Arc::new(memory::MemoryClaimStore::new(claims)),
            tasks: Arc::new(memory::MemoryTaskStore::new(tasks)),
            instances: Arc::new(memory::MemoryInstanceRegistry::unshared()),
        }
    }

    /// Returns the store for several servers of this process, which serve one endpoint together as instances do.
    ///
    /// Give each of them a clone. For tests; a store that processes share needs no such call.
    #[must_use]
    pub fn shared(mut self) -> Self {
        self.instances = Arc::new(memory::MemoryInstanceRegistry::shared());
        self
    }

    /// Returns whether several servers may use this store together.
    pub fn is_shared(&self) -> bool {
        self.instances.is_shared()
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}
