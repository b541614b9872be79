//! A bus within this process.

use tokio::sync::broadcast;

use crate::{Bus, BusLimits, Change, Subscription};

/// A bus that reaches every listener in this process.
///
/// It holds a fixed number of changes for all listeners together, so a slow one costs nothing.
#[derive(Debug)]
pub struct MemoryBus {
    sender: broadcast::Sender<Change>,
}

impl MemoryBus {
    /// Keeps as many changes for slow listeners as `limits` say.
    pub fn new(limits: &BusLimits) -> Self {
        // The channel allocates its slots at once and refuses none at all.
        let capacity = limits.capacity.clamp(1, 1 << 20);
        Self {
            sender: broadcast::Sender::new(capacity),
        }
    }
}

impl Bus for MemoryBus {
    fn publish(&self, change: Change) {
        // Nobody listening is no failure.
        let _ = self.sender.send(change);
    }

    fn subscribe(&self) -> Subscription {
        Subscription::new(self.sender.subscribe())
    }
}
