//! Size and time limits of a store.

use std::time::Duration;

use crate::SessionOwner;

/// The limits of each part of a store.
///
/// Start from the default and change fields as needed:
///
/// ```
/// use turnbuckle_store::{StoreLimits, Store};
///
/// let mut limits = StoreLimits::default();
/// limits.sessions.max_sessions = 50_000;
/// let store = Store::memory_with(limits);
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct StoreLimits {
    /// Limits of the sessions.
    pub sessions: SessionLimits,
    /// Limits of the event log.
    pub events: EventLimits,
    /// Limits of the bus and of the control log.
    pub bus: BusLimits,
    /// Limits of stored request state.
    pub request_states: RequestStateLimits,
    /// Limits of claims.
    pub claims: ClaimLimits,
    /// Limits of tasks.
    pub tasks: TaskLimits,
}

/// Limits of sessions.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionLimits {
    /// Maximum number of sessions.
    pub max_sessions: usize,
    /// Maximum number of sessions of one [owner](SessionOwner). For a shared owner only
    /// [`max_sessions`](Self::max_sessions) applies.
    pub max_sessions_per_owner: usize,
    /// Time after which an unused session expires.
    pub idle: Duration,
    /// Time after which an unused session expires before `notifications/initialized` was received.
    pub idle_before_initialized: Duration,
    /// Maximum memory size of the client info and capabilities of one client, in bytes.
    pub max_client_bytes: usize,
    /// Maximum bytes above the free allowance, for client data and subscriptions of all sessions together.
    ///
    /// The allowance is 4 KiB of client data per session; it is bounded by the number of sessions.
    pub max_extra_bytes: usize,
    /// Maximum bytes above the free allowance of all sessions of one owner. For a shared owner only
    /// [`max_extra_bytes`](Self::max_extra_bytes) applies.
    pub max_owner_bytes: usize,
    /// Maximum number of resource subscriptions of one session.
    pub max_subscriptions: usize,
    /// Maximum bytes of one subscribed URI.
    pub max_uri_bytes: usize,
    /// Maximum bytes of all subscribed URIs of one session together.
    pub max_subscription_bytes: usize,
}

impl SessionLimits {
    /// Returns the maximum number of sessions of this owner.
    pub fn max_sessions_for(&self, owner: &SessionOwner) -> usize {
        if owner.is_shared() {
            self.max_sessions
        } else {
            self.max_sessions.min(self.max_sessions_per_owner)
        }
    }

    /// Returns the maximum bytes above the free allowance of all sessions of this owner.
    pub fn max_bytes_for(&self, owner: &SessionOwner) -> usize {
        if owner.is_shared() {
            self.max_extra_bytes
        } else {
            self.max_extra_bytes.min(self.max_owner_bytes)
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

/// Limits of the event log.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EventLimits {
    /// Maximum number of events of one stream.
    pub max_events: usize,
    /// Maximum bytes of one stream. Its newest event is stored even if it alone exceeds the limit.
    pub max_stream_bytes: usize,
    /// Maximum number of streams of one session. A new stream replaces the oldest finished one.
    pub max_streams: usize,
    /// Maximum bytes of all streams together, including bookkeeping.
    pub max_total_bytes: usize,
    /// Time for which a finished stream can still be resumed.
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

/// Limits of the change bus and of the control log.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BusLimits {
    /// The number of changes in the log of the bus, and of entries buffered for the slowest subscriber of each log. A
    /// subscriber that falls further behind gets an error.
    pub capacity: usize,
    /// Maximum bytes that the changes in the log refer to, such as URIs. Buffered changes are not counted.
    pub max_log_bytes: usize,
    /// Time in which a list change with an equal digest is not published again. Zero by default: every change is
    /// published.
    ///
    /// A client that requests the list after the first announcement may get it from a process that has not noticed the
    /// change. It is not notified again within this time, so only use it if all processes change their lists together.
    pub repeat_window: Duration,
}

impl Default for BusLimits {
    fn default() -> Self {
        Self {
            capacity: 1_024,
            max_log_bytes: 1024 * 1024,
            repeat_window: Duration::ZERO,
        }
    }
}

/// Limits of stored request state.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RequestStateLimits {
    /// Maximum number of entries.
    pub max_states: usize,
    /// Maximum bytes of one entry.
    pub max_state_bytes: usize,
    /// Maximum bytes of all entries together.
    pub max_total_bytes: usize,
    /// Maximum number of entries of one owner.
    pub max_states_per_owner: usize,
    /// Maximum bytes of all entries of one owner together.
    pub max_owner_bytes: usize,
}

impl Default for RequestStateLimits {
    fn default() -> Self {
        Self {
            max_states: 10_000,
            max_state_bytes: 4 * 1024 * 1024,
            max_total_bytes: 64 * 1024 * 1024,
            max_states_per_owner: 1_000,
            max_owner_bytes: 8 * 1024 * 1024,
        }
    }
}

/// Limits of claims.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClaimLimits {
    /// Maximum number of claims.
    pub max_claims: usize,
    /// Maximum bytes of the key of one claim.
    pub max_key_bytes: usize,
    /// Maximum bytes of the outcome of one claim.
    pub max_outcome_bytes: usize,
    /// Maximum bytes of all keys and outcomes together.
    pub max_total_bytes: usize,
}

impl Default for ClaimLimits {
    fn default() -> Self {
        Self {
            max_claims: 100_000,
            max_key_bytes: 1024,
            max_outcome_bytes: 4 * 1024 * 1024,
            max_total_bytes: 64 * 1024 * 1024,
        }
    }
}

/// Limits of tasks.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskLimits {
    /// Maximum number of tasks, including finished ones that are still stored.
    pub max_tasks: usize,
    /// Maximum number of tasks of one owner.
    pub max_tasks_per_owner: usize,
    /// Maximum bytes of all tasks of one owner together.
    pub max_owner_bytes: usize,
    /// Maximum bytes of one task: input requests, input responses and outcome.
    pub max_task_bytes: usize,
    /// Maximum bytes of all tasks together.
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
