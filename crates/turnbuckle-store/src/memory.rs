//! Stores and a change bus in the memory of this process.
//!
//! Every future here is ready at its first poll. Locks are held for a few instructions, and most are sharded by key.

mod bus;
mod claims;
mod control;
mod event_shard;
mod events;
mod expiring_map;
mod instances;
mod request_states;
mod session_owners;
mod sessions;
mod tasks;

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

pub use bus::MemoryBus;
pub use claims::MemoryClaimStore;
pub use control::MemoryControlLog;
pub use events::MemoryEventStore;
pub use instances::MemoryInstanceRegistry;
pub use request_states::MemoryRequestStateStore;
pub use sessions::MemorySessionStore;
pub use tasks::MemoryTaskStore;
use tokio::time::Instant;

use crate::{BoxFuture, StoreError};

/// Wraps synchronous work into a future that runs it when first polled.
fn ready<'a, T>(work: impl FnOnce() -> T + Send + 'a) -> BoxFuture<'a, T> {
    Box::pin(async move { work() })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code under these locks panics halfway, so the value of a poisoned mutex is consistent.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the end of a time to live, which is limited to thirty years so that the addition cannot overflow.
fn deadline(now: Instant, ttl: Duration) -> Instant {
    const LONG: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);
    now + ttl.min(LONG)
}

fn check_size(what: &'static str, bytes: usize, limit: usize) -> Result<(), StoreError> {
    if bytes > limit {
        return Err(StoreError::TooLarge { what, limit });
    }
    Ok(())
}
