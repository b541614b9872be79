//! Stores and a change bus in the memory of this process.
//!
//! Every future here is ready at its first poll. Locks are held for a few instructions, and most are sharded by key.

mod claims;
mod event_shard;
mod events;
mod expiring_map;
mod request_states;
mod session_owners;
mod sessions;
mod tasks;

use std::{
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

pub use claims::MemoryClaimStore;
pub use events::MemoryEventStore;
pub use request_states::MemoryRequestStateStore;
pub use sessions::MemorySessionStore;
pub use tasks::MemoryTaskStore;
use tokio::{sync::broadcast, time::Instant};

use crate::{BoxFuture, BusLimits, BusSubscription, ChangeBus, ServerChange, StoreError};

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

/// A [`ChangeBus`] for subscribers in this process.
///
/// Buffers a fixed number of changes for all subscribers together, so a slow subscriber costs nothing.
#[derive(Debug)]
pub struct MemoryBus {
    /// Created with the first subscriber, because the channel allocates all slots at once and many servers never have
    /// one.
    sender: OnceLock<broadcast::Sender<ServerChange>>,
    capacity: usize,
}

impl MemoryBus {
    /// Creates a bus that buffers `limits.capacity` changes.
    pub fn new(limits: &BusLimits) -> Self {
        Self {
            sender: OnceLock::new(),
            // The channel panics if its capacity is 0.
            capacity: limits.capacity.clamp(1, 1 << 20),
        }
    }
}

impl ChangeBus for MemoryBus {
    fn publish(&self, change: ServerChange) {
        if let Some(sender) = self.sender.get() {
            // Fails only without subscribers.
            let _ = sender.send(change);
        }
    }

    fn subscribe(&self) -> BusSubscription {
        let sender = self
            .sender
            .get_or_init(|| broadcast::Sender::new(self.capacity));
        BusSubscription::new(sender.subscribe())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bus_without_subscribers_allocates_no_slots() {
        let bus = MemoryBus::new(&BusLimits::default());

        bus.publish(ServerChange::ToolsChanged);

        assert!(bus.sender.get().is_none());
    }
}
