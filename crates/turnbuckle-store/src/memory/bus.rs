//! A change bus within this process.

use std::sync::OnceLock;

use tokio::sync::broadcast;

use crate::{BusLimits, BusSubscription, ChangeBus, ServerChange};

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
