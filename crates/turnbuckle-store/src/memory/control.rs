//! The control log in the memory of this process.

use std::sync::OnceLock;

use tokio::sync::broadcast;

use super::ready;
use crate::{BoxFuture, BusLimits, ControlLog, ControlMessage, ControlSubscription, StoreError};

/// A [`ControlLog`] for subscribers in this process.
#[derive(Debug)]
pub struct MemoryControlLog {
    /// Created with the first subscriber, because the channel allocates all slots at once.
    sender: OnceLock<broadcast::Sender<ControlMessage>>,
    capacity: usize,
}

impl MemoryControlLog {
    /// Creates a log that buffers `limits.capacity` messages.
    pub fn new(limits: &BusLimits) -> Self {
        Self {
            sender: OnceLock::new(),
            // The channel panics if its capacity is 0.
            capacity: limits.capacity.clamp(1, 1 << 20),
        }
    }
}

impl ControlLog for MemoryControlLog {
    fn publish(&self, message: ControlMessage) -> BoxFuture<'_, Result<(), StoreError>> {
        ready(move || {
            if let Some(sender) = self.sender.get() {
                // Fails only without subscribers.
                let _ = sender.send(message);
            }
            Ok(())
        })
    }

    fn subscribe(&self) -> ControlSubscription {
        let sender = self
            .sender
            .get_or_init(|| broadcast::Sender::new(self.capacity));
        ControlSubscription::new(sender.subscribe())
    }
}
