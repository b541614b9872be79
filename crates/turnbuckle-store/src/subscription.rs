//! Subscriptions to the logs of a store.

use std::{
    future::poll_fn,
    task::{Context, Poll},
};

use tokio::sync::broadcast::{Receiver, error::RecvError};

use crate::BoxFuture;

/// A subscriber was too slow, or the store lost the connection to its log, and missed entries. The next call returns the
/// oldest entry that is still available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("missed {missed} changes")]
pub struct SubscriberLagged {
    /// The number of missed entries.
    pub missed: u64,
}

/// A subscription to a [`ChangeBus`](crate::ChangeBus) or [`ControlLog`](crate::ControlLog).
///
/// After the log is dropped, a subscription stays pending; it does not end.
pub struct LogSubscription<T> {
    state: SubscriptionState<T>,
}

enum SubscriptionState<T> {
    /// No receive is in progress.
    Idle(LogReceiver<T>),
    /// The receiver is inside a future that has registered the waker and returns it with the result.
    Waiting(BoxFuture<'static, (Received<T>, LogReceiver<T>)>),
    /// The log was dropped.
    Closed,
}

/// The channel that the store feeds.
enum LogReceiver<T> {
    Entries(Receiver<T>),
    Results(Receiver<Result<T, SubscriberLagged>>),
}

/// An entry, that the subscriber lagged, or `None` if the log was dropped.
type Received<T> = Option<Result<T, SubscriberLagged>>;

impl<T: Clone + Send + 'static> LogSubscription<T> {
    /// Creates a subscription from `receiver`, which the store feeds with the entries of its log, in order.
    pub fn new(receiver: Receiver<T>) -> Self {
        Self {
            state: SubscriptionState::Idle(LogReceiver::Entries(receiver)),
        }
    }

    /// Creates a subscription from `receiver`, which the store feeds with the entries of its log, in order, and with an error in
    /// place of entries that the store has lost.
    pub fn of_results(receiver: Receiver<Result<T, SubscriberLagged>>) -> Self {
        Self {
            state: SubscriptionState::Idle(LogReceiver::Results(receiver)),
        }
    }

    /// Waits for the next entry. Cancel-safe: dropping the future loses no entry.
    pub async fn next(&mut self) -> Result<T, SubscriberLagged> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Polls for the next entry and registers the waker of `cx` if none is available.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, SubscriberLagged>> {
        loop {
            match std::mem::replace(&mut self.state, SubscriptionState::Closed) {
                SubscriptionState::Closed => return Poll::Pending,
                SubscriptionState::Idle(receiver) => {
                    self.state = SubscriptionState::Waiting(wait(receiver));
                }
                SubscriptionState::Waiting(mut waiting) => {
                    let Poll::Ready((result, receiver)) = waiting.as_mut().poll(cx) else {
                        self.state = SubscriptionState::Waiting(waiting);
                        return Poll::Pending;
                    };
                    self.state = SubscriptionState::Idle(receiver);
                    match result {
                        Some(received) => return Poll::Ready(received),
                        None => self.state = SubscriptionState::Closed,
                    }
                }
            }
        }
    }
}

fn wait<T: Clone + Send + 'static>(
    mut receiver: LogReceiver<T>,
) -> BoxFuture<'static, (Received<T>, LogReceiver<T>)> {
    Box::pin(async move {
        let received = match &mut receiver {
            LogReceiver::Entries(entries) => entries.recv().await.map(Ok),
            LogReceiver::Results(results) => results.recv().await,
        };
        let received = match received {
            Ok(received) => Some(received),
            Err(RecvError::Lagged(missed)) => Some(Err(SubscriberLagged { missed })),
            Err(RecvError::Closed) => None,
        };
        (received, receiver)
    })
}

impl<T> std::fmt::Debug for LogSubscription<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogSubscription").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use tokio::sync::broadcast;

    use super::*;
    use crate::{BusSubscription, Position, ServerChange};

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

    #[test]
    fn a_subscription_tells_in_order_that_the_store_lost_entries() {
        let sender = broadcast::Sender::new(2);
        let mut subscription = LogSubscription::of_results(sender.subscribe());
        let cx = &mut Context::from_waker(Waker::noop());
        sender.send(Ok(1)).unwrap();
        sender.send(Err(SubscriberLagged { missed: 7 })).unwrap();
        sender.send(Ok(2)).unwrap();

        let lagged = |missed| Poll::Ready(Err(SubscriberLagged { missed }));
        assert_eq!(subscription.poll_next(cx), lagged(1));
        assert_eq!(subscription.poll_next(cx), lagged(7));
        assert_eq!(subscription.poll_next(cx), Poll::Ready(Ok(2)));
        assert!(subscription.poll_next(cx).is_pending());
    }
}
