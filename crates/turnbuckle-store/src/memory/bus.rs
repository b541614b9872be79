//! A bus within this process.

use std::sync::OnceLock;

use tokio::sync::broadcast;

use crate::{Bus, BusLimits, Change, Subscription};

/// A bus that reaches every listener in this process.
///
/// It holds a fixed number of changes for all listeners together, so a slow one costs nothing.
#[derive(Debug)]
pub struct MemoryBus {
    /// The channel allocates its slots at once, so it is made for the first listener: many servers never have one.
    sender: OnceLock<broadcast::Sender<Change>>,
    capacity: usize,
}

impl MemoryBus {
    /// Keeps as many changes for slow listeners as `limits` say.
    pub fn new(limits: &BusLimits) -> Self {
        Self {
            sender: OnceLock::new(),
            // The channel refuses to hold none at all.
            capacity: limits.capacity.clamp(1, 1 << 20),
        }
    }
}

impl Bus for MemoryBus {
    fn publish(&self, change: Change) {
        if let Some(sender) = self.sender.get() {
            // Nobody listening any more is no failure.
            let _ = sender.send(change);
        }
    }

    fn subscribe(&self) -> Subscription {
        let sender = self
            .sender
            .get_or_init(|| broadcast::Sender::new(self.capacity));
        Subscription::new(sender.subscribe())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bus_that_nobody_listens_to_holds_no_slots() {
        let bus = MemoryBus::new(&BusLimits::default());

        bus.publish(Change::ToolsChanged);

        assert!(bus.sender.get().is_none());
    }
}
