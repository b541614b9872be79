use std::time::Duration;

use turnbuckle_protocol::RequestId;

use crate::{
    ControlLog, ControlMessage, ControlSubscription, ServerChange, SessionId, Store, StoreLimits,
};

/// Checks the control log of a store.
pub async fn control(make: impl AsyncFn(StoreLimits) -> Store) {
    every_subscriber_receives_every_message_in_order(&make).await;
    a_stored_message_is_for_later_subscribers_at_most_once(&make).await;
    a_message_wakes_a_waiting_subscriber(&make).await;
    a_slow_subscriber_learns_that_it_missed_messages(&make).await;
    a_message_is_received_before_a_later_change(&make).await;
}

fn message() -> ControlMessage {
    let session = SessionId::generate().unwrap();
    ControlMessage::SubscriptionsChanged { session }
}

/// One message of each kind.
fn messages() -> Vec<ControlMessage> {
    let session = || SessionId::generate().unwrap();
    let cancelled = |json: &str| ControlMessage::CallCancelled {
        session: session(),
        request: RequestId::from_json(json).unwrap(),
    };
    vec![
        message(),
        ControlMessage::SessionChanged { session: session() },
        ControlMessage::SessionEnded { session: session() },
        cancelled("7"),
        cancelled("\"7\""),
        cancelled("123456789012345678901234567890"),
        message(),
    ]
}

async fn publish(control: &dyn ControlLog, message: &ControlMessage) {
    control.publish(message.clone()).await.unwrap();
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
    let messages = messages();

    for message in &messages {
        publish(&*control, message).await;
    }

    for subscription in &mut subscriptions {
        for message in &messages {
            assert_eq!(receive(subscription).await, *message);
        }
    }
}

/// A message that is stored when `publish` resolves cannot arrive after later ones.
async fn a_stored_message_is_for_later_subscribers_at_most_once(
    make: &impl AsyncFn(StoreLimits) -> Store,
) {
    let control = make(StoreLimits::default()).await.control;
    let (earlier, later) = (message(), message());
    publish(&*control, &earlier).await;
    let mut subscription = control.subscribe();

    publish(&*control, &later).await;

    let mut received = Vec::new();
    while received.last() != Some(&later) {
        received.push(receive(&mut subscription).await);
    }
    assert!(
        received == [later.clone()] || received == [earlier, later],
        "{received:?}"
    );
    let more = tokio::time::timeout(super::TICK * 2, subscription.next()).await;
    assert!(more.is_err());
}

async fn a_message_wakes_a_waiting_subscriber(make: &impl AsyncFn(StoreLimits) -> Store) {
    let control = make(StoreLimits::default()).await.control;
    let mut subscription = control.subscribe();
    let message = message();

    let waiting = tokio::spawn(async move { receive(&mut subscription).await });
    super::ticks(1).await;
    assert!(!waiting.is_finished());
    publish(&*control, &message).await;

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

    for _ in 0..50 {
        publish(&*control, &message()).await;
    }
    publish(&*control, &last).await;
    super::ticks(1).await;

    assert!(slow.next().await.unwrap_err().missed > 0);
    while receive(&mut slow).await != last {}
}

async fn a_message_is_received_before_a_later_change(make: &impl AsyncFn(StoreLimits) -> Store) {
    let store = make(StoreLimits::default()).await;
    let (mut messages, mut changes) = (store.control.subscribe(), store.bus.subscribe());
    for _ in 0..20 {
        let message = message();
        publish(&*store.control, &message).await;
        store.bus.publish(ServerChange::ToolsChanged);

        changes.next().await.unwrap();
        let now = &mut std::task::Context::from_waker(std::task::Waker::noop());
        let received = messages.poll_next(now);
        assert_eq!(received, std::task::Poll::Ready(Ok(message)));
    }
}
