//! How much a store may hold.

use std::time::Duration;

use crate::SessionOwner;

/// How much each part of a store may hold, and for how long.
///
/// Start from the default and change what you need:
///
/// ```
/// use turnbuckle_store::{Limits, Store};
///
/// let mut limits = Limits::default();
/// limits.sessions.max_sessions = 50_000;
/// let store = Store::memory_with(limits);
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Limits {
    /// Limits of the sessions.
    pub sessions: SessionLimits,
    /// Limits of the event log.
    pub events: EventLimits,
    /// Limits of the bus.
    pub bus: BusLimits,
    /// Limits of journals and claims.
    pub journals: JournalLimits,
    /// Limits of tasks.
    pub tasks: TaskLimits,
}

/// How many sessions there may be, and what each may hold.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionLimits {
    /// Sessions at one time.
    pub max_sessions: usize,
    /// Sessions of one [owner](SessionOwner) at one time. For a shared owner [`max_sessions`](Self::max_sessions) is the
    /// only limit.
    pub max_sessions_per_owner: usize,
    /// How long a session lives without being used.
    pub idle: Duration,
    /// How long a session lives without being used while its handshake is not done.
    pub idle_before_initialized: Duration,
    /// Bytes that one client may say about itself, counted as what they cost in memory.
    pub max_client_bytes: usize,
    /// Bytes beyond the ordinary that all clients together may say about themselves and subscribe to.
    ///
    /// Up to 4 KiB about itself are ordinary: those are bounded by the number of sessions.
    pub max_extra_bytes: usize,
    /// Bytes beyond the ordinary of all sessions of one owner. For a shared owner
    /// [`max_extra_bytes`](Self::max_extra_bytes) is the only limit.
    pub max_owner_bytes: usize,
    /// Resources that one session may subscribe to.
    pub max_subscriptions: usize,
    /// Bytes of one subscribed URI.
    pub max_uri_bytes: usize,
    /// Bytes of all subscribed URIs of one session together.
    pub max_subscription_bytes: usize,
}

impl SessionLimits {
    /// Returns how many sessions this owner may hold at one time.
    pub fn sessions_of(&self, owner: &SessionOwner) -> usize {
        match owner.is_shared() {
            true => self.max_sessions,
            false => self.max_sessions.min(self.max_sessions_per_owner),
        }
    }

    /// Returns how many bytes beyond the ordinary the sessions of this owner may hold together.
    pub fn bytes_of(&self, owner: &SessionOwner) -> usize {
        match owner.is_shared() {
            true => self.max_extra_bytes,
            false => self.max_extra_bytes.min(self.max_owner_bytes),
        }
    }
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            max_sessions: 10_000,
            max_sessions_per_owner: 1_000,
            idle: Duration::from_secs(30 * 60),
            idle_before_initialized: Duration::from_secs(60),
            max_client_bytes: 1024 * 1024,
            max_extra_bytes: 64 * 1024 * 1024,
            max_owner_bytes: 16 * 1024 * 1024,
            max_subscriptions: 1_000,
            max_uri_bytes: 8 * 1024,
            max_subscription_bytes: 128 * 1024,
        }
    }
}

/// How much of what was sent is kept for replay.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EventLimits {
    /// Events of one stream.
    pub max_events: usize,
    /// Bytes of one stream; its newest event stays even if it alone has more.
    pub max_stream_bytes: usize,
    /// Streams of one session; finished ones make room for new ones.
    pub max_streams: usize,
    /// Bytes of everything together, what it costs to keep them included.
    pub max_total_bytes: usize,
    /// How long a finished stream can still be resumed.
    pub retention: Duration,
}

impl Default for EventLimits {
    fn default() -> Self {
        Self {
            max_events: 1_000,
            max_stream_bytes: 1024 * 1024,
            max_streams: 256,
            max_total_bytes: 128 * 1024 * 1024,
            retention: Duration::from_secs(5 * 60),
        }
    }
}

/// How far a listener may fall behind.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BusLimits {
    /// Changes that are kept for the slowest listener; beyond, it is told that it missed some.
    pub capacity: usize,
}

impl Default for BusLimits {
    fn default() -> Self {
        Self { capacity: 1_024 }
    }
}

/// How much request state is kept.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JournalLimits {
    /// Journals at one time.
    pub max_journals: usize,
    /// Bytes of one journal or of one claim's outcome.
    pub max_entry_bytes: usize,
    /// Bytes of all journals together.
    pub max_journal_bytes: usize,
    /// Journals of one owner at one time.
    pub max_owner_journals: usize,
    /// Bytes of all journals of one owner together.
    pub max_owner_bytes: usize,
    /// Claims at one time.
    pub max_claims: usize,
    /// Bytes of one claim's key.
    pub max_key_bytes: usize,
    /// Bytes of all claims, keys and outcomes, together.
    pub max_claim_bytes: usize,
}

impl Default for JournalLimits {
    fn default() -> Self {
        Self {
            max_journals: 10_000,
            max_entry_bytes: 4 * 1024 * 1024,
            max_journal_bytes: 64 * 1024 * 1024,
            max_owner_journals: 1_000,
            max_owner_bytes: 8 * 1024 * 1024,
            max_claims: 100_000,
            max_key_bytes: 1024,
            max_claim_bytes: 64 * 1024 * 1024,
        }
    }
}

/// How many tasks are kept, and what each may hold.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskLimits {
    /// Tasks at one time, finished ones that are still kept included.
    pub max_tasks: usize,
    /// Tasks of one owner at one time.
    pub max_tasks_per_owner: usize,
    /// Bytes of all tasks of one owner together.
    pub max_owner_bytes: usize,
    /// Bytes of one task: questions, answers, outcome.
    pub max_task_bytes: usize,
    /// Bytes of all tasks together.
    pub max_total_bytes: usize,
}

impl Default for TaskLimits {
    fn default() -> Self {
        Self {
            max_tasks: 10_000,
            max_tasks_per_owner: 1_000,
            max_owner_bytes: 64 * 1024 * 1024,
            max_task_bytes: 16 * 1024 * 1024,
            max_total_bytes: 256 * 1024 * 1024,
        }
    }
}
