//! Where the state of a server lives.
//!
//! Five small traits, each with an implementation in [`memory`]; a shared database can stand behind
//! the same traits when several processes serve one endpoint. Knows the protocol's types, and nothing
//! of transports, handlers or tools.
//!
//! - [`Sessions`]: what a handshake said, remembered.
//! - [`Events`]: what was sent on a stream, for a client that resumes it.
//! - [`Bus`]: "something changed", told to everyone who listens.
//! - [`Journals`]: request state too large to travel, and effects that must happen once.
//! - [`Tasks`]: calls that are answered later.
//!
//! Every store is bounded: what a peer can make it hold has a limit in [`Limits`].

mod bus;
mod error;
mod events;
mod journal;
mod limits;
pub mod memory;
mod random;
mod session;
#[cfg(feature = "suite")]
pub mod suite;
mod task;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub use bus::{Bus, Change, Lagged, Subscription};
pub use error::StoreError;
pub use events::{Event, EventId, EventIdText, Events, InvalidEventId, Replay, StreamId};
pub use journal::{Claim, ClaimToken, JournalId, Journals};
pub use limits::{BusLimits, EventLimits, JournalLimits, Limits, SessionLimits, TaskLimits};
pub use random::{InvalidId, OwnRandomness};
pub use session::{
    ClientProfile, SessionChange, SessionId, SessionOwner, SessionRecord, SessionRoom, Sessions,
};
pub use task::{NewTask, TaskAnswer, TaskChange, TaskId, TaskOutcome, TaskRecord, Tasks};

/// What the methods of a store return: nothing happens until it is awaited.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Everything a server remembers, in five parts that may live in different places.
#[derive(Clone)]
pub struct Store {
    /// What handshakes said.
    pub sessions: Arc<dyn Sessions>,
    /// What was sent on resumable streams.
    pub events: Arc<dyn Events>,
    /// Who is told about changes.
    pub bus: Arc<dyn Bus>,
    /// Large request state and effects that happen once.
    pub journals: Arc<dyn Journals>,
    /// Calls that are answered later.
    pub tasks: Arc<dyn Tasks>,
}

impl Store {
    /// Keeps everything in this process, within the default limits.
    pub fn memory() -> Self {
        Self::memory_with(Limits::default())
    }

    /// Keeps everything in this process, within `limits`.
    pub fn memory_with(limits: Limits) -> Self {
        let Limits {
            sessions,
            events,
            bus,
            journals,
            tasks,
        } = limits;
        Self {
            sessions: Arc::new(memory::MemorySessions::new(sessions)),
            events: Arc::new(memory::MemoryEvents::new(&events)),
            bus: Arc::new(memory::MemoryBus::new(&bus)),
            journals: Arc::new(memory::MemoryJournals::new(journals)),
            tasks: Arc::new(memory::MemoryTasks::new(tasks)),
        }
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}
