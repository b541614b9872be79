use std::{collections::HashSet, time::Duration};

use tokio::time::{sleep, timeout};

use super::ticks;
use crate::{
    INSTANCE_LEASE, InstanceId, InstanceInbox, InstanceMessage, InstanceRegistry, InstanceSlot,
    SessionId, Store, StoreLimits, SubscriberLagged,
};

/// Checks the registry of instances of a store that several processes may share.
///
/// Its leases are real: with a store that does not use the clock of tokio, it takes about a minute.
pub async fn instances(make: impl AsyncFn(StoreLimits) -> Store) {
    a_store_of_instances_is_shared(&make).await;
    slots_are_unique_while_their_instances_live(&make).await;
    an_instance_that_left_has_no_lease(&make).await;
    a_message_is_sent_to_the_instance_that_has_the_slot(&make).await;
    messages_arrive_in_order_and_only_at_their_receiver(&make).await;
    an_inbox_begins_when_it_is_opened(&make).await;
    a_message_wakes_a_waiting_receiver(&make).await;
    a_lease_expires_unless_it_is_renewed(&make).await;
    an_expired_instance_is_reported_once(&make).await;
}

async fn registry(
    make: &impl AsyncFn(StoreLimits) -> Store,
) -> std::sync::Arc<dyn InstanceRegistry> {
    make(StoreLimits::default()).await.instances
}

fn message(text: &str) -> InstanceMessage {
    InstanceMessage::ClientMessage {
        session: SessionId::generate().unwrap(),
        message: text.to_owned().into(),
    }
}

async fn receive(inbox: &mut InstanceInbox) -> Result<InstanceMessage, SubscriberLagged> {
    let received = timeout(Duration::from_secs(10), inbox.next()).await;
    received.unwrap()
}

/// Renews one lease until the lease of another instance must have expired.
async fn outlive_a_lease(registry: &dyn InstanceRegistry, renewed: &InstanceId) {
    for _ in 0..4 {
        sleep(INSTANCE_LEASE / 3).await;
        assert!(registry.renew(renewed).await.unwrap());
    }
}

async fn a_store_of_instances_is_shared(make: &impl AsyncFn(StoreLimits) -> Store) {
    assert!(make(StoreLimits::default()).await.is_shared());
}

async fn slots_are_unique_while_their_instances_live(make: &impl AsyncFn(StoreLimits) -> Store) {
    let registry = registry(make).await;
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(registry.join().await.unwrap());
    }

    let slots: HashSet<_> = ids.iter().map(|id| id.slot).collect();
    let nonces: HashSet<_> = ids.iter().map(|id| id.nonce).collect();
    assert_eq!((slots.len(), nonces.len()), (20, 20));
    for id in &ids {
        assert!(id.slot.number() < InstanceSlot::COUNT);
        assert!(registry.is_alive(id).await.unwrap());
        let other = InstanceId {
            nonce: id.nonce.wrapping_add(1),
            ..*id
        };
        assert!(!registry.is_alive(&other).await.unwrap());
        assert!(!registry.renew(&other).await.unwrap());
        // Another instance with the slot is not affected.
        registry.leave(&other).await.unwrap();
        assert!(registry.renew(id).await.unwrap());
    }
}

async fn an_instance_that_left_has_no_lease(make: &impl AsyncFn(StoreLimits) -> Store) {
    let registry = registry(make).await;
    let (stays, leaves) = (
        registry.join().await.unwrap(),
        registry.join().await.unwrap(),
    );

    registry.leave(&leaves).await.unwrap();

    assert!(!registry.is_alive(&leaves).await.unwrap());
    assert!(!registry.renew(&leaves).await.unwrap());
    assert!(!registry.send(leaves.slot, message("late")).await.unwrap());
    assert!(registry.is_alive(&stays).await.unwrap());
    registry.leave(&leaves).await.unwrap();
    outlive_a_lease(&*registry, &stays).await;
    assert_eq!(registry.take_expired().await.unwrap(), []);
}

async fn a_message_is_sent_to_the_instance_that_has_the_slot(
    make: &impl AsyncFn(StoreLimits) -> Store,
) {
    let registry = registry(make).await;
    let id = registry.join().await.unwrap();
    let mut inbox = registry.inbox(&id);
    let free = (0..InstanceSlot::COUNT).filter_map(InstanceSlot::new);
    let free = free.into_iter().find(|slot| *slot != id.slot).unwrap();

    assert!(!registry.send(free, message("lost")).await.unwrap());
    let sent = message("one");
    assert!(registry.send(id.slot, sent.clone()).await.unwrap());

    assert_eq!(receive(&mut inbox).await, Ok(sent));
}

async fn messages_arrive_in_order_and_only_at_their_receiver(
    make: &impl AsyncFn(StoreLimits) -> Store,
) {
    let registry = registry(make).await;
    let ids = [
        registry.join().await.unwrap(),
        registry.join().await.unwrap(),
    ];
    let mut inboxes = ids.map(|id| registry.inbox(&id));
    let messages: Vec<_> = (0..40).map(|number| message(&number.to_string())).collect();

    for (number, message) in messages.iter().enumerate() {
        let slot = ids[number % 2].slot;
        assert!(registry.send(slot, message.clone()).await.unwrap());
    }

    for (number, message) in messages.into_iter().enumerate() {
        assert_eq!(receive(&mut inboxes[number % 2]).await, Ok(message));
    }
}

async fn an_inbox_begins_when_it_is_opened(make: &impl AsyncFn(StoreLimits) -> Store) {
    let registry = registry(make).await;
    let earlier = registry.join().await.unwrap();
    let mut of_earlier = registry.inbox(&earlier);
    registry.leave(&earlier).await.unwrap();
    let mut joined = Vec::new();
    // Until one has the slot of the earlier instance, as far as the registry reuses it soon.
    for _ in 0..20 {
        joined.push(registry.join().await.unwrap());
    }

    for id in &joined {
        let mut inbox = registry.inbox(id);
        let sent = message("new");
        assert!(registry.send(id.slot, sent.clone()).await.unwrap());
        assert_eq!(receive(&mut inbox).await, Ok(sent));
    }

    let late = timeout(super::TICK * 2, of_earlier.next()).await;
    assert!(late.is_err(), "the instance has left");
}

async fn a_message_wakes_a_waiting_receiver(make: &impl AsyncFn(StoreLimits) -> Store) {
    let registry = registry(make).await;
    let id = registry.join().await.unwrap();
    let mut inbox = registry.inbox(&id);
    let waiting = tokio::spawn(async move { receive(&mut inbox).await });
    ticks(1).await;
    assert!(!waiting.is_finished());
    let sent = message("one");

    assert!(registry.send(id.slot, sent.clone()).await.unwrap());

    assert_eq!(waiting.await.unwrap(), Ok(sent));
}

async fn a_lease_expires_unless_it_is_renewed(make: &impl AsyncFn(StoreLimits) -> Store) {
    let registry = registry(make).await;
    let (renewed, expires) = (
        registry.join().await.unwrap(),
        registry.join().await.unwrap(),
    );
    sleep(INSTANCE_LEASE / 3).await;
    assert!(registry.is_alive(&expires).await.unwrap());

    outlive_a_lease(&*registry, &renewed).await;

    assert!(registry.is_alive(&renewed).await.unwrap());
    assert!(!registry.is_alive(&expires).await.unwrap());
    assert!(!registry.renew(&expires).await.unwrap());
    assert!(!registry.is_alive(&expires).await.unwrap());
    assert!(!registry.send(expires.slot, message("late")).await.unwrap());
}

async fn an_expired_instance_is_reported_once(make: &impl AsyncFn(StoreLimits) -> Store) {
    let registry = registry(make).await;
    let renewed = registry.join().await.unwrap();
    let mut expired = HashSet::new();
    for _ in 0..5 {
        expired.insert(registry.join().await.unwrap());
    }
    assert_eq!(registry.take_expired().await.unwrap(), []);
    outlive_a_lease(&*registry, &renewed).await;

    let callers: Vec<_> = std::iter::repeat_with(|| registry.clone())
        .take(4)
        .map(|registry| tokio::spawn(async move { registry.take_expired().await.unwrap() }))
        .collect();
    let mut reported = Vec::new();
    for caller in callers {
        reported.extend(caller.await.unwrap());
    }

    assert_eq!(reported.len(), 5);
    assert_eq!(reported.into_iter().collect::<HashSet<_>>(), expired);
    assert_eq!(registry.take_expired().await.unwrap(), []);
}
