//! The registry of instances in the memory of this process.

use std::{collections::BTreeMap, sync::Mutex};

use tokio::{sync::broadcast, time::Instant};

use super::{lock, ready};
use crate::{
    BoxFuture, INSTANCE_LEASE, InstanceId, InstanceInbox, InstanceMessage, InstanceRegistry,
    InstanceSlot, StoreError,
};

/// An [`InstanceRegistry`] for servers in this process.
#[derive(Debug)]
pub struct MemoryInstanceRegistry {
    is_shared: bool,
    table: Mutex<InstanceTable>,
}

#[derive(Debug, Default)]
struct InstanceTable {
    members: BTreeMap<InstanceSlot, Member>,
    /// Instances with expired leases, until they are taken.
    expired: Vec<InstanceId>,
    /// The slot to try first. Slots are reused as late as possible.
    next_slot: u16,
}

#[derive(Debug)]
struct Member {
    nonce: u64,
    lease_ends: Instant,
    /// Created with its inbox, because the channel allocates all entries at once.
    sender: Option<broadcast::Sender<InstanceMessage>>,
}

/// Messages that an inbox holds for a receiver that is busy.
const INBOX_CAPACITY: usize = 1_024;

impl MemoryInstanceRegistry {
    /// Creates a registry for several servers that share a store.
    pub fn shared() -> Self {
        Self {
            is_shared: true,
            table: Mutex::default(),
        }
    }

    /// Creates a registry for a store that one server uses alone. It then does not join.
    pub fn unshared() -> Self {
        Self {
            is_shared: false,
            table: Mutex::default(),
        }
    }

    /// Locks the table, without expired members.
    fn with_table<T>(&self, run: impl FnOnce(&mut InstanceTable, Instant) -> T) -> T {
        let now = Instant::now();
        let table = &mut *lock(&self.table);
        table.remove_expired(now);
        run(table, now)
    }
}

impl InstanceTable {
    fn remove_expired(&mut self, now: Instant) {
        let expired = &mut self.expired;
        self.members.retain(|slot, member| {
            let is_alive = member.lease_ends > now;
            if !is_alive {
                let (slot, nonce) = (*slot, member.nonce);
                expired.push(InstanceId { slot, nonce });
            }
            is_alive
        });
    }

    fn join(&mut self, now: Instant) -> Result<InstanceId, StoreError> {
        let mut slots = (0..InstanceSlot::COUNT)
            .map(|offset| (self.next_slot + offset) % InstanceSlot::COUNT)
            .filter_map(InstanceSlot::new);
        let free = slots.find(|slot| !self.members.contains_key(slot));
        let slot = free.ok_or(StoreError::Full { what: "instance" })?;
        let mut nonce = [0; 8];
        getrandom::fill(&mut nonce).map_err(StoreError::unavailable)?;
        let nonce = u64::from_ne_bytes(nonce);
        let member = Member {
            nonce,
            lease_ends: now + INSTANCE_LEASE,
            sender: None,
        };
        self.members.insert(slot, member);
        self.next_slot = (slot.number() + 1) % InstanceSlot::COUNT;
        Ok(InstanceId { slot, nonce })
    }

    fn member(&mut self, id: &InstanceId) -> Option<&mut Member> {
        let member = self.members.get_mut(&id.slot);
        member.filter(|member| member.nonce == id.nonce)
    }
}

impl InstanceRegistry for MemoryInstanceRegistry {
    fn is_shared(&self) -> bool {
        self.is_shared
    }

    fn join(&self) -> BoxFuture<'_, Result<InstanceId, StoreError>> {
        ready(|| self.with_table(InstanceTable::join))
    }

    fn renew<'a>(&'a self, id: &'a InstanceId) -> BoxFuture<'a, Result<bool, StoreError>> {
        ready(|| {
            Ok(self.with_table(|table, now| {
                let member = table.member(id);
                member
                    .map(|member| member.lease_ends = now + INSTANCE_LEASE)
                    .is_some()
            }))
        })
    }

    fn leave<'a>(&'a self, id: &'a InstanceId) -> BoxFuture<'a, Result<(), StoreError>> {
        ready(|| {
            self.with_table(|table, _| {
                if table.member(id).is_some() {
                    table.members.remove(&id.slot);
                }
            });
            Ok(())
        })
    }

    fn is_alive<'a>(&'a self, id: &'a InstanceId) -> BoxFuture<'a, Result<bool, StoreError>> {
        ready(|| Ok(self.with_table(|table, _| table.member(id).is_some())))
    }

    fn take_expired(&self) -> BoxFuture<'_, Result<Vec<InstanceId>, StoreError>> {
        ready(|| Ok(self.with_table(|table, _| std::mem::take(&mut table.expired))))
    }

    fn send(
        &self,
        slot: InstanceSlot,
        message: InstanceMessage,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        ready(move || {
            Ok(self.with_table(|table, _| {
                let member = table.members.get(&slot);
                if let Some(sender) = member.and_then(|member| member.sender.as_ref()) {
                    // Fails only if the receiver no longer reads its inbox.
                    let _ = sender.send(message);
                }
                member.is_some()
            }))
        })
    }

    fn inbox(&self, id: &InstanceId) -> InstanceInbox {
        self.with_table(|table, _| match table.member(id) {
            Some(member) => {
                let sender = member
                    .sender
                    .get_or_insert_with(|| broadcast::Sender::new(INBOX_CAPACITY));
                InstanceInbox::new(sender.subscribe())
            }
            // Its sender is gone, so nothing arrives.
            None => InstanceInbox::new(broadcast::Sender::new(1).subscribe()),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_registry_is_full_until_a_slot_is_free_again() {
        let registry = MemoryInstanceRegistry::shared();
        let mut last = InstanceId::default();
        for _ in 0..InstanceSlot::COUNT {
            last = registry.join().await.unwrap();
        }

        let full = registry.join().await;
        registry.leave(&last).await.unwrap();
        let again = registry.join().await.unwrap();

        assert!(matches!(full, Err(StoreError::Full { .. })));
        assert_eq!(again.slot, last.slot);
        assert_ne!(again, last);
    }

    #[tokio::test(start_paused = true)]
    async fn a_free_slot_is_reused_after_all_others() {
        let registry = MemoryInstanceRegistry::shared();
        let first = registry.join().await.unwrap();
        registry.leave(&first).await.unwrap();

        let second = registry.join().await.unwrap();

        assert_ne!(second.slot, first.slot);
    }

    #[tokio::test(start_paused = true)]
    async fn an_instance_without_an_inbox_loses_its_messages() {
        let registry = MemoryInstanceRegistry::shared();
        let id = registry.join().await.unwrap();
        let message = || InstanceMessage::ClientMessage {
            session: crate::SessionId::generate().unwrap(),
            message: "{}".into(),
        };

        assert!(registry.send(id.slot, message()).await.unwrap());
        let mut inbox = registry.inbox(&id);

        let received = tokio::time::timeout(Duration::from_secs(1), inbox.next()).await;
        assert!(received.is_err());
    }
}
