//! The suite of instances notices registries that break its rules.

use std::{
    panic::resume_unwind,
    sync::{Arc, Mutex, MutexGuard},
    thread,
};

use turnbuckle_store::{
    BoxFuture, InstanceId, InstanceInbox, InstanceMessage, InstanceRegistry, InstanceSlot, Store,
    StoreError, StoreLimits, conformance,
};

/// What a registry does wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Defect {
    None,
    SaysItIsNotShared,
    GivesOneSlotToAll,
    RepeatsNonces,
    IgnoresNonces,
    NeverExpires,
    RenewsExpiredLeases,
    LeavingHasNoEffect,
    LeavingCountsAsExpired,
    ReportsExpiredTwice,
    ReportsNoExpired,
    SaysSentWithoutReceiver,
    LosesMessages,
    ReordersMessages,
    DeliversToAll,
}

const DEFECTS: [Defect; 14] = [
    Defect::SaysItIsNotShared,
    Defect::GivesOneSlotToAll,
    Defect::RepeatsNonces,
    Defect::IgnoresNonces,
    Defect::NeverExpires,
    Defect::RenewsExpiredLeases,
    Defect::LeavingHasNoEffect,
    Defect::LeavingCountsAsExpired,
    Defect::ReportsExpiredTwice,
    Defect::ReportsNoExpired,
    Defect::SaysSentWithoutReceiver,
    Defect::LosesMessages,
    Defect::ReordersMessages,
    Defect::DeliversToAll,
];

struct BrokenRegistry {
    inner: Arc<dyn InstanceRegistry>,
    defect: Defect,
    state: Mutex<RegistryState>,
}

#[derive(Default)]
struct RegistryState {
    joined: Vec<InstanceId>,
    left: Vec<InstanceId>,
    expired: Vec<InstanceId>,
    delayed: Option<InstanceMessage>,
}

impl BrokenRegistry {
    fn state(&self) -> MutexGuard<'_, RegistryState> {
        self.state.lock().unwrap()
    }

    async fn is_in_use(&self, slot: InstanceSlot) -> Result<bool, StoreError> {
        let joined = self.state().joined.clone();
        for id in joined.into_iter().filter(|id| id.slot == slot) {
            if self.inner.is_alive(&id).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl InstanceRegistry for BrokenRegistry {
    fn is_shared(&self) -> bool {
        self.defect != Defect::SaysItIsNotShared
    }

    fn join(&self) -> BoxFuture<'_, Result<InstanceId, StoreError>> {
        Box::pin(async {
            let mut id = self.inner.join().await?;
            let first = self.state().joined.first().copied();
            match (self.defect, first) {
                (Defect::GivesOneSlotToAll, Some(first)) => id.slot = first.slot,
                (Defect::RepeatsNonces, Some(first)) => id.nonce = first.nonce,
                _ => {}
            }
            self.state().joined.push(id);
            Ok(id)
        })
    }

    fn renew<'a>(&'a self, id: &'a InstanceId) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async {
            let renewed = self.inner.renew(id).await?;
            Ok(renewed
                || self.defect == Defect::RenewsExpiredLeases && self.state().joined.contains(id))
        })
    }

    fn leave<'a>(&'a self, id: &'a InstanceId) -> BoxFuture<'a, Result<(), StoreError>> {
        match self.defect {
            Defect::LeavingHasNoEffect => return Box::pin(async { Ok(()) }),
            Defect::LeavingCountsAsExpired => self.state().left.push(*id),
            _ => {}
        }
        self.inner.leave(id)
    }

    fn is_alive<'a>(&'a self, id: &'a InstanceId) -> BoxFuture<'a, Result<bool, StoreError>> {
        let joined = self.state().joined.clone();
        match self.defect {
            Defect::NeverExpires if joined.contains(id) => Box::pin(async { Ok(true) }),
            Defect::IgnoresNonces => {
                let id = joined.into_iter().find(|other| other.slot == id.slot);
                Box::pin(async move { self.inner.is_alive(&id.unwrap_or_default()).await })
            }
            _ => self.inner.is_alive(id),
        }
    }

    fn take_expired(&self) -> BoxFuture<'_, Result<Vec<InstanceId>, StoreError>> {
        Box::pin(async {
            let mut expired = self.inner.take_expired().await?;
            let mut state = self.state();
            match self.defect {
                Defect::ReportsNoExpired => expired.clear(),
                Defect::ReportsExpiredTwice => {
                    state.expired.extend(expired);
                    expired = state.expired.clone();
                }
                Defect::LeavingCountsAsExpired => expired.append(&mut state.left),
                _ => {}
            }
            Ok(expired)
        })
    }

    fn send(
        &self,
        slot: InstanceSlot,
        message: InstanceMessage,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            match self.defect {
                Defect::SaysSentWithoutReceiver => {
                    self.inner.send(slot, message).await?;
                    return Ok(true);
                }
                Defect::LosesMessages => return self.is_in_use(slot).await,
                Defect::ReordersMessages => {
                    let delayed = self.state().delayed.take();
                    if delayed.is_none() && self.is_in_use(slot).await? {
                        self.state().delayed = Some(message);
                        return Ok(true);
                    }
                    let sent = self.inner.send(slot, message).await?;
                    if let Some(delayed) = delayed {
                        self.inner.send(slot, delayed).await?;
                    }
                    return Ok(sent);
                }
                Defect::DeliversToAll => {
                    let joined = self.state().joined.clone();
                    for other in joined.into_iter().filter(|other| other.slot != slot) {
                        self.inner.send(other.slot, message.clone()).await?;
                    }
                }
                _ => {}
            }
            self.inner.send(slot, message).await
        })
    }

    fn inbox(&self, id: &InstanceId) -> InstanceInbox {
        self.inner.inbox(id)
    }
}

/// Runs the suite on a registry with a defect, in a thread of its own because it panics.
fn passes(defect: Defect) -> thread::Result<()> {
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without drivers starts");
        runtime.block_on(conformance::instances(async |limits: StoreLimits| {
            let mut store = Store::memory_with(limits).shared();
            store.instances = Arc::new(BrokenRegistry {
                inner: store.instances,
                defect,
                state: Mutex::default(),
            });
            store
        }));
    };
    thread::spawn(run).join()
}

#[test]
fn a_registry_without_defects_passes() {
    if let Err(panic) = passes(Defect::None) {
        resume_unwind(panic);
    }
}

#[test]
fn each_defect_is_noticed() {
    for defect in DEFECTS {
        assert!(passes(defect).is_err(), "{defect:?}");
    }
}
