//! The change bus in the memory of this process.

use std::{
    collections::VecDeque,
    sync::{Mutex, OnceLock},
};

use tokio::{sync::broadcast, time::Instant};

use super::{lock, ready};
use crate::{
    BoxFuture, BusLimits, BusSubscription, ChangeBus, ListDigest, Position, PositionedChange,
    ServerChange, StoreError,
};

/// A [`ChangeBus`] for subscribers in this process.
///
/// Buffers a fixed number of changes for all subscribers together, so a slow subscriber costs nothing.
#[derive(Debug)]
pub struct MemoryBus {
    /// Created with the first subscriber, because the channel allocates all slots at once and many servers never have
    /// one.
    sender: OnceLock<broadcast::Sender<PositionedChange>>,
    /// Locked while a change is sent, so that subscribers receive the changes in the order of their positions.
    log: Mutex<ChangeLog>,
    limits: BusLimits,
}

/// The newest changes, oldest first.
#[derive(Debug, Default)]
struct ChangeLog {
    newest: Position,
    entries: VecDeque<LogEntry>,
    /// The bytes that the entries refer to.
    bytes: usize,
}

#[derive(Debug)]
struct LogEntry {
    change: ServerChange,
    /// The digest of a changed list, and when it was published.
    list: Option<(ListDigest, Instant)>,
}

impl MemoryBus {
    /// Creates a bus with the given limits.
    pub fn new(limits: &BusLimits) -> Self {
        let mut limits = limits.clone();
        // The channel panics if its capacity is 0.
        limits.capacity = limits.capacity.clamp(1, 1 << 20);
        Self {
            sender: OnceLock::new(),
            log: Mutex::default(),
            limits,
        }
    }

    fn append(&self, log: &mut ChangeLog, entry: LogEntry) {
        let change = entry.change.clone();
        let position = log.push(entry, &self.limits);
        if let Some(sender) = self.sender.get() {
            // Fails only without subscribers.
            let _ = sender.send((position, change));
        }
    }
}

impl ChangeLog {
    /// Adds a change, and removes the oldest ones beyond the limits.
    fn push(&mut self, entry: LogEntry, limits: &BusLimits) -> Position {
        self.newest = Position::new(self.newest.number() + 1);
        self.bytes += entry.change.referenced_bytes();
        self.entries.push_back(entry);
        while self.entries.len() > limits.capacity || self.bytes > limits.max_log_bytes {
            let Some(oldest) = self.entries.pop_front() else {
                break;
            };
            self.bytes -= oldest.change.referenced_bytes();
        }
        self.newest
    }

    /// Returns whether the newest entry with this change has this digest and was published since `earliest`.
    fn is_repeated(
        &self,
        change: &ServerChange,
        digest: ListDigest,
        earliest: Option<Instant>,
    ) -> bool {
        let newest = self.entries.iter().rev();
        let mut same_list = newest.filter(|entry| entry.change == *change);
        let last = same_list.next().and_then(|entry| entry.list);
        last.is_some_and(|(last, published)| {
            last == digest && earliest.is_none_or(|earliest| published >= earliest)
        })
    }

    fn after(&self, position: Position, limit: usize) -> Option<Vec<PositionedChange>> {
        let newer = self.newest.number().checked_sub(position.number())?;
        let newer = usize::try_from(newer).ok()?;
        let first = self.entries.len().checked_sub(newer)?;
        let positions = (position.number() + 1..).map(Position::new);
        let changes = self.entries.range(first..).take(limit);
        let changes = changes.map(|entry| entry.change.clone());
        Some(positions.zip(changes).collect())
    }
}

impl ChangeBus for MemoryBus {
    fn publish(&self, change: ServerChange) {
        let entry = LogEntry { change, list: None };
        self.append(&mut lock(&self.log), entry);
    }

    fn publish_list(&self, change: ServerChange, digest: ListDigest) {
        let now = Instant::now();
        let window = self.limits.repeat_window;
        let earliest = now.checked_sub(window);
        let log = &mut *lock(&self.log);
        if window.is_zero() || !log.is_repeated(&change, digest, earliest) {
            let list = Some((digest, now));
            self.append(log, LogEntry { change, list });
        }
    }

    fn subscribe(&self) -> BusSubscription {
        let sender = self
            .sender
            .get_or_init(|| broadcast::Sender::new(self.limits.capacity));
        BusSubscription::new(sender.subscribe())
    }

    fn position(&self) -> Position {
        lock(&self.log).newest
    }

    fn after(
        &self,
        position: Position,
        limit: usize,
    ) -> BoxFuture<'_, Result<Option<Vec<PositionedChange>>, StoreError>> {
        ready(move || Ok(lock(&self.log).after(position, limit)))
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

    #[tokio::test]
    async fn a_log_forgets_changes_beyond_its_limit_of_bytes() {
        let limits = BusLimits {
            max_log_bytes: 10,
            ..BusLimits::default()
        };
        let bus = MemoryBus::new(&limits);
        let update = |length: usize| {
            let uri = "x".repeat(length).into();
            bus.publish(ServerChange::ResourceUpdated { uri });
        };

        update(5);
        update(6);
        update(4);
        let first = bus.after(Position::START, 10).await.unwrap();
        let rest = bus.after(Position::new(1), 10).await.unwrap();
        update(11);
        let last = bus.after(Position::new(3), 10).await.unwrap();
        let none = bus.after(Position::new(4), 10).await.unwrap();

        assert_eq!(first, None);
        assert_eq!(rest.unwrap().len(), 2);
        assert_eq!(last, None, "larger than the limit");
        assert_eq!(none, Some(Vec::new()));
        assert_eq!(lock(&bus.log).bytes, 0);
    }
}
