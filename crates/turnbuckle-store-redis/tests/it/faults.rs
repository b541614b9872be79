//! Faults of Redis and of the network, with a real Redis.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::time::{sleep, timeout};
use turnbuckle_protocol::Revision;
use turnbuckle_store::{
    BusSubscription, ChangeBus, ClaimStatus, ClientProfile, ControlMessage, EventBatch, EventId,
    InstanceId, InstanceMessage, Position, RequestStateStore, ServerChange, SessionId,
    SessionOwner, SessionRecord, StoreError, StoreLimits, StreamHead, StreamId, SubscriberLagged,
};
use turnbuckle_store_redis::RedisStore;
use turnbuckle_test_bed::{FaultProxy, NetworkFault, RedisCluster, RedisSentinel, RedisServer};

use crate::test_store::{connect, empty_stores, settings};

const TTL: Duration = Duration::from_secs(3_600);

/// Longer than a busy machine needs for anything here.
const LONG: Duration = Duration::from_secs(60);

/// Connects with a short timeout, for tests in which Redis does not answer.
async fn connect_impatient(url: &str) -> RedisStore {
    let settings = settings(url)
        .response_timeout(Duration::from_millis(500))
        .connection_timeout(Duration::from_secs(2));
    RedisStore::connect_with(settings).await.unwrap()
}

fn updated(number: usize) -> ServerChange {
    ServerChange::ResourceUpdated {
        uri: format!("file:///{number}").into(),
    }
}

async fn next(
    subscription: &mut BusSubscription,
) -> Result<(Position, ServerChange), SubscriberLagged> {
    timeout(LONG, subscription.next()).await.unwrap()
}

/// Receives until the change, which must come without any loss, and returns those before it.
async fn changes_until(
    subscription: &mut BusSubscription,
    last: &ServerChange,
) -> Vec<ServerChange> {
    let mut changes = Vec::new();
    loop {
        let (_, change) = next(subscription).await.unwrap();
        if change == *last {
            return changes;
        }
        changes.push(change);
    }
}

/// Publishes until a change arrives, and returns whether the subscriber was told about a loss before.
async fn publish_until_received(
    bus: &Arc<dyn ChangeBus>,
    subscription: &mut BusSubscription,
) -> bool {
    let mut was_told = false;
    let received = async {
        loop {
            bus.publish(updated(1_000));
            match timeout(Duration::from_millis(500), subscription.next()).await {
                Ok(Ok((_, change))) if change == updated(1_000) => return,
                Ok(Err(_)) => was_told = true,
                _ => {}
            }
        }
    };
    timeout(LONG, received).await.unwrap();
    was_told
}

/// Repeats until the store answers again.
async fn put_until_stored(states: &Arc<dyn RequestStateStore>, text: &'static str) {
    let stored = async {
        while states.put(text.into(), TTL).await.is_err() {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(LONG, stored).await.unwrap();
}

fn is_unavailable<T>(result: &Result<T, StoreError>) -> bool {
    matches!(result, Err(StoreError::Unavailable { .. }))
}

#[tokio::test]
async fn a_paused_redis_fails_commands_and_then_all_at_once_until_it_continues() {
    let redis = RedisServer::start().unwrap();
    let states = connect_impatient(&redis.url()).await.request_states();
    let id = states.put("before".into(), TTL).await.unwrap();

    redis.pause().unwrap();
    let mut failures = Vec::new();
    for _ in 0..4 {
        failures.push(states.get(&id).await);
    }
    let many = (0..200).map(|_| states.get(&id));
    let mut at_once = Vec::new();
    for get in many {
        at_once.push(get.await);
    }
    redis.resume().unwrap();

    assert!(failures.iter().chain(&at_once).all(is_unavailable));
    let last = format!("{:?}", failures.last().unwrap());
    assert!(last.contains("did not answer the last"), "{last}");
    put_until_stored(&states, "after").await;
    assert_eq!(states.get(&id).await.unwrap().unwrap(), "before");
}

#[tokio::test]
async fn a_slow_redis_gives_the_same_answers() {
    let redis = RedisServer::start().unwrap();
    let proxy = FaultProxy::start(redis.address()).unwrap();
    let store = connect(&format!("redis://{}", proxy.address())).await;
    let (claims, bus) = (store.claims(), store.bus());
    let mut subscription = bus.subscribe();
    proxy.set(NetworkFault::Delay(Duration::from_millis(100)));

    let ClaimStatus::Granted(token) = claims.claim("pay", TTL).await.unwrap() else {
        panic!("the claim was not granted");
    };
    claims.complete(token, "paid".into()).await.unwrap();
    (0..50).for_each(|number| bus.publish(updated(number)));

    let done = claims.claim("pay", TTL).await.unwrap();
    assert!(matches!(done, ClaimStatus::Done(outcome) if outcome == "paid"));
    let changes = changes_until(&mut subscription, &updated(49)).await;
    assert!(changes.into_iter().eq((0..49).map(updated)));
}

#[tokio::test]
async fn a_command_on_a_connection_that_broke_is_sent_again() {
    let redis = RedisServer::start().unwrap();
    let proxy = FaultProxy::start(redis.address()).unwrap();
    let store = connect(&format!("redis://{}", proxy.address())).await;
    let (states, bus) = (store.request_states(), store.bus());
    let mut subscription = bus.subscribe();

    for number in 0..5 {
        proxy.set(NetworkFault::Reset);
        proxy.set(NetworkFault::None);
        let id = states.put("state".into(), TTL).await.unwrap();
        assert_eq!(states.get(&id).await.unwrap().unwrap(), "state");
        bus.publish(updated(number));
    }

    let changes = changes_until(&mut subscription, &updated(4)).await;
    assert!(
        changes.into_iter().eq((0..4).map(updated)),
        "none twice, none lost"
    );
}

#[tokio::test]
async fn a_change_is_published_once_if_the_responses_of_redis_are_lost() {
    let redis = RedisServer::start().unwrap();
    let proxy = FaultProxy::start(redis.address()).unwrap();
    let store = connect_impatient(&format!("redis://{}", proxy.address())).await;
    let other = connect(&redis.url()).await;
    let bus = store.bus();
    let mut subscriptions = [bus.subscribe(), other.bus().subscribe()];
    // From now on, Redis has the script.
    bus.publish(updated(0));
    for subscription in &mut subscriptions {
        next(subscription).await.unwrap();
    }

    proxy.set(NetworkFault::LoseResponses);
    bus.publish(updated(1));
    let stored = async {
        while redis.command(&["XLEN", "tb:{bus}"]).unwrap() == "1" {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(LONG, stored).await.unwrap();
    // Several attempts are lost.
    sleep(Duration::from_millis(500)).await;
    bus.publish(updated(2));
    proxy.set(NetworkFault::None);

    for subscription in &mut subscriptions {
        let changes = changes_until(subscription, &updated(2)).await;
        assert_eq!(changes, [updated(1)]);
    }
}

#[tokio::test]
async fn a_claim_whose_response_was_lost_is_not_granted_again() {
    let redis = RedisServer::start().unwrap();
    let proxy = FaultProxy::start(redis.address()).unwrap();
    let store = connect_impatient(&format!("redis://{}", proxy.address())).await;
    let (claims, other) = (store.claims(), connect(&redis.url()).await.claims());
    let ClaimStatus::Granted(token) = claims.claim("ship", TTL).await.unwrap() else {
        panic!("the claim was not granted");
    };

    proxy.set(NetworkFault::LoseResponses);
    let lost = claims.claim("pay", TTL).await;
    let completed = claims.complete(token, "shipped".into()).await;

    assert!(is_unavailable(&lost) && is_unavailable(&completed));
    for key in ["pay", "ship"] {
        let status = other.claim(key, TTL).await.unwrap();
        assert!(!matches!(status, ClaimStatus::Granted(_)), "{key}");
    }
}

#[tokio::test]
async fn an_event_whose_append_was_repeated_is_stored_once() {
    let redis = RedisServer::start().unwrap();
    let proxy = FaultProxy::start(redis.address()).unwrap();
    let url = format!("redis://{}", proxy.address());
    let events = connect_impatient(&url).await.into_store().events;
    let (session, stream) = (SessionId::generate().unwrap(), StreamId::new(7));
    let head = StreamHead {
        writer: InstanceId::default(),
        owner: SessionOwner::caller("ann"),
        requests: vec![1.into()],
    };
    let data = [Bytes::new(), "progress".into(), "response".into()];
    let batch = |first: usize, end: bool| EventBatch {
        head: (first == 0).then(|| head.clone()),
        first: first as u64 + 1,
        events: &data[first..=first + usize::from(end)],
        end,
        ..EventBatch::default()
    };
    events
        .append(&session, &stream, batch(0, false))
        .await
        .unwrap();

    proxy.set(NetworkFault::LoseResponses);
    let lost = events.append(&session, &stream, batch(1, true)).await;
    proxy.set(NetworkFault::None);
    let repeated = async {
        while events
            .append(&session, &stream, batch(1, true))
            .await
            .is_err()
        {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(LONG, repeated).await.unwrap();

    assert!(is_unavailable(&lost));
    let sequence = 1;
    let last = EventId { stream, sequence };
    let replay = events
        .replay_after(&session, &last, 10)
        .await
        .unwrap()
        .unwrap();
    let texts: Vec<_> = replay.events.iter().map(|event| &*event.data).collect();
    assert_eq!(texts, [&b"progress"[..], b"response"]);
    assert!(replay.finished && !replay.lost);
}

#[tokio::test]
async fn an_expired_session_is_reported_although_a_response_was_lost() {
    let redis = RedisServer::start().unwrap();
    let proxy = FaultProxy::start(redis.address()).unwrap();
    let mut limits = StoreLimits::default();
    limits.sessions.idle_before_initialized = Duration::from_millis(200);
    let settings = settings(&format!("redis://{}", proxy.address()))
        .limits(limits)
        .response_timeout(Duration::from_millis(500))
        .connection_timeout(Duration::from_secs(2));
    let store = RedisStore::connect_with(settings).await.unwrap();
    let sessions = store.sessions();
    let record = || SessionRecord::new(None, Revision::LATEST_LEGACY, ClientProfile::default());
    // From now on, Redis has the scripts.
    let first = sessions.create(record()).await.unwrap();
    sleep(Duration::from_millis(300)).await;
    assert_eq!(sessions.sweep().await.unwrap(), [first]);
    let id = sessions.create(record()).await.unwrap();
    sleep(Duration::from_millis(300)).await;

    // One response after the other is lost, until the last command of a sweep.
    let mut reported = Vec::new();
    let mut responses = 0;
    while reported.is_empty() {
        proxy.set(NetworkFault::CutAfter(responses));
        responses += 20;
        if let Ok(swept) = sessions.sweep().await {
            reported.extend(swept);
        }
        proxy.set(NetworkFault::None);
        put_until_stored(&store.request_states(), "state").await;
        assert!(responses < 100_000, "the session is lost");
    }

    assert_eq!(reported, [id]);
    assert!(sessions.sweep().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_redis_that_restarted_empty_is_noticed_by_all_subscribers() {
    let mut redis = RedisServer::start().unwrap();
    let (store, other) = (connect(&redis.url()).await, connect(&redis.url()).await);
    let (bus, states) = (store.bus(), store.request_states());
    let mut subscriptions = [bus.subscribe(), other.bus().subscribe()];
    let mut control = other.control().subscribe();
    let id = states.put("state".into(), TTL).await.unwrap();
    bus.publish(updated(1));
    let (position, _) = next(&mut subscriptions[0]).await.unwrap();
    next(&mut subscriptions[1]).await.unwrap();

    redis.restart().unwrap();

    for subscription in &mut subscriptions {
        assert!(next(subscription).await.is_err());
    }
    assert!(timeout(LONG, control.next()).await.unwrap().is_err());
    put_until_stored(&states, "new").await;
    assert_eq!(states.get(&id).await.unwrap(), None);
    publish_until_received(&bus, &mut subscriptions[1]).await;
    assert!(bus.position() > position);
    assert_eq!(bus.after(position, 10).await.unwrap(), None);
}

#[tokio::test]
async fn a_redis_that_restarted_with_its_file_has_lost_nothing() {
    let arguments = ["--appendonly", "yes", "--appendfsync", "always"];
    let mut redis = RedisServer::start_with(&arguments).unwrap();
    let store = connect(&redis.url()).await;
    let (bus, states) = (store.bus(), store.request_states());
    let mut subscription = bus.subscribe();
    let id = states.put("state".into(), TTL).await.unwrap();
    bus.publish(updated(1));
    let (position, _) = next(&mut subscription).await.unwrap();

    redis.kill().unwrap();
    bus.publish(updated(2));
    redis.restart().unwrap();

    put_until_stored(&states, "new").await;
    assert_eq!(states.get(&id).await.unwrap().unwrap(), "state");
    bus.publish(updated(3));
    let changes = changes_until(&mut subscription, &updated(3)).await;
    assert_eq!(changes, [updated(2)]);
    assert_eq!(bus.after(position, 10).await.unwrap().unwrap().len(), 2);
}

#[tokio::test]
async fn an_outage_with_too_many_changes_is_reported_everywhere() {
    let redis = RedisServer::start().unwrap();
    let proxy = FaultProxy::start(redis.address()).unwrap();
    let store = connect_impatient(&format!("redis://{}", proxy.address())).await;
    let other = connect(&redis.url()).await;
    let mut subscription = other.bus().subscribe();

    proxy.set(NetworkFault::Hold);
    let bus = store.bus();
    (0..20_000).for_each(|number| bus.publish(updated(number)));
    proxy.set(NetworkFault::None);

    assert!(publish_until_received(&bus, &mut subscription).await);
}

#[tokio::test]
async fn list_changes_of_an_outage_are_announced_once() {
    let redis = RedisServer::start().unwrap();
    let proxy = FaultProxy::start(redis.address()).unwrap();
    let store = connect_impatient(&format!("redis://{}", proxy.address())).await;
    let other = connect(&redis.url()).await;
    let mut subscription = other.bus().subscribe();

    proxy.set(NetworkFault::Hold);
    let bus = store.bus();
    (0..500).for_each(|number| bus.publish(updated(number)));
    (0..100_000).for_each(|_| bus.publish(ServerChange::ToolsChanged));
    bus.publish(updated(500));
    proxy.set(NetworkFault::None);

    let changes = changes_until(&mut subscription, &updated(500)).await;
    assert_eq!(changes.len(), 501);
}

#[tokio::test]
async fn an_instance_that_is_cut_off_does_not_disturb_others() {
    let redis = RedisServer::start().unwrap();
    let proxy = FaultProxy::start(redis.address()).unwrap();
    let cut_off = connect_impatient(&format!("redis://{}", proxy.address())).await;
    let other = connect(&redis.url()).await;
    let id = other.instances().join().await.unwrap();

    proxy.set(NetworkFault::Hold);
    let failed = cut_off.instances().is_alive(&id).await;
    let renewed = other.instances().renew(&id).await;
    put_until_stored(&other.request_states(), "state").await;
    proxy.set(NetworkFault::Reset);
    let refused = cut_off.instances().is_alive(&id).await;

    assert!(is_unavailable(&failed) && is_unavailable(&refused));
    assert!(renewed.unwrap());
    proxy.set(NetworkFault::None);
    put_until_stored(&cut_off.request_states(), "state").await;
}

#[tokio::test]
async fn a_message_reaches_an_instance_of_another_process_once() {
    let redis = RedisServer::start().unwrap();
    let proxy = FaultProxy::start(redis.address()).unwrap();
    let (one, two) = (
        connect(&redis.url()).await,
        connect_impatient(&format!("redis://{}", proxy.address())).await,
    );
    let receiver = one.instances();
    let id = receiver.join().await.unwrap();
    let mut inbox = receiver.inbox(&id);
    let message = |text: &str| InstanceMessage::ClientMessage {
        session: SessionId::generate().unwrap(),
        message: text.to_owned().into(),
    };
    let (first, lost, last) = (message("first"), message("lost response"), message("last"));
    // From now on, Redis has the script.
    assert!(two.instances().send(id.slot, first.clone()).await.unwrap());

    proxy.set(NetworkFault::LoseResponses);
    let sent = two.instances().send(id.slot, lost.clone()).await;
    assert!(is_unavailable(&sent));
    assert!(receiver.send(id.slot, last.clone()).await.unwrap());

    let mut received = Vec::new();
    while received.last() != Some(&last) {
        received.push(timeout(LONG, inbox.next()).await.unwrap().unwrap());
    }
    assert_eq!(received, [first, lost, last]);
}

#[tokio::test]
async fn a_full_redis_refuses_new_values_and_has_the_others() {
    let redis = RedisServer::start().unwrap();
    let states = connect(&redis.url()).await.request_states();
    let id = states.put("state".into(), TTL).await.unwrap();
    redis.command(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();

    let full = states.put("more".into(), TTL).await;

    assert!(matches!(full, Err(StoreError::Full { .. })), "{full:?}");
    assert_eq!(states.get(&id).await.unwrap().unwrap(), "state");
    redis.command(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
    states.put("more".into(), TTL).await.unwrap();
}

#[tokio::test]
async fn a_store_follows_the_primary_that_sentinels_choose() {
    let mut group = RedisSentinel::start().unwrap();
    let sentinels: Vec<_> = group.sentinels().iter().map(ToString::to_string).collect();
    let url = format!("redis-sentinel://{}/{}", sentinels.join(","), group.group());
    let settings = settings(&url)
        .response_timeout(Duration::from_secs(2))
        .connection_timeout(Duration::from_secs(4));
    let store = RedisStore::connect_with(settings).await.unwrap();
    let (bus, states) = (store.bus(), store.request_states());
    let mut subscription = bus.subscribe();
    publish_until_received(&bus, &mut subscription).await;

    group.fail_over().unwrap();

    put_until_stored(&states, "after").await;
    publish_until_received(&bus, &mut subscription).await;
    let session = SessionId::generate().unwrap();
    let message = ControlMessage::SubscriptionsChanged { session };
    store.control().publish(message).await.unwrap();
}

#[tokio::test]
async fn the_conformance_tests_pass_on_a_cluster() {
    let cluster = RedisCluster::start().unwrap();
    let addresses: Vec<_> = cluster
        .addresses()
        .iter()
        .map(ToString::to_string)
        .collect();
    let url = format!("redis-cluster://{}", addresses.join(","));
    let make = empty_stores(url);

    turnbuckle_store::conformance::request_states(&make).await;
    turnbuckle_store::conformance::claims(&make).await;
    turnbuckle_store::conformance::bus(&make).await;
    turnbuckle_store::conformance::control(&make).await;
    turnbuckle_store::conformance::sessions(&make).await;
    turnbuckle_store::conformance::events(&make).await;
    turnbuckle_store::conformance::tasks(&make).await;
}
