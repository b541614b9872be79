//! Sessions in Redis.

use std::{
    hash::{BuildHasher, BuildHasherDefault},
    io,
    sync::Arc,
    time::Duration,
};

use serde::Serialize;
use turnbuckle_store::{
    BoxFuture, RandomIdHasher, RequiredSpace, SessionId, SessionRecord, SessionStore,
    SessionUpdate, StoreError,
};

use crate::{
    encoding::{decode_session, encode_session},
    index::millis,
    join::join_all,
    script::Script,
    sealing::UnsealError,
    session_index::{IndexedSession, SessionIndex},
    shared::Shared,
};

static TOUCH: Script = Script::new(include_str!("scripts/session_touch.lua"));
static UPDATE: Script = Script::new(include_str!("scripts/session_update.lua"));

/// The free allowance for the client data of one session.
const FREE_CLIENT_BYTES: usize = 4 * 1024;

/// Updates of this process that can go on at the same time.
const UPDATE_LOCKS: usize = 64;

/// The most sessions that are touched at the same time.
const MAX_TOUCH: usize = 500;

/// A string for each session, and an index for limits, expiry and eviction.
///
/// The string begins with `1|version|1 if initialized|`, which scripts read; the sealed record behind it has both again, and they
/// are the ones that count.
pub(crate) struct RedisSessionStore {
    shared: Arc<Shared>,
    index: SessionIndex,
    /// Updates of one session in this process wait for each other, so that they do not conflict.
    updating: Box<[tokio::sync::Mutex<()>]>,
}

impl RedisSessionStore {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            index: SessionIndex::new(&shared.keys),
            updating: std::iter::repeat_with(tokio::sync::Mutex::default)
                .take(UPDATE_LOCKS)
                .collect(),
            shared,
        }
    }

    async fn create_now(&self, record: SessionRecord) -> Result<SessionId, StoreError> {
        let id = SessionId::generate()?;
        let text = id.to_string();
        self.reserve(&text, &record).await?;
        let key = self.shared.keys.session(&text);
        let mut set = redis::cmd("SET");
        set.arg(&key).arg(self.encode(&record, &key));
        set.arg("PX").arg(millis(self.idle(&record)));
        self.shared.connection.run::<()>(&set).await?;
        Ok(id)
    }

    async fn load_now(&self, id: &SessionId) -> Result<Option<SessionRecord>, StoreError> {
        let key = self.shared.keys.session(id);
        let mut get = redis::cmd("GET");
        get.arg(&key);
        let value: Option<Vec<u8>> = self.shared.connection.run(&get).await?;
        value.map(|value| self.decode(&value, &key)).transpose()
    }

    async fn update_now(
        &self,
        id: &SessionId,
        update: SessionUpdate,
    ) -> Result<Option<Arc<SessionRecord>>, StoreError> {
        let text = id.to_string();
        let key = self.shared.keys.session(&text);
        let _updating = self.updating[lock_number(id)].lock().await;
        loop {
            let Some(before) = self.load_now(id).await? else {
                return Ok(None);
            };
            let mut record = before.clone();
            record.apply(update.clone(), &self.shared.limits.sessions)?;
            let is_counted = self.bytes(&before)? == self.bytes(&record)?
                && before.initialized == record.initialized;
            if !is_counted {
                self.reserve(&text, &record).await?;
            }
            let (version, value) = (before.version.to_string(), self.encode(&record, &key));
            let arguments = [
                (&version).into(),
                (&value).into(),
                millis(self.idle(&record)).into(),
            ];
            let connection = &self.shared.connection;
            let updated: i64 = connection.script(&UPDATE, &[&key], &arguments).await?;
            match updated {
                1 => return Ok(Some(Arc::new(record))),
                // Another process was faster.
                0 => {}
                _ => return Ok(None),
            }
        }
    }

    async fn touch_now(&self, ids: &[SessionId]) -> Result<Vec<bool>, StoreError> {
        let limits = &self.shared.limits.sessions;
        let arguments = [
            millis(limits.idle_before_initialized).into(),
            millis(limits.idle).into(),
        ];
        let mut touched = Vec::with_capacity(ids.len());
        for chunk in ids.chunks(MAX_TOUCH) {
            let touches = chunk.iter().map(|id| async move {
                let key = self.shared.keys.session(id);
                let connection = &self.shared.connection;
                let touched: Result<bool, _> = connection.script(&TOUCH, &[&key], &arguments).await;
                touched
            });
            for result in join_all(touches).await {
                touched.push(result?);
            }
        }
        Ok(touched)
    }

    async fn remove_now(&self, id: &SessionId) -> Result<bool, StoreError> {
        let text = id.to_string();
        let mut delete = redis::cmd("DEL");
        delete.arg(self.shared.keys.session(&text));
        let connection = &self.shared.connection;
        let existed: bool = connection.run(&delete).await?;
        if existed {
            self.index.release(connection, &[text], false).await?;
        }
        Ok(existed)
    }

    async fn evict_now(
        &self,
        needed: RequiredSpace<'_>,
        in_use: &(dyn Fn(&SessionId) -> bool + Send + Sync),
    ) -> Result<Option<SessionId>, StoreError> {
        let space = match needed {
            RequiredSpace::Session(record) => match self.bytes(record) {
                Ok(bytes) => (true, bytes),
                Err(_) => return Ok(None),
            },
            RequiredSpace::Subscription { uri, .. } => (false, subscription_bytes(uri)),
            _ => return Ok(None),
        };
        let (connection, limits) = (&self.shared.connection, &self.shared.limits.sessions);
        loop {
            let found =
                self.index
                    .find_evictable(connection, needed.owner(), space, limits, in_use);
            let Some(id) = found.await? else {
                return Ok(None);
            };
            if self.remove_now(&id).await? {
                return Ok(Some(id));
            }
            // Another caller has removed it, or it has expired, so there may be room now.
        }
    }

    async fn reserve(&self, id: &str, record: &SessionRecord) -> Result<(), StoreError> {
        let session = IndexedSession {
            id,
            owner: &record.owner,
            bytes: self.bytes(record)?,
            initialized: record.initialized,
            ttl: self.idle(record),
        };
        let limits = &self.shared.limits.sessions;
        self.index
            .reserve(&self.shared.connection, &session, limits)
            .await
    }

    fn idle(&self, record: &SessionRecord) -> Duration {
        let limits = &self.shared.limits.sessions;
        if record.initialized {
            limits.idle
        } else {
            limits.idle_before_initialized
        }
    }

    /// Returns the bytes of a session above its free allowance.
    fn bytes(&self, record: &SessionRecord) -> Result<usize, StoreError> {
        let limit = self.shared.limits.sessions.max_client_bytes;
        let client = &record.client;
        let client_bytes = estimated_size(&client.info) + estimated_size(&client.capabilities);
        if client_bytes > limit {
            let what = "client info and capabilities";
            return Err(StoreError::TooLarge { what, limit });
        }
        let of_client = client_bytes + estimated_size(&record.principal);
        let uris = record.subscriptions.iter();
        let of_subscriptions: usize = uris.map(|uri| subscription_bytes(uri)).sum();
        Ok(of_client.saturating_sub(FREE_CLIENT_BYTES) + of_subscriptions)
    }

    fn encode(&self, record: &SessionRecord, key: &str) -> Vec<u8> {
        let head = format!("1|{}|{}|", record.version, u8::from(record.initialized));
        let sealed = self.shared.sealer.seal(&encode_session(record), key);
        [head.as_bytes(), &sealed].concat()
    }

    fn decode(&self, value: &[u8], key: &str) -> Result<SessionRecord, StoreError> {
        let sealed = value.splitn(4, |byte| *byte == b'|').nth(3);
        let sealed = sealed.ok_or_else(|| StoreError::unavailable(UnsealError))?;
        let plain = self.shared.open(sealed, key)?;
        decode_session(&plain).map_err(StoreError::unavailable)
    }
}

fn lock_number(id: &SessionId) -> usize {
    let hash = BuildHasherDefault::<RandomIdHasher>::default().hash_one(id);
    // The remainder is below the number of locks, so it fits into `usize`.
    (hash % UPDATE_LOCKS as u64) as usize
}

impl SessionStore for RedisSessionStore {
    fn create(&self, record: SessionRecord) -> BoxFuture<'_, Result<SessionId, StoreError>> {
        Box::pin(self.create_now(record))
    }

    fn load<'a>(
        &'a self,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<Arc<SessionRecord>>, StoreError>> {
        Box::pin(async move { Ok(self.load_now(id).await?.map(Arc::new)) })
    }

    fn touch<'a>(&'a self, ids: &'a [SessionId]) -> BoxFuture<'a, Result<Vec<bool>, StoreError>> {
        Box::pin(self.touch_now(ids))
    }

    fn touch_interval(&self) -> Duration {
        let limits = &self.shared.limits.sessions;
        limits.idle.min(limits.idle_before_initialized) / 8
    }

    fn update<'a>(
        &'a self,
        id: &'a SessionId,
        update: SessionUpdate,
    ) -> BoxFuture<'a, Result<Option<Arc<SessionRecord>>, StoreError>> {
        Box::pin(self.update_now(id, update))
    }

    fn remove<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.remove_now(id))
    }

    fn evict<'a>(
        &'a self,
        needed: RequiredSpace<'a>,
        in_use: &'a (dyn Fn(&SessionId) -> bool + Send + Sync),
    ) -> BoxFuture<'a, Result<Option<SessionId>, StoreError>> {
        Box::pin(self.evict_now(needed, in_use))
    }

    fn len(&self) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(self.index.len(&self.shared.connection))
    }

    fn sweep(&self) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        Box::pin(self.index.take_expired(&self.shared.connection))
    }
}

/// Returns the bytes that a subscription uses.
fn subscription_bytes(uri: &str) -> usize {
    uri.len() + 64
}

/// Estimates the memory of `value` from its JSON text; every node counts extra, as in the memory store.
fn estimated_size(value: &impl Serialize) -> usize {
    let mut counter = SizeCounter(0);
    match serde_json::to_writer(&mut counter, value) {
        Ok(()) => counter.0,
        // A value that cannot be measured counts as too large.
        Err(_) => usize::MAX / 4,
    }
}

/// The memory of a JSON node in addition to its text.
const NODE_BYTES: usize = 64;

struct SizeCounter(usize);

impl io::Write for SizeCounter {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let nodes = text
            .iter()
            .filter(|byte| matches!(byte, b',' | b'{' | b'['));
        self.0 += text.len() + NODE_BYTES * nodes.count();
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
