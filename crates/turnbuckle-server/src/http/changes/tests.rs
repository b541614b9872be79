use std::{
    collections::VecDeque,
    sync::atomic::AtomicBool,
    task::{Context, Waker},
};

use turnbuckle_protocol::{Principal, Revision};
use turnbuckle_store::{
    BoxFuture, BusLimits, ChangeTarget, ClientProfile, NewTask, RequiredSpace, ServerChange,
    SessionStore, SessionUpdate, Store, StoreError, TargetedChange,
};

use super::*;
use crate::{
    Server,
    http::{
        HttpOptions,
        post::session::store_update,
        session::{ActiveSessionGuard, ActiveSessions},
        stream::{GetStreamReader, QueueRead, open_stream},
    },
    middleware::SessionKey,
    server::relay::principal_target,
    tasks::TaskOwner,
};

async fn active_session() -> (Arc<Endpoint>, ActiveSessionGuard) {
    let server = Server::new("test", "1.0.0");
    let endpoint = Arc::new(Endpoint::new(server, HttpOptions::default(), None));
    let active = session_of(&endpoint, None).await;
    (endpoint, active)
}

/// Creates a session of a principal.
async fn session_of(endpoint: &Arc<Endpoint>, principal: Option<Principal>) -> ActiveSessionGuard {
    let record = SessionRecord::new(principal, Revision::V2025_11_25, ClientProfile::default());
    let sessions = &endpoint.server.store_ref().sessions;
    let id = sessions.create(record).await.unwrap();
    let change = SessionUpdate::Initialized;
    sessions.update(&id, change).await.unwrap().unwrap();
    ActiveSessions::activate(endpoint, id)
}

/// Opens a stream, as GET does.
async fn open(active: &ActiveSessionGuard) -> Arc<GetStream> {
    let opened = open_stream(active).await.unwrap();
    opened.expect("the session exists").0
}

/// Publishes a change without the fan-out task.
fn publish_change(endpoint: &Endpoint, change: ServerChange) -> ChangeNotice {
    let bus = &endpoint.server.store_ref().bus;
    bus.publish(change.clone());
    ChangeNotice::Change(bus.position(), EncodedChange::new(change))
}

async fn notify_snapshot(
    endpoint: &Endpoint,
    subscribers: &[ChangeSubscriber],
    change: ServerChange,
) {
    notify_all(endpoint, subscribers, &publish_change(endpoint, change)).await;
}

async fn notify_of(endpoint: &Endpoint, change: ServerChange) {
    notify(endpoint, &publish_change(endpoint, change)).await;
}

fn updated(uri: &str) -> ServerChange {
    ServerChange::ResourceUpdated { uri: uri.into() }
}

/// Takes the next event; returns whether there was one.
fn has_event(reader: &GetStreamReader) -> bool {
    matches!(poll_reader(reader), Poll::Ready(QueueRead::Message(_)))
}

fn poll_reader(reader: &GetStreamReader) -> Poll<QueueRead> {
    reader.poll_read(&Context::from_waker(Waker::noop()), &mut VecDeque::new())
}

#[tokio::test]
async fn a_stream_opened_after_the_snapshot_gets_the_change_instead_of_the_older() {
    for notified_before in [false, true] {
        let (endpoint, active) = active_session().await;
        let older = open(&active).await.attach();
        let subscribers = endpoint.active_sessions.subscribers();
        if notified_before {
            notify_snapshot(&endpoint, &subscribers, ServerChange::ToolsChanged).await;
            assert!(has_event(&older));
        }
        let newer = open(&active).await.attach();

        notify_snapshot(&endpoint, &subscribers, ServerChange::ToolsChanged).await;

        assert!(has_event(&newer) && !has_event(&older), "{notified_before}");
    }
}

#[tokio::test]
async fn the_remaining_stream_gets_changes_after_another_ended() {
    let (endpoint, active) = active_session().await;
    let older = open(&active).await;
    let reader = older.attach();
    let newer = open(&active).await;
    let subscribers = endpoint.active_sessions.subscribers();
    assert!(matches!(
        poll_reader(&reader),
        Poll::Ready(QueueRead::Replay)
    ));
    notify_snapshot(&endpoint, &subscribers, ServerChange::ToolsChanged).await;
    assert!(has_event(&reader), "the newer stream lacks a reader");

    end_streams(&endpoint, GetStreams::take_unread);
    assert!(older.receives_list_changes() && !newer.receives_list_changes());
    let subscribers = endpoint.active_sessions.subscribers();
    notify_snapshot(&endpoint, &subscribers, ServerChange::ToolsChanged).await;

    assert!(has_event(&reader));
}

#[tokio::test]
async fn a_stream_that_loses_its_turn_gets_from_the_bus_what_the_fan_out_has_not_sent() {
    let (endpoint, active) = active_session().await;
    let reader = open(&active).await.attach();
    let before = publish_change(&endpoint, ServerChange::ToolsChanged);
    let newer = open(&active).await.attach();

    notify(&endpoint, &before).await;

    assert!(matches!(
        poll_reader(&reader),
        Poll::Ready(QueueRead::Replay)
    ));
    assert!(!has_event(&reader) && !has_event(&newer));
    notify_of(&endpoint, ServerChange::ToolsChanged).await;
    assert!(!has_event(&reader) && has_event(&newer));
}

#[tokio::test]
async fn a_stream_sends_nothing_after_another_endpoint_has_taken_over() {
    let (endpoint, active) = active_session().await;
    let stream = open(&active).await;
    let reader = stream.attach();
    notify_of(&endpoint, ServerChange::ToolsChanged).await;
    notify_of(&endpoint, ServerChange::ToolsChanged).await;
    assert!(stream.receives_list_changes());
    let mut control = endpoint.server.store_ref().control.subscribe();
    let elsewhere = Server::new("test", "1.0.0").store(endpoint.server.store_ref().clone());
    let elsewhere = Arc::new(Endpoint::new(elsewhere, HttpOptions::default(), None));
    let other = ActiveSessions::activate(&elsewhere, active.session_id);
    let newer = open(&other).await.attach();

    read_changed_sessions(&endpoint, &mut control, None).await;
    let change = publish_change(&endpoint, ServerChange::ToolsChanged);
    while poll_reader(&reader).is_ready() {}
    for endpoint in [&endpoint, &elsewhere] {
        notify(endpoint, &change).await;
    }

    assert!(!has_event(&reader) && has_event(&newer));
    let lag = ChangeNotice::Everything(endpoint.server.store_ref().bus.position());
    notify(&endpoint, &lag).await;
    assert!(!has_event(&reader));
}

#[tokio::test]
async fn the_snapshot_is_rebuilt_when_a_stream_opens_or_ends() {
    let (endpoint, active) = active_session().await;
    open(&active).await;
    let snapshot = endpoint.active_sessions.subscribers();
    assert!(Arc::ptr_eq(
        &snapshot,
        &endpoint.active_sessions.subscribers()
    ));

    open(&active).await;
    let with_another = endpoint.active_sessions.subscribers();
    assert!(!Arc::ptr_eq(&snapshot, &with_another));

    assert_eq!(active.session.get_streams.take_unread().len(), 1);
    let active_sessions = &endpoint.active_sessions;
    active_sessions.remove_if_idle(&active.session_id, &active.session);
    assert!(!Arc::ptr_eq(&with_another, &active_sessions.subscribers()));
    active_sessions.close(&active.session_id);
    assert!(active_sessions.subscribers().is_empty());
}

#[tokio::test]
async fn every_session_gets_a_change_exactly_once() {
    let (endpoint, first) = active_session().await;
    let record = SessionRecord::new(None, Revision::V2025_11_25, ClientProfile::default());
    let sessions = &endpoint.server.store_ref().sessions;
    let mut readers = vec![(open(&first).await.attach(), first)];
    for _ in 0..500 {
        let id = sessions.create(record.clone()).await.unwrap();
        let change = SessionUpdate::Initialized;
        sessions.update(&id, change).await.unwrap().unwrap();
        let active = ActiveSessions::activate(&endpoint, id);
        readers.push((open(&active).await.attach(), active));
    }

    for _ in 0..2 {
        notify_snapshot(
            &endpoint,
            &endpoint.active_sessions.subscribers(),
            ServerChange::ToolsChanged,
        )
        .await;

        for (reader, _) in &readers {
            assert!(has_event(reader) && !has_event(reader));
        }
    }
}

#[tokio::test]
async fn list_changes_skip_the_session_lookup_after_the_first() {
    for streams in [1, 2] {
        let (endpoint, active) = active_session().await;
        let mut readers = Vec::new();
        for _ in 0..streams {
            readers.push(open(&active).await.attach());
        }
        let newest = readers.last().unwrap();
        let subscribers = endpoint.active_sessions.subscribers();
        notify_snapshot(&endpoint, &subscribers, ServerChange::ToolsChanged).await;
        assert!(has_event(newest));

        let sessions = &endpoint.server.store_ref().sessions;
        let subscribe = SessionUpdate::Subscribe("test://a".to_owned());
        let id = active.session_id;
        sessions.update(&id, subscribe).await.unwrap().unwrap();
        read_interests(&endpoint, &id, &active.session).await;
        sessions.remove(&id).await.unwrap();
        notify_snapshot(&endpoint, &subscribers, ServerChange::PromptsChanged).await;
        assert!(
            has_event(newest),
            "the reader detects that the session has ended"
        );
        notify_of(&endpoint, updated("test://a")).await;

        assert!(endpoint.active_sessions.has_no_subscribers());
    }
}

#[tokio::test]
async fn the_snapshot_is_kept_for_sessions_without_stream_changes() {
    let (endpoint, active) = active_session().await;
    let _reader = open(&active).await.attach();
    let snapshot = endpoint.active_sessions.subscribers();

    end_streams(&endpoint, |streams| streams.expire(Instant::now()));
    let unsubscribed = SessionId::generate().unwrap();
    let _unsubscribed = ActiveSessions::activate(&endpoint, unsubscribed);
    endpoint.active_sessions.close(&unsubscribed);

    assert!(Arc::ptr_eq(
        &snapshot,
        &endpoint.active_sessions.subscribers()
    ));
}

#[tokio::test]
async fn the_streams_of_a_session_end_with_it() {
    let (endpoint, active) = active_session().await;
    let _feeds = [open(&active).await, open(&active).await];
    assert_eq!(endpoint.active_sessions.subscribers().len(), 1);

    endpoint.active_sessions.close(&active.session_id);

    assert!(endpoint.active_sessions.has_no_subscribers());
}

#[tokio::test(start_paused = true)]
async fn an_unread_stream_expires() {
    let (endpoint, active) = active_session().await;
    open(&active).await;
    start(&endpoint);
    drop(active);

    tokio::time::sleep(Duration::from_secs(4 * 60)).await;
    assert_eq!(endpoint.active_sessions.subscribers().len(), 1);
    tokio::time::sleep(Duration::from_secs(2 * 60)).await;

    assert!(endpoint.active_sessions.has_no_subscribers());
    assert_eq!(endpoint.active_sessions.len(), 0);
    assert!(lock(&endpoint.change_fanout.task).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_stream_opened_while_its_session_ended_is_removed() {
    let (endpoint, active) = active_session().await;
    endpoint.active_sessions.close(&active.session_id);
    let _reader = open(&active).await.attach();
    start(&endpoint);
    assert!(!endpoint.active_sessions.has_no_subscribers());

    tokio::time::sleep(Duration::from_secs(60)).await;

    assert!(endpoint.active_sessions.has_no_subscribers());
}

/// Sessions in memory that count how often a record is loaded.
struct CountingSessions {
    inner: Arc<dyn SessionStore>,
    loads: AtomicUsize,
    fails: AtomicBool,
}

impl SessionStore for CountingSessions {
    fn create(&self, record: SessionRecord) -> BoxFuture<'_, Result<SessionId, StoreError>> {
        self.inner.create(record)
    }

    fn load<'a>(
        &'a self,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<Arc<SessionRecord>>, StoreError>> {
        self.loads.fetch_add(1, Ordering::Relaxed);
        if self.fails.load(Ordering::Relaxed) {
            return Box::pin(async { Err(StoreError::unavailable("a test")) });
        }
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
        self.inner.update(id, update)
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

/// Sessions with a GET stream each, on a store that counts loads.
struct CountedStreams {
    endpoint: Arc<Endpoint>,
    sessions: Arc<CountingSessions>,
    streams: Vec<(ActiveSessionGuard, GetStreamReader)>,
}

impl CountedStreams {
    fn new() -> Self {
        let mut store = Store::memory();
        let inner = store.sessions.clone();
        let sessions = Arc::new(CountingSessions {
            inner,
            loads: AtomicUsize::new(0),
            fails: AtomicBool::new(false),
        });
        store.sessions = sessions.clone();
        let server = Server::new("test", "1.0.0").store(store);
        Self {
            endpoint: Arc::new(Endpoint::new(server, HttpOptions::default(), None)),
            sessions,
            streams: Vec::new(),
        }
    }

    /// Adds a session with a stream, as `initialize`, `resources/subscribe` and GET do.
    async fn add(&mut self, principal: Option<Principal>, uri: Option<&str>) {
        let active = session_of(&self.endpoint, principal).await;
        if let Some(uri) = uri {
            let subscribe = SessionUpdate::Subscribe(uri.to_owned());
            store_update(&active, subscribe).await.unwrap();
        }
        let reader = open(&active).await.attach();
        read_interests(&self.endpoint, &active.session_id, &active.session).await;
        self.streams.push((active, reader));
    }

    /// Returns the number of loads since the last call.
    fn take_loads(&self) -> usize {
        self.sessions.loads.swap(0, Ordering::Relaxed)
    }

    /// Returns the positions of the sessions that have an event, and takes it.
    fn take_events(&self) -> Vec<usize> {
        let streams = self.streams.iter().enumerate();
        let with_event = streams.filter(|(_, (_, reader))| has_event(reader));
        with_event.map(|(at, _)| at).collect()
    }
}

#[tokio::test]
async fn an_update_reads_only_the_sessions_that_subscribe_to_it() {
    let mut counted = CountedStreams::new();
    let mut expected = Vec::new();
    for number in 0..1_000 {
        let uri = match number % 100 {
            // Of the resource, and of one above it.
            7 if number > 500 => Some("test://a/b"),
            7 => Some("test://a"),
            8 => Some("test://a/bc"),
            9 => Some("test://b"),
            _ => None,
        };
        counted.add(None, uri).await;
        if number % 100 == 7 {
            expected.push(number);
        }
    }
    counted.take_loads();

    for _ in 0..2 {
        notify_of(&counted.endpoint, updated("test://a/b")).await;

        assert_eq!(counted.take_loads(), 10);
        assert_eq!(counted.take_events(), expected);
    }
    notify_of(&counted.endpoint, updated("test://c")).await;
    assert_eq!((counted.take_loads(), counted.take_events()), (0, vec![]));
}

#[tokio::test]
async fn a_change_for_some_sessions_reads_no_others() {
    let mut counted = CountedStreams::new();
    let ada = Principal::new("https://issuer.example", "ada");
    let principals = [None, Some(ada.clone()), None, Some(ada.clone()), None];
    for principal in principals {
        counted.add(principal, Some("test://a")).await;
    }
    let session = |at: usize| &counted.streams[at].0;
    let runtime = &session(2).session.runtime;
    runtime.url_elicitations.begin("visit");
    let store = counted.endpoint.server.store_ref();
    let owner = TaskOwner::for_session(None, session(4).session_id);
    let task = NewTask {
        owner: owner.key().into(),
        shared: false,
        ttl: Duration::from_secs(60),
        poll_interval: Duration::from_secs(1),
        runner: None,
    };
    let task = store.tasks.create(task).await.unwrap();
    let targeted = |target: ChangeTarget, change| {
        ServerChange::Targeted(Arc::new(TargetedChange { target, change }))
    };
    let of_first: ChangeTarget = SessionKey::from_id(&session(0).session_id).into();
    let of_ada = principal_target(Some(&ada));
    counted.take_loads();
    for (change, expected) in [
        (ServerChange::Task { task }, vec![4]),
        (
            ServerChange::ElicitationCompleted { id: "visit".into() },
            vec![2],
        ),
        (
            ServerChange::ElicitationCompleted { id: "visit".into() },
            vec![],
        ),
        (targeted(of_first.clone(), updated("test://a")), vec![0]),
        (targeted(of_first.clone(), updated("test://b")), vec![]),
        (targeted(of_first, ServerChange::ToolsChanged), vec![0]),
        (targeted(of_ada.clone(), updated("test://a/b")), vec![1, 3]),
        (targeted(of_ada, ServerChange::PromptsChanged), vec![1, 3]),
        (
            targeted(ChangeTarget::Sessionless(None), updated("test://a")),
            vec![],
        ),
        (updated("test://a"), vec![0, 1, 2, 3, 4]),
    ] {
        notify_of(&counted.endpoint, change.clone()).await;

        assert_eq!(counted.take_loads(), expected.len(), "{change:?}");
        assert_eq!(counted.take_events(), expected, "{change:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscription_holds_from_its_response_until_it_is_removed() {
    let mut counted = CountedStreams::new();
    for _ in 0..3 {
        counted.add(None, None).await;
    }
    start(&counted.endpoint);
    let active = &counted.streams[1].0;
    let server = &counted.endpoint.server;
    let uri = || "test://a".to_owned();
    for (update, expected) in [
        (SessionUpdate::Subscribe(uri()), vec![1]),
        (SessionUpdate::Unsubscribe(uri()), vec![]),
        (SessionUpdate::Subscribe(uri()), vec![1]),
    ] {
        store_update(active, update).await.unwrap();
        server.resource_updated("test://a");
        tokio::time::sleep(Duration::from_millis(1)).await;

        assert_eq!(counted.take_events(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscription_made_at_another_instance_holds_here() {
    let mut counted = CountedStreams::new();
    counted.add(None, None).await;
    start(&counted.endpoint);
    let store = counted.endpoint.server.store_ref().clone();
    let elsewhere = Server::new("test", "1.0.0").store(store);
    let elsewhere = Arc::new(Endpoint::new(elsewhere, HttpOptions::default(), None));
    let active = ActiveSessions::activate(&elsewhere, counted.streams[0].0.session_id);

    let subscribe = SessionUpdate::Subscribe("test://a".to_owned());
    store_update(&active, subscribe).await.unwrap();
    elsewhere.server.resource_updated("test://a");
    tokio::time::sleep(Duration::from_millis(1)).await;

    assert_eq!(counted.take_events(), [0]);
}

#[tokio::test(start_paused = true)]
async fn sessions_are_read_again_after_control_messages_were_lost() {
    let mut counted = CountedStreams::new();
    for _ in 0..3 {
        counted.add(None, None).await;
    }
    let active = &counted.streams[2].0;
    let store = counted.endpoint.server.store_ref();
    let mut control = store.control.subscribe();
    let subscribe = SessionUpdate::Subscribe("test://a".to_owned());
    store_update(active, subscribe).await.unwrap();
    for _ in 0..2 * BusLimits::default().capacity {
        let session = SessionId::generate().unwrap();
        let message = ControlMessage::SubscriptionsChanged { session };
        store.control.publish(message).await.unwrap();
    }

    read_changed_sessions(&counted.endpoint, &mut control, None).await;
    notify_of(&counted.endpoint, updated("test://a")).await;
    assert_eq!(counted.take_events(), [2]);
    counted.take_loads();
    notify_of(&counted.endpoint, updated("test://a")).await;

    assert_eq!(counted.take_events(), [2]);
    assert_eq!(counted.take_loads(), 1, "the others are known again");
}

#[tokio::test]
async fn a_session_that_could_not_be_read_is_read_for_the_next_change() {
    let mut counted = CountedStreams::new();
    counted.add(None, None).await;
    counted.add(None, None).await;
    let active = &counted.streams[0].0;
    let mut control = counted.endpoint.server.store_ref().control.subscribe();
    let subscribe = SessionUpdate::Subscribe("test://a".to_owned());
    store_update(active, subscribe).await.unwrap();

    counted.sessions.fails.store(true, Ordering::Relaxed);
    read_changed_sessions(&counted.endpoint, &mut control, None).await;
    counted.sessions.fails.store(false, Ordering::Relaxed);
    notify_of(&counted.endpoint, updated("test://a")).await;

    assert_eq!(counted.take_events(), [0]);
}

#[tokio::test]
async fn sessions_are_read_again_after_many_have_changed() {
    let mut counted = CountedStreams::new();
    counted.add(None, None).await;
    let active = &counted.streams[0].0;
    let (sender, receiver) = tokio::sync::broadcast::channel(4 * MAX_CHANGED_SESSIONS);
    let mut control = ControlSubscription::new(receiver);
    let subscribe = SessionUpdate::Subscribe("test://a".to_owned());
    store_update(active, subscribe).await.unwrap();
    for _ in 0..2 * MAX_CHANGED_SESSIONS {
        let session = SessionId::generate().unwrap();
        let message = ControlMessage::SubscriptionsChanged { session };
        sender.send(message).unwrap();
    }

    read_changed_sessions(&counted.endpoint, &mut control, None).await;
    notify_of(&counted.endpoint, updated("test://a")).await;

    assert_eq!(counted.take_events(), [0]);
}
