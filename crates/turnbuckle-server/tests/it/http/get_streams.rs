//! GET streams of sessions: resumed from the bus, at any instance.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use turnbuckle_server::Server;
use turnbuckle_spec_coverage::req;
use turnbuckle_store::{
    BoxFuture, RequiredSpace, SessionId, SessionRecord, SessionStore, SessionUpdate, Store,
    StoreError, StoreLimits,
};

use crate::http::test_client::{HttpTestClient, Stream, server};

/// Two instances on one store, and a session that both serve.
async fn instances(store: &Store) -> [(Server, HttpTestClient); 2] {
    let servers = [(); 2].map(|()| server().store(store.clone()));
    let one = HttpTestClient::new(servers[0].clone())
        .in_session("2025-11-25")
        .await;
    let mut two = HttpTestClient::new(servers[1].clone());
    (two.session, two.version) = (one.session.clone(), one.version.clone());
    let [first, second] = servers;
    [(first, one), (second, two)]
}

async fn subscribe(caller: &HttpTestClient, uri: &str) {
    let subscribe = json!({
        "jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": { "uri": uri },
    });
    assert_eq!(caller.post(&subscribe).await.status(), 200);
}

/// The method of a notification, or the URI of an update.
fn describe(message: &Value) -> String {
    let name = message["params"]["uri"].as_str();
    let name = name.or(message["method"].as_str()).unwrap();
    name.trim_start_matches("notifications/").to_owned()
}

/// Reads what arrives within a second. Returns it with the id of the last event.
async fn read(stream: &mut Stream) -> (Vec<String>, String) {
    let (mut messages, mut last) = (Vec::new(), String::new());
    while let Ok(Some(event)) = timeout(Duration::from_secs(1), stream.event()).await {
        last = event.last_event_id;
        if !event.data.is_empty() {
            messages.push(describe(&serde_json::from_str(&event.data).unwrap()));
        }
    }
    (messages, last)
}

const TOOLS: &str = "tools/list_changed";
const PROMPTS: &str = "prompts/list_changed";
const RESOURCES: &str = "resources/list_changed";

#[tokio::test(start_paused = true)]
async fn a_change_at_one_instance_reaches_the_stream_at_another_once() {
    let [(first, one), (second, two)] = instances(&Store::memory()).await;
    subscribe(&one, "test://a").await;
    let mut stream = two.get(None).await.stream();
    stream.prime().await;

    first.tools_changed();
    first.resource_updated("test://a");
    first.resource_updated("test://b");
    second.prompts_changed();

    let (messages, _) = read(&mut stream).await;
    assert_eq!(messages, [TOOLS, "test://a", PROMPTS]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_a_dead_instance_goes_on_at_another() {
    req!("http.resume.last-event-id", "http.resume.same-stream");
    let [(first, one), (second, two)] = instances(&Store::memory()).await;
    subscribe(&one, "test://a").await;
    let mut stream = one.get(None).await.stream();
    stream.prime().await;
    for _ in 0..3 {
        second.tools_changed();
    }
    let (messages, last) = read(&mut stream).await;
    assert_eq!(messages, [TOOLS; 3]);

    drop((stream, one, first));
    second.resource_updated("test://a");
    second.resource_updated("test://b");
    second.prompts_changed();
    let mut stream = two.get(Some(&last)).await.stream();

    assert_eq!(read(&mut stream).await.0, ["test://a", PROMPTS]);
    second.resources_changed();
    let (messages, last) = read(&mut stream).await;
    assert_eq!(messages, [RESOURCES]);
    drop(stream);
    let mut stream = two.get(Some(&last)).await.stream();
    assert!(read(&mut stream).await.0.is_empty(), "nothing is repeated");
}

#[tokio::test(start_paused = true)]
async fn a_change_is_sent_on_one_of_the_streams_at_two_instances() {
    req!("http.streams.no-broadcast");
    let [(first, one), (second, two)] = instances(&Store::memory()).await;
    let mut older = one.get(None).await.stream();
    let start = older.prime().await;
    for _ in 0..3 {
        second.tools_changed();
    }
    assert_eq!(read(&mut older).await.0, [TOOLS; 3]);

    let mut newer = two.get(None).await.stream();
    newer.prime().await;
    for server in [&first, &second] {
        server.prompts_changed();
    }

    assert_eq!(read(&mut newer).await.0, [PROMPTS; 2]);
    assert!(read(&mut older).await.0.is_empty(), "it is open and silent");
    // The older one is resumed with its own changes only.
    for caller in [&one, &two] {
        let mut resumed = caller.get(Some(&start)).await.stream();
        assert_eq!(read(&mut resumed).await.0, [TOOLS; 3]);
        first.resources_changed();
        assert_eq!(read(&mut newer).await.0, [RESOURCES]);
        assert!(read(&mut resumed).await.0.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_moves_between_instances_and_loses_nothing() {
    let [(first, one), (_, two)] = instances(&Store::memory()).await;
    let mut stream = one.get(None).await.stream();
    let mut last = stream.prime().await;
    for round in 0..10 {
        first.tools_changed();
        if round % 3 == 0 {
            let (messages, id) = read(&mut stream).await;
            assert!(!messages.is_empty());
            last = id;
        }
        first.prompts_changed();
        // The earlier connection may still be open.
        let caller = if round % 2 == 0 { &two } else { &one };
        let mut resumed = caller.get(Some(&last)).await.stream();
        let (messages, id) = read(&mut resumed).await;
        let expected: &[_] = if round % 3 == 0 {
            &[PROMPTS]
        } else {
            &[TOOLS, PROMPTS]
        };
        assert_eq!(messages, expected, "{round}");
        (stream, last) = (resumed, id);
    }
}

#[tokio::test(start_paused = true)]
async fn everything_is_announced_if_the_bus_no_longer_has_the_position() {
    let mut limits = StoreLimits::default();
    limits.bus.capacity = 8;
    let [(first, one), (_, two)] = instances(&Store::memory_with(limits)).await;
    subscribe(&one, "test://a").await;
    let mut stream = one.get(None).await.stream();
    let start = stream.prime().await;
    drop(stream);
    for _ in 0..20 {
        first.resource_updated("test://b");
    }

    for caller in [&one, &two] {
        let mut resumed = caller.get(Some(&start)).await.stream();
        let (messages, last) = read(&mut resumed).await;
        assert_eq!(messages, [TOOLS, PROMPTS, RESOURCES, "test://a"]);
        assert_ne!(last, start);
        drop(resumed);
        first.tools_changed();
        let mut resumed = caller.get(Some(&last)).await.stream();
        assert_eq!(read(&mut resumed).await.0, [TOOLS]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_slowly_gets_each_change_once() {
    let server = server();
    let caller = HttpTestClient::new(server.clone())
        .in_session("2025-11-25")
        .await;
    let mut stream = caller.get(None).await.stream();
    stream.prime().await;
    let mut expected = Vec::new();

    for _ in 0..200 {
        server.tools_changed();
        server.prompts_changed();
        expected.extend([TOOLS, PROMPTS]);
        tokio::task::yield_now().await;
    }

    assert_eq!(read(&mut stream).await.0, expected);
}

#[tokio::test(start_paused = true)]
async fn unknown_events_of_get_streams_are_rejected() {
    let caller = HttpTestClient::new(server()).in_session("2025-11-25").await;

    for id in ["g1-0", "g0-0", "g2-1"] {
        let refused = caller.get(Some(id)).await;
        assert_eq!(refused.status_and_code().await, (400, -32600), "{id}");
    }
    let mut stream = caller.get(None).await.stream();
    let first = stream.prime().await;
    assert_eq!(caller.get(Some("g2-1")).await.status(), 400);
    assert_eq!(caller.get(Some(&first)).await.status(), 200);
}

/// Sessions in memory, where updates take a while and may fail.
struct SlowSessions {
    inner: Arc<dyn SessionStore>,
    /// The time that the next updates take, and whether they fail then.
    next: Mutex<(Duration, bool)>,
}

impl SessionStore for SlowSessions {
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
        let (delay, fails) = *self.next.lock().unwrap();
        Box::pin(async move {
            sleep(delay).await;
            if fails {
                return Err(StoreError::unavailable("a test"));
            }
            self.inner.update(id, update).await
        })
    }

    fn remove<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.inner.remove(id)
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
        self.inner.sweep()
    }
}

/// A session on a store with slow sessions.
async fn slow_session() -> (Server, HttpTestClient, Arc<SlowSessions>) {
    let mut store = Store::memory();
    let sessions = Arc::new(SlowSessions {
        inner: store.sessions.clone(),
        next: Mutex::default(),
    });
    store.sessions = sessions.clone();
    let server = server().store(store);
    let caller = HttpTestClient::new(server.clone())
        .in_session("2025-11-25")
        .await;
    (server, caller, sessions)
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_opened_slowly_gets_later_changes() {
    let (server, caller, sessions) = slow_session().await;
    *sessions.next.lock().unwrap() = (Duration::from_secs(40), false);
    let mut stream = caller.get(None).await.stream();
    stream.prime().await;
    assert!(read(&mut stream).await.0.is_empty());

    server.tools_changed();

    assert_eq!(read(&mut stream).await.0, [TOOLS]);
}

#[tokio::test(start_paused = true)]
async fn a_change_while_another_stream_is_opened_is_sent_on_one_of_them() {
    req!("http.streams.no-broadcast");
    for fails in [false, true] {
        let (server, caller, sessions) = slow_session().await;
        let mut older = caller.get(None).await.stream();
        older.prime().await;
        for _ in 0..2 {
            server.tools_changed();
            assert_eq!(read(&mut older).await.0, [TOOLS]);
        }

        *sessions.next.lock().unwrap() = (Duration::from_secs(2), fails);
        let (newer, of_older) = tokio::join!(caller.get(None), async {
            sleep(Duration::from_secs(1)).await;
            server.prompts_changed();
            sleep(Duration::from_secs(2)).await;
            read(&mut older).await.0
        });

        if fails {
            assert_eq!(
                (newer.status().as_u16(), of_older),
                (503, vec![PROMPTS.to_owned()])
            );
            continue;
        }
        assert!(of_older.is_empty());
        assert_eq!(read(&mut newer.stream()).await.0, [PROMPTS]);
    }
}
