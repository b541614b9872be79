use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::task::JoinSet;

use super::{bus::with_repeat_window, events::head, sessions::record};
use crate::{
    BusSubscription, ClaimStatus, EventBatch, EventId, ListDigest, Position, RequiredSpace,
    ServerChange, SessionId, SessionOwner, SessionUpdate, Store, StoreLimits, StreamId,
};

const LONG: Duration = Duration::from_secs(3_600);

/// Checks a store under concurrent use by many tasks.
///
/// Run it on a runtime with several threads.
pub async fn concurrency(make: impl AsyncFn(StoreLimits) -> Store) {
    no_session_beyond_the_limit_is_created(&make).await;
    no_update_of_a_session_is_lost(&make).await;
    a_session_is_removed_by_one_caller(&make).await;
    concurrent_evictions_remove_each_session_once(&make).await;
    an_expired_session_is_reported_to_one_caller(&make).await;
    a_reader_sees_each_event_once_and_in_order(&make).await;
    an_orphan_is_closed_by_one_caller(&make).await;
    a_claim_is_granted_to_one_caller(&make).await;
    an_abandoned_claim_is_granted_to_one_other_caller(&make).await;
    changes_have_one_order(&make).await;
    a_list_change_of_many_processes_is_published_once(&make).await;
}

async fn no_session_beyond_the_limit_is_created(make: &impl AsyncFn(StoreLimits) -> Store) {
    let mut limits = StoreLimits::default();
    limits.sessions.max_sessions = 100;
    let store = make(limits).await;

    let mut tasks = JoinSet::new();
    for caller in 0..400 {
        let sessions = Arc::clone(&store.sessions);
        let owner = SessionOwner::caller(format!("{caller}"));
        tasks.spawn(async move { sessions.create(record().owned_by(owner)).await.ok() });
    }
    let created: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();

    assert_eq!(created.len(), 100);
    for id in &created {
        assert!(store.sessions.load(id).await.unwrap().is_some());
    }
}

async fn concurrent_evictions_remove_each_session_once(make: &impl AsyncFn(StoreLimits) -> Store) {
    let mut limits = StoreLimits::default();
    limits.sessions.max_sessions = 100;
    limits.sessions.max_sessions_per_owner = 90;
    let store = make(limits).await;
    let large = SessionOwner::caller("large");
    for _ in 0..90 {
        let record = record().owned_by(large.clone());
        store.sessions.create(record).await.unwrap();
    }

    let mut tasks = JoinSet::new();
    for _ in 0..50 {
        let (sessions, large) = (Arc::clone(&store.sessions), large.clone());
        tasks.spawn(async move {
            // The owner is at its limit for the first task only, so most tasks remove nothing.
            let record = record().owned_by(large);
            let needed = RequiredSpace::Session(&record);
            let ended = sessions.evict(needed, &|_| false).await.unwrap();
            if ended.is_some() {
                let _ = sessions.create(record).await;
            }
            ended
        });
    }
    let mut ended: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();

    let count = ended.len();
    ended.sort();
    ended.dedup();
    assert_eq!(ended.len(), count);
    assert!(count > 0);
}

async fn an_expired_session_is_reported_to_one_caller(make: &impl AsyncFn(StoreLimits) -> Store) {
    let mut limits = StoreLimits::default();
    limits.sessions.idle_before_initialized = super::TICK;
    // The last session that is created removes expired ones to make room.
    limits.sessions.max_sessions = 200;
    let sessions = make(limits).await.sessions;
    let mut expected = Vec::new();
    for _ in 0..200 {
        expected.push(sessions.create(record()).await.unwrap());
    }
    super::ticks(2).await;

    let mut tasks = JoinSet::new();
    for number in 0..20 {
        let sessions = Arc::clone(&sessions);
        tasks.spawn(async move {
            if number % 2 == 0 {
                sessions.create(record()).await.unwrap();
            }
            sessions.sweep().await.unwrap()
        });
    }
    let mut swept = tasks.join_all().await.concat();

    let reports = swept.len();
    swept.sort();
    swept.dedup();
    assert_eq!(swept.len(), reports, "each session once");
    // On a slow machine, some of the new sessions have expired too.
    assert!(expected.iter().all(|id| swept.contains(id)));
}

async fn no_update_of_a_session_is_lost(make: &impl AsyncFn(StoreLimits) -> Store) {
    let sessions = make(StoreLimits::default()).await.sessions;
    let id = sessions.create(record()).await.unwrap();

    let mut tasks = JoinSet::new();
    for number in 0..200 {
        let sessions = Arc::clone(&sessions);
        tasks.spawn(async move {
            let uri = format!("file:///{number}");
            // A record that is still referenced makes the store copy before it updates.
            let _loaded = sessions.load(&id).await.unwrap().unwrap();
            let change = SessionUpdate::Subscribe(uri);
            sessions.update(&id, change).await.unwrap().unwrap();
        });
    }
    tasks.join_all().await;

    let loaded = sessions.load(&id).await.unwrap().unwrap();
    assert_eq!(loaded.subscriptions.len(), 200);
}

async fn a_session_is_removed_by_one_caller(make: &impl AsyncFn(StoreLimits) -> Store) {
    let sessions = make(StoreLimits::default()).await.sessions;
    let id = sessions.create(record()).await.unwrap();

    let mut tasks = JoinSet::new();
    for _ in 0..50 {
        let sessions = Arc::clone(&sessions);
        tasks.spawn(async move { sessions.remove(&id).await.unwrap() });
    }
    let removed = tasks.join_all().await;

    assert_eq!(removed.iter().filter(|removed| **removed).count(), 1);
}

/// Simulates a client with a connection that is cut repeatedly, while twenty streams are written to.
async fn a_reader_sees_each_event_once_and_in_order(make: &impl AsyncFn(StoreLimits) -> Store) {
    const COUNT: u32 = 500;
    let events = make(StoreLimits::default()).await.events;
    let session = SessionId::generate().unwrap();
    let owner = SessionOwner::caller("owner");

    let mut tasks = JoinSet::new();
    for number in 1..=20 {
        let stream = StreamId::new(number);
        let opening = EventBatch {
            head: Some(head(&owner, &[])),
            first: 1,
            events: &[Bytes::new()],
            ..EventBatch::default()
        };
        events.append(&session, &stream, opening).await.unwrap();
        let mut last = EventId {
            stream,
            sequence: 1,
        };
        let (writer, reader) = (Arc::clone(&events), Arc::clone(&events));
        tasks.spawn(async move {
            for number in 0..COUNT {
                let batch = EventBatch {
                    first: u64::from(number) + 2,
                    events: &[number.to_string().into()],
                    end: number + 1 == COUNT,
                    ..EventBatch::default()
                };
                writer.append(&session, &stream, batch).await.unwrap();
                tokio::task::yield_now().await;
            }
        });
        tasks.spawn(async move {
            let mut seen = Vec::new();
            loop {
                let replay = reader.replay_after(&session, &last, 100).await;
                let replay = replay.unwrap().unwrap();
                assert!(!replay.lost);
                last = replay.events.last().map_or(last, |event| event.id);
                seen.extend(replay.events.into_iter().map(|event| event.data));
                if replay.finished && !replay.more {
                    break;
                }
                tokio::task::yield_now().await;
            }
            assert!(
                seen.into_iter()
                    .eq((0..COUNT).map(|number| number.to_string()))
            );
        });
    }
    tasks.join_all().await;
}

async fn an_orphan_is_closed_by_one_caller(make: &impl AsyncFn(StoreLimits) -> Store) {
    let events = make(StoreLimits::default()).await.events;
    let session = SessionId::generate().unwrap();
    let head = head(&SessionOwner::caller("owner"), &[]);
    let dead = head.writer;
    for number in 1..=20 {
        let stream = StreamId::new(number);
        let opening = EventBatch {
            head: Some(head.clone()),
            first: 1,
            events: &[Bytes::new()],
            ..EventBatch::default()
        };
        events.append(&session, &stream, opening).await.unwrap();

        let mut tasks = JoinSet::new();
        for _ in 0..20 {
            let events = Arc::clone(&events);
            tasks.spawn(async move {
                let last = ["stopped".into()];
                let closed = events.close_orphan(&session, &stream, &dead, 0, &last);
                closed.await.unwrap()
            });
        }
        let closed = tasks.join_all().await;

        assert_eq!(closed.iter().filter(|closed| **closed).count(), 1);
    }
}

async fn a_claim_is_granted_to_one_caller(make: &impl AsyncFn(StoreLimits) -> Store) {
    let claims = make(StoreLimits::default()).await.claims;
    for round in 0..20 {
        let key: Arc<str> = format!("pay {round}").into();
        let mut tasks = JoinSet::new();
        for number in 0..50 {
            let (claims, key) = (Arc::clone(&claims), Arc::clone(&key));
            tasks.spawn(async move {
                loop {
                    match claims.claim(&key, LONG).await.unwrap() {
                        ClaimStatus::Granted(token) => {
                            tokio::task::yield_now().await;
                            let outcome = format!("{number}").into();
                            claims.complete(token, outcome).await.unwrap();
                        }
                        ClaimStatus::Running => tokio::task::yield_now().await,
                        ClaimStatus::Done(outcome) => return outcome,
                    }
                }
            });
        }
        let outcomes = tasks.join_all().await;
        assert!(outcomes.iter().all(|outcome| *outcome == outcomes[0]));
    }
}

async fn an_abandoned_claim_is_granted_to_one_other_caller(
    make: &impl AsyncFn(StoreLimits) -> Store,
) {
    let claims = make(StoreLimits::default()).await.claims;
    let mut tasks = JoinSet::new();
    for _ in 0..50 {
        let claims = Arc::clone(&claims);
        tasks.spawn(async move {
            // The number of times this task was granted the claim; it abandons the first and completes the second.
            let mut turns = 0;
            loop {
                match claims.claim("pay", LONG).await.unwrap() {
                    ClaimStatus::Granted(token) if turns == 0 => {
                        turns += 1;
                        tokio::task::yield_now().await;
                        claims.abandon(token).await.unwrap();
                    }
                    ClaimStatus::Granted(token) => {
                        claims.complete(token, Bytes::new()).await.unwrap();
                        return 1;
                    }
                    ClaimStatus::Running => tokio::task::yield_now().await,
                    ClaimStatus::Done(_) => return 0,
                }
            }
        });
    }

    let winners: u32 = tasks.join_all().await.into_iter().sum();
    assert_eq!(winners, 1);
}

fn updated(writer: usize, number: usize) -> ServerChange {
    ServerChange::ResourceUpdated {
        uri: format!("file:///{writer}/{number}").into(),
    }
}

async fn receive_many(
    subscription: &mut BusSubscription,
    count: usize,
) -> Vec<(Position, ServerChange)> {
    let mut received = Vec::with_capacity(count);
    while received.len() < count {
        received.push(subscription.next().await.unwrap());
    }
    received
}

async fn changes_have_one_order(make: &impl AsyncFn(StoreLimits) -> Store) {
    const WRITERS: usize = 8;
    const EACH: usize = 100;
    let bus = make(StoreLimits::default()).await.bus;
    let mut subscriptions = [bus.subscribe(), bus.subscribe()];
    let start = bus.position();

    let mut tasks = JoinSet::new();
    for writer in 0..WRITERS {
        let bus = Arc::clone(&bus);
        tasks.spawn(async move {
            for number in 0..EACH {
                bus.publish(updated(writer, number));
                tokio::task::yield_now().await;
            }
        });
    }
    let mut received = Vec::new();
    for subscription in &mut subscriptions {
        received.push(receive_many(subscription, WRITERS * EACH).await);
    }
    tasks.join_all().await;

    assert_eq!(received[0], received[1]);
    assert!(received[0].is_sorted_by(|(earlier, _), (later, _)| earlier < later));
    let log = bus.after(start, WRITERS * EACH).await.unwrap().unwrap();
    assert_eq!(log, received[0]);
    for writer in 0..WRITERS {
        let changes: Vec<_> = log.iter().map(|(_, change)| change).collect();
        let place = |number| {
            changes
                .iter()
                .position(|change| **change == updated(writer, number))
        };
        let places: Vec<_> = (0..EACH).map(|number| place(number).unwrap()).collect();
        assert!(places.is_sorted(), "changes of one writer keep their order");
    }
}

async fn a_list_change_of_many_processes_is_published_once(
    make: &impl AsyncFn(StoreLimits) -> Store,
) {
    let bus = make(with_repeat_window(LONG)).await.bus;
    let mut subscription = bus.subscribe();

    let mut tasks = JoinSet::new();
    for _ in 0..50 {
        let bus = Arc::clone(&bus);
        tasks.spawn(async move {
            bus.publish_list(ServerChange::ToolsChanged, ListDigest::new([1; 16]));
        });
    }
    tasks.join_all().await;
    bus.publish(ServerChange::PromptsChanged);

    let received = receive_many(&mut subscription, 2).await;
    let changes: Vec<_> = received.into_iter().map(|(_, change)| change).collect();
    assert_eq!(
        changes,
        [ServerChange::ToolsChanged, ServerChange::PromptsChanged]
    );
}
