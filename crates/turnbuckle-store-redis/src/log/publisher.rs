//! Writes what this process publishes on the bus.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::sync::Notify;
use turnbuckle_store::{ListDigest, ServerChange};

use super::pause_after;
use crate::{
    connection::{Connection, lock},
    encoding::{BusEntry, encode_change, is_list_change},
    index::millis,
    keys::{self, Keys, LogKeys},
    script::{Argument, Script},
    sealing::Sealer,
};

pub(crate) static PUBLISH: Script = Script::new(include_str!("../scripts/publish.lua"));

/// The most changes that wait for Redis. If more are published, all are replaced by one entry that tells that changes were missed.
const MAX_QUEUE: usize = 10_000;

/// With more waiting changes than this, one of two equal list changes is enough.
const COALESCE_FROM: usize = 256;

/// The most entries that one script appends.
const MAX_BATCH: usize = 100;

/// The queue of changes that this process has published.
pub(crate) struct Publisher {
    queue: Mutex<Queue>,
    changed: Notify,
    connection: Arc<Connection>,
    sealer: Arc<Sealer>,
    keys: Keys,
    log: LogKeys,
    /// Remembers the last batch of this process, so that it is not appended twice.
    batch_key: String,
    length: usize,
    window: Duration,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<QueuedChange>,
    /// Set if changes were discarded.
    overflowed: bool,
}

/// A change that waits for Redis.
#[derive(Clone)]
pub(crate) struct QueuedChange {
    pub(crate) change: ServerChange,
    /// The digest of a list that is not published again within a time.
    pub(crate) digest: Option<ListDigest>,
}

impl Publisher {
    pub(crate) fn new(
        connection: Arc<Connection>,
        sealer: Arc<Sealer>,
        keys: Keys,
        process: &str,
        length: usize,
        window: Duration,
    ) -> Self {
        Self {
            queue: Mutex::default(),
            changed: Notify::new(),
            log: keys.bus(),
            batch_key: keys.publisher(process),
            connection,
            sealer,
            keys,
            length,
            window,
        }
    }

    /// Adds a change to the queue.
    pub(crate) fn push(&self, queued: QueuedChange) {
        let mut queue = lock(&self.queue);
        if queue.overflowed {
            return;
        }
        let is_waiting = |change: &ServerChange| {
            queue.waiting.len() > COALESCE_FROM
                && is_list_change(change)
                && queue.waiting.iter().any(|other| other.change == *change)
        };
        if is_waiting(&queued.change) {
            return;
        }
        queue.waiting.push_back(queued);
        if queue.waiting.len() > MAX_QUEUE {
            queue.waiting.clear();
            queue.overflowed = true;
        }
        drop(queue);
        self.changed.notify_one();
    }

    /// Appends the changes to the log, as long as the store lives.
    pub(crate) async fn run(self: Arc<Self>) {
        for batch in 1_u64.. {
            let entries = self.next_batch().await;
            let mut failures = 0;
            while let Err(error) = self.append(batch, &entries).await {
                if failures == 0 {
                    tracing::warn!(%error, "cannot publish changes; trying again");
                }
                failures += 1;
                pause_after(failures).await;
            }
        }
    }

    /// Waits for changes and takes some of them from the queue.
    async fn next_batch(&self) -> Vec<BatchEntry> {
        loop {
            let changed = self.changed.notified();
            let entries = self.take_batch();
            if !entries.is_empty() {
                return entries;
            }
            changed.await;
        }
    }

    fn take_batch(&self) -> Vec<BatchEntry> {
        let (overflowed, taken): (_, Vec<_>) = {
            let mut queue = lock(&self.queue);
            let overflowed = std::mem::take(&mut queue.overflowed);
            let count = queue.waiting.len().min(MAX_BATCH);
            (overflowed, queue.waiting.drain(..count).collect())
        };
        let missed = overflowed.then_some(BusEntry::Missed);
        let missed = missed.map(|entry| self.batch_entry(&entry, None));
        let changes = taken.into_iter().map(|queued| {
            let list = is_list_change(&queued.change);
            let entry = BusEntry::Change(queued.change);
            self.batch_entry(&entry, list.then_some(queued.digest))
        });
        missed.into_iter().chain(changes).flatten().collect()
    }

    /// Seals an entry; `list` is set for the change of a list, with its digest if there is one.
    fn batch_entry(
        &self,
        entry: &BusEntry,
        list: Option<Option<ListDigest>>,
    ) -> Option<BatchEntry> {
        let Some(plain) = encode_change(entry) else {
            tracing::warn!("a change cannot be published on Redis");
            return None;
        };
        let digest = list.flatten();
        Some(BatchEntry {
            value: self.sealer.seal(&plain, &self.log.stream),
            list: list.map(|_| keys::hash(&plain)).unwrap_or_default(),
            digest: digest.map_or_else(Vec::new, |digest| digest.as_bytes().to_vec()),
        })
    }

    async fn append(
        &self,
        batch: u64,
        entries: &[BatchEntry],
    ) -> Result<(), turnbuckle_store::StoreError> {
        let (batch, digests) = (batch.to_string(), self.keys.list_digests());
        let window = match self.window {
            Duration::ZERO => 0,
            window => millis(window),
        };
        let mut arguments: Vec<Argument<'_>> = vec![
            (&batch).into(),
            self.length.into(),
            (&digests).into(),
            window.into(),
        ];
        for entry in entries {
            arguments.push((&entry.value).into());
            arguments.push((&entry.list).into());
            arguments.push((&entry.digest).into());
        }
        let keys = [&*self.log.stream, &*self.log.counter, &*self.batch_key];
        self.connection.script(&PUBLISH, &keys, &arguments).await
    }
}

/// An entry as the script takes it.
struct BatchEntry {
    value: Vec<u8>,
    /// Identifies a list; empty for other changes.
    list: String,
    /// Empty if the contents of the list are not known.
    digest: Vec<u8>,
}
