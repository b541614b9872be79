//! Sessions in use do not expire, also if the store does not restart their idle timeouts when it loads them.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use tokio::time::{sleep, timeout};
use turnbuckle_server::{Server, Tool};
use turnbuckle_store::{
    BoxFuture, RequiredSpace, SessionId, SessionRecord, SessionStore, SessionUpdate, Store,
    StoreError, StoreLimits,
};

use crate::http::test_client::{Empty, HttpTestClient, server};

const MINUTE: Duration = Duration::from_secs(60);

/// Sessions in memory that are not touched when they are loaded, as in a store with a cache.
pub(crate) struct UntouchedSessions {
    inner: Arc<dyn SessionStore>,
    /// The number of sessions in each touch.
    touched: Mutex<Vec<usize>>,
    /// Set if it fails to touch sessions.
    pub(crate) fails: AtomicBool,
    /// Set if it responds a second after it has removed sessions.
    pub(crate) is_slow: AtomicBool,
}

impl UntouchedSessions {
    /// Returns the sessions of a store.
    pub(crate) fn new(store: &Store) -> Arc<Self> {
        Arc::new(Self {
            inner: store.sessions.clone(),
            touched: Mutex::default(),
            fails: AtomicBool::new(false),
            is_slow: AtomicBool::new(false),
        })
    }

    async fn delay(&self) {
        if self.is_slow.load(Ordering::Relaxed) {
            sleep(Duration::from_secs(1)).await;
        }
    }
}

impl SessionStore for UntouchedSessions {
    fn create(&self, record: SessionRecord) -> BoxFuture<'_, Result<SessionId, StoreError>> {
        self.inner.create(record)
    }

    fn load<'a>(
        &'a self,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<Arc<SessionRecord>>, StoreError>> {
        self.inner.load(id)
    }

    fn touch<'a>(&'a self, ids: &'a [SessionId]) -> BoxFuture<'a, Result<Vec<bool>, StoreError>> {
        if self.fails.load(Ordering::Relaxed) {
            return Box::pin(async { Err(StoreError::unavailable("a test")) });
        }
        self.touched.lock().unwrap().push(ids.len());
        self.inner.touch(ids)
    }

    fn touch_interval(&self) -> Duration {
        self.inner.touch_interval()
    }

    fn update<'a>(
        &'a self,
        id: &'a SessionId,
        update: SessionUpdate,
    ) -> BoxFuture<'a, Result<Option<Arc<SessionRecord>>, StoreError>> {
        self.inner.update(id, update)
    }

    fn remove<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let removed = self.inner.remove(id).await;
            self.delay().await;
            removed
        })
    }

    fn evict<'a>(
        &'a self,
        needed: RequiredSpace<'a>,
        in_use: &'a (dyn Fn(&SessionId) -> bool + Send + Sync),
    ) -> BoxFuture<'a, Result<Option<SessionId>, StoreError>> {
        self.inner.evict(needed, in_use)
    }

    fn len(&self) -> BoxFuture<'_, Result<usize, StoreError>> {
        self.inner.len()
    }

    fn sweep(&self) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        Box::pin(async move {
            let expired = self.inner.sweep().await;
            self.delay().await;
            expired
        })
    }
}

/// A store with sessions that expire after eight minutes, so that those in use are touched every minute.
fn untouched_store() -> (Store, Arc<UntouchedSessions>) {
    let mut limits = StoreLimits::default();
    limits.sessions.idle = 8 * MINUTE;
    limits.sessions.idle_before_initialized = 8 * MINUTE;
    let mut store = Store::memory_with(limits);
    let sessions = UntouchedSessions::new(&store);
    store.sessions = sessions.clone();
    (store, sessions)
}

/// A server with a call that takes an hour.
fn slow_server() -> Server {
    server().tool(Tool::new("hour", async |_: Empty| {
        sleep(60 * MINUTE).await;
        Ok("done".to_owned())
    }))
}

async fn ping(caller: &HttpTestClient) -> u16 {
    let ping = json!({ "jsonrpc": "2.0", "id": 99, "method": "ping" });
    caller.post(&ping).await.status().as_u16()
}

/// A store that touches sessions when it loads them, and one that does not.
fn stores() -> [Store; 2] {
    [Store::memory(), untouched_store().0]
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_reader_keeps_its_session() {
    for store in stores() {
        let caller = HttpTestClient::new(slow_server().store(store));
        let caller = caller.in_session("2025-11-25").await;
        let stream = caller.tool(1, "hour", json!({})).await.stream();

        drop(stream);
        sleep(59 * MINUTE).await;

        assert_eq!(ping(&caller).await, 200);
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_keeps_its_session() {
    for store in stores() {
        let caller = HttpTestClient::new(server().store(store));
        let caller = caller.in_session("2025-11-25").await;
        let mut stream = caller.get(None).await.stream();
        stream.prime().await;

        sleep(120 * MINUTE).await;

        assert_eq!(ping(&caller).await, 200);
        drop(stream);
        sleep(120 * MINUTE).await;
        assert_eq!(ping(&caller).await, 404);
    }
}

#[tokio::test(start_paused = true)]
async fn requests_keep_a_session_that_the_store_does_not_touch() {
    let (store, sessions) = untouched_store();
    let caller = HttpTestClient::new(server().store(store));
    let caller = caller.in_session("2025-11-25").await;

    for _ in 0..5 {
        sleep(6 * MINUTE).await;
        assert_eq!(ping(&caller).await, 200);
    }
    // It was touched a minute after the last request.
    sleep(8 * MINUTE + MINUTE / 2).await;
    let touched = sessions.touched.lock().unwrap().len();
    assert_eq!(ping(&caller).await, 200);
    sleep(11 * MINUTE).await;

    assert_eq!(ping(&caller).await, 404);
    assert!(touched <= 7, "{touched}");
}

#[tokio::test(start_paused = true)]
async fn sessions_in_use_are_touched_together() {
    let (store, sessions) = untouched_store();
    let caller = HttpTestClient::new(server().store(store));
    let mut streams = Vec::new();
    for _ in 0..100 {
        let caller = caller.clone().in_session("2025-11-25").await;
        streams.push(caller.get(None).await.stream());
    }

    sleep(10 * MINUTE + MINUTE / 2).await;

    assert_eq!(*sessions.touched.lock().unwrap(), [100; 10]);
    drop(streams);
    sleep(10 * MINUTE).await;
    assert_eq!(sessions.touched.lock().unwrap().len(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_session_used_through_one_instance_does_not_expire_for_another() {
    for store in stores() {
        let instances = [(); 2].map(|()| HttpTestClient::new(server().store(store.clone())));
        let [one, mut two] = instances;
        let one = one.in_session("2025-11-25").await;
        two.session = one.session.clone();
        two.version = one.version.clone();

        for _ in 0..20 {
            sleep(6 * MINUTE).await;
            assert_eq!(ping(&two).await, 200);
            // A new session makes the instance remove expired ones.
            let _ = one.clone().in_session("2025-11-25").await;
        }

        assert_eq!(ping(&one).await, 200);
    }
}

#[tokio::test(start_paused = true)]
async fn the_store_may_fail_while_sessions_are_in_use() {
    let (store, sessions) = untouched_store();
    let caller = HttpTestClient::new(server().store(store));
    let caller = caller.in_session("2025-11-25").await;
    let mut stream = caller.get(None).await.stream();
    stream.prime().await;

    for _ in 0..5 {
        sessions.fails.store(true, Ordering::Relaxed);
        sleep(5 * MINUTE).await;
        sessions.fails.store(false, Ordering::Relaxed);
        sleep(2 * MINUTE).await;
    }

    assert_eq!(ping(&caller).await, 200);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_the_store_failed_to_record_is_recorded_later() {
    let (store, sessions) = untouched_store();
    let caller = HttpTestClient::new(server().store(store));
    let caller = caller.in_session("2025-11-25").await;
    sleep(6 * MINUTE).await;

    sessions.fails.store(true, Ordering::Relaxed);
    assert_eq!(ping(&caller).await, 200);
    sleep(MINUTE + MINUTE / 2).await;
    sessions.fails.store(false, Ordering::Relaxed);
    sleep(5 * MINUTE).await;

    assert_eq!(ping(&caller).await, 200);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_the_store_lost_is_not_found_and_its_streams_and_calls_end() {
    for store in stores() {
        let caller = HttpTestClient::new(slow_server().store(store.clone()));
        let caller = caller.in_session("2025-11-25").await;
        let mut general = caller.get(None).await.stream();
        general.prime().await;
        let mut call = caller.tool(1, "hour", json!({})).await.stream();
        call.prime().await;
        let session = caller.session.as_ref().unwrap().parse().unwrap();

        assert!(store.sessions.remove(&session).await.unwrap());

        assert_eq!(ping(&caller).await, 404);
        assert_eq!(caller.get(None).await.status(), 404);
        for stream in [&mut general, &mut call] {
            let end = timeout(2 * MINUTE, stream.event()).await;
            assert!(end.is_ok_and(|event| event.is_none()));
        }
    }
}
