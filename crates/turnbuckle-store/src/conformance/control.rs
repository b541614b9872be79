use std::time::Duration;

use crate::{ControlMessage, ControlSubscription, ServerChange, SessionId, Store, StoreLimits};

/// Checks the control log of a store.
pub async fn control(make: impl AsyncFn(StoreLimits) -> Store) {
    every_subscriber_receives_every_message_in_order(&make).await;
    a_message_wakes_a_waiting_subscriber(&make).await;
    a_slow_subscriber_learns_that_it_missed_messages(&make).await;
    a_message_is_received_before_a_later_change(&make).await;
}

fn message() -> ControlMessage {
    let session = SessionId::generate().unwrap();
    ControlMessage::SubscriptionsChanged { session }
}

async fn receive(subscription: &mut ControlSubscription) -> ControlMessage {
    let timeout = Duration::from_secs(10);
    let received = tokio::time::timeout(timeout, subscription.next()).await;
    received.unwrap().unwrap()
}

async fn every_subscriber_receives_every_message_in_order(
    make: &impl AsyncFn(StoreLimits) -> Store,
) {
    let control = make(StoreLimits::default()).await.control;
    let mut subscriptions = [control.subscribe(), control.subscribe()];
    let messages = [message(), message(), message()];

    for message in messages {
        control.publish(message);
    }

    for subscription in &mut subscriptions {
        for message in messages {
            assert_eq!(receive(subscription).await, message);
        }
    }
}

async fn a_message_wakes_a_waiting_subscriber(make: &impl AsyncFn(StoreLimits) -> Store) {
    let control = make(StoreLimits::default()).await.control;
    let mut subscription = control.subscribe();
    let message = message();

    let waiting = tokio::spawn(async move { receive(&mut subscription).await });
    super::ticks(1).await;
    assert!(!waiting.is_finished());
    control.publish(message);

    assert_eq!(waiting.await.unwrap(), message);
}

async fn a_slow_subscriber_learns_that_it_missed_messages(
    make: &impl AsyncFn(StoreLimits) -> Store,
) {
    let mut limits = StoreLimits::default();
    limits.bus.capacity = 8;
    let control = make(limits).await.control;
    let mut slow = control.subscribe();
    let last = message();

    (0..50).for_each(|_| control.publish(message()));
    control.publish(last);
    super::ticks(1).await;

    assert!(slow.next().await.unwrap_err().missed > 0);
    while receive(&mut slow).await != last {}
}

async fn a_message_is_received_before_a_later_change(make: &impl AsyncFn(StoreLimits) -> Store) {
    let store = make(StoreLimits::default()).await;
    let (mut messages, mut changes) = (store.control.subscribe(), store.bus.subscribe());
    for _ in 0..20 {
        let message = message();
        store.control.publish(message);
        store.bus.publish(ServerChange::ToolsChanged);

        changes.next().await.unwrap();
        let now = &mut std::task::Context::from_waker(std::task::Waker::noop());
        let received = messages.poll_next(now);
        assert_eq!(received, std::task::Poll::Ready(Ok(message)));
    }
}
