use std::{sync::Arc, time::Duration};

use tokio::{task::JoinSet, time::Instant};

use crate::{
    BusSubscription, ChangeTarget, ListDigest, Position, ServerChange, Store, StoreLimits,
    TargetedChange,
};

/// Checks the bus of a store.
pub async fn bus(make: impl AsyncFn(StoreLimits) -> Store) {
    every_subscriber_receives_every_change_in_order(&make).await;
    a_subscriber_misses_nothing_after_it_subscribed(&make).await;
    positions_rise_and_are_equal_for_all_subscribers(&make).await;
    the_log_has_the_changes_after_a_position(&make).await;
    a_position_precedes_later_changes(&make).await;
    changes_that_the_log_no_longer_has_are_none(&make).await;
    an_unknown_position_is_none(&make).await;
    every_list_change_is_published_by_default(&make).await;
    a_list_with_an_equal_digest_is_published_once(&make).await;
    each_list_and_each_target_has_its_own_digest(&make).await;
    an_equal_digest_is_published_again_after_the_window(&make).await;
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
    receive_entry(subscription).await.1
}

async fn receive_entry(subscription: &mut BusSubscription) -> (Position, ServerChange) {
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

/// Receives changes up to the first that equals `last`, with their positions.
async fn receive_until(
    subscription: &mut BusSubscription,
    last: &ServerChange,
) -> Vec<(Position, ServerChange)> {
    let mut received = Vec::new();
    loop {
        let entry = receive_entry(subscription).await;
        let is_last = entry.1 == *last;
        received.push(entry);
        if is_last {
            return received;
        }
    }
}

fn changes(entries: Vec<(Position, ServerChange)>) -> Vec<ServerChange> {
    entries.into_iter().map(|(_, change)| change).collect()
}

async fn a_subscriber_misses_nothing_after_it_subscribed(
    make: &impl AsyncFn(StoreLimits) -> Store,
) {
    let bus = make(StoreLimits::default()).await.bus;
    bus.publish(updated(0));

    let mut late = bus.subscribe();
    bus.publish(updated(1));
    bus.publish(updated(2));

    let mut received = changes(receive_until(&mut late, &updated(2)).await);
    // A change from shortly before is allowed.
    received.retain(|change| *change != updated(0));
    assert_eq!(received, [updated(1), updated(2)]);
}

async fn positions_rise_and_are_equal_for_all_subscribers(
    make: &impl AsyncFn(StoreLimits) -> Store,
) {
    let bus = make(StoreLimits::default()).await.bus;
    let (mut one, mut two) = (bus.subscribe(), bus.subscribe());

    (0..20).for_each(|number| bus.publish(updated(number)));

    let received = receive_until(&mut one, &updated(19)).await;
    assert_eq!(receive_until(&mut two, &updated(19)).await, received);
    assert!(received.is_sorted_by(|(earlier, _), (later, _)| earlier < later));
    assert!(received[0].0 > Position::START);
}

async fn the_log_has_the_changes_after_a_position(make: &impl AsyncFn(StoreLimits) -> Store) {
    let bus = make(StoreLimits::default()).await.bus;
    let mut subscription = bus.subscribe();
    (0..20).for_each(|number| bus.publish(updated(number)));
    let received = receive_until(&mut subscription, &updated(19)).await;

    for (at, (position, _)) in received.iter().enumerate() {
        for limit in [1, 5, 100] {
            let expected: Vec<_> = received[at + 1..].iter().take(limit).cloned().collect();
            let after = bus.after(*position, limit).await.unwrap();
            assert_eq!(after, Some(expected), "after {position}, at most {limit}");
        }
    }
}

async fn a_position_precedes_later_changes(make: &impl AsyncFn(StoreLimits) -> Store) {
    let bus = make(StoreLimits::default()).await.bus;
    let mut subscription = bus.subscribe();
    for number in 0..10 {
        let before = bus.position();
        bus.publish(updated(number));
        let received = receive_until(&mut subscription, &updated(number)).await;

        let (position, _) = received.last().unwrap();
        assert!(*position > before);
        let after = bus.after(before, 100).await.unwrap().unwrap();
        assert!(after.ends_with(&received));
    }
}

async fn changes_that_the_log_no_longer_has_are_none(make: &impl AsyncFn(StoreLimits) -> Store) {
    const MANY: usize = 5_000;
    let mut limits = StoreLimits::default();
    limits.bus.capacity = 8;
    let bus = make(limits).await.bus;
    let mut subscription = bus.subscribe();
    let mut positions = Vec::new();
    for number in 0..MANY {
        bus.publish(updated(number));
        positions.push(receive_entry(&mut subscription).await.0);
    }

    assert_eq!(bus.after(positions[0], MANY).await.unwrap(), None);
    let recent = bus.after(positions[MANY - 3], MANY).await.unwrap();
    assert_eq!(changes(recent.unwrap()), [MANY - 2, MANY - 1].map(updated));
}

async fn an_unknown_position_is_none(make: &impl AsyncFn(StoreLimits) -> Store) {
    let bus = make(StoreLimits::default()).await.bus;
    let mut subscription = bus.subscribe();
    bus.publish(updated(1));
    let (newest, _) = receive_entry(&mut subscription).await;

    let unknown = Position::new(newest.number() + 1_000_000);

    assert_eq!(bus.after(unknown, 1).await.unwrap(), None);
    assert_eq!(bus.after(newest, 1).await.unwrap(), Some(Vec::new()));
}

const DIGEST: ListDigest = ListDigest::new([1; 16]);
const OTHER_DIGEST: ListDigest = ListDigest::new([2; 16]);

/// Longer than a test.
const WINDOW: Duration = Duration::from_secs(600);

/// Returns limits with which equal lists are not published twice.
pub(super) fn with_repeat_window(window: Duration) -> StoreLimits {
    let mut limits = StoreLimits::default();
    limits.bus.repeat_window = window;
    limits
}

async fn every_list_change_is_published_by_default(make: &impl AsyncFn(StoreLimits) -> Store) {
    let bus = make(StoreLimits::default()).await.bus;
    let mut subscription = bus.subscribe();

    for _ in 0..2 {
        bus.publish_list(ServerChange::ToolsChanged, DIGEST);
    }

    for _ in 0..2 {
        assert_eq!(receive(&mut subscription).await, ServerChange::ToolsChanged);
    }
}

async fn a_list_with_an_equal_digest_is_published_once(make: &impl AsyncFn(StoreLimits) -> Store) {
    let bus = make(with_repeat_window(WINDOW)).await.bus;
    let mut subscription = bus.subscribe();
    let tools = ServerChange::ToolsChanged;

    for _ in 0..3 {
        bus.publish_list(tools.clone(), DIGEST);
    }
    bus.publish(updated(1));
    for digest in [DIGEST, OTHER_DIGEST, OTHER_DIGEST, DIGEST] {
        bus.publish_list(tools.clone(), digest);
    }
    bus.publish(updated(2));
    // Without a digest, the contents of the list are not known.
    bus.publish(tools.clone());
    bus.publish_list(tools.clone(), DIGEST);
    bus.publish(tools.clone());
    bus.publish(updated(3));

    let mut expected = vec![tools.clone(), updated(1), tools.clone(), tools.clone()];
    expected.push(updated(2));
    expected.extend([tools.clone(), tools.clone(), tools, updated(3)]);
    let received = receive_until(&mut subscription, &updated(3)).await;
    assert_eq!(changes(received), expected);
}

async fn each_list_and_each_target_has_its_own_digest(make: &impl AsyncFn(StoreLimits) -> Store) {
    let bus = make(with_repeat_window(WINDOW)).await.bus;
    let mut subscription = bus.subscribe();
    let targeted = |principal: &str| {
        ServerChange::Targeted(Arc::new(TargetedChange {
            target: ChangeTarget::Principal(Some(principal.into())),
            change: ServerChange::ToolsChanged,
        }))
    };
    let lists = [
        ServerChange::ToolsChanged,
        ServerChange::PromptsChanged,
        ServerChange::ResourcesChanged,
        targeted("ann"),
        targeted("bob"),
    ];

    for _ in 0..2 {
        for list in &lists {
            bus.publish_list(list.clone(), DIGEST);
        }
    }
    bus.publish(updated(1));

    let mut received = changes(receive_until(&mut subscription, &updated(1)).await);
    assert_eq!(received.pop(), Some(updated(1)));
    assert_eq!(received, lists);
}

async fn an_equal_digest_is_published_again_after_the_window(
    make: &impl AsyncFn(StoreLimits) -> Store,
) {
    let bus = make(with_repeat_window(super::TICK * 2)).await.bus;
    let mut subscription = bus.subscribe();

    bus.publish_list(ServerChange::ToolsChanged, DIGEST);
    super::ticks(3).await;
    bus.publish_list(ServerChange::ToolsChanged, DIGEST);

    for _ in 0..2 {
        assert_eq!(receive(&mut subscription).await, ServerChange::ToolsChanged);
    }
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
