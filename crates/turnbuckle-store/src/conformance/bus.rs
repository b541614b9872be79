use std::time::Duration;

use tokio::{task::JoinSet, time::Instant};

use crate::{BusSubscription, ServerChange, Store, StoreLimits};

/// Checks the bus of a store.
pub async fn bus(make: impl AsyncFn(StoreLimits) -> Store) {
    every_subscriber_receives_every_change_in_order(&make).await;
    a_subscriber_receives_no_earlier_changes(&make).await;
    a_change_wakes_a_waiting_subscriber(&make).await;
    dropping_the_future_loses_nothing(&make).await;
    a_slow_subscriber_gets_the_number_of_missed_changes(&make).await;
    publishing_without_subscribers_succeeds(&make).await;
    ten_thousand_subscribers_are_served(&make).await;
}

fn updated(number: usize) -> ServerChange {
    ServerChange::ResourceUpdated {
        uri: format!("file:///{number}").into(),
    }
}

async fn receive(subscription: &mut BusSubscription) -> ServerChange {
    let timeout = Duration::from_secs(10);
    let started = Instant::now();
    let heard = tokio::time::timeout(timeout, subscription.next()).await;
    // A timeout polls once more when it ends, which would hide a missing wake-up.
    assert!(started.elapsed() < timeout, "the subscriber was not woken");
    heard.unwrap().unwrap()
}

async fn every_subscriber_receives_every_change_in_order(
    make: &impl AsyncFn(StoreLimits) -> Store,
) {
    let bus = make(StoreLimits::default()).await.bus;
    let (mut one, mut two) = (bus.subscribe(), bus.subscribe());
    let changes = [
        ServerChange::ToolsChanged,
        ServerChange::PromptsChanged,
        ServerChange::ResourcesChanged,
        updated(1),
        updated(2),
        ServerChange::ToolsChanged,
    ];

    for change in &changes {
        bus.publish(change.clone());
    }

    for change in &changes {
        assert_eq!(receive(&mut one).await, *change);
        assert_eq!(receive(&mut two).await, *change);
    }
}

async fn a_subscriber_receives_no_earlier_changes(make: &impl AsyncFn(StoreLimits) -> Store) {
    let bus = make(StoreLimits::default()).await.bus;
    bus.publish(ServerChange::ToolsChanged);

    let mut late = bus.subscribe();
    bus.publish(ServerChange::PromptsChanged);

    assert_eq!(receive(&mut late).await, ServerChange::PromptsChanged);
}

async fn a_change_wakes_a_waiting_subscriber(make: &impl AsyncFn(StoreLimits) -> Store) {
    let bus = make(StoreLimits::default()).await.bus;
    let mut subscription = bus.subscribe();

    let waiting = tokio::spawn(async move { receive(&mut subscription).await });
    super::ticks(1).await;
    assert!(!waiting.is_finished());
    bus.publish(updated(1));

    assert_eq!(waiting.await.unwrap(), updated(1));
}

async fn dropping_the_future_loses_nothing(make: &impl AsyncFn(StoreLimits) -> Store) {
    let bus = make(StoreLimits::default()).await.bus;
    let mut subscription = bus.subscribe();

    for number in 0..3 {
        let gave_up = tokio::time::timeout(super::TICK, subscription.next()).await;
        assert!(gave_up.is_err());
        bus.publish(updated(number));
        assert_eq!(receive(&mut subscription).await, updated(number));
    }
}

async fn a_slow_subscriber_gets_the_number_of_missed_changes(
    make: &impl AsyncFn(StoreLimits) -> Store,
) {
    let mut limits = StoreLimits::default();
    limits.bus.capacity = 8;
    let bus = make(limits).await.bus;
    let mut slow = bus.subscribe();

    for number in 0..50 {
        bus.publish(updated(number));
    }
    super::ticks(1).await;
    let missed = slow.next().await.unwrap_err().missed;
    let next = receive(&mut slow).await;

    assert!(missed > 0);
    assert_eq!(next, updated(usize::try_from(missed).unwrap()));
}

async fn publishing_without_subscribers_succeeds(make: &impl AsyncFn(StoreLimits) -> Store) {
    let bus = make(StoreLimits::default()).await.bus;

    drop(bus.subscribe());
    bus.publish(ServerChange::ToolsChanged);
}

async fn ten_thousand_subscribers_are_served(make: &impl AsyncFn(StoreLimits) -> Store) {
    let bus = make(StoreLimits::default()).await.bus;
    let mut listeners = JoinSet::new();
    for _ in 0..10_000 {
        let mut subscription = bus.subscribe();
        listeners.spawn(async move {
            (
                receive(&mut subscription).await,
                receive(&mut subscription).await,
            )
        });
    }
    tokio::task::yield_now().await;

    bus.publish(updated(1));
    bus.publish(updated(2));

    for heard in listeners.join_all().await {
        assert_eq!(heard, (updated(1), updated(2)));
    }
}
