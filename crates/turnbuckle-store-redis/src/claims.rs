//! Claims in Redis.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use turnbuckle_store::{BoxFuture, ClaimStatus, ClaimStore, ClaimToken, StoreError};

use crate::{
    check_size,
    index::{EntryIndex, IndexEntry, IndexLimits, millis},
    script::Script,
    sealing::UnsealError,
    shared::Shared,
};

static COMPLETE: Script = Script::new(include_str!("scripts/claim_complete.lua"));
static ABANDON: Script = Script::new(include_str!("scripts/claim_abandon.lua"));

/// A string for each claim, and an index for the limits.
///
/// The string begins with `1|holder|milliseconds to live|state|`, which scripts read. State and outcome are sealed behind it; the
/// sealed state is the one that counts.
pub(crate) struct RedisClaimStore {
    shared: Arc<Shared>,
    index: EntryIndex,
}

/// A stored claim.
struct StoredClaim {
    holder: String,
    ttl: Duration,
    /// `None` while the effect runs.
    outcome: Option<Bytes>,
}

const RUNNING: u8 = b'r';
const DONE: u8 = b'd';

impl RedisClaimStore {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let index = EntryIndex::new(&shared.keys, "k");
        Self { shared, index }
    }

    async fn try_claim(&self, key: &str, ttl: Duration) -> Result<ClaimStatus, StoreError> {
        let limits = &self.shared.limits.claims;
        check_size("claim key", key.len(), limits.max_key_bytes)?;
        let token = ClaimToken::generate(key)?;
        let (name, holder, ttl_millis) = (self.name(key), token.holder_text(), millis(ttl));
        let sealed = self.shared.sealer.seal(&[RUNNING], &name);
        let mut value = format!("1|{holder}|{ttl_millis}|r|").into_bytes();
        value.extend(sealed);
        let mut set = redis::cmd("SET");
        set.arg(&name).arg(value);
        set.arg("NX").arg("GET").arg("PX").arg(ttl_millis);
        let other: Option<Vec<u8>> = self.shared.connection.run(&set).await?;
        if let Some(other) = other {
            let other = self.parse(&other, &name)?;
            // With this holder, the command was executed before its connection broke.
            if other.holder != holder {
                return Ok(other.status());
            }
        }
        if let Err(error) = self.reserve(&holder, key.len(), ttl).await {
            // The claim expires if this fails as well.
            let _ = self.remove(&token).await;
            return Err(error);
        }
        Ok(ClaimStatus::Granted(token))
    }

    async fn store_outcome(&self, token: &ClaimToken, outcome: Bytes) -> Result<(), StoreError> {
        const GONE: StoreError = StoreError::Gone { what: "claim" };
        let limits = &self.shared.limits.claims;
        check_size("outcome", outcome.len(), limits.max_outcome_bytes)?;
        let (name, holder) = (self.name(token.key()), token.holder_text());
        let connection = &self.shared.connection;
        let mut get = redis::cmd("GET");
        get.arg(&name);
        let stored: Option<Vec<u8>> = connection.run(&get).await?;
        let stored = self.parse(&stored.ok_or(GONE)?, &name)?;
        if stored.holder != holder {
            return Err(GONE);
        }
        let bytes = token.key().len() + outcome.len();
        self.reserve(&holder, bytes, stored.ttl).await?;
        let plain = [&[DONE], &*outcome].concat();
        let sealed = self.shared.sealer.seal(&plain, &name);
        let arguments = [(&holder).into(), (&sealed).into()];
        let stored: bool = connection.script(&COMPLETE, &[&name], &arguments).await?;
        if stored { Ok(()) } else { Err(GONE) }
    }

    async fn remove(&self, token: &ClaimToken) -> Result<(), StoreError> {
        let (name, holder) = (self.name(token.key()), token.holder_text());
        let connection = &self.shared.connection;
        let arguments = [(&holder).into()];
        let removed: bool = connection.script(&ABANDON, &[&name], &arguments).await?;
        if removed {
            self.index.release(connection, &holder).await?;
        }
        Ok(())
    }

    /// Counts the bytes of a claim. Its id there is the holder, since a claim that is granted again is another entry.
    async fn reserve(&self, holder: &str, bytes: usize, ttl: Duration) -> Result<(), StoreError> {
        let limits = &self.shared.limits.claims;
        let entry = IndexEntry {
            id: holder,
            owner: "",
            bytes,
            ttl,
        };
        let index_limits = IndexLimits {
            entries: limits.max_claims,
            bytes: limits.max_total_bytes,
            owner_entries: usize::MAX,
            owner_bytes: usize::MAX,
        };
        let reserved = self
            .index
            .reserve(&self.shared.connection, &entry, &index_limits);
        reserved
            .await?
            .map_err(|_| StoreError::Full { what: "claim" })
    }

    fn name(&self, key: &str) -> String {
        self.shared.keys.claim(key)
    }

    fn parse(&self, value: &[u8], name: &str) -> Result<StoredClaim, StoreError> {
        let invalid = || StoreError::unavailable(UnsealError);
        let mut parts = value.splitn(5, |byte| *byte == b'|');
        let mut text = || str::from_utf8(parts.next()?).ok();
        let (version, holder, ttl, _) = (text(), text(), text(), text());
        let (Some("1"), Some(holder), Some(ttl)) = (version, holder, ttl) else {
            return Err(invalid());
        };
        let plain = self.shared.open(parts.next().ok_or_else(invalid)?, name)?;
        let (state, outcome) = plain.split_first().ok_or_else(invalid)?;
        Ok(StoredClaim {
            holder: holder.to_owned(),
            ttl: Duration::from_millis(ttl.parse().map_err(|_| invalid())?),
            outcome: (*state == DONE).then(|| Bytes::copy_from_slice(outcome)),
        })
    }
}

impl StoredClaim {
    fn status(self) -> ClaimStatus {
        match self.outcome {
            Some(outcome) => ClaimStatus::Done(outcome),
            None => ClaimStatus::Running,
        }
    }
}

impl ClaimStore for RedisClaimStore {
    fn claim<'a>(
        &'a self,
        key: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<ClaimStatus, StoreError>> {
        Box::pin(self.try_claim(key, ttl))
    }

    fn complete(&self, token: ClaimToken, outcome: Bytes) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { self.store_outcome(&token, outcome).await })
    }

    fn abandon(&self, token: ClaimToken) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { self.remove(&token).await })
    }

    fn sweep(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.index.sweep(&self.shared.connection))
    }
}
