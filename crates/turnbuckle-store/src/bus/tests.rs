use std::task::{Context, Waker};

use tokio::sync::broadcast;

use super::*;

#[test]
fn a_subscription_stays_pending_after_its_bus_is_dropped() {
    let sender = broadcast::Sender::new(4);
    let mut subscription = BusSubscription::new(sender.subscribe());
    let mut waiting = BusSubscription::new(sender.subscribe());
    let cx = &mut Context::from_waker(Waker::noop());
    assert!(waiting.poll_next(cx).is_pending());
    let change = (Position::new(1), ServerChange::ToolsChanged);
    sender.send(change.clone()).unwrap();

    drop(sender);

    for subscription in [&mut subscription, &mut waiting] {
        let last = subscription.poll_next(cx);
        assert_eq!(last, Poll::Ready(Ok(change.clone())));
        assert!(subscription.poll_next(cx).is_pending());
        assert!(subscription.poll_next(cx).is_pending());
    }
}
