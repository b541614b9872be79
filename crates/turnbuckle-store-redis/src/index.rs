//! Counts of entries and bytes, for limits.

use std::time::Duration;

use turnbuckle_store::StoreError;

use crate::{connection::Connection, keys::Keys, script::Script};

static RESERVE: Script = Script::new(include_str!("scripts/index_reserve.lua"));
static RELEASE: Script = Script::new(include_str!("scripts/index_release.lua"));

/// The sizes, owners and expiry times of all entries of one kind. It is in one hash slot; the entries are not.
pub(crate) struct EntryIndex {
    keys: [String; 3],
}

/// An entry of an index.
pub(crate) struct IndexEntry<'a> {
    pub(crate) id: &'a str,
    /// Empty if the entry counts for no owner.
    pub(crate) owner: &'a str,
    pub(crate) bytes: usize,
    pub(crate) ttl: Duration,
}

/// The limits of an index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexLimits {
    pub(crate) entries: usize,
    pub(crate) bytes: usize,
    pub(crate) owner_entries: usize,
    pub(crate) owner_bytes: usize,
}

/// The limit that an entry would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExceededLimit {
    Total,
    OwnerEntries,
    OwnerBytes,
}

impl EntryIndex {
    pub(crate) fn new(keys: &Keys, kind: &str) -> Self {
        Self {
            keys: keys.index(kind),
        }
    }

    /// Adds an entry, or changes one with the same id, if the limits allow.
    pub(crate) async fn reserve(
        &self,
        connection: &Connection,
        entry: &IndexEntry<'_>,
        limits: &IndexLimits,
    ) -> Result<Result<(), ExceededLimit>, StoreError> {
        let arguments = [
            entry.id.into(),
            entry.owner.into(),
            entry.bytes.into(),
            millis(entry.ttl).into(),
            limits.entries.into(),
            limits.bytes.into(),
            limits.owner_entries.into(),
            limits.owner_bytes.into(),
        ];
        let exceeded: i64 = connection
            .script(&RESERVE, &self.keys(), &arguments)
            .await?;
        Ok(match exceeded {
            0 => Ok(()),
            3 => Err(ExceededLimit::OwnerEntries),
            4 => Err(ExceededLimit::OwnerBytes),
            _ => Err(ExceededLimit::Total),
        })
    }

    /// Removes an entry.
    pub(crate) async fn release(
        &self,
        connection: &Connection,
        id: &str,
    ) -> Result<(), StoreError> {
        let arguments = [id.into()];
        connection.script(&RELEASE, &self.keys(), &arguments).await
    }

    /// Removes expired entries.
    pub(crate) async fn sweep(&self, connection: &Connection) -> Result<(), StoreError> {
        self.release(connection, "").await
    }

    fn keys(&self) -> [&str; 3] {
        self.keys.each_ref().map(String::as_str)
    }
}

/// Returns a time to live in milliseconds, at least one, and at most thirty years so that sums stay exact.
pub(crate) fn millis(ttl: Duration) -> u64 {
    const LONG: u64 = 30 * 365 * 24 * 60 * 60 * 1000;
    let millis = ttl.as_nanos().div_ceil(1_000_000);
    u64::try_from(millis).unwrap_or(LONG).clamp(1, LONG)
}
