//! State kept in this process.
//!
//! Every future here is ready at its first poll. Locks are held for a few instructions, and each is
//! shared only by the callers whose keys happen to fall into the same shard.

mod bus;
mod events;
mod journals;
mod owners;
mod profiles;
mod queue;
mod sessions;
mod shard;
mod shares;
mod table;
mod tasks;
mod weight;

pub use bus::MemoryBus;
pub use events::MemoryEvents;
pub use journals::MemoryJournals;
pub use sessions::MemorySessions;
pub use tasks::MemoryTasks;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::BoxFuture;

/// Turns plain work into a future that does it when first polled.
fn at_once<'a, T>(work: impl FnOnce() -> T + Send + 'a) -> BoxFuture<'a, T> {
    Box::pin(async move { work() })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that runs under these locks stops halfway, so a poisoned one holds a sound value.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The end of a time to live, where "for ever" is as good as thirty years.
fn deadline(now: Instant, ttl: Duration) -> Instant {
    const LONG: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);
    now + ttl.min(LONG)
}
