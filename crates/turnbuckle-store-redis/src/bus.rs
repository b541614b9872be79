//! The bus in Redis.

use std::sync::Arc;

use turnbuckle_store::{
    BoxFuture, BusSubscription, ChangeBus, ListDigest, Position, PositionedChange, ServerChange,
    StoreError,
};

use crate::{
    encoding::{BusEntry, decode_change},
    keys::LogKeys,
    log::{QueuedChange, StreamEntry, entry_id},
    script::Script,
    shared::Shared,
};

static AFTER: Script = Script::new(include_str!("scripts/bus_after.lua"));

/// The most changes that one call reads.
const MAX_ENTRIES: usize = 100_000;

/// A log of changes: [`log`](crate::log) writes and reads it.
pub(crate) struct RedisBus {
    shared: Arc<Shared>,
    log: LogKeys,
}

impl RedisBus {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let log = shared.keys.bus();
        Self { shared, log }
    }

    async fn changes_after(
        &self,
        position: Position,
        limit: usize,
    ) -> Result<Option<Vec<PositionedChange>>, StoreError> {
        let last = entry_id(position.number());
        let keys = [&*self.log.stream, &*self.log.counter];
        let arguments = [(&last).into(), limit.clamp(1, MAX_ENTRIES).into()];
        let connection = &self.shared.connection;
        let (newest, entries): (u64, Vec<StreamEntry>) =
            connection.script(&AFTER, &keys, &arguments).await?;
        if position.number() >= newest {
            return Ok((position.number() == newest).then(Vec::new));
        }
        let mut changes = Vec::with_capacity(entries.len());
        let mut next = position.number();
        for (id, fields) in entries {
            next += 1;
            if id != entry_id(next) {
                return Ok(None);
            }
            let value = fields.get(1).map(Vec::as_slice).unwrap_or_default();
            match self.read(value)? {
                BusEntry::Change(change) => changes.push((Position::new(next), change)),
                BusEntry::Missed => return Ok(None),
                BusEntry::Unknown => {}
            }
        }
        changes.truncate(limit);
        Ok((next > position.number()).then_some(changes))
    }

    fn read(&self, value: &[u8]) -> Result<BusEntry, StoreError> {
        let plain = self.shared.open(value, &self.log.stream)?;
        decode_change(&plain).map_err(StoreError::unavailable)
    }
}

impl ChangeBus for RedisBus {
    fn publish(&self, change: ServerChange) {
        let digest = None;
        self.shared.publisher.push(QueuedChange { change, digest });
    }

    fn publish_list(&self, change: ServerChange, digest: ListDigest) {
        let digest = Some(digest);
        self.shared.publisher.push(QueuedChange { change, digest });
    }

    fn subscribe(&self) -> BusSubscription {
        BusSubscription::of_results(self.shared.channels.changes.subscribe())
    }

    fn position(&self) -> Position {
        self.shared.channels.position()
    }

    fn after(
        &self,
        position: Position,
        limit: usize,
    ) -> BoxFuture<'_, Result<Option<Vec<PositionedChange>>, StoreError>> {
        Box::pin(self.changes_after(position, limit))
    }
}
