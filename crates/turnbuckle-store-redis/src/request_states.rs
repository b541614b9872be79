//! Request state in Redis.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use turnbuckle_store::{BoxFuture, RequestStateId, RequestStateStore, StoreError};

use crate::{
    check_size,
    index::{EntryIndex, ExceededLimit, IndexEntry, IndexLimits, millis},
    keys,
    shared::Shared,
};

/// A string for each entry, and an index for the limits.
pub(crate) struct RedisRequestStateStore {
    shared: Arc<Shared>,
    index: EntryIndex,
}

impl RedisRequestStateStore {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let index = EntryIndex::new(&shared.keys, "j");
        Self { shared, index }
    }

    async fn insert(
        &self,
        owner: Option<&str>,
        bytes: Bytes,
        ttl: Duration,
    ) -> Result<RequestStateId, StoreError> {
        let limits = &self.shared.limits.request_states;
        check_size("request state", bytes.len(), limits.max_state_bytes)?;
        let id = RequestStateId::generate()?;
        if ttl.is_zero() {
            return Ok(id);
        }
        let text = id.to_string();
        let entry = IndexEntry {
            id: &text,
            owner: &owner.map(keys::hash).unwrap_or_default(),
            bytes: bytes.len(),
            ttl,
        };
        let index_limits = IndexLimits {
            entries: limits.max_states,
            bytes: limits.max_total_bytes,
            owner_entries: limits.max_states_per_owner,
            owner_bytes: limits.max_owner_bytes,
        };
        let connection = &self.shared.connection;
        let reserved = self
            .index
            .reserve(connection, &entry, &index_limits)
            .await?;
        reserved.map_err(|exceeded| match exceeded {
            ExceededLimit::Total => StoreError::Full {
                what: "request state",
            },
            ExceededLimit::OwnerEntries => StoreError::TooMany {
                what: "request states of one owner",
                limit: limits.max_states_per_owner,
            },
            ExceededLimit::OwnerBytes => StoreError::TooMany {
                what: "bytes of request state of one owner",
                limit: limits.max_owner_bytes,
            },
        })?;
        let key = self.shared.keys.request_state(&text);
        let sealed = self.shared.sealer.seal(&bytes, &key);
        let mut set = redis::cmd("SET");
        set.arg(&key).arg(sealed).arg("PX").arg(millis(ttl));
        connection.run::<()>(&set).await?;
        Ok(id)
    }

    async fn load(&self, id: &RequestStateId) -> Result<Option<Bytes>, StoreError> {
        let key = self.shared.keys.request_state(id);
        let mut get = redis::cmd("GET");
        get.arg(&key);
        let sealed: Option<Vec<u8>> = self.shared.connection.run(&get).await?;
        let opened = sealed.map(|sealed| self.shared.open(&sealed, &key));
        Ok(opened.transpose()?.map(Bytes::from))
    }
}

impl RequestStateStore for RedisRequestStateStore {
    fn put(
        &self,
        bytes: Bytes,
        ttl: Duration,
    ) -> BoxFuture<'_, Result<RequestStateId, StoreError>> {
        Box::pin(self.insert(None, bytes, ttl))
    }

    fn put_for<'a>(
        &'a self,
        owner: &'a str,
        bytes: Bytes,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<RequestStateId, StoreError>> {
        Box::pin(self.insert(Some(owner), bytes, ttl))
    }

    fn get<'a>(
        &'a self,
        id: &'a RequestStateId,
    ) -> BoxFuture<'a, Result<Option<Bytes>, StoreError>> {
        Box::pin(self.load(id))
    }

    fn sweep(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.index.sweep(&self.shared.connection))
    }
}
