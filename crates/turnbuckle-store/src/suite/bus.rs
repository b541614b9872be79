use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::{Change, Limits, Store, Subscription};

/// Checks the bus of a store.
pub async fn bus(make: impl AsyncFn(Limits) -> Store) {
    every_listener_hears_everything_in_order(&make).await;
    a_listener_hears_nothing_from_before(&make).await;
    a_change_wakes_who_waits(&make).await;
    giving_up_waiting_loses_nothing(&make).await;
    a_slow_listener_learns_how_much_it_missed(&make).await;
    nobody_listening_is_fine(&make).await;
    ten_thousand_listeners_are_fine(&make).await;
}

fn updated(number: usize) -> Change {
    Change::ResourceUpdated {
        uri: format!("file:///{number}").into(),
    }
}

async fn hear(subscription: &mut Subscription) -> Change {
    let patience = Duration::from_secs(10);
    let started = Instant::now();
    let heard = tokio::time::timeout(patience, subscription.next()).await;
    // The end of a timeout asks once more, which would hide that nobody was woken.
    assert!(started.elapsed() < patience, "nobody was woken");
    heard.unwrap().unwrap()
}

async fn every_listener_hears_everything_in_order(make: &impl AsyncFn(Limits) -> Store) {
    let bus = make(Limits::default()).await.bus;
    let (mut one, mut two) = (bus.subscribe(), bus.subscribe());
    let changes = [
        Change::ToolsChanged,
        Change::PromptsChanged,
        Change::ResourcesChanged,
        updated(1),
        updated(2),
        Change::ToolsChanged,
    ];

    for change in &changes {
        bus.publish(change.clone());
    }

    for change in &changes {
        assert_eq!(hear(&mut one).await, *change);
        assert_eq!(hear(&mut two).await, *change);
    }
}

async fn a_listener_hears_nothing_from_before(make: &impl AsyncFn(Limits) -> Store) {
    let bus = make(Limits::default()).await.bus;
    bus.publish(Change::ToolsChanged);

    let mut late = bus.subscribe();
    bus.publish(Change::PromptsChanged);

    assert_eq!(hear(&mut late).await, Change::PromptsChanged);
}

async fn a_change_wakes_who_waits(make: &impl AsyncFn(Limits) -> Store) {
    let bus = make(Limits::default()).await.bus;
    let mut subscription = bus.subscribe();

    let waiting = tokio::spawn(async move { hear(&mut subscription).await });
    super::ticks(1).await;
    assert!(!waiting.is_finished());
    bus.publish(updated(1));

    assert_eq!(waiting.await.unwrap(), updated(1));
}

async fn giving_up_waiting_loses_nothing(make: &impl AsyncFn(Limits) -> Store) {
    let bus = make(Limits::default()).await.bus;
    let mut subscription = bus.subscribe();

    for number in 0..3 {
        let gave_up = tokio::time::timeout(super::TICK, subscription.next()).await;
        assert!(gave_up.is_err());
        bus.publish(updated(number));
        assert_eq!(hear(&mut subscription).await, updated(number));
    }
}

async fn a_slow_listener_learns_how_much_it_missed(make: &impl AsyncFn(Limits) -> Store) {
    let mut limits = Limits::default();
    limits.bus.capacity = 8;
    let bus = make(limits).await.bus;
    let mut slow = bus.subscribe();

    for number in 0..50 {
        bus.publish(updated(number));
    }
    super::ticks(1).await;
    let missed = slow.next().await.unwrap_err().missed;
    let next = hear(&mut slow).await;

    assert!(missed > 0);
    assert_eq!(next, updated(usize::try_from(missed).unwrap()));
}

async fn nobody_listening_is_fine(make: &impl AsyncFn(Limits) -> Store) {
    let bus = make(Limits::default()).await.bus;

    drop(bus.subscribe());
    bus.publish(Change::ToolsChanged);
}

async fn ten_thousand_listeners_are_fine(make: &impl AsyncFn(Limits) -> Store) {
    let bus = make(Limits::default()).await.bus;
    let mut listeners = JoinSet::new();
    for _ in 0..10_000 {
        let mut subscription = bus.subscribe();
        listeners
            .spawn(async move { (hear(&mut subscription).await, hear(&mut subscription).await) });
    }
    tokio::task::yield_now().await;

    bus.publish(updated(1));
    bus.publish(updated(2));

    for heard in listeners.join_all().await {
        assert_eq!(heard, (updated(1), updated(2)));
    }
}
