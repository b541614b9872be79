use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::task::JoinSet;

use super::sessions::record;
use crate::{Claim, Limits, SessionChange, SessionId, SessionOwner, SessionRoom, Store};

const LONG: Duration = Duration::from_secs(3_600);

/// Checks that a store keeps its word when many tasks use it at once.
///
/// Run it on a runtime with several threads.
pub async fn races(make: impl AsyncFn(Limits) -> Store) {
    no_session_beyond_the_limit_is_created(&make).await;
    no_change_of_a_session_is_lost(&make).await;
    a_session_is_removed_by_one(&make).await;
    callers_that_end_sessions_at_once_end_each_once(&make).await;
    a_reader_sees_each_event_once_and_in_order(&make).await;
    a_claim_has_one_winner(&make).await;
    an_abandoned_claim_passes_on_to_one(&make).await;
}

async fn no_session_beyond_the_limit_is_created(make: &impl AsyncFn(Limits) -> Store) {
    let mut limits = Limits::default();
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
    assert_eq!(store.sessions.len().await.unwrap(), 100);
    for id in &created {
        assert!(store.sessions.load(id).await.unwrap().is_some());
    }
}

async fn callers_that_end_sessions_at_once_end_each_once(make: &impl AsyncFn(Limits) -> Store) {
    let mut limits = Limits::default();
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
            // The owner is at its limit for the first of them only, so most end nothing.
            let record = record().owned_by(large);
            let needed = SessionRoom::Session(&record);
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
    let held = store.sessions.len().await.unwrap();
    assert!(held <= 90, "{held}");
}

async fn no_change_of_a_session_is_lost(make: &impl AsyncFn(Limits) -> Store) {
    let sessions = make(Limits::default()).await.sessions;
    let id = sessions.create(record()).await.unwrap();

    let mut tasks = JoinSet::new();
    for number in 0..200 {
        let sessions = Arc::clone(&sessions);
        tasks.spawn(async move {
            let uri = format!("file:///{number}");
            // A record in hand makes the store copy before it changes.
            let _in_hand = sessions.load(&id).await.unwrap().unwrap();
            let change = SessionChange::Subscribe(uri);
            sessions.update(&id, change).await.unwrap().unwrap();
        });
    }
    tasks.join_all().await;

    let loaded = sessions.load(&id).await.unwrap().unwrap();
    assert_eq!(loaded.subscriptions.len(), 200);
}

async fn a_session_is_removed_by_one(make: &impl AsyncFn(Limits) -> Store) {
    let sessions = make(Limits::default()).await.sessions;
    let id = sessions.create(record()).await.unwrap();

    let mut tasks = JoinSet::new();
    for _ in 0..50 {
        let sessions = Arc::clone(&sessions);
        tasks.spawn(async move { sessions.remove(&id).await.unwrap() });
    }
    let removed = tasks.join_all().await;

    assert_eq!(removed.iter().filter(|removed| **removed).count(), 1);
    assert_eq!(sessions.len().await.unwrap(), 0);
}

/// A client whose connection is cut again and again while twenty streams are written to.
async fn a_reader_sees_each_event_once_and_in_order(make: &impl AsyncFn(Limits) -> Store) {
    const COUNT: u32 = 500;
    let events = make(Limits::default()).await.events;
    let session = SessionId::generate().unwrap();

    let mut tasks = JoinSet::new();
    for _ in 0..20 {
        let stream = events.open(&session).await.unwrap();
        let mut last = events
            .append(&session, &stream, Bytes::new())
            .await
            .unwrap();
        let (writer, reader) = (Arc::clone(&events), Arc::clone(&events));
        tasks.spawn(async move {
            for number in 0..COUNT {
                let data = number.to_string().into();
                writer.append(&session, &stream, data).await.unwrap();
                tokio::task::yield_now().await;
            }
            writer.finish(&session, &stream).await.unwrap();
        });
        tasks.spawn(async move {
            let mut seen = Vec::new();
            loop {
                let replay = reader.after(&session, &last).await.unwrap().unwrap();
                assert!(!replay.lost);
                last = replay.events.last().map_or(last, |event| event.id);
                seen.extend(replay.events.into_iter().map(|event| event.data));
                if replay.finished {
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

async fn a_claim_has_one_winner(make: &impl AsyncFn(Limits) -> Store) {
    let journals = make(Limits::default()).await.journals;
    for round in 0..20 {
        let key: Arc<str> = format!("pay {round}").into();
        let mut tasks = JoinSet::new();
        for number in 0..50 {
            let (journals, key) = (Arc::clone(&journals), Arc::clone(&key));
            tasks.spawn(async move {
                loop {
                    match journals.claim(&key, LONG).await.unwrap() {
                        Claim::Fresh(token) => {
                            tokio::task::yield_now().await;
                            let outcome = format!("{number}").into();
                            journals.complete(token, outcome).await.unwrap();
                        }
                        Claim::Running => tokio::task::yield_now().await,
                        Claim::Done(outcome) => return outcome,
                    }
                }
            });
        }
        let outcomes = tasks.join_all().await;
        assert!(outcomes.iter().all(|outcome| *outcome == outcomes[0]));
    }
}

async fn an_abandoned_claim_passes_on_to_one(make: &impl AsyncFn(Limits) -> Store) {
    let journals = make(Limits::default()).await.journals;
    let mut tasks = JoinSet::new();
    for _ in 0..50 {
        let journals = Arc::clone(&journals);
        tasks.spawn(async move {
            // How often this task was the one; each gives up the first time and completes the second.
            let mut turns = 0;
            loop {
                match journals.claim("pay", LONG).await.unwrap() {
                    Claim::Fresh(token) if turns == 0 => {
                        turns += 1;
                        tokio::task::yield_now().await;
                        journals.abandon(token).await.unwrap();
                    }
                    Claim::Fresh(token) => {
                        journals.complete(token, Bytes::new()).await.unwrap();
                        return 1;
                    }
                    Claim::Running => tokio::task::yield_now().await,
                    Claim::Done(_) => return 0,
                }
            }
        });
    }

    let winners: u32 = tasks.join_all().await.into_iter().sum();
    assert_eq!(winners, 1);
}
